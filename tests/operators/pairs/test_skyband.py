"""The K-skyband against all pairs of the window: any score, any batching, late and repeated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.basic_skyband import BasicSkyband
from benchmarks.continuous_answer import ContinuousAnswer
from benchmarks.naive_pairs import NaivePairs
from benchmarks.priority_search_tree import PrioritySearchTree
from rsp_engine.errors import StateError
from rsp_engine.operators.pairs.pairs import as_pairs, best_pairs_first
from rsp_engine.operators.pairs.skyband import PairSkyband, SkybandConfig
from rsp_engine.operators.pairs.staircase import update_skyband_and_staircase
from rsp_engine.operators.pairs.threshold_algorithm import SortedLists
from tests.operators.pairs.brute_force import all_pairs, as_list, skyband_of
from tests.operators.pairs.scores import GLOBAL, KERNELS, closest, global_scoring
from tests.thoroughness import IS_FAST, examples

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats

many = examples(200)
whole = st.integers(0, 4).map(float)  # few values, so that there are many ties
real = st.floats(-5, 5, allow_subnormal=False)
missing = st.just(float("nan"))


@dataclass(frozen=True)
class Run:
    """A stream of objects, a window over the last `n` of them, and queries."""

    name: str
    rows: list[list[float]]
    n: int
    k: int
    every: int
    queries: list[tuple[int, int, int]]
    by_threshold: bool = False

    def skyband(self) -> PairSkyband:
        width = len(self.rows[0])
        lists = SortedLists(global_scoring(self.name, width)) if self.by_threshold else None
        config = SkybandConfig(self.k, self.every)
        return PairSkyband(config, width, self.score, lists)

    @property
    def score(self) -> Any:
        kernel = KERNELS[self.name]

        def scored(columns: Any, row: Any) -> Any:
            """Rank pairs without a value last."""
            found = kernel(columns, row)
            lacks = np.isnan(columns).any(axis=0) | np.isnan(row).any()
            return np.where(lacks, np.inf, found)

        return scored


@st.composite
def runs(draw: st.DrawFn, names: tuple[str, ...] = tuple(KERNELS)) -> Run:
    name = draw(st.sampled_from(names))
    width = draw(st.integers(1, 3))
    value = whole if name == "odd" else draw(st.sampled_from((whole, real, whole | missing)))
    rows = draw(st.lists(st.lists(value, min_size=width, max_size=width), min_size=1, max_size=24))
    n, k = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    query = st.tuples(st.integers(1, k), st.integers(1, n), st.integers(1, 4))
    queries = draw(st.lists(query, min_size=1, max_size=3))
    every = draw(st.integers(1, 9))
    return Run(name, rows, n, k, every, queries, name != "odd" and draw(st.booleans()))


@many
@given(runs())
def test_every_query_has_the_best_of_all_pairs_of_its_window(run: Run):
    skyband = run.skyband()
    continuous = [ContinuousAnswer(k) for k, _, _ in run.queries]
    for position, row in enumerate(run.rows):
        skyband.expire(position + 1 - run.n)
        skyband.arrive(row)
        for answer, (k, n, slide) in zip(continuous, run.queries, strict=True):
            if position % slide:
                continue
            since = max(position + 1 - n, 0)
            expected = all_pairs(run.rows, range(since, position + 1), run.score)[:k]
            assert as_list(answer.update(skyband, since)) == expected
            assert as_list(skyband.best(k, since)) == expected


@many
@given(runs())
def test_the_skyband_holds_what_fewer_than_k_pairs_dominate(run: Run):
    skyband = run.skyband()
    for position, row in enumerate(run.rows):
        skyband.expire(position + 1 - run.n)
        skyband.arrive(row)
        if position % 3 == 0:
            skyband._check()
            window = range(skyband.first, skyband.end)
            expected = skyband_of(all_pairs(run.rows, window, run.score), run.k)
            assert as_list(skyband.pairs()) == expected


@many
@given(runs(tuple(GLOBAL)))
def test_the_threshold_algorithm_keeps_the_same_skyband(run: Run):
    lists = SortedLists(global_scoring(run.name, len(run.rows[0])))
    config = SkybandConfig(run.k, run.every)
    by_threshold = PairSkyband(config, len(run.rows[0]), run.score, lists)
    by_staircase = PairSkyband(config, len(run.rows[0]), run.score)
    for position, row in enumerate(run.rows):
        for skyband in (by_threshold, by_staircase):
            skyband.expire(position + 1 - run.n)
            skyband.arrive(row)
        assert as_list(by_threshold.pairs()) == as_list(by_staircase.pairs())


@many
@given(runs(), st.data())
def test_an_object_that_comes_late_counts_as_if_it_had_come_in_time(run: Run, data: st.DataObject):
    skyband = run.skyband()
    rows: list[list[float]] = []
    for row in run.rows:
        position = data.draw(st.integers(skyband.first, skyband.end))
        rows.insert(position, row)
        skyband.insert(position, row)
        skyband.expire(skyband.end - run.n)
        skyband._check()
        expected = all_pairs(rows, range(skyband.first, skyband.end), run.score)[: run.k]
        assert as_list(skyband.best(run.k, skyband.first)) == expected


@many
@given(runs(), st.data())
def test_an_object_that_arrives_again_lives_on(run: Run, data: st.DataObject):
    skyband = run.skyband()
    rows: list[list[float]] = []
    alive: list[int] = []
    for row in run.rows:
        again = data.draw(st.sampled_from([None, *alive]))
        if again is None:
            skyband.arrive(row)
            rows.append(row)
        else:
            skyband.renew(again)
            rows.append(rows[again])
            alive.remove(again)
        alive.append(len(rows) - 1)
        skyband.expire(len(rows) - run.n)
        alive = [position for position in alive if position >= skyband.first]
        skyband._check()
        expected = all_pairs(rows, alive, run.score)
        assert as_list(skyband.pairs()) == skyband_of(expected, run.k)
        assert as_list(skyband.best(run.k, skyband.first)) == expected[: run.k]


@many
@given(runs())
def test_what_the_staircase_dominates_is_dominated_by_k_pairs(run: Run):
    skyband = run.skyband()
    for row in run.rows:
        skyband.arrive(row)
    pairs, staircase = skyband.pairs(), skyband.staircase()
    bounds = staircase.bounds(skyband.first, skyband.end)
    for score in {*pairs.scores.tolist(), 0.0, 1.5, 40.0}:
        for older in range(skyband.first, skyband.end):
            dominators = np.count_nonzero((pairs.scores < score) & (pairs.older >= older))
            assert staircase.dominates(score, older) == (dominators >= run.k)
            assert staircase.dominates(score, older) == (score > bounds[older - skyband.first])


@many
@given(runs())
def test_the_basic_algorithm_keeps_the_same_skyband(run: Run):
    basic = BasicSkyband(run.k, len(run.rows[0]), run.score)
    for position, row in enumerate(run.rows):
        basic.expire(position + 1 - run.n)
        basic.arrive(row)
        window = range(max(position + 1 - run.n, 0), position + 1)
        expected = skyband_of(all_pairs(run.rows, window, run.score), run.k)
        assert as_list(basic.pairs()) == expected


@many
@given(runs())
def test_the_naive_algorithm_finds_the_same_pairs(run: Run):
    naive = NaivePairs(run.k, len(run.rows[0]), run.score)
    for position, row in enumerate(run.rows):
        naive.expire(position + 1 - run.n)
        naive.arrive(row)
        since = max(position + 1 - run.n, 0)
        expected = all_pairs(run.rows, range(since, position + 1), run.score)
        assert as_list(naive.best(run.k)) == expected[: run.k]


@many
@given(runs(), st.data())
def test_a_skyband_goes_on_from_its_state(run: Run, data: st.DataObject):
    cut = data.draw(st.integers(0, len(run.rows)))
    skyband = run.skyband()
    for row in run.rows[:cut]:
        skyband.arrive(row)
    if cut and data.draw(st.booleans()):
        skyband.renew(cut - 1)
    state = json.loads(json.dumps(skyband.state()))
    lists = SortedLists(global_scoring(run.name, len(run.rows[0]))) if run.by_threshold else None
    restored = PairSkyband.restored(skyband.config, run.score, state, lists)
    for row in run.rows[cut:]:
        skyband.arrive(row)
        restored.arrive(row)
    restored._check()
    assert as_list(restored.pairs()) == as_list(skyband.pairs())


@many
@given(st.lists(st.tuples(whole, st.integers(0, 9)), max_size=40), st.integers(1, 6))
def test_the_tree_finds_the_best_of_every_window(points: list[tuple[float, int]], k: int):
    pairs = best_pairs_first(
        as_pairs([s for s, _ in points], [o for _, o in points], range(10, 10 + len(points)))
    )
    tree = PrioritySearchTree(pairs)
    tree._check()
    for since in range(11):
        expected = np.flatnonzero(pairs.older >= since)[:k].tolist()
        assert tree.best(k, since) == expected


def test_the_tree_looks_at_few_pairs():
    rng = np.random.default_rng(1)
    pairs = best_pairs_first(as_pairs(rng.random(4096), rng.permutation(4096), range(4096, 8192)))
    tree = PrioritySearchTree(pairs)
    for k, since in ((1, 0), (10, 2000), (10, 4000)):
        walk = tree.walk(k, since)
        assert len(walk.visited) <= k
        assert len(walk.stack) <= 2 * log(4096, 2) + 2


def test_an_answer_is_seldom_recomputed():
    rng = np.random.default_rng(2)
    n, k, arrivals = 200, 5, 2000
    skyband = PairSkyband(SkybandConfig(k), 2, closest)
    answer = ContinuousAnswer(k)
    for position, row in enumerate(rng.random((arrivals, 2))):
        skyband.arrive(row)
        skyband.expire(position + 1 - n)
        answer.update(skyband, skyband.first)
    assert answer.recomputed < 2 * arrivals * k / n


@pytest.mark.parametrize("k", [10, 30, 100])
@pytest.mark.parametrize("n", [1_000, 10_000] if IS_FAST else [1_000, 10_000, 100_000])
def test_the_skyband_is_as_large_as_expected(n: int, k: int):
    """Where scores are independent: K(1 + 2 ln N - ln 2K).

    The paper's K + K(ln N - ln sqrt K) takes the x^2 / 2 pairs that are younger than one of age x
    for x^2 (Lemma 1), and so drops a factor of 2.
    """
    sizes = [_size_of_skyband(n, k, seed) for seed in range(8)]
    expected = k * (1 + 2 * log(n) - log(2 * k))
    assert np.mean(sizes) == pytest.approx(expected, rel=0.15)


def _size_of_skyband(n: int, k: int, seed: int) -> int:
    """Draw the scores of all pairs by age; pairs that K younger ones dominate are not drawn."""
    rng = np.random.default_rng(seed)
    best: list[float] = []  # the K smallest so far
    scores, ages = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    for age in range(2, n + 1):
        bound = best[-1] if len(best) == k else 1.0
        drawn = rng.random(rng.binomial(age - 1, bound)) * bound
        if len(drawn):
            scores.append(drawn)
            ages.append(np.full(len(drawn), age))
            best = sorted([*best, *drawn.tolist()])[:k]
    older = -np.concatenate(ages)
    pairs = best_pairs_first(as_pairs(np.concatenate(scores), older, np.arange(len(older))))
    kept, _ = update_skyband_and_staircase(pairs, k)
    return len(kept)


def test_the_skyband_of_a_stream_is_as_large_as_expected():
    n, k = 1_000, 10
    rng = np.random.default_rng(4)

    def by_chance(columns: Floats, _: Floats) -> Floats:
        return rng.random((columns.shape[1],))

    skyband = PairSkyband(SkybandConfig(k), 1, by_chance)
    sizes = []
    for position in range(4 * n):
        skyband.arrive([0.0])
        skyband.expire(position + 1 - n)
        if position > n and position % 50 == 0:
            sizes.append(len(skyband))
    assert np.mean(sizes) == pytest.approx(k * (1 + 2 * log(n) - log(2 * k)), rel=0.15)


def test_invalid_parameters_are_refused():
    with pytest.raises(ValueError, match="k must be at least 1"):
        SkybandConfig(0)
    with pytest.raises(ValueError, match="at least 1 arrival"):
        SkybandConfig(1, 0)
    skyband = PairSkyband(SkybandConfig(2), 1, closest)
    with pytest.raises(ValueError, match="a 2-skyband does not hold the 3 best pairs"):
        skyband.best(3, 0)
    with pytest.raises(StateError, match="k was 2, and is 3"):
        PairSkyband.restored(SkybandConfig(3), closest, skyband.state())
