"""The synthetic incomplete streams of Haghani et al.: the same seed gives the same streams.

Each of d streams observes every object at most once. For an item of a stream, the generator picks,
with probability rho, one of the last C items of the other streams that this stream has not observed
yet. Otherwise, or if there is none, it takes a fresh object. Values are uniform in [0, 1) and
multiples of 2^-32, so that their sums are exact in any order. The stream of an item is random.

    python -m rsp_engine.experiments.datasets.incomplete --write FOLDER [--seed N]

writes streams for the queries `flows` and `cameras` of `queries/`: CSV tables with their templates.
`benchmarks/bench_incomplete.py` prints how many items of a window EAA and the approximate operator
keep, and the quality of the last one, beside the numbers of the paper.

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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.datasets.dfc import Dice, check_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["Observed", "observed", "write_streams"]

_UNIT = 1 << 32
_TRIES = 8  # random picks before all eligible items are collected


class Observed(NamedTuple):
    """Observations in order of arrival: numbers of streams and objects, and values."""

    streams: Integers
    keys: Integers
    values: Floats


def observed(count: int, d: int, rho: float, seed: int = 0, c: int = 100) -> Observed:
    """Return `count` observations of d streams.

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
    seen: list[set[int]] = [set() for _ in range(d)]
    keys, fresh = [], 0
    for stream, repeat, pick in zip(streams.tolist(), repeats, picks, strict=True):
        key = _pick(stream, recent, seen[stream], pick) if repeat else None
        if key is None:
            key, fresh = fresh, fresh + 1
        recent[stream].append(key)
        seen[stream].add(key)
        keys.append(key)
    return Observed(streams, np.array(keys, dtype=np.int64), values)


def _pick(stream: int, recent: list[deque[int]], seen: set[int], picks: list[int]) -> int | None:
    """Pick uniformly one of the recent items of other streams that this stream has not seen."""
    others = [items for number, items in enumerate(recent) if number != stream]
    size = sum(map(len, others))
    if not size:
        return None
    for pick in picks:
        place = pick % size
        for items in others:
            if place < len(items):
                if items[place] not in seen:
                    return items[place]
                break
            place -= len(items)
    unseen = [key for items in others for key in items if key not in seen]
    return unseen[picks[0] % len(unseen)] if unseen else None


def write_streams(folder: Path, count: int = 3000, seed: int = 0) -> None:
    """Write streams for the queries `flows` and `cameras`: CSV tables and two templates."""
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


def _write(folder: Path, names: tuple[str, ...], stream: Observed, values: list[str]) -> None:
    start = datetime(2024, 3, 1, tzinfo=UTC)
    tables = [(folder / f"{name}.csv").open("w", newline="") for name in names]
    writers = [csv.writer(table) for table in tables]
    for writer in writers:
        writer.writerow(["timestamp", "id", "value"])
    rows = zip(stream.streams.tolist(), stream.keys.tolist(), values, strict=True)
    for number, (stream_number, key, value) in enumerate(rows):
        time = start + timedelta(milliseconds=20 * number)
        timestamp = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        writers[stream_number].writerow([timestamp, key, value])
    for table in tables:
        table.close()


def main(arguments: Sequence[str]) -> int:
    """Write streams."""
    parser = argparse.ArgumentParser(prog="python -m rsp_engine.experiments.datasets.incomplete")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the streams")
    parser.add_argument(
        "--write", type=Path, metavar="FOLDER", required=True, help="where to write streams"
    )
    options = parser.parse_args(arguments)
    write_streams(options.write, seed=options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
