"""The synthetic streams of the paper on incomplete streams: the same for the same seed.

Each of d streams tells every object at most once. To make an item of a stream, the generator picks,
with probability rho, one of the last C items of the other streams that this one has not told, and a
fresh one otherwise, or if there is none. Values are uniform in [0, 1): multiples of 2^-32, so that
sums of them are exact in any order. Streams take turns by chance.

    python -m rsp_engine.experiments.datasets.incomplete [--seed N] [--write FOLDER]

prints what SLA, EAA and the approximate operator keep of a window, and how precise the last one is,
beside the figures of the paper; SLA keeps all. With a folder, it writes streams for the queries
`flows` and `cameras` of `queries/` there instead, as tables and the templates that go with them.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
6.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import deque
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from rsp_engine.experiments.datasets.dfc import Dice, check_whole
from rsp_engine.model.windows import Pane
from rsp_engine.operators.incomplete.approximate import Approximate
from rsp_engine.operators.incomplete.eaa import EAA
from rsp_engine.operators.incomplete.observations import IncompleteOperatorConfig, as_observations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.incomplete.observations import IncompleteOperator, Observations
    from rsp_engine.operators.topk.contract import TopkAnswer

__all__ = [
    "FEW",
    "PAPER_COUNTS",
    "Observed",
    "StoredCounts",
    "observed",
    "of_the_paper",
    "slides",
    "stored_counts",
    "write_streams",
]

FEW, SLIDES = 50, 100
"""Of how many evaluations the mean is taken, and how many slides a window has."""
PAPER_COUNTS = {1000: (130.0, 84.0), 500: (115.0, 75.0)}
"""What the approximate algorithm keeps with 2 streams, by W, where rho goes from 0.1 to 0.9."""

_UNIT = 1 << 32
_TRIES = 8  # picks by chance before all that could be picked are looked at


class Observed(NamedTuple):
    """Observations in their order: streams and objects by number, and values."""

    streams: Integers
    keys: Integers
    values: Floats


def observed(count: int, d: int, rho: float, seed: int = 0, c: int = 100) -> Observed:
    """Return so many observations of d streams.

    >>> made = observed(10, d=2, rho=0.5)
    >>> made.streams.tolist(), made.keys.tolist()
    ([1, 0, 1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    """
    check_whole("streams", d, 1, 64)
    check_whole("recent values", c, 1, 1_000_000)
    if not 0 <= rho <= 1:
        raise ValueError("rho is a probability")
    streams = Dice(seed, 10).below(d, count)
    repeats = (Dice(seed, 11).below(_UNIT, count) < rho * _UNIT).tolist()
    picks = Dice(seed, 12).below(_UNIT, count, _TRIES).tolist()
    values = Dice(seed, 13).below(_UNIT, count) / _UNIT
    recent: list[deque[int]] = [deque(maxlen=c) for _ in range(d)]
    told: list[set[int]] = [set() for _ in range(d)]
    keys, fresh = [], 0
    for stream, repeat, pick in zip(streams.tolist(), repeats, picks, strict=True):
        key = _picked(stream, recent, told[stream], pick) if repeat else None
        if key is None:
            key, fresh = fresh, fresh + 1
        recent[stream].append(key)
        told[stream].add(key)
        keys.append(key)
    return Observed(streams, np.array(keys, dtype=np.int64), values)


def _picked(stream: int, recent: list[deque[int]], told: set[int], picks: list[int]) -> int | None:
    """Return a recent item of another stream, all as likely that this one has not told."""
    others = [items for number, items in enumerate(recent) if number != stream]
    size = sum(map(len, others))
    if not size:
        return None
    for pick in picks:
        place = pick % size
        for items in others:
            if place < len(items):
                if items[place] not in told:
                    return items[place]
                break
            place -= len(items)
    left = [key for items in others for key in items if key not in told]
    return left[picks[0] % len(left)] if left else None


def panes(size: int, step: int, found: Observed) -> list[tuple[Pane, Observations]]:
    """Return observations cut into slides, each with the windows that hold it."""
    made = []
    for number, start in enumerate(range(0, len(found.keys), step)):
        streams, keys, values = (column[start : start + step] for column in found)
        positions = np.arange(start, start + len(keys))
        pane = Pane(number, number + size // step - 1)
        made.append((pane, as_observations(streams, keys, positions, values)))
    return made


def slides(
    size: int, step: int, found: Observed, operators: Sequence[IncompleteOperator]
) -> Iterator[list[TopkAnswer]]:
    """Yield the rankings of operators after each slide of a window over the last so many."""
    for number, (pane, batch) in enumerate(panes(size, step, found)):
        for operator in operators:
            operator.arrive(pane, batch)
        yield [operator.close(number) for operator in operators]


class StoredCounts(NamedTuple):
    """How many instances operators keep, and how precise the approximate one is, in the mean."""

    eaa: float
    approximate: float
    precision: float


def stored_counts(
    size: int, d: int, rho: float, seeds: Sequence[int] = (0,), k: int = 10
) -> StoredCounts:
    """Return what is kept of a window over so many observations, over 50 evaluations a seed."""
    rows = [row for seed in seeds for row in _rows(size, d, rho, seed, k)]
    return StoredCounts(*(mean(column) for column in zip(*rows, strict=True)))


def _rows(size: int, d: int, rho: float, seed: int, k: int) -> Iterator[StoredCounts]:
    config = IncompleteOperatorConfig(k, (1.0,) * d)
    eaa, approximate = EAA(config), Approximate(config)
    step = size // SLIDES
    found = observed(2 * size + FEW * step, d, rho, seed)
    for number, (exact, about) in enumerate(slides(size, step, found, (eaa, approximate))):
        if number >= 2 * SLIDES:
            eaa.prune()
            approximate.prune()
            share = len(set(exact.keys.tolist()) & set(about.keys.tolist())) / k
            yield StoredCounts(len(eaa), len(approximate), share)


def of_the_paper(size: int, rho: float) -> float:
    """Return what the approximate algorithm keeps in the paper, if it falls evenly with rho.

    >>> of_the_paper(1000, 0.1), of_the_paper(1000, 0.5)
    (130.0, 107.0)
    """
    first, last = PAPER_COUNTS[size]
    return first + (last - first) * (rho - 0.1) / 0.8


def write_streams(folder: Path, count: int = 3000, seed: int = 0) -> None:
    """Write streams for the queries of flows and cameras: a table each, and two templates."""
    folder.mkdir(parents=True, exist_ok=True)
    routers = ("router1", "router2", "router3")
    sizes = [f"{1 + int(value * 1_000_000)}" for value in _values(count, seed)]
    _write(folder, routers, observed(count, 3, 0.5, seed), sizes)
    cameras = ("northCamera", "southCamera", "bridgeCamera")
    speeds = [f"{40 + value * 160:.2f}" for value in _values(count, seed + 1)]
    _write(folder, cameras, observed(count, 3, 0.5, seed + 1), speeds)
    for name, iri, verb, kind in (
        ("flows", "http://example.org/net/flow{id}", "http://example.org/net/size", "integer"),
        (
            "cameras",
            "http://example.org/roads/car{id}",
            "http://example.org/roads/speed",
            "decimal",
        ),
    ):
        (folder / f"{name}.ttl").write_text(f'<{iri}> <{verb}> "{{value}}"^^xsd:{kind} .\n')


def _values(count: int, seed: int) -> list[float]:
    values: list[float] = observed(count, 3, 0.5, seed).values.tolist()
    return values


def _write(folder: Path, names: tuple[str, ...], found: Observed, values: list[str]) -> None:
    start = datetime(2024, 3, 1, tzinfo=UTC)
    tables = [(folder / f"{name}.csv").open("w", newline="") for name in names]
    writers = [csv.writer(table) for table in tables]
    for writer in writers:
        writer.writerow(["timestamp", "id", "value"])
    rows = zip(found.streams.tolist(), found.keys.tolist(), values, strict=True)
    for number, (stream, key, value) in enumerate(rows):
        moment = start + timedelta(milliseconds=20 * number)
        told = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        writers[stream].writerow([told, key, value])
    for table in tables:
        table.close()


def _tables(seed: int) -> Iterator[Table]:
    seeds = range(seed, seed + 3)
    for size in PAPER_COUNTS:
        title = f"Items kept, W = {size}, 2 streams, k = 10, C = 100"
        table = Table("rho", "SLA", "EAA", "approximate", "of the paper", "precision", title=title)
        for tenths in range(1, 10):
            found = stored_counts(size, 2, tenths / 10, seeds)
            paper = of_the_paper(size, tenths / 10)
            table.add_row(
                f"{tenths / 10}",
                f"{size}",
                f"{found.eaa:.0f}",
                f"{found.approximate:.0f}",
                f"{paper:.0f}",
                f"{found.precision:.2f}",
            )
        yield table
    table = Table("W", "SLA", "EAA", "approximate", "precision", title="3 streams, rho = 0.5")
    for size in (500, 1000, 2000, 5000, 10_000):
        found = stored_counts(size, 3, 0.5, seeds)
        numbers = (f"{number:.0f}" for number in (size, size, found.eaa, found.approximate))
        table.add_row(*numbers, f"{found.precision:.2f}")
    yield table


def main(arguments: Sequence[str]) -> int:
    """Print what is kept, or write streams."""
    parser = argparse.ArgumentParser(prog="python -m rsp_engine.experiments.datasets.incomplete")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the streams")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where to write streams")
    given = parser.parse_args(arguments)
    if given.write is not None:
        write_streams(given.write, seed=given.seed)
        return 0
    console = Console(width=100)
    for table in _tables(given.seed):
        console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
