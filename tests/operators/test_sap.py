"""SAP and its baselines over streams that trend, oscillate and tie; and how much SAP keeps."""

from __future__ import annotations

import csv
import gzip
import json
from itertools import islice
from math import pi
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sap_variants import Algorithm1, EqualPartitions, NonDelay
from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.sap.invariants import bound
from rsp_engine.operators.sap.rank_test import rank_sum, tends_to_be_larger, upper_rank_sum
from rsp_engine.operators.sap.rearrivals import Rearrivals
from rsp_engine.operators.sap.sap import Sap, SapConfig
from rsp_engine.operators.topk.baselines.oracle import Oracle
from rsp_engine.operators.topk.baselines.skyband import KSkyband
from rsp_engine.operators.topk.baselines.sma import Sma, SmaConfig
from rsp_engine.operators.topk.contract import TopkOperatorConfig, as_arrivals, in_panes
from tests.data import real_data
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.operators.sap.partition_size import Partitioning

PARTITIONINGS: tuple[Partitioning, ...] = ("equal", "dynamic", "enhanced")
SHAPES = ("rises", "falls", "sine", "uniform", "levels", "noisy sine")


class Stream(NamedTuple):
    """Objects in the order of their positions, and the windows over them."""

    k: int
    frame: TimeFrame
    slides: int
    s: int | None
    keys: Any
    positions: Any
    scores: Any
    cuts: list[int]


def scores_of(shape: str, count: int, period: float, seed: int) -> Any:
    times, draw = np.arange(count), np.random.default_rng(seed)
    swing = np.sin(2 * pi * times / period)
    return {
        "rises": times / 10,
        "falls": -times / 10,
        "sine": swing,
        "uniform": draw.random(count),
        "levels": draw.integers(0, 4, count).astype(float),
        "noisy sine": swing + draw.random(count) / 3,
    }[shape]


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Draw a stream of about three windows, time-based or count-based, in batches of any size."""
    k, slides, s = draw(st.integers(1, 6)), draw(st.integers(2, 40)), draw(st.integers(1, 5))
    count, seed = 3 * slides * s + 7, draw(st.integers(0, 1000))
    period = slides * s * draw(st.sampled_from([0.5, 2, 8]))
    scores = scores_of(draw(st.sampled_from(SHAPES)), count, period, seed)
    cuts = sorted(draw(st.lists(st.integers(0, count), max_size=8)))
    keys = np.arange(count)
    if draw(st.booleans()):
        frame = TimeFrame(slides * s, s, 0, "[)")
        return Stream(k, frame, slides, s, keys, keys, scores, cuts)
    # Time-based: a slide has any number of objects, or none.
    gaps = np.random.default_rng(seed).integers(0, 4, count)
    frame = TimeFrame(slides * 3, draw(st.integers(1, 3)), 0, "(]")
    return Stream(k, frame, slides, None, keys, 1 + gaps.cumsum(), scores, cuts)


def play(stream: Stream, clever: Any, *, is_saved: bool) -> list[int]:
    """Run an operator beside the oracle; return the number of objects it kept at each step."""
    oracle, kept, window, taken = Oracle(TopkOperatorConfig(stream.k)), [], 0, 0
    for stop in (*stream.cuts, len(stream.keys)):
        batch = slice(taken, stop)
        columns = stream.keys[batch], stream.positions[batch], stream.scores[batch]
        for pane, places in in_panes(stream.frame, columns[1]):
            for one in (oracle, clever):
                one.arrive(pane, *(column[places] for column in columns))
        taken = stop
        ahead = stream.positions[stop] if stop < len(stream.keys) else stream.positions[-1]
        while stream.frame.interval(window).close < ahead:
            expected, found = oracle.close(window), clever.close(window)
            assert found.keys.tolist() == expected.keys.tolist(), window
            assert found.scores.tolist() == expected.scores.tolist()
            clever._check()
            kept.append(len(clever))
            window += 1
        if is_saved:
            clever = type(clever).restored(clever.config, json.loads(json.dumps(clever.state())))
    return kept


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@examples(50)
@given(streams(), st.booleans())
def test_every_partitioning_gives_the_ranking_of_the_oracle(partitioning, stream, is_saved):
    play(stream, Sap(SapConfig(stream.k, stream.slides, stream.s, partitioning)), is_saved=is_saved)


@pytest.mark.parametrize("variant", [EqualPartitions, Algorithm1, NonDelay])
@examples(40)
@given(streams(), st.integers(1, 9))
def test_the_variants_of_table_2_give_the_ranking_of_the_oracle(variant, stream, m):
    play(stream, variant(stream.k, stream.slides, stream.s, m), is_saved=False)


@pytest.mark.parametrize("index", ["skyband", "grid", "ring"])
@examples(40)
@given(streams(), st.integers(0, 5), st.booleans())
def test_the_baselines_give_the_ranking_of_the_oracle(index, stream, more, is_saved):
    if index == "skyband":
        play(stream, KSkyband(TopkOperatorConfig(stream.k)), is_saved=is_saved)
    else:
        play(stream, Sma(SmaConfig(stream.k, stream.k + more, index)), is_saved=is_saved)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("k", "slides", "s"), [(3, 400, 1), (10, 90, 3), (2, 60, 8), (5, 3, 50)])
def test_equal_partitions_keep_no_more_than_the_bound(shape, k, slides, s):
    """O(k sqrt(n / max(s, k))), whatever the scores do: TIME^R with the period of a few windows."""
    count = 4 * slides * s
    scores = scores_of(shape, count, 3 * slides * s, seed=3)
    sap, sizes = Sap(SapConfig(k, slides, s, "equal")), []
    for pane in range(4 * slides):
        numbers = np.arange(pane * s, pane * s + s)
        first = max(0, pane - slides + 1)
        sap.arrive(Pane(first, pane), numbers, numbers, scores[numbers])
        if pane < slides - 1:
            sap.settle(0)
        else:
            sap.close(first)
            sizes.append(len(sap))
            if pane % 7 == 0:
                sap._check()
    assert max(sizes) <= bound(slides * s, s, k)


def test_where_scores_fall_the_enhanced_partitions_need_less_than_the_dynamic_ones():
    """UBSA: of a long partition no more than two k-units are meaningful at once (Theorem 4)."""
    k, slides, kept = 10, 4000, {}
    for partitioning in ("dynamic", "enhanced"):
        sap, sizes = Sap(SapConfig(k, slides, 1, partitioning)), []
        for now in range(3 * slides):
            sap.arrive(Pane(max(0, now - slides + 1), now), [now], [now], [-float(now)])
            sap.settle(0) if now < slides - 1 else sap.close(now - slides + 1)
            sizes.append(len(sap))
        kept[partitioning] = max(sizes[2 * slides :])
    assert kept["enhanced"] < 0.75 * kept["dynamic"]


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_keys_that_come_again_are_ranked_once(partitioning):
    draw, k, slides = np.random.default_rng(5), 4, 30
    fixed = draw.integers(0, 9, 60).astype(float)
    oracle, sap = Oracle(TopkOperatorConfig(k)), Sap(SapConfig(k, slides, 2, partitioning))
    for pane in range(150):
        keys = draw.integers(0, 60, 2)
        positions = np.array([2 * pane, 2 * pane + 1])
        for one in (oracle, sap):
            one.arrive(Pane(max(0, pane - slides + 1), pane), keys, positions, fixed[keys])
        if pane >= slides - 1:
            window = pane - slides + 1
            assert sap.close(window).keys.tolist() == oracle.close(window).keys.tolist()
            sap._check()


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@examples(15)
@given(st.integers(0, 1000))
def test_late_panes_find_their_partition(partitioning, seed):
    draw, k, slides = np.random.default_rng(seed), 3, 20
    oracle, sap = Oracle(TopkOperatorConfig(k)), Sap(SapConfig(k, slides, None, partitioning))
    for window in range(70):
        for part in range(2):
            late = int(draw.integers(0, 9)) if part else 0
            numbers = np.arange(4 * window + 2 * part, 4 * window + 2 * part + 2)
            pane = Pane(window, max(window, window + slides - 1 - late))
            scores = draw.random(2)
            for one in (oracle, sap):
                one.arrive(pane, numbers, numbers, scores)
        assert sap.close(window).keys.tolist() == oracle.close(window).keys.tolist()
        sap._check()


@examples(60)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6),
    st.lists(st.integers(0, 5), min_size=1, max_size=6),
)
def test_ranks_are_summed_as_one_would_by_hand(first, second):
    both = sorted([*first, *second])
    places = {x: [i + 1 for i, y in enumerate(both) if y == x] for x in both}
    naive = sum(sum(places[x]) / len(places[x]) for x in first)
    assert rank_sum(np.array(first, float), np.array(second, float)) == naive


def test_the_tables_of_small_samples_are_those_of_the_books():
    """Two-sided, alpha = 0.05: T_up of the Wilcoxon rank-sum tables."""
    assert [upper_rank_sum(n, n) for n in (4, 6, 8, 9)] == [25, 51, 86, 108]
    assert not tends_to_be_larger(np.array([1.0]), np.arange(9.0))


@pytest.mark.parametrize("config", [{"slides": 0}, {"slides": 2, "s": 0}])
def test_a_window_has_slides_and_a_slide_objects(config):
    with pytest.raises(ValueError, match="at least one slide"):
        SapConfig(1, **config)


def test_k_max_is_twice_k_unless_said():
    assert (SmaConfig(3).most, SmaConfig(3, 4).most) == (6, 4)


def test_k_max_is_at_least_k():
    with pytest.raises(ValueError, match="k_max must be at least k"):
        SmaConfig(3, k_max=2)


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_trades_are_ranked_as_by_the_oracle(partitioning):
    """Price times size of recorded trades: many ties, and a few that are very large."""
    with gzip.open(real_data("stock_ticks") / "sampleMultiTradeData.csv.gz", "rt") as lines:
        rows = islice(csv.DictReader(lines), 12_000)
        scores = np.array([float(row["PRICE"]) * float(row["SIZE"]) for row in rows])
    k, slides, s = 10, 150, 20
    oracle, sap = Oracle(TopkOperatorConfig(k)), Sap(SapConfig(k, slides, s, partitioning))
    for pane in range(len(scores) // s):
        numbers, first = np.arange(pane * s, pane * s + s), max(0, pane - slides + 1)
        for one in (oracle, sap):
            one.arrive(Pane(first, pane), numbers, numbers, scores[numbers])
        if pane >= slides - 1:
            assert sap.close(first).keys.tolist() == oracle.close(first).keys.tolist()
    sap._check()


@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("step", [1, -1])
def test_keys_that_came_before_are_told_from_new_ones_in_batches_of_any_size(count, step):
    def are_new(keys: list[int]) -> bool:
        return table.are_new(as_arrivals(keys[::step], range(len(keys)), [1.0] * len(keys)))

    table = Rearrivals()
    later = list(range(count + 1, 2 * count + 1))
    assert are_new(list(range(1, count + 1)))
    assert not are_new([count, *later[1:]])
    assert not are_new([*later, later[0]])
    assert table.largest == count
    assert are_new(later)
    assert table.largest == 2 * count
