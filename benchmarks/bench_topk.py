"""The top-k operators against recomputing each window, against each other, and candidates kept.

Scores are uniform and every key is new. A ratio is measured in one run, between operators that take
turns of several slides each, so that an operator runs with its own data in the caches. It is the
median of five turns, in CPU time. Each ratio is printed with its bar, and whether it held.
Arguments select parts: slides, growth, recurring, kept, changes, rates.
"""

from __future__ import annotations

import sys
import time
from statistics import mean, median, pstdev
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.markdown import print_head, print_row, ratio
from benchmarks.size import sized
from rsp_engine.model.windows import Pane
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.topk.baselines.pretopk import PreTopk
from rsp_engine.operators.topk.baselines.sma import Sma, SmaConfig
from rsp_engine.operators.topk.contract import TopkOperatorConfig
from rsp_engine.operators.topk.mintopk import MinTopk

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.arrays import Floats, Integers

WINDOW = 1_000_000
TURNS = 5
KS = (10, 100, 1000)
RECOMPUTED = {(panes, k): 5 if panes == 10 else 12 for panes in (10, 100, 1000) for k in KS}
RECOMPUTED |= {(100, 1000): 6, (1000, 1000): 7}


class Sliding:
    """An operator with a window that is full but for one pane, and slides."""

    def __init__(
        self, operator: MinTopk | PreTopk | TopkN, panes: int, slide: int, different: int = 0
    ) -> None:
        self.operator, self.panes, self.slide, self.different = operator, panes, slide, different
        self.random = np.random.default_rng(7)
        self.remote = np.zeros(slide)
        self.taken = self.window = 0
        self.draw(panes - 1)
        for last in range(panes - 1):
            self.arrive(Pane(0, last))

    def draw(self, slides: int) -> None:
        """Draw the objects of the next `slides` slides: new keys, or recurring ones."""
        self.start = self.taken
        self.positions: Integers = np.arange(self.start, self.start + slides * self.slide)
        self.keys: Integers = self.positions
        if self.different:
            self.keys = self.random.integers(0, self.different, len(self.positions))
        self.scores = self.random.random(len(self.positions))

    def arrive(self, pane: Pane) -> None:
        """Pass the objects of a pane to the operator."""
        now = slice(self.taken - self.start, self.taken - self.start + self.slide)
        keys, positions, scores = self.keys[now], self.positions[now], self.scores[now]
        if isinstance(self.operator, TopkN):
            self.operator.arrive(pane, keys, positions, scores, self.remote)
        else:
            self.operator.arrive(pane, keys, positions, scores)
        self.taken += self.slide

    def __call__(self) -> None:
        """Slide the window once."""
        self.arrive(Pane(self.window, self.window + self.panes - 1))
        self.operator.close(self.window)
        self.window += 1


class Recomputing:
    """The window as arrays of scores and keys, from which each answer is recomputed."""

    def __init__(self, k: int, *, is_filtered: bool) -> None:
        self.k = k
        self.scores = np.random.default_rng(7).random(WINDOW)
        self.keys: Integers = np.arange(WINDOW)
        # A score threshold that leaves about as many objects as the operators look at.
        self.border = 1 - (k + 6 * k**0.5 + 10) / WINDOW if is_filtered else None

    def __call__(self) -> Integers:
        """Return the k best keys, best first."""
        scores, keys = self.scores, self.keys
        if self.border is not None:
            above = np.flatnonzero(scores >= self.border)
            scores, keys = scores[above], keys[above]
        best = np.argpartition(scores, len(scores) - self.k)[len(scores) - self.k :]
        return keys[best[np.argsort(-scores[best])]]


class Turns:
    """Calls that take turns; in each turn a call is repeated several times."""

    def __init__(self) -> None:
        self.acts: dict[str, tuple[Callable[[], object], int]] = {}
        self.times: dict[str, list[float]] = {}

    def add(self, name: str, act: Callable[[], object], count: int) -> None:
        """Add a call that is repeated `count` times in a turn."""
        self.acts[name] = act, count
        if isinstance(act, Sliding):
            act.draw(TURNS * (count + 1))

    def run(self) -> None:
        """Run all turns."""
        self.times = {name: [] for name in self.acts}
        for _ in range(TURNS):
            for name, (act, count) in self.acts.items():
                act()  # fills the caches
                begin = time.process_time()
                for _ in range(count):
                    act()
                self.times[name].append((time.process_time() - begin) / count)

    def seconds(self, name: str) -> float:
        """Return the median time of a call."""
        return median(self.times[name])

    def ratio(self, name: str, other: str) -> float:
        """Return the median ratio of the times of two calls in the same turn."""
        return median(a / b for a, b in zip(self.times[name], self.times[other], strict=True))


def with_bar(value: float, bar: float, *, is_least: bool = False) -> str:
    """Return a ratio with its bar, and whether it held."""
    verdict = "held" if (value >= bar if is_least else value <= bar) else "MISSED"
    return f"{value:7.2f} x  {'>=' if is_least else '<='} {bar:2}  {verdict:6}"


def plus(x: Floats, y: Floats) -> Floats:
    """Return F(x_S, x_D)."""
    return x + y


def slides() -> None:
    """Print the time of a slide, and of an object, with ratios to MinTopk."""
    print(f"\nA slide of a window of {WINDOW:,} objects: MinTopk, and how much longer others take")
    print(
        " panes     k     MinTopk   recomputing the window       Topk+N, N=0"
        "                filtered    PreTopk   ns an object: MinTopk, Topk+N"
    )
    for panes in (10, 100, 1000):
        for k in KS:
            slide, count, turns = WINDOW // panes, 10 if panes == 10 else 200, Turns()
            turns.add("MinTopk", Sliding(MinTopk(TopkOperatorConfig(k)), panes, slide), count)
            turns.add("Topk+N", Sliding(TopkN(TopkNConfig(k), plus), panes, slide), count)
            turns.add("anew", Recomputing(k, is_filtered=False), 3)
            turns.add("filtered", Recomputing(k, is_filtered=True), 10)
            if panes <= 100:
                turns.add("PreTopk", Sliding(PreTopk(TopkOperatorConfig(k)), panes, slide), 3)
            turns.run()
            predicted = (
                f"{turns.ratio('PreTopk', 'MinTopk'):8.1f} x" if panes <= 100 else f"{'-':>10}"
            )
            each = [turns.seconds(name) / slide * 1e9 for name in ("MinTopk", "Topk+N")]
            verdict = "held" if max(each) <= 1000 else "MISSED"
            print(
                f"{panes:6,} {k:5,} {turns.seconds('MinTopk') * 1e3:8.3f} ms"
                f" {with_bar(turns.ratio('anew', 'MinTopk'), RECOMPUTED[panes, k], is_least=True)}"
                f" {with_bar(turns.ratio('Topk+N', 'MinTopk'), 3 if panes == 10 else 2)}"
                f" {turns.ratio('filtered', 'MinTopk'):8.1f} x {predicted}"
                f" {each[0]:8.1f} {each[1]:8.1f}  <= 1000 {verdict}"
            )


def growth() -> None:
    """Print the time of an object in a small window, and in a large one."""
    slide = 1000
    print(f"\nns an object as the window grows, slides of {slide:,} objects")
    print("     k  operator       10,000    1,000,000      ratio")
    for k in KS:
        for name in ("MinTopk", "Topk+N"):
            turns = Turns()
            for panes in (10, 1000):
                operator = (
                    MinTopk(TopkOperatorConfig(k))
                    if name == "MinTopk"
                    else TopkN(TopkNConfig(k), plus)
                )
                turns.add(str(panes), Sliding(operator, panes, slide), 300)
            turns.run()
            small, large = (turns.seconds(panes) / slide * 1e9 for panes in ("10", "1000"))
            ratio = with_bar(turns.ratio("1000", "10"), 2)
            print(f"{k:6,}  {name:8} {small:12.1f} {large:12.1f} {ratio}")


def recurring() -> None:
    """Print the time of an object where keys recur with other scores."""
    different = 100_000
    print(
        f"\nns an object of Topk+N, N=0, with {different:,} keys that come again with other scores"
    )
    print(" panes     k   an object")
    for panes in (10, 100, 1000):
        for k in KS:
            slide, turns = WINDOW // panes, Turns()
            sliding = Sliding(TopkN(TopkNConfig(k), plus), panes, slide, different)
            turns.add("Topk+N", sliding, 10 if panes == 10 else 100)
            turns.run()
            each = turns.seconds("Topk+N") / slide * 1e9
            print(f"{panes:6,} {k:5,} {each:11.1f}  <= 1000 {'held' if each <= 1000 else 'MISSED'}")


def expected(k: int, panes: int, slide: int) -> float:
    """Return the expected number of candidates: of the last j panes, the k best are kept.

    This is k (1 + 1/2 + ... + 1/m) for m panes, unless a pane has fewer objects.
    """
    return sum(min(slide, k / j) for j in range(1, panes + 1))


def kept() -> None:
    """Print the average number of candidates in the lists, by the size of the window."""
    print("\nCandidates, and the average of the lists as a share of what is expected")
    print("(the papers: 2 k in theory, 2.4 k measured)")
    print("    window  panes       k   expected             MinTopk      Topk+N, K = N = k/2")
    small = ((100_000, (100,)),)
    for panes in (10, 100, 1000):
        for window, ks in sized(short=small, full=(*small, (WINDOW, (10, 100, 1000, 10_000)))):
            for k in ks:
                slide = window // panes
                windows = 1000 // k + 4  # short lists differ more
                wanted = expected(k, panes, slide)
                shares = [
                    average_length(operator, panes, slide, windows) / wanted
                    for operator in (
                        MinTopk(TopkOperatorConfig(k)),
                        TopkN(TopkNConfig(k // 2, k // 2), plus),
                    )
                ]
                verdict = "held" if all(0.95 <= share <= 1.05 for share in shares) else "MISSED"
                print(
                    f"{window:10,} {panes:6,} {k:7,} {wanted:10,.0f} ={wanted / k:5.2f} k"
                    f" {shares[0]:12.3f} {shares[1]:12.3f}  0.95 to 1.05  {verdict}"
                )


def average_length(operator: MinTopk | TopkN, panes: int, slide: int, windows: int) -> float:
    """Return the average length of a list, over `windows` windows that share no object."""
    sliding, sizes = Sliding(operator, panes, slide), []
    for _ in range(windows):
        sliding.draw(panes)
        for _ in range(panes):
            sliding()
        sizes.append(len(operator))
    return mean(sizes)


def changes() -> None:
    """Print the time of a change of a remote value, for keys all over the window."""
    batches, size, panes = sized(short=200, full=1000), 1000, 100
    print(f"\n{batches * size:,} changes in batches of {size:,}, {panes} panes, a slide every 10")
    print("     K      N   seconds   us a change   candidates")
    draw = np.random.default_rng(7)
    for k in KS:
        operator = TopkN(TopkNConfig(k, k), plus)
        sliding = Sliding(operator, panes, WINDOW // panes)
        sliding.draw(batches // 10)
        spent, sizes = 0.0, []
        for batch in range(batches):
            if batch % 10 == 0:
                sliding()
                sizes.append(len(operator))
            keys = draw.integers(max(0, sliding.taken - WINDOW), sliding.taken, size)
            values = draw.random(size)
            begin = time.process_time()
            operator.change(keys, values)
            spent += time.process_time() - begin
        print(
            f"{k:6,} {k:6,} {spent:9.2f} {spent / batches / size * 1e6:13.2f} {mean(sizes):12,.0f}"
        )


def bursts(seconds: int, mean_rate: int = 400) -> Integers:
    """Return the number of arrivals in each second: bursts of some seconds, and lulls."""
    draw = np.random.default_rng(11)
    swing, level = np.empty(seconds), 0.0
    for second, noise in enumerate(draw.normal(0, 1, seconds).tolist()):
        level = 0.8 * level + 0.6 * noise  # a deviation of 1, correlated over some seconds
        swing[second] = level
    intensity = np.exp(1.2 * swing)
    counts: Integers = draw.poisson(mean_rate * intensity / intensity.mean())
    return counts


class Timed:
    """An operator over time-based windows of a stream whose rate varies."""

    def __init__(self, operator: MinTopk | PreTopk | Sma, counts: Integers, panes: int) -> None:
        self.operator, self.panes = operator, panes
        self.edges = np.concatenate([[0], np.cumsum(counts)])
        self.scores = np.random.default_rng(7).random(int(self.edges[-1]))
        self.times: list[float] = []
        for pane in range(panes - 1):
            self._arrive(pane)
            if pane % 10 == 0 and isinstance(operator, MinTopk):
                operator.settle(0)

    def _arrive(self, pane: int) -> None:
        keys = np.arange(self.edges[pane], self.edges[pane + 1])
        first = max(0, pane - self.panes + 1)
        self.operator.arrive(Pane(first, pane), keys, keys, self.scores[keys])

    def __call__(self, window: int) -> Integers:
        """Slide the window, note the response time in ms, and return the answer."""
        begin = time.process_time()
        self._arrive(window + self.panes - 1)
        keys = self.operator.close(window).keys
        self.times.append((time.process_time() - begin) * 1e3)
        return keys


def rates() -> None:
    """Print the response times of windows if the arrival rate varies: Fig 13 of MinTopk."""
    k, size, windows = 1000, 1000, sized(short=50, full=200)
    print(f"\nWindows of {size:,} s, k = {k:,}, 400 objects per second on average, in bursts")
    print_head(
        "slide, objects per slide (least to most), operator, least ms, mean, most, deviation,"
        " mean relative to MinTopk".split(", ")
    )
    for slide in (1, 10, 100):
        panes = size // slide
        counts = bursts(size + windows * slide).reshape(-1, slide).sum(axis=1)
        measured = counts[panes - 1 :]
        operators: dict[str, MinTopk | PreTopk | Sma] = {
            "MinTopk": MinTopk(TopkOperatorConfig(k)),
            "PreTopk": PreTopk(TopkOperatorConfig(k)),
            "SMA": Sma(SmaConfig(k, k_max=k)),
        }
        if slide == 1:
            del operators["PreTopk"]  # 1,000 lists of k objects: minutes for each window
        acts = {name: Timed(operator, counts, panes) for name, operator in operators.items()}
        for act in acts.values():
            act(0)
            act.times.clear()
        for window in range(1, windows):
            answers = [act(window).tolist() for act in acts.values()]
            assert all(answer == answers[0] for answer in answers), "the answers differ"
        base = mean(acts["MinTopk"].times)
        for name, act in acts.items():
            spread = (min(act.times), mean(act.times), max(act.times), pstdev(act.times))
            print_row(
                [
                    f"{slide} s", f"{measured.min():,} to {measured.max():,}", name,
                    *(f"{each:.2f}" for each in spread), ratio(mean(act.times) / base),
                ]
            )  # fmt: skip


PARTS = {
    "slides": slides,
    "growth": growth,
    "recurring": recurring,
    "kept": kept,
    "changes": changes,
    "rates": rates,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
