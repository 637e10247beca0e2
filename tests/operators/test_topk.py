"""Top-k operators: every operator returns the oracle's ranking for every window."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rsp_engine.errors import StateError
from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.sap.sap import Sap, SapConfig
from rsp_engine.operators.topk.baselines.oracle import Oracle
from rsp_engine.operators.topk.baselines.pretopk import PreTopk
from rsp_engine.operators.topk.baselines.skyband import KSkyband
from rsp_engine.operators.topk.baselines.sma import Sma, SmaConfig
from rsp_engine.operators.topk.contract import TopkOperatorConfig, as_arrivals, in_panes
from rsp_engine.operators.topk.dominance import dominators
from rsp_engine.operators.topk.mintopk import MinTopk
from rsp_engine.operators.topk.rankers import ranker_config
from rsp_engine.operators.topk.score_threshold import Border
from rsp_engine.operators.topk.super_mtk_list import SuperMTKList
from tests.operators.topk_runs import Run, feed, late_runs, runs
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.operators.sap.partition_size import Partitioning


class Alone(TopkN):
    """Topk+N without a remote side: its score is that of the stream."""

    def __init__(self, config: TopkOperatorConfig, n: int = 0) -> None:
        super().__init__(TopkNConfig(config.k, n), lambda streaming, remote: streaming + remote)

    def arrive(self, pane, keys, positions, scores):  # type: ignore[override]
        super().arrive(pane, keys, positions, scores, np.zeros(len(scores)))

    @classmethod
    def restored(cls, config, state):  # type: ignore[override]
        made = cls(config)
        again = TopkN.restored(made.config, made._score, state)
        made.__dict__.update(again.__dict__)
        return made


def sap(partitioning: Partitioning, slides: int, s: int | None) -> type[Sap]:
    """Return SAP configured for a number of slides, which need not be that of the windows."""

    class Partitioned(Sap):
        def __init__(self, config: TopkOperatorConfig) -> None:
            super().__init__(SapConfig(config.k, slides, s, partitioning))

        @classmethod
        def restored(cls, config, state):
            return Sap.restored(SapConfig(config.k, slides, s, partitioning), state)

    Partitioned.__name__ = f"{partitioning}{slides}"
    return Partitioned


def sma(index: Literal["grid", "ring"], spare: int) -> type[Sma]:
    """Return SMA with a k_max that exceeds k by a number."""

    class Scanning(Sma):
        def __init__(self, config: TopkOperatorConfig) -> None:
            super().__init__(SmaConfig(config.k, config.k + spare, index))

        @classmethod
        def restored(cls, config, state):
            return Sma.restored(SmaConfig(config.k, config.k + spare, index), state)

    Scanning.__name__ = index
    return Scanning


SAP = [sap("equal", 5, 2), sap("dynamic", 4, 1), sap("enhanced", 9, None)]
BASELINES = [KSkyband, sma("grid", 0), sma("ring", 2)]
FAMILY = [PreTopk, MinTopk, Alone, *SAP, *BASELINES]


@pytest.mark.parametrize("operator", FAMILY)
@examples(200)
@given(runs())
def test_every_operator_gives_the_ranking_of_the_oracle(operator, run: Run):
    oracle, clever = Oracle(run.config), operator(run.config)
    for window, parts in enumerate(run.batches):
        for part in parts:
            feed(oracle, part, run)
            feed(clever, part, run)
        expected, found = oracle.close(window), clever.close(window)
        assert found.keys.tolist() == expected.keys.tolist()
        assert found.scores.tolist() == expected.scores.tolist()
        assert found.is_exact
        assert found.has_exact_set
        if operator is not PreTopk:
            clever._check()


@pytest.mark.parametrize("operator", FAMILY)
@examples(100)
@given(late_runs())
def test_arrivals_that_come_late_rank_by_when_they_came(operator, run: Run):
    oracle, clever = Oracle(run.config), operator(run.config)
    for window, [part] in enumerate(run.batches):
        for one in (oracle, clever):
            feed(one, part, run, window - 1)
        expected, found = oracle.close(window), clever.close(window)
        assert found.keys.tolist() == expected.keys.tolist()
        if operator is not PreTopk:
            clever._check()


@examples(200)
@given(runs())
def test_the_list_is_the_union_of_the_predicted_answers(run: Run):
    """Lemma 3.1: the union of the predicted top-k lists is the candidate set of MinTopk."""
    predicted = PreTopk(run.config)
    others: list[MinTopk | Alone] = [MinTopk(run.config), Alone(run.config)]
    for window, parts in enumerate(run.batches):
        for one in (predicted, *others):
            for part in parts:
                feed(one, part, run)
        predicted.close(window)
        later = range(window + 1, window + 20)
        union = set().union(*(predicted.predicted(index) for index in later))
        for one in others:
            one.close(window)
            listed = one.candidates()
            assert {c.key for c in listed} == union
            for index in later:
                inside = {c.key for c in listed if c.start <= index <= c.end}
                assert inside == predicted.predicted(index)


@pytest.mark.parametrize("operator", [Oracle, *FAMILY])
@examples(60)
@given(runs(), st.data())
def test_a_state_written_and_read_back_at_any_point_changes_nothing(operator, run: Run, data):
    straight, broken = operator(run.config), operator(run.config)
    breaks = data.draw(st.sets(st.integers(0, len(run.batches) - 1), max_size=3))
    for window, parts in enumerate(run.batches):
        for part in parts:
            feed(straight, part, run)
            feed(broken, part, run)
            if window in breaks:
                broken = operator.restored(run.config, json.loads(json.dumps(broken.state())))
        left, right = straight.close(window), broken.close(window)
        assert left.keys.tolist() == right.keys.tolist()
        assert left.scores.tolist() == right.scores.tolist()
        if window in breaks:
            broken = operator.restored(run.config, json.loads(json.dumps(broken.state())))


def test_a_state_of_something_else_is_refused_by_name():
    state = MinTopk(TopkOperatorConfig(2)).state()
    with pytest.raises(StateError, match="a state of MinTopk, not of PreTopk"):
        PreTopk.restored(TopkOperatorConfig(2), state)
    with pytest.raises(StateError, match="another configuration"):
        MinTopk.restored(TopkOperatorConfig(3), state)
    with pytest.raises(StateError, match="version 99"):
        MinTopk.restored(TopkOperatorConfig(2), {**state, "version": 99})


@pytest.mark.parametrize("operator", [Oracle, *FAMILY])
def test_an_operator_takes_no_state_of_another_and_of_no_other_k(operator):
    other = MinTopk if operator is Oracle else Oracle
    with pytest.raises(StateError, match=f"a state of {other.__name__}, not of "):
        operator.restored(TopkOperatorConfig(2), other(TopkOperatorConfig(2)).state())
    with pytest.raises(StateError, match="another configuration"):
        operator.restored(TopkOperatorConfig(3), operator(TopkOperatorConfig(2)).state())


@pytest.mark.parametrize("operator", [Oracle, *FAMILY])
def test_arrivals_that_wait_for_their_window_are_saved(operator):
    config = TopkOperatorConfig(1)
    made = operator(config)
    made.arrive(Pane(0, 0), [1], [5], [3.0])
    again = operator.restored(config, json.loads(json.dumps(made.state())))
    assert again.close(0).keys.tolist() == [1]


@pytest.mark.parametrize("operator", [Oracle, *FAMILY])
def test_a_restored_operator_knows_which_windows_have_closed(operator):
    config = TopkOperatorConfig(1)
    made = operator(config)
    made.arrive(Pane(0, 3), [1], [5], [3.0])
    made.close(2)
    again = operator.restored(config, json.loads(json.dumps(made.state())))
    with pytest.raises(ValueError, match="window 2 has closed"):
        again.arrive(Pane(2, 3), [2], [6], [4.0])
    with pytest.raises(ValueError, match="window 2 has closed already"):
        again.close(2)
    assert again.close(3).keys.tolist() == [1]


@pytest.mark.parametrize(("key", "best"), [(9, 9), (2, 3)])
def test_sma_ranks_a_late_arrival_that_ties_with_its_floor_by_key(key, best):
    made = Sma(SmaConfig(1, 1))
    made.arrive(Pane(0, 3), [3], [5], [5.0])
    made.arrive(Pane(0, 4), [1], [6], [4.0])  # is cut from the list, so that there is a floor
    assert made.close(0).keys.tolist() == [3]
    made.arrive(Pane(1, 3), [key], [5], [5.0])  # is as good and as old as the floor
    assert made.close(1).keys.tolist() == [best]
    made._check()


def test_a_state_that_lacks_a_pane_is_refused():
    made = MinTopk(TopkOperatorConfig(1))
    made.arrive(Pane(0, 0), [1], [5], [3.0])
    state = json.loads(json.dumps(made.state()))
    state["buffer"]["panes"].popitem()
    with pytest.raises(ValueError, match="1 panes were saved"):
        MinTopk.restored(TopkOperatorConfig(1), state)


@examples(60)
@given(st.randoms(), st.sampled_from([1, 2, 4]))
def test_the_border_lets_the_k_best_scores_of_every_batch_pass(random, k):
    """Whatever the batch before was like, and whether or not some scores are no numbers."""
    border = Border(k)
    for _ in range(4):
        missing = random.choice([0, 1, border.margin - 2, border.margin - 1, border.margin, 90])
        numbers = [float(random.randrange(random.choice([3, 99]))) for _ in range(120 - missing)]
        scores = np.array(random.sample([*numbers, *[np.nan] * missing], k=120))
        above = border.above(scores)
        chosen = scores if above is None else scores[above]
        assert above is None or not np.isnan(chosen).any()
        assert np.sort(chosen[~np.isnan(chosen)])[-k:].tolist() == sorted(numbers)[-k:]
        if above is not None:
            left_out = np.delete(scores, above)
            assert (left_out[~np.isnan(left_out)] < border.lowest).all()
        border.learn(np.sort(chosen[~np.isnan(chosen)])[::-1])


@pytest.mark.parametrize("k", [1, 4, 30])
def test_the_border_leaves_most_of_a_batch_out_the_first_and_those_like_it(k):
    border, draw = Border(k), np.random.default_rng(k)
    for batch in range(5):
        scores = draw.random(5_000)
        above = border.above(scores)
        assert above is not None
        assert k <= len(above) <= max(16 * k if batch else 0, border.margin)
        assert scores[above].min() >= border.lowest > np.delete(scores, above).max()
        border.learn(np.sort(scores[above])[::-1])


@pytest.mark.parametrize("operator", [Oracle, *FAMILY])
def test_a_late_arrival_counts_in_those_of_its_windows_that_are_open(operator):
    made = operator(TopkOperatorConfig(1))
    made.arrive(Pane(0, 2), [1], [5], [3.0])
    assert made.close(0).keys.tolist() == [1]
    made.arrive(Pane(1, 2), [2], [4], [7.0])
    assert made.close(1).keys.tolist() == [2]


@pytest.mark.parametrize("operator", [Oracle, *FAMILY])
def test_of_equal_scores_the_later_ranks_first_also_if_the_earlier_comes_after_it(operator):
    made = operator(TopkOperatorConfig(2))
    made.arrive(Pane(0, 2), [1], [5], [3.0])
    assert made.close(0).keys.tolist() == [1]
    made.arrive(Pane(1, 2), [2], [4], [3.0])
    assert made.close(1).keys.tolist() == [1, 2]
    assert made.close(2).keys.tolist() == [1, 2]


@pytest.mark.parametrize("operator", [Oracle, *FAMILY])
def test_what_has_left_every_window_is_forgotten(operator):
    """A window has three panes of four objects, and a key comes back after ten panes."""
    made, sizes = operator(TopkOperatorConfig(2)), []
    for window in range(120):
        numbers = np.arange(4 * window, 4 * window + 4)
        made.arrive(Pane(window, window + 2), 100 + numbers % 40, 1000 + numbers, numbers % 40)
        assert made.close(window).keys.tolist()
        sizes.append(len(json.dumps(made.state())))
    assert max(sizes[80:]) < 1.5 * max(sizes[:40])


@pytest.mark.parametrize("operator", [Oracle, *FAMILY])
@pytest.mark.parametrize(
    ("pane", "columns", "reason"),
    [
        (Pane(1, 1), ([1], [1, 2], [1.0]), "equal length"),
        (Pane(1, 1), ([1], [1], [float("nan")]), "must be a number"),
        (Pane(0, 1), ([1, 2], [1, 99], [1.0, 1.0]), "has closed"),
        (Pane(1, 1), ([[1]], [1], [1.0]), "one dimension"),
        (Pane(2, 1), ([1], [1], [1.0]), "in no window"),
    ],
)
def test_a_bad_batch_is_refused_whole(operator, pane, columns, reason):
    config = TopkOperatorConfig(2)
    made, other = operator(config), operator(config)
    for one in (made, other):
        one.arrive(Pane(0, 0), [7], [5], [3.0])
        one.close(0)
        one.arrive(Pane(1, 1), [8], [15], [2.0])
    with pytest.raises(ValueError, match=reason):
        made.arrive(pane, *columns)
    assert made.close(1).keys.tolist() == other.close(1).keys.tolist() == [8]


@pytest.mark.parametrize("operator", FAMILY)
def test_infinite_and_equal_scores_and_one_key_many_times_work(operator):
    made = operator(TopkOperatorConfig(2))
    made.arrive(Pane(0, 0), [1] * 1000, [3] * 1000, [float("inf")] * 1000)
    made.arrive(Pane(0, 0), [2, 3, 4], [3, 4, 5], [float("-inf")] * 3)
    assert made.close(0).keys.tolist() == [1, 4]
    with pytest.raises(ValueError, match="closed already"):
        made.close(0)


@pytest.mark.parametrize("operator", [MinTopk, Alone])
def test_falling_scores_keep_k_objects_of_every_pane_and_one_key_keeps_one(operator):
    """The worst case of the paper: C_nw * k candidates."""
    falling, same = operator(TopkOperatorConfig(3)), operator(TopkOperatorConfig(3))
    for pane in range(10):
        numbers = np.arange(5 * pane, 5 * pane + 5)
        falling.arrive(Pane(0, pane), numbers, numbers, 1000.0 - numbers)
        same.arrive(Pane(0, pane), np.full(100_000, 7), np.arange(100_000), np.ones(100_000))
    assert falling.close(0).keys.tolist() == [0, 1, 2]
    assert same.close(0).keys.tolist() == [7]
    assert len(falling) == 10 * 3
    assert len(same) == 1


@pytest.mark.parametrize("operator", FAMILY)
@examples(20)
@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([1, 5, 1000]))
def test_large_panes_are_cut_by_a_guessed_border_without_loss(operator, seed, k, levels):
    """Few score levels cause ties, and the range of scores differs between panes."""
    draw = np.random.default_rng(seed)
    oracle, clever = Oracle(TopkOperatorConfig(k)), operator(TopkOperatorConfig(k))
    fixed = draw.integers(0, levels, 3000) / levels + np.arange(3000) // 1000
    for window in range(6):
        low = int(draw.integers(0, 2500))
        keys = draw.integers(low, low + int(draw.integers(20, 500)), 1500)
        positions = np.arange(1500 * window, 1500 * (window + 1))
        for one in (oracle, clever):
            one.arrive(Pane(window, window + 2), keys, positions, fixed[keys])
        expected, found = oracle.close(window), clever.close(window)
        assert found.keys.tolist() == expected.keys.tolist()


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(-3, 3),
    st.sampled_from(["(]", "[)"]),
    st.lists(st.integers(-20, 60)),
)
def test_arrays_are_cut_into_the_panes_of_their_positions(size, step, t0, bounds, positions):
    frame = TimeFrame(size, step, t0, bounds)
    found = in_panes(frame, np.array(positions, dtype=np.int64))
    cut = {place: pane for pane, places in found for place in places.tolist()}
    assert [cut.get(place) for place in range(len(positions))] == list(map(frame.pane, positions))
    panes = [pane for pane, _ in found]
    assert panes == sorted(set(panes))


@given(
    st.lists(st.integers(0, 40) | st.sampled_from([-3, 2000, 10**12]), max_size=100),
    st.integers(1, 6),
)
@example(list(range(100)), 2)  # two blocks
@example(list(range(0, 200_000, 2_000)), 3)  # three, with ends far apart
def test_dominators_are_counted_as_one_would_by_hand(some, times):
    ends = some * times
    naive = [sum(e >= end for e in ends[:place]) for place, end in enumerate(ends)]
    assert dominators(np.array(ends, dtype=np.int64)).tolist() == naive


def test_the_list_sees_which_objects_expire_before_new_ones():
    """Object 2 is told late and lives longest, so 3 is better, but not as long.

    window    3  4  5
    object 1  x          score 1
    object 2  x  x  x    score 2
    object 3  x  x       score 3
    """
    listed = SuperMTKList(1)
    for end, key, position, score in ((3, 1, 10, 1.0), (5, 2, 5, 2.0), (4, 3, 20, 3.0)):
        listed.insert(end, as_arrivals([key], [position], [score]), window=3)
    assert listed.keys.tolist() == [3, 2]
    listed.check(3)


def test_what_has_expired_is_no_candidate():
    operator = MinTopk(TopkOperatorConfig(2))
    operator.arrive(Pane(0, 0), [1], [1], [1.0])
    operator.arrive(Pane(0, 1), [2], [2], [2.0])
    assert operator.close(0).keys.tolist() == [2, 1]
    assert [candidate.key for candidate in operator.candidates()] == [2]


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("MinTopk", TopkOperatorConfig(3)),
        ("SAP", SapConfig(3, 5)),
        ("SAP (dynamic)", SapConfig(3, 5, partitioning="dynamic")),
        ("SAP (equal)", SapConfig(3, 5, partitioning="equal")),
        ("SMA", SmaConfig(3)),
        ("SMA (ring buffer)", SmaConfig(3, index="ring")),
    ],
)
def test_the_name_of_an_operator_decides_its_configuration(name, config):
    assert ranker_config(name, 3, 5) == config


def test_sma_scans_for_twice_k_unless_it_is_told_otherwise():
    assert [SmaConfig(3).most, SmaConfig(3, 3).most, SmaConfig(3, 7).most] == [6, 3, 7]


def test_k_must_be_positive_and_n_not_negative():
    with pytest.raises(ValueError, match="at least 1"):
        TopkOperatorConfig(0)
    with pytest.raises(ValueError, match="at least 1"):
        TopkNConfig(0)
    with pytest.raises(ValueError, match="not be negative"):
        TopkNConfig(1, n=-1)


@pytest.mark.parametrize("removed", [1, 128, 129, 250])
def test_dominators_are_counted_right_after_few_and_after_many_removals(removed):
    listed, chance = SuperMTKList(200), np.random.default_rng(3)
    ends = np.sort(chance.integers(0, 90, 600))
    for position, end in enumerate(ends.tolist()):
        score = float(chance.integers(0, 500))
        listed.insert(end, as_arrivals([position], [position], [score]), window=0)
    assert len(listed) > 300
    is_removed = np.zeros(len(listed), dtype=bool)
    is_removed[chance.permutation(len(listed))[:removed]] = True
    listed.remove(is_removed)
    naive = [int((listed.end[:place] >= end).sum()) for place, end in enumerate(listed.end)]
    assert listed._dominators.tolist() == naive
