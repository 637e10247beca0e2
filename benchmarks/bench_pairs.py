"""Top-k pairs: the K-skyband against the naive algorithm and against the lower bound.

All share the scoring kernels s1 to s4 of the paper (section VI.A). The lower bound is the paper's
`supreme` algorithm, which keeps the objects and scores each new one with the whole window, and is
told all the rest by an oracle. A ratio is measured in one run, between algorithms that take turns;
of five turns the median counts, and time is that of the processor. Beside a ratio stands its bar,
and whether it held.

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
NAIVE, SUPREME = 20, 3  # at least so many times faster, at most so many times slower
CONSIDERED = {10_000: 0.2, 100_000: 0.1}
FLAT = 1.5
SLIDE = 50


def s1(columns: Floats, row: Floats) -> Floats:
    """Add up the differences: the closest pairs are best."""
    found: Floats = np.abs(columns[0] - row[0])
    for values, value in zip(columns[1:], row[1:], strict=True):
        difference = values - value
        found += np.abs(difference, out=difference)
    return found


def s2(columns: Floats, row: Floats) -> Floats:
    """Find the furthest pairs."""
    found = s1(columns, row)
    return np.negative(found, out=found)


def s3(columns: Floats, row: Floats) -> Floats:
    """Multiply the differences: similar pairs are best."""
    found: Floats = columns[0] - row[0]
    for values, value in zip(columns[1:], row[1:], strict=True):
        found *= values - value
    return np.abs(found, out=found)


def s4(columns: Floats, row: Floats) -> Floats:
    """Find dissimilar pairs."""
    found = s3(columns, row)
    return np.negative(found, out=found)


def difference(values: Floats, value: float) -> Floats:
    """Return the local score of s1."""
    found: Floats = np.abs(values - value)
    return found


def total(local: list[Floats]) -> Floats:
    """Combine local scores to s1."""
    found = local[0].copy()
    for scores in local[1:]:
        found += scores
    return found


def closest() -> SortedLists:
    """Return what the threshold algorithm needs for s1."""
    local = tuple(LocalScore(column, difference, "rises", "rises") for column in range(D))
    return SortedLists(GlobalScoring(local, total))


def uniform(random: np.random.Generator, count: int) -> Floats:
    """Draw values that have nothing to do with each other."""
    return random.random((count, D))


def correlated(random: np.random.Generator, count: int) -> Floats:
    """Draw objects that are large in all attributes, or small in all."""
    return random.normal(0.5, 0.2, (count, 1)) + random.normal(0, 0.05, (count, D))


def anti_correlated(random: np.random.Generator, count: int) -> Floats:
    """Draw objects that are small in the others if they are large in one attribute."""
    drawn = random.random((count, D))
    found: Floats = drawn - drawn.mean(axis=1, keepdims=True)
    return found + random.normal(0.5, 0.05, (count, 1))


class Sliding(Protocol):
    """Objects arrive and expire."""

    def arrive(self, row: Floats) -> None:
        """Take an object."""

    def expire(self, first: int) -> None:
        """Forget the objects before a position."""


class Supreme:
    """Keeps the objects, and scores the pairs: the lower bound."""

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
    """Let objects arrive one by one, and the oldest leave; return the time of one, in us."""
    began = time.process_time()
    for position, row in enumerate(rows, start):
        operator.expire(position + 1 - size)
        operator.arrive(row)
    return (time.process_time() - began) / len(rows) * 1e6


def in_turns(operators: Sequence[tuple[Sliding, int]], rows: Floats, size: int) -> list[float]:
    """Let operators slide in turns, each so many objects; return the median time of each."""
    for operator, _ in operators:
        slide(operator, rows[:size], 0, size)
    times: list[list[float]] = [[] for _ in operators]
    for turn in range(TURNS):
        for (operator, count), taken in zip(operators, times, strict=True):
            start = size + turn * count
            taken.append(slide(operator, rows[start : start + count], start, size))
    return [median(taken) for taken in times]


def said(ratio: float, bar: float, *, at_least: bool = False) -> str:
    """Return a ratio, its bar, and whether it held."""
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
            f"  naive / ours {said(naive / ours, NAIVE, at_least=True)};"
            f"  ours / supreme {said(ours / supreme, SUPREME)}"
        )


def by_threshold(size: int) -> None:
    """Measure how many pairs the threshold algorithm considers."""
    rows = uniform(np.random.default_rng(8), size + TURNS * 200)
    by_lists = PairSkyband(SkybandConfig(K), D, s1, closest())
    slide(by_lists, rows[:size], 0, size)
    state = by_lists.state()
    by_staircase = PairSkyband.restored(SkybandConfig(K), s1, state)
    before = by_lists.considered
    times: list[list[float]] = [[], []]
    for turn in range(TURNS):
        start = size + turn * 200
        for operator, taken in zip((by_lists, by_staircase), times, strict=True):
            taken.append(slide(operator, rows[start : start + 200], start, size))
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
    asked = {
        (k, n): (PairSkyband(SkybandConfig(K), D, s1), ContinuousAnswer(k))
        for k, n in ((1, N), (5, N), (10, N), (20, N), (20, 1000), (20, 3000))
    }
    for skyband, _ in asked.values():
        slide(skyband, rows[:N], 0, N)
    taken: dict[tuple[int, int], list[float]] = {query: [] for query in asked}
    for start in range(N, N + 5000, SLIDE):
        for (k, n), (skyband, answer) in asked.items():
            began = time.process_time()
            slide(skyband, rows[start : start + SLIDE], start, N)
            answer.update(skyband, skyband.end - n)
            taken[k, n].append((time.process_time() - began) / SLIDE * 1e6)
    times = {query: median(found) for query, found in taken.items()}
    for (k, n), (_, answer) in asked.items():
        print(
            f"  k = {k:2}, n = {n:5}: {times[k, n]:6.1f} us an object,"
            f" {answer.recomputed} of 100 answers computed anew"
        )
    print(f"  largest / smallest {said(max(times.values()) / min(times.values()), FLAT)}")


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
