"""Top-k pairs: the algorithms of the paper's evaluation, and those that the engine uses.

SCase is the K-skyband with its K-staircase, which the engine maintains; TA is the threshold
algorithm, `supreme` the paper's lower bound, which keeps the objects and scores each new one with
the whole window (an oracle gives it everything else). All share the scoring kernels s1 to s4 of the
paper (section VI.A). A ratio is measured in one run, between algorithms that take turns; it is the
median of the turns, in CPU time. Each part prints a table in Markdown; a figure that misses its
bar is marked. Arguments select parts: naive, maintenance, queries.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section VI.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from benchmarks.basic_skyband import BasicSkyband
from benchmarks.continuous_answer import ContinuousAnswer
from benchmarks.markdown import print_head, print_row, ratio
from benchmarks.naive_pairs import NaivePairs
from benchmarks.priority_search_tree import PrioritySearchTree
from benchmarks.size import sized
from rsp_engine.model.state import with_header
from rsp_engine.operators.pairs.objects import LastObjects
from rsp_engine.operators.pairs.pairs import Pairs, as_pairs, best_pairs_first, concatenated_pairs
from rsp_engine.operators.pairs.skyband import PairSkyband, SkybandConfig
from rsp_engine.operators.pairs.staircase import update_skyband_and_staircase
from rsp_engine.operators.pairs.threshold_algorithm import GlobalScoring, LocalScore, SortedLists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.pairs.skyband import PairScore

N, K, D = 10_000, 20, 3
TURNS = sized(short=3, full=5)
NAIVE, SUPREME = 20, 3  # bars: at least 20 times faster than naive, at most 3 times slower
CONSIDERED = {10_000: 0.2, 100_000: 0.1}  # bars by N: the share of pairs that TA considers


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


def closest(d: int) -> SortedLists:
    """Return the sorted lists of the threshold algorithm for s1."""
    local = tuple(LocalScore(column, difference, "rises", "rises") for column in range(d))
    return SortedLists(GlobalScoring(local, total))


def uniform(random: np.random.Generator, count: int, d: int) -> Floats:
    """Draw independent values."""
    return random.random((count, d))


def correlated(random: np.random.Generator, count: int, d: int) -> Floats:
    """Draw objects whose attributes are all large, or all small."""
    return random.normal(0.5, 0.2, (count, 1)) + random.normal(0, 0.05, (count, d))


def anti_correlated(random: np.random.Generator, count: int, d: int) -> Floats:
    """Draw objects that are small in the other attributes if they are large in one."""
    values = random.random((count, d))
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

    def __init__(self, d: int, score: PairScore) -> None:
        self._score = score
        self.objects = LastObjects(d)

    def arrive(self, row: Floats) -> None:
        """Take an object."""
        self._score(self.objects.columns, row)
        self.objects.append(row)

    def expire(self, first: int) -> None:
        """Forget the objects before a position."""
        self.objects.expire(first)


def slide(operator: Sliding, rows: Floats, start: int, size: int) -> float:
    """Slide the window object by object, and return the time of one, in us."""
    begin = time.process_time()
    for position, row in enumerate(rows, start):
        operator.expire(position + 1 - size)
        operator.arrive(row)
    return (time.process_time() - begin) / len(rows) * 1e6


def in_turns(operators: Sequence[tuple[Sliding, int]], rows: Floats, size: int) -> list[float]:
    """Slide operators in turns, each by its number of objects; return the median time of each.

    The first `size` rows are in their windows already.
    """
    times: list[list[float]] = [[] for _ in operators]
    for turn in range(TURNS):
        for (operator, count), own_times in zip(operators, times, strict=True):
            start = size + turn * count
            own_times.append(slide(operator, rows[start : start + count], start, size))
    return [median(own_times) for own_times in times]


def barred(value: float, bar: float, *, at_least: bool = False) -> str:
    """Return a ratio, marked if it misses its bar."""
    holds = value >= bar if at_least else value <= bar
    return ratio(value) + ("" if holds else f" MISSED {bar}")


def against_naive() -> None:
    """Print SCase against the naive algorithm and the lower bound, by score and distribution."""
    print(f"\nN = {N:,}, K = {K}, d = {D}; naive and supreme relative to SCase")
    print_head(["distribution", "score", "SCase, us per object", "pairs", "naive", "supreme"])
    for draw in sized(short=(uniform,), full=(uniform, correlated, anti_correlated)):
        for score in (s1, s2, s3, s4):
            rows = draw(np.random.default_rng(7), N + TURNS * 500, D)
            skyband = PairSkyband(SkybandConfig(K), D, score)
            operators: list[tuple[Sliding, int]] = [
                (skyband, 500),
                (Supreme(D, score), 500),
                (NaivePairs(K, D, score), 20),
            ]
            for operator, _ in operators:
                slide(operator, rows[:N], 0, N)
            ours, supreme, naive = in_turns(operators, rows, N)
            print_row(
                [
                    draw.__name__.replace("_", "-"),
                    score.__name__,
                    f"{ours:,.0f}",
                    len(skyband),
                    barred(naive / ours, NAIVE, at_least=True),
                    ratio(supreme / ours) + ("" if ours / supreme <= SUPREME else " MISSED"),
                ]
            )


class Setting(NamedTuple):
    """A setting of the paper's grid; the default is N = 10K, K = 20, d = 3, uniform."""

    n: int = N
    k: int = K
    d: int = D
    draw: Callable[[np.random.Generator, int, int], Floats] = uniform


def closest_pairs(rows: Floats, k: int) -> Pairs:
    """Return the K-skyband of a window under s1, from its newest objects to its oldest.

    The score of a pair is at least its difference in the first attribute, so that few pairs of a
    block of older objects can be better than the k best pairs of the newer ones.
    """
    pairs, stop = as_pairs([], [], []), len(rows)
    while stop > 0:
        start = max(0, stop - min(1000, max(50, len(rows) - stop)))
        bound = pairs.scores[k - 1] if len(pairs.scores) >= k else np.inf
        order = np.argsort(rows[start:, 0])
        values, firsts = rows[start:, 0][order], rows[start:stop, 0]
        low, high = np.searchsorted(values, firsts - bound), np.searchsorted(values, firsts + bound)
        counts = np.minimum(high + 1, len(values)) - low
        older = np.repeat(np.arange(start, stop), counts)
        places = np.arange(len(older)) + np.repeat(low - np.cumsum(counts) + counts, counts)
        newer = order[places] + start
        older, newer = older[newer > older], newer[newer > older]
        near = Pairs(s1(rows[newer].T, rows[older].T), older, newer)
        near = near.take(near.scores <= bound)
        candidates = best_pairs_first(concatenated_pairs([pairs, near]))
        pairs, stop = candidates.take(update_skyband_and_staircase(candidates, k)[0]), start
    return pairs


def restored(k: int, rows: Floats, pairs: Pairs, lists: SortedLists | None = None) -> PairSkyband:
    """Return a skyband under s1 with a full window."""
    config = SkybandConfig(k)
    content = {"first": 0, "columns": rows.T, "dead": [], "pairs": list(pairs)}
    state = with_header("KSkyband", asdict(config), content)
    return PairSkyband.restored(config, s1, state, lists)


def maintenance(settings: Sequence[Setting] | None = None) -> None:
    """Print the ways to maintain the skyband: Fig 12, and the size from which TA is ahead."""
    grid = settings or (
        [Setting(k=k) for k in sized(short=(1, 20, 100), full=(1, 5, 10, 20, 50, 100))]
        + [Setting(n=n) for n in sized(short=(50_000,), full=(50_000, 100_000, 150_000, 200_000))]
        + [Setting(d=d) for d in sized(short=(2, 6), full=(2, 4, 5, 6))]
        + [Setting(draw=draw) for draw in (correlated, anti_correlated)]
    )
    print("\nScore s1; basic, TA and supreme relative to SCase")
    head = "distribution N K d".split()
    print_head([*head, "SCase, us per object", "basic", "TA", "supreme", "TA considers"])
    for setting in grid:
        n, k, d, draw = setting
        count, few = max(20, min(500, 5_000_000 // n)), 4
        rows = draw(np.random.default_rng(8), n + TURNS * count, d)
        pairs = closest_pairs(rows[:n], k)
        by_staircase = restored(k, rows[:n], pairs)
        by_lists = restored(k, rows[:n], pairs, closest(d))
        basic, supreme = BasicSkyband(k, d, s1), Supreme(d, s1)
        basic.fill(0, rows[:n].T, pairs)
        supreme.objects.restore(0, rows[:n].T)
        operators: list[tuple[Sliding, int]] = [
            (by_staircase, count), (basic, few), (by_lists, count), (supreme, count),
        ]  # fmt: skip
        ours, *others = in_turns(operators, rows, n)
        share = by_lists.considered / (TURNS * count) / n
        bar = CONSIDERED.get(n, 1.0) if setting == Setting(n=n) else 1.0
        considered = f"{share:.2f} N" + ("" if share <= bar else " MISSED")
        print_row(
            [
                draw.__name__.replace("_", "-"), f"{n:,}", k, d,
                f"{ours:,.0f}", *(ratio(other / ours) for other in others), considered,
            ]
        )  # fmt: skip


def linear(pairs: Pairs, k: int, since: int) -> list[int]:
    """Return the k best pairs of a window, read one by one: the paper's linear algorithm."""
    found: list[int] = []
    for place, older in enumerate(pairs.older.tolist()):
        if older >= since:
            found.append(place)
            if len(found) == k:
                break
    return found


def timed(act: Callable[[], object], count: int = 50) -> float:
    """Return the median CPU time of an act, over the turns, in us."""
    times = []
    for _ in range(TURNS):
        begin = time.process_time()
        for _ in range(count):
            act()
        times.append((time.process_time() - begin) / count * 1e6)
    return median(times)


def queries() -> None:
    """Print the ways to answer a query from the skyband: Figs 10 and 11."""
    print("\nScore s1, uniform, d = 3; linear to continuous relative to the scan")
    head = ["N", "K", "pairs", "new per object", "k", "n", "scan, us", "linear", "tree, ready"]
    print_head([*head, "building the tree", "continuous"])
    grid = [(N, big, min(20, big), 1000) for big in (1, 10, 20, 100, 1000)]
    grid += [(N, 100, k, 1000) for k in (1, 100)] + [(N, 100, 20, n) for n in (3000, 9000)]
    largest = [(100_000, 20, 20, 1000), (100_000, 1000, 20, 1000), (N, N, 20, 1000)]
    grid += sized(short=[], full=largest)
    for size, big, k, n in grid:
        rows = uniform(np.random.default_rng(9), size + 50, D)
        skyband = restored(big, rows[:size], closest_pairs(rows[:size], big))
        print_row([f"{size:,}", f"{big:,}", *query_times(skyband, rows, k, n)])


def query_times(skyband: PairSkyband, rows: Floats, k: int, n: int) -> list[str]:
    """Return the cells of a row: a query after each object, answered by each algorithm."""
    size, end = skyband.end, skyband.end - n
    pairs = skyband.pairs()
    tree = PrioritySearchTree(pairs)
    scan = timed(lambda: skyband.best(k, end))
    others = [timed(lambda: linear(pairs, k, end)), timed(lambda: tree.best(k, end))]
    built = timed(lambda: PrioritySearchTree(pairs), 1)
    answer, spent, new = ContinuousAnswer(k), 0.0, 0
    answer.update(skyband, end)
    for position in range(size, len(rows)):
        slide(skyband, rows[position : position + 1], position, size)
        entered = skyband.pairs().newer == position
        new += int(np.count_nonzero(entered))
        begin = time.process_time()
        best = answer.update(skyband, skyband.end - n)
        spent += time.process_time() - begin
        assert best.scores.tolist() == skyband.best(k, skyband.end - n).scores.tolist()
    count = len(rows) - size
    cells = [f"{len(pairs.scores):,}", f"{new / count:.0f}", f"{k}", f"{n:,}", f"{scan:.1f}"]
    continuous = spent / count * 1e6
    return cells + [ratio(each / scan) for each in (*others, built, continuous)]


PARTS = {"naive": against_naive, "maintenance": maintenance, "queries": queries}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
