"""Top-k pairs: the K-skyband against the naive algorithm and against the lower bound.

All share the scoring kernels s1 to s4 of the paper (section VI.A). The lower bound is the paper's
`supreme` algorithm, which keeps the objects and scores each new one with the whole window; an
oracle gives it everything else. A ratio is measured in one run, between algorithms that take turns;
it is the median of five turns, in CPU time. Each ratio is printed with its bar, and whether it
held.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section VI.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rsp_engine.operators.pairs.continuous import ContinuousAnswer
from rsp_engine.operators.pairs.naive import NaivePairs
from rsp_engine.operators.pairs.objects import LastObjects
from rsp_engine.operators.pairs.skyband import PairSkyband, SkybandConfig
from rsp_engine.operators.pairs.threshold_algorithm import GlobalScoring, LocalScore, SortedLists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.pairs.skyband import PairScore

N, K, D = 10_000, 20, 3
TURNS = 5
NAIVE, SUPREME = 20, 3  # bars: at least 20 times faster than naive, at most 3 times slower
CONSIDERED = {10_000: 0.2, 100_000: 0.1}  # bars by N: the share of pairs that are considered
FLAT = 1.5  # the bar for the slowest query against the fastest
SLIDE = 50


def s1(columns: Floats, row: Floats) -> Floats:
    """Return the sums of the differences: the closest pairs are best."""
    scores: Floats = np.abs(columns[0] - row[0])
    for values, value in zip(columns[1:], row[1:], strict=True):
        difference = values - value
        scores += np.abs(difference, out=difference)
    return scores


def s2(columns: Floats, row: Floats) -> Floats:
    """Return the negated sums: the furthest pairs are best."""
    scores = s1(columns, row)
    return np.negative(scores, out=scores)


def s3(columns: Floats, row: Floats) -> Floats:
    """Return the products of the differences: similar pairs are best."""
    scores: Floats = columns[0] - row[0]
    for values, value in zip(columns[1:], row[1:], strict=True):
        scores *= values - value
    return np.abs(scores, out=scores)


def s4(columns: Floats, row: Floats) -> Floats:
    """Return the negated products: dissimilar pairs are best."""
    scores = s3(columns, row)
    return np.negative(scores, out=scores)


def difference(values: Floats, value: float) -> Floats:
    """Return the local score of s1."""
    scores: Floats = np.abs(values - value)
    return scores


def total(local: list[Floats]) -> Floats:
    """Combine local scores to s1."""
    sums = local[0].copy()
    for scores in local[1:]:
        sums += scores
    return sums


def closest() -> SortedLists:
    """Return the sorted lists of the threshold algorithm for s1."""
    local = tuple(LocalScore(column, difference, "rises", "rises") for column in range(D))
    return SortedLists(GlobalScoring(local, total))


def uniform(random: np.random.Generator, count: int) -> Floats:
    """Draw independent values."""
    return random.random((count, D))


def correlated(random: np.random.Generator, count: int) -> Floats:
    """Draw objects whose attributes are all large, or all small."""
    return random.normal(0.5, 0.2, (count, 1)) + random.normal(0, 0.05, (count, D))


def anti_correlated(random: np.random.Generator, count: int) -> Floats:
    """Draw objects that are small in the other attributes if they are large in one."""
    values = random.random((count, D))
    centred: Floats = values - values.mean(axis=1, keepdims=True)
    return centred + random.normal(0.5, 0.05, (count, 1))


class Sliding(Protocol):
    """An operator over a sliding window of objects."""

    def arrive(self, row: Floats) -> None:
        """Take an object."""

    def expire(self, first: int) -> None:
        """Forget the objects before a position."""


class Supreme:
    """The lower bound: it keeps the objects and scores the pairs, but ranks nothing."""

    def __init__(self, score: PairScore) -> None:
        self._score = score
        self._objects = LastObjects(D)

    def arrive(self, row: Floats) -> None:
        """Take an object."""
        self._score(self._objects.columns, row)
        self._objects.append(row)

    def expire(self, first: int) -> None:
        """Forget the objects before a position."""
        self._objects.expire(first)


def slide(operator: Sliding, rows: Floats, start: int, size: int) -> float:
    """Slide the window object by object, and return the time of one, in us."""
    begin = time.process_time()
    for position, row in enumerate(rows, start):
        operator.expire(position + 1 - size)
        operator.arrive(row)
    return (time.process_time() - begin) / len(rows) * 1e6


def in_turns(operators: Sequence[tuple[Sliding, int]], rows: Floats, size: int) -> list[float]:
    """Slide operators in turns, each by its number of objects; return the median time of each."""
    for operator, _ in operators:
        slide(operator, rows[:size], 0, size)
    times: list[list[float]] = [[] for _ in operators]
    for turn in range(TURNS):
        for (operator, count), own_times in zip(operators, times, strict=True):
            start = size + turn * count
            own_times.append(slide(operator, rows[start : start + count], start, size))
    return [median(own_times) for own_times in times]


def with_bar(ratio: float, bar: float, *, at_least: bool = False) -> str:
    """Return a ratio with its bar, and whether it held."""
    holds = ratio >= bar if at_least else ratio <= bar
    sign = ">=" if at_least else "<="
    return f"{ratio:8.2f}x (bar {sign} {bar}: {'held' if holds else 'MISSED'})"


def against_others(name: str, draw: Callable[[np.random.Generator, int], Floats]) -> None:
    """Measure the K-skyband, the naive algorithm and the lower bound on one distribution."""
    for score in (s1, s2, s3, s4):
        rows = draw(np.random.default_rng(7), N + TURNS * 1000)
        skyband = PairSkyband(SkybandConfig(K), D, score)
        operators: list[tuple[Sliding, int]] = [
            (skyband, 1000),
            (Supreme(score), 1000),
            (NaivePairs(K, D, score), 20),
        ]
        ours, supreme, naive = in_turns(operators, rows, N)
        print(
            f"  {name:16} {score.__name__}  {ours:6.1f} us an object, {len(skyband):4} pairs;"
            f"  naive / ours {with_bar(naive / ours, NAIVE, at_least=True)};"
            f"  ours / supreme {with_bar(ours / supreme, SUPREME)}"
        )


def by_threshold(size: int) -> None:
    """Measure the share of pairs that the threshold algorithm considers."""
    rows = uniform(np.random.default_rng(8), size + TURNS * 200)
    by_lists = PairSkyband(SkybandConfig(K), D, s1, closest())
    slide(by_lists, rows[:size], 0, size)
    state = by_lists.state()
    by_staircase = PairSkyband.restored(SkybandConfig(K), s1, state)
    before = by_lists.considered
    times: list[list[float]] = [[], []]
    for turn in range(TURNS):
        start = size + turn * 200
        for operator, own_times in zip((by_lists, by_staircase), times, strict=True):
            own_times.append(slide(operator, rows[start : start + 200], start, size))
    share = (by_lists.considered - before) / (TURNS * 200) / size
    ours, others = map(median, times)
    bar = CONSIDERED[size]
    print(
        f"  N = {size:6}: {share:.3f} N pairs considered (bar <= {bar}:"
        f" {'held' if share <= bar else 'MISSED'}); {ours:6.1f} us an object,"
        f" {others / ours:.2f}x as fast as with all pairs ({others:.1f} us)"
    )


def for_queries() -> None:
    """Measure updates of the skyband and of a query's answer, for several k and n, in turns."""
    rows = uniform(np.random.default_rng(9), N + 5000)
    queries = {
        (k, n): (PairSkyband(SkybandConfig(K), D, s1), ContinuousAnswer(k))
        for k, n in ((1, N), (5, N), (10, N), (20, N), (20, 1000), (20, 3000))
    }
    for skyband, _ in queries.values():
        slide(skyband, rows[:N], 0, N)
    turns: dict[tuple[int, int], list[float]] = {query: [] for query in queries}
    for start in range(N, N + 5000, SLIDE):
        for (k, n), (skyband, answer) in queries.items():
            begin = time.process_time()
            slide(skyband, rows[start : start + SLIDE], start, N)
            answer.update(skyband, skyband.end - n)
            turns[k, n].append((time.process_time() - begin) / SLIDE * 1e6)
    times = {query: median(own_times) for query, own_times in turns.items()}
    for (k, n), (_, answer) in queries.items():
        print(
            f"  k = {k:2}, n = {n:5}: {times[k, n]:6.1f} us an object,"
            f" {answer.recomputed} of 100 answers recomputed"
        )
    print(f"  largest / smallest {with_bar(max(times.values()) / min(times.values()), FLAT)}")


def main() -> None:
    """Print all ratios."""
    print(f"The K-skyband: N = {N}, K = {K}, d = {D}")
    against_others("uniform", uniform)
    against_others("correlated", correlated)
    against_others("anti-correlated", anti_correlated)
    print(f"The threshold algorithm: s1, uniform, K = {K}, d = {D}")
    for size in CONSIDERED:
        by_threshold(size)
    print(f"Queries that share the skyband, asked after every {SLIDE} objects: s1, uniform")
    for_queries()


if __name__ == "__main__":
    main()
