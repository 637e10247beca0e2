"""Throughput of queries on Spark, from a file of N-Quads to answers, with a warm session.

All runs share one session. The baseline is the time in which Spark and pyoxigraph parse the same
splits of the file and drop the quads. Memory is that of the driver's Python process.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyoxigraph as ox
from pyoxigraph import Literal, NamedNode

from benchmarks.size import sized
from rsp_engine.drivers.spark.session import start_session
from rsp_engine.drivers.spark.split_job import read_splits
from rsp_engine.engine import Engine
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.splits import Splittable
from rsp_engine.replica.endpoints.endpoint import FetchResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern

EX = "http://example.org/"
SUBJECTS = 20_000
SPLIT_BYTES = 4 << 20
SMALL_SPLIT_BYTES = 128 << 10
FRAME = "FROM NAMED WINDOW :w ON STREAM :s [RANGE 100s STEP 10s]"
TOP = f"SELECT ?s ?v {FRAME} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 10"
JOINED = f"""SELECT ?s (?v + ?f AS ?x) {FRAME} WHERE {{
    WINDOW :w {{ ?s :p ?v }} SERVICE :BKG {{ ?s :f ?f }} }} ORDER BY DESC(?x) LIMIT 10"""
GENERAL = f"""SELECT (COUNT(*) AS ?n) (MAX(?v) AS ?most) {FRAME}
    WHERE {{ WINDOW :w {{ ?s :p ?v . ?s ?q ?w }} FILTER (?v > 999000) }}"""


def write_stream(path: Path, triples: int) -> None:
    """Write a stream of 1,000 triples a second."""
    draw = random.Random(7)  # noqa: S311 - the same stream in every run
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    with path.open("w") as file:
        for number in range(triples):
            value = f'"{draw.randrange(1_000_000)}"^^<{integer}>'
            subject = f"<{EX}u{draw.randrange(SUBJECTS)}>"
            file.write(f"{subject} <{EX}p> {value} <{EX}g/{1_700_000_000_000 + number}> .\n")


class Remote:
    """An endpoint in this process: the cost of the network is not measured."""

    def __init__(self, pattern: RemotePattern) -> None:
        [self._variable] = pattern.variables

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        """Answer for some keys."""
        values = {key: ({self._variable: Literal((hash(key) + now) % 1_000_000)},) for key in keys}
        return FetchResult(values, 1)

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        """Answer for all."""
        return self.fetch([(NamedNode(f"{EX}u{n}"),) for n in range(SUBJECTS)], limits, now)

    def close(self) -> None:
        """Do nothing."""


def run(query: str, stream: Path, **options: Any) -> tuple[float, list[float]]:  # noqa: ANN401
    """Return the seconds of a run, and those from its start to each answer."""
    engine = Engine(runner="spark", split_bytes=SPLIT_BYTES, **options)
    if "SERVICE" in query:
        engine.service(f"{EX}BKG", Remote)
    engine.register(f"PREFIX : <{EX}> {query}")
    engine.bind(f"{EX}s", str(stream))
    begin = time.perf_counter()
    times = [time.perf_counter() - begin for _ in engine.run()]
    return time.perf_counter() - begin, times


def parse_seconds(stream: Path) -> float:
    """Return the seconds in which Spark parses the splits of a file and drops the quads."""
    source = open_source(str(stream))
    assert isinstance(source, Splittable)
    splits = [(split.start, split.end) for split in source.cut(SPLIT_BYTES)]
    spark = start_session()

    def parse(split: tuple[int, int | None]) -> int:
        start, end = split
        with stream.open("rb") as file:
            file.seek(start)
            data = file.read() if end is None else file.read(end - start)
        return sum(1 for _ in ox.parse(data, ox.RdfFormat.N_QUADS))

    begin = time.perf_counter()
    # mapInArrow would need pandas, which nothing else in the project needs.
    spark.sparkContext.parallelize(splits, len(splits)).map(parse).sum()
    return time.perf_counter() - begin


def waits(stream: Path) -> list[float]:
    """Return the seconds from the start of each batch to each of its answers.

    Batches are small, so that most of them close one window.
    """
    engine = Engine(runner="spark", split_bytes=SMALL_SPLIT_BYTES)
    engine.register(f"PREFIX : <{EX}> {TOP}")
    engine.bind(f"{EX}s", str(stream))
    started = [time.perf_counter()]

    def note(*given: Any) -> Any:  # noqa: ANN401
        started[0] = time.perf_counter()
        return read_splits(*given)

    with patch("rsp_engine.drivers.spark.driver.read_splits", note):
        latencies = [time.perf_counter() - started[0] for _ in engine.run()]
    return latencies[1:]  # the first batch waits for Spark to start the query


def memory() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print triples a second, and ratios to parsing."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--triples", type=int, default=sized(short=100_000, full=1_000_000))
    flags.add_argument("--runs", type=int, default=sized(short=1, full=3))
    options = flags.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stream, small = Path(folder) / "stream.nq", Path(folder) / "small.nq"
        write_stream(stream, options.triples)
        write_stream(small, 50_000)
        for query in (TOP, JOINED, GENERAL):
            run(query, small)  # warms the session
        parse_seconds(stream)
        bases = []
        cases = {"top 10": (TOP, {}), "with SERVICE, AT-TSM": (JOINED, {"policy": "AT-TSM"})}
        cases["general path"] = (GENERAL, {})
        for name, (query, keywords) in cases.items():
            times = []
            for _ in range(options.runs):
                bases.append(parse_seconds(stream))
                times.append(run(query, stream, **keywords)[0])
            rate, base = options.triples / median(times), options.triples / median(bases)
            print(
                f"  {name:22} {rate:9,.0f} triples/s   {rate / base:.2f} of parsing alone"
                f" ({base:,.0f})   memory {memory():,.0f} MB"
            )
        latencies = sorted(waits(stream))
        print(
            "  from the batch that closes a window to its answer:"
            f" median {median(latencies):.3f} s,"
            f" nine in ten under {latencies[len(latencies) * 9 // 10]:.3f} s"
        )
        longer = Path(folder) / "longer.nq"
        write_stream(longer, 5 * options.triples)
        before = memory()
        run(TOP, longer)
        print(f"  five times longer: memory {before:,.0f} MB before, {memory():,.0f} MB after")


if __name__ == "__main__":
    main()
