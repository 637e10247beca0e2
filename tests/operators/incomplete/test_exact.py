"""SLA, EAA and the oracle, compared with brute force in every window."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import StateError
from rsp_engine.model.windows import Pane
from rsp_engine.operators.incomplete.eaa import EAA
from rsp_engine.operators.incomplete.observations import IncompleteOperatorConfig, as_observations
from rsp_engine.operators.incomplete.oracle import IncompleteOracle
from rsp_engine.operators.incomplete.sla import SLA
from tests.operators.incomplete.runs import Run, brute_force, feed, runs
from tests.thoroughness import examples


class Narrow(SLA):
    """SLA with no room to spare: the threshold algorithm has to run again and again."""

    def __init__(self, config: IncompleteOperatorConfig) -> None:
        super().__init__(config, config.k)

    @classmethod
    def restored(cls, config, state):  # type: ignore[override]
        return SLA.restored(config, state, config.k)


class Eager(EAA):
    """EAA that drops what it can before every answer."""

    def close(self, window):
        self._new = 1_000_000
        return super().close(window)


class Thorough(Eager):
    """EAA that looks for dominators pane by pane."""

    _is_thorough = True


FAMILY: list[Any] = [IncompleteOracle, SLA, Narrow, EAA, Eager]


def checked(operator: Any) -> None:
    if not isinstance(operator, IncompleteOracle):
        operator._check()


@pytest.mark.parametrize("made", FAMILY)
@examples(60)
@given(runs())
def test_every_operator_gives_the_ranking_of_brute_force(made, run: Run):
    operator = made(run.config)
    k = run.config.k
    for window, parts in enumerate(run.parts):
        for part in parts:
            feed(operator, part)
        found, expected = operator.close(window), brute_force(run, window)
        assert found.keys.tolist() == [key for _, _, key in expected[:k]]
        assert found.scores.tolist() == [score for score, _, _ in expected[:k]]
        assert found.is_exact
        border = expected[k - 1][0] if len(expected) >= k else -1
        assert set(operator.near().tolist()) == {key for s, _, key in expected if s >= border}
        checked(operator)


@pytest.mark.parametrize("made", FAMILY)
@examples(20)
@given(runs(), st.sets(st.integers(0, 13)))
def test_a_run_can_be_cut_anywhere(made, run: Run, where):
    operator = made(run.config)
    for window, parts in enumerate(run.parts):
        for part in parts:
            feed(operator, part)
            if window in where:
                state = json.loads(json.dumps(operator.state()))
                operator = made.restored(run.config, state)
                assert json.loads(json.dumps(operator.state())) == state
        expected = brute_force(run, window)[: run.config.k]
        assert operator.close(window).keys.tolist() == [key for _, _, key in expected]
        checked(operator)


@pytest.mark.parametrize("made", FAMILY)
def test_a_state_fits_its_own_configuration_only(made):
    state = made(IncompleteOperatorConfig(2, (1.0,))).state()
    with pytest.raises(StateError, match="k was 2, and is 3"):
        made.restored(IncompleteOperatorConfig(3, (1.0,)), state)
    with pytest.raises(StateError, match="a state of"):
        made.restored(IncompleteOperatorConfig(2, (1.0,)), {**state, "operator": "Other"})


@pytest.mark.parametrize("made", FAMILY)
def test_a_late_observation_counts_beside_all_that_expire_later(made):
    operator = made(IncompleteOperatorConfig(1, (1.0, 1.0, 1.0)))
    operator.arrive(Pane(0, 3), as_observations([0], [7], [3], [1.0]))
    operator.arrive(Pane(0, 4), as_observations([1], [7], [4], [0.5]))
    operator.close(0)
    operator.arrive(Pane(1, 2), as_observations([2], [7], [2], [0.25]))
    found = [operator.close(window).scores.tolist() for window in range(1, 6)]
    assert found == [[1.75], [1.75], [1.5], [0.5], []]


@examples(60)
@given(runs(keys=20))
def test_the_threshold_algorithm_has_to_run_and_stops_early(run: Run):
    """The objects that it meets include the best; `test_it_stops_early` checks that it stops."""
    operator = Narrow(run.config)
    for window, parts in enumerate(run.parts):
        for part in parts:
            feed(operator, part)
        operator.close(window)
        ranks = sorted(r for r in map(operator._rank, operator._objects) if r[0] >= 0)[::-1]
        met = sorted(operator._search(run.config.k))[::-1]
        assert met[: run.config.k] == ranks[: run.config.k]


def test_it_stops_early():
    """Of 100 objects that have the same place in both lists, it meets a few."""
    operator = SLA(IncompleteOperatorConfig(2, (1.0, 1.0)))
    keys = list(range(100))
    values = [key / 128 for key in keys]
    for stream in (0, 1):
        operator.arrive(Pane(0, 0), as_observations([stream] * 100, keys, keys, values))
    assert operator.close(0).keys.tolist() == [99, 98]
    assert {key for *_, key in operator._search(2)} == {99, 98, 97}


def test_the_view_is_filled_again_when_fewer_than_k_are_left():
    operator = SLA(IncompleteOperatorConfig(1, (1.0,)), k_max=2)
    for window, value in enumerate([1.0, 0.75, 0.5, 0.25]):
        operator.arrive(Pane(0, window), as_observations([0], [window], [window], [value]))
    found = [operator.close(window).keys.tolist() for window in range(4)]
    assert found == [[0], [1], [2], [3]]
    assert operator.computed == 1  # the view had 0 and 1; the last two were found together


@examples(60)
@given(runs())
def test_intervals_only_shrink(run: Run):
    operator = EAA(run.config)
    before: dict[tuple[int, int], tuple[float, float]] = {}
    with patch.object(EAA, "prune", lambda _: None):
        for window, parts in enumerate(run.parts):
            for part in parts:
                feed(operator, part)
            operator.close(window)
            held = operator._instances.columns
            columns = held.keys, held.ends, held.scores, operator.bests(held)
            now = {(k, e): (c, b) for k, e, c, b in zip(*map(list, columns), strict=True)}
            for instance in before.keys() & now.keys():
                assert before[instance][0] <= now[instance][0]
                assert now[instance][1] <= before[instance][1]
            before = now


def dominates(one: tuple[int, int, float, float], other: tuple[int, int, float, float]) -> bool:
    """Return whether an instance (object, end, scores) dominates another one."""
    return one[0] != other[0] and one[1] >= other[1] and one[2] > other[3]


def instances(operator: EAA) -> list[tuple[int, int, float, float]]:
    held = operator._instances.columns
    columns = held.keys, held.ends, held.scores, operator.bests(held)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@examples(40)
@given(runs())
def test_dominance_is_persistent_and_transitive(run: Run):
    operator = EAA(run.config)
    pairs: set[tuple[tuple[int, int], tuple[int, int]]] = set()
    with patch.object(EAA, "prune", lambda _: None):
        for window, parts in enumerate(run.parts):
            for part in parts:
                feed(operator, part)
            operator.close(window)
            held = instances(operator)
            now = {(p[:2], q[:2]) for p in held for q in held if dominates(p, q)}
            alive = {p[:2] for p in held}
            assert {pair for pair in pairs if pair[1] in alive} <= now
            for p, q in now:
                assert {(p, r) for other, r in now if other == q} <= now
            pairs = now


@examples(60)
@given(runs())
def test_dropped_instances_are_outside_the_k_dominance_set_and_never_enter_an_answer(run: Run):
    """One operator keeps all; what the other drops is dominated by k objects, and never ranks."""
    all_kept, operator = EAA(run.config), Eager(run.config)
    outside: set[tuple[int, int]] = set()
    for window, parts in enumerate(run.parts):
        for part in parts:
            feed(all_kept, part)
            feed(operator, part)
        with patch.object(EAA, "prune", lambda _: None):
            ranking = all_kept.close(window)
        operator.close(window)
        held = instances(all_kept)
        k = run.config.k
        outside |= {q[:2] for q in held if len({p[0] for p in held if dominates(p, q)}) >= k}
        oldest = {p[0]: p[:2] for p in reversed(held)}
        answer = {oldest[key] for key in ranking.keys.tolist()}
        assert not answer & outside
        kept = {p[:2] for p in instances(operator)}
        assert {p[:2] for p in held} - outside <= kept  # necessary


@examples(60)
@given(runs())
def test_pane_by_pane_the_k_dominance_set_is_all_that_is_kept(run: Run):
    """Blocks of several panes keep a few more; of one pane each, they keep what is necessary."""
    operator = Thorough(run.config)
    for window, parts in enumerate(run.parts):
        for part in parts:
            feed(operator, part)
        operator.close(window)
        held = instances(operator)
        for q in held:
            assert len({p[0] for p in held if dominates(p, q)}) < run.config.k


def test_answers_are_inexact_as_long_as_a_violation_of_the_configuration_matters():
    operator = EAA(IncompleteOperatorConfig(1, (1.0, 1.0)))
    operator.arrive(Pane(0, 2), as_observations([0, 1], [1, 2], [1, 2], [0.5, 1.0]))
    assert operator.close(0).is_exact
    operator.arrive(Pane(1, 3), as_observations([0], [3], [3], [1.5]))  # more than the largest
    operator.arrive(Pane(4, 6), as_observations([0], [4], [9], [1.0]))
    assert [operator.close(window).is_exact for window in (1, 2, 3, 4)] == [False] * 3 + [True]
    operator.arrive(Pane(5, 7), as_observations([0], [4], [12], [1.0]))  # and once more than once
    assert not operator.close(5).is_exact


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"k": 0, "highs": (1.0,)}, "k must be"),
        ({"k": 1, "highs": ()}, "each stream needs"),
        ({"k": 1, "highs": (-1.0,)}, "each stream needs"),
        ({"k": 1, "highs": (1.0,), "most": (0,)}, "at least once"),
        ({"k": 1, "highs": (1.0,), "function": "max"}, "over all values"),
        ({"k": 1, "highs": (1.0,), "required": (1,)}, "only 1 streams"),
        ({"k": 1, "highs": (1.0,), "required": (0,)}, "in the window"),
    ],
)
def test_an_invalid_configuration_is_refused(given, wrong):
    with pytest.raises(ValueError, match=wrong):
        IncompleteOperatorConfig(**given)


@pytest.mark.parametrize("made", FAMILY)
def test_invalid_observations_are_refused(made):
    operator = made(IncompleteOperatorConfig(1, (1.0,)))
    with pytest.raises(ValueError, match="not below 0"):
        as_observations([0], [1], [1], [-0.5])
    with pytest.raises(ValueError, match="not below 0"):
        as_observations([0], [1], [1], [float("nan")])
    with pytest.raises(ValueError, match="as many"):
        as_observations([0], [1, 2], [1], [0.5])
    with pytest.raises(ValueError, match="numbered from 0"):
        operator.arrive(Pane(0, 0), as_observations([1], [1], [1], [0.5]))
    operator.close(0)
    with pytest.raises(ValueError, match="has closed"):
        operator.arrive(Pane(0, 1), as_observations([0], [1], [1], [0.5]))
    with pytest.raises(ValueError, match="closed already"):
        operator.close(0)
