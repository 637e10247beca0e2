"""The ranking of a whole window equals a naive ranking of all arrivals."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import StateError
from rsp_engine.model.windows import Pane
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.acquatop.whole_window import WholeWindow
from rsp_engine.operators.topk.contract import TopkOperatorConfig
from tests.thoroughness import examples

SCORES = {
    "sum": lambda streaming, remote: streaming + remote,
    "product": lambda streaming, remote: streaming * remote,  # neither rises nor falls
}


@dataclass
class Arrival:
    """An arrival with its current remote value."""

    pane: Pane
    key: int
    position: int
    streaming: float
    remote: float


@dataclass
class Naive:
    """A naive evaluation: it keeps all arrivals, and scans them each time."""

    name: str
    arrivals: list[Arrival] = field(default_factory=list)
    vanished: set[int] = field(default_factory=set)

    def arrive(self, pane: Pane, rows: list[tuple[int, int, float, float]]) -> None:
        self.arrivals += [Arrival(pane, *row) for row in rows]
        self.vanished -= {key for key, _, _, remote in rows if not isnan(remote)}

    def change(self, changes: list[tuple[int, float]]) -> None:
        for key, remote in changes:
            (self.vanished.add if isnan(remote) else self.vanished.discard)(key)
            for arrival in self.arrivals:
                if arrival.key == key:
                    arrival.remote = remote

    def score(self, arrival: Arrival) -> float:
        return float(SCORES[self.name](arrival.streaming, arrival.remote))

    def latest(self, window: int) -> list[Arrival]:
        def precedence(arrival: Arrival) -> tuple[float, ...]:
            score = self.score(arrival)
            known = (False, 0) if isnan(score) else (True, score)
            return (arrival.position, arrival.streaming, *known, arrival.pane.last)

        inside = [a for a in self.arrivals if a.pane.first <= window <= a.pane.last]
        keys = {arrival.key for arrival in inside}
        return [max((a for a in inside if a.key == key), key=precedence) for key in keys]

    def ranked(self, window: int) -> list[tuple[int, float, int]]:
        known = [a for a in self.latest(window) if not isnan(self.score(a))]
        known.sort(key=lambda a: (self.score(a), a.position, a.key), reverse=True)
        return [(a.key, self.score(a), a.pane.last) for a in known]

    def unknown(self, window: int) -> set[int]:
        latest = (a for a in self.latest(window) if isnan(self.score(a)))
        return {a.key for a in latest if a.key not in self.vanished}

    def close(self, window: int) -> None:
        self.vanished &= {a.key for a in self.arrivals if a.pane.last > window}


keys = st.integers(0, 5)
values = st.integers(-2, 2).map(float)
remotes = st.one_of(values, st.just(nan))
rows = st.lists(st.tuples(keys, st.integers(0, 6), values, remotes), max_size=6)
steps = st.one_of(
    st.tuples(st.just("arrive"), st.tuples(st.integers(0, 2), st.integers(0, 2)), rows),
    st.tuples(st.just("change"), st.lists(st.tuples(keys, remotes), max_size=3)),
    st.tuples(st.just("look"), st.integers(0, 2)),
    st.tuples(st.just("close"), st.integers(0, 2)),
    st.tuples(st.just("save")),
)


@examples(200)
@given(st.integers(1, 3), st.sampled_from(sorted(SCORES)), st.lists(steps, max_size=25))
def test_the_ranking_is_the_naive_one_after_any_steps(k, name, taken):
    """Panes begin anywhere after the window that closed, so late arrivals are among them."""
    operator, naive, closed = WholeWindow(TopkOperatorConfig(k), SCORES[name]), Naive(name), -1
    for step in taken:
        match step:
            case ("arrive", (ahead, long), batch):
                pane = Pane(closed + 1 + ahead, closed + 1 + ahead + long)
                operator.arrive(pane, *columns(batch, 4))
                naive.arrive(pane, batch)
            case ("change", changes):
                operator.change(*columns(changes, 2))
                naive.change(changes)
            case ("look", ahead):
                window = closed + 1 + ahead
                operator.settle(window)
                found = zip(operator.keys, operator.scores, operator.ends, strict=True)
                assert list(found) == naive.ranked(window)
                assert set(operator.unknown.tolist()) == naive.unknown(window)
            case ("close", ahead):
                closed += 1 + ahead
                ranking, expected = operator.close(closed), naive.ranked(closed)[:k]
                assert ranking.window == closed
                assert ranking.keys.tolist() == [key for key, _, _ in expected]
                assert ranking.scores.tolist() == [score for _, score, _ in expected]
                assert ranking.is_exact == ranking.has_exact_set == (not naive.unknown(closed))
                naive.close(closed)
            case _:
                saved = json.loads(json.dumps(operator.state()))
                operator = WholeWindow.restored(TopkOperatorConfig(k), SCORES[name], saved)
        operator._check()


def columns(batch: list[tuple[float, ...]], count: int) -> list[list[float]]:
    return [list(column) for column in zip(*batch, strict=True)] or [[] for _ in range(count)]


@examples(100)
@given(
    st.lists(st.tuples(keys, st.integers(0, 6), values, values), min_size=1, max_size=12),
    st.lists(st.tuples(keys, values), max_size=4),
    st.data(),
)
def test_batches_and_their_order_do_not_matter(batch, changes, data):
    remote = {key: value for key, _, _, value in batch}
    batch = [(key, position, streaming, remote[key]) for key, position, streaming, _ in batch]
    pane = Pane(0, 1)
    whole = WholeWindow(TopkOperatorConfig(3), SCORES["product"])
    whole.arrive(pane, *columns(batch, 4))
    parts = WholeWindow(TopkOperatorConfig(3), SCORES["product"])
    for row in data.draw(st.permutations(batch)):
        parts.arrive(pane, *columns([row], 4))
        if data.draw(st.booleans()):
            assert len(parts) <= len(remote)  # which ranks what came so far
    for operator in (whole, parts):
        operator.change(*columns(changes, 2))
    for window in (0, 1):
        one, other = whole.close(window), parts.close(window)
        assert one.keys.tolist() == other.keys.tolist()
        assert one.scores.tolist() == other.scores.tolist()


@examples(100)
@given(
    st.lists(st.tuples(keys, values, values), max_size=12),
    st.lists(st.tuples(keys, values), max_size=6),
)
def test_a_list_that_holds_everything_ranks_the_same(batch, changes):
    """Topk+N with room for all is the whole window."""
    remote = {key: value for key, _, value in batch}
    listed = TopkN(TopkNConfig(3, n=20), SCORES["sum"])
    whole = WholeWindow(TopkOperatorConfig(3), SCORES["sum"])
    for operator in (listed, whole):
        for position, (key, streaming, _) in enumerate(batch):
            pane = Pane(position // 4, position // 4 + 1)
            operator.arrive(pane, [key], [position], [streaming], [remote[key]])
    for window in range(4):
        for operator in (listed, whole):
            operator.settle(window)
            operator.change(*columns(changes, 2))
        assert whole.keys.tolist() == listed.keys.tolist()
        assert whole.ends.tolist() == listed.ends.tolist()
        expected, found = listed.close(window), whole.close(window)
        assert found.keys.tolist() == expected.keys.tolist()
        assert found.scores.tolist() == expected.scores.tolist()


def made() -> WholeWindow:
    operator = WholeWindow(TopkOperatorConfig(2), SCORES["sum"])
    operator.arrive(Pane(0, 1), [0, 1], [1, 2], [1.0, 2.0], [1.0, nan])
    return operator


def test_an_object_without_a_remote_value_is_told_and_makes_the_answer_inexact():
    operator = made()
    operator.arrive(Pane(0, 0), [7], [3], [9.0], [nan])
    operator.settle(0)
    assert operator.unknown.tolist() == [7, 1]  # the largest of the stream first
    ranking = operator.close(0)
    assert (ranking.keys.tolist(), ranking.is_exact) == ([0], False)


def test_an_object_that_vanished_is_left_out_and_the_answer_is_exact():
    operator = made()
    operator.change([1, 0], [nan, nan])
    assert operator.unknown.tolist() == []
    ranking = operator.close(0)
    assert (ranking.keys.tolist(), ranking.is_exact) == ([], True)
    operator.change([0], [4.0])
    assert operator.close(1).keys.tolist() == [0]


def test_a_change_reaches_arrivals_of_windows_to_come():
    operator = made()
    operator.arrive(Pane(3, 3), [1], [9], [5.0], [0.0])
    operator.change([1], [2.0])
    assert operator.close(3).scores.tolist() == [7.0]


def test_of_two_arrivals_at_once_the_larger_of_the_stream_counts_whatever_changes():
    operator = WholeWindow(TopkOperatorConfig(1), SCORES["product"])
    operator.arrive(Pane(0, 0), [0, 0], [1, 1], [2.0, 3.0], [1.0, 1.0])
    assert operator.scores.tolist() == [3.0]
    operator.change([0], [-1.0])
    assert operator.close(0).scores.tolist() == [-3.0]


def test_older_arrivals_of_a_pane_are_forgotten():
    operator = WholeWindow(TopkOperatorConfig(1), SCORES["sum"])
    for position in range(50):
        operator.arrive(Pane(0, 9), [0, 0], [position, position], [1.0, 1.0], [1.0, 1.0])
        operator.settle(0)
        assert len(operator) == 1
    [rows] = operator.state()["inflow"]["panes"].values()
    assert [position for _, position, *_ in rows] == [49, 49]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (([1], [1], [1.0], []), "equal length"),
        (([[1]], [1], [1.0], [1.0]), "one dimension"),
        (([-1], [1], [1.0], [1.0]), "must not be negative"),
        (([1], [1], [nan], [1.0]), "must be a number"),
    ],
)
def test_a_bad_batch_is_refused_and_leaves_everything_as_it_was(batch, message):
    operator = made()
    before = operator.state()
    with pytest.raises(ValueError, match=message):
        operator.arrive(Pane(0, 0), *batch)
    assert str(operator.state()) == str(before)


def test_windows_that_have_closed_take_nothing_and_do_not_close_again():
    operator = made()
    operator.close(0)
    with pytest.raises(ValueError, match="has closed"):
        operator.arrive(Pane(0, 1), [1], [1], [1.0], [1.0])
    with pytest.raises(ValueError, match="in no window"):
        operator.arrive(Pane(2, 1), [1], [1], [1.0], [1.0])
    for again in (operator.close, operator.settle):
        with pytest.raises(ValueError, match="has closed already"):
            again(0)


def test_a_score_that_cannot_be_worked_out_leaves_everything_as_it_was():
    operator = WholeWindow(
        TopkOperatorConfig(1), lambda streaming, remote: np.sqrt(streaming + remote)
    )
    operator.arrive(Pane(0, 1), [0, 1], [1, 2], [1.0, 2.0], [0.0, 0.0])
    before = operator.state()
    with pytest.raises(ValueError, match="must be a number"):
        operator.change([0], [-9.0])
    assert operator.state() == before
    with pytest.raises(ValueError, match="equal length"):
        operator.change([0], [])


def test_a_state_of_another_kind_is_refused():
    saved = made().state()
    with pytest.raises(StateError, match="another configuration"):
        WholeWindow.restored(TopkOperatorConfig(3), SCORES["sum"], saved)
    with pytest.raises(StateError, match="not of WholeWindow"):
        WholeWindow.restored(TopkOperatorConfig(2), SCORES["sum"], {**saved, "operator": "Topk+N"})
