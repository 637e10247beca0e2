"""How fast queries are on Spark, from a file of N-Quads to answers, once the session is warm.

All runs share one session. The baseline is what Spark and pyoxigraph need to parse the same file,
in the same places, and to do nothing with it. Memory is that of the driver's process of Python.
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

import pyarrow as pa
import pyoxigraph as ox
from pyoxigraph import Literal, NamedNode

from rsp_engine.drivers.spark.session import start_session
from rsp_engine.drivers.spark.split_source import NextBatch
from rsp_engine.engine import Engine
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.splits import Splittable
from rsp_engine.replica.endpoints.endpoint import Fetched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern

EX = "http://example.org/"
SUBJECTS = 20_000
PLACE = 4 << 20
SMALL_PLACE = 128 << 10
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
    """Remote values in this process: what the network costs is not measured here."""

    def __init__(self, pattern: RemotePattern) -> None:
        [self._variable] = pattern.variables

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> Fetched:
        """Answer for some keys."""
        found = {key: ({self._variable: Literal((hash(key) + now) % 1_000_000)},) for key in keys}
        return Fetched(found, 1)

    def snapshot(self, limits: Limits, now: int) -> Fetched:
        """Answer for all."""
        return self.fetch([(NamedNode(f"{EX}u{n}"),) for n in range(SUBJECTS)], limits, now)

    def close(self) -> None:
        """Do nothing."""


def run(query: str, stream: Path, **options: Any) -> tuple[float, list[float]]:  # noqa: ANN401
    """Return the seconds of a run, and between answers."""
    engine = Engine(runner="spark", place_bytes=PLACE, **options)
    if "SERVICE" in query:
        engine.service(f"{EX}BKG", Remote)
    engine.register(f"PREFIX : <{EX}> {query}")
    engine.bind(f"{EX}s", str(stream))
    begin = time.perf_counter()
    times = [time.perf_counter() - begin for _ in engine.run()]
    return time.perf_counter() - begin, times


def parsed(stream: Path) -> float:
    """Return the seconds in which Spark parses a file in places, and does nothing with it."""
    source = open_source(str(stream))
    assert isinstance(source, Splittable)
    places = [(place.start, place.end) for place in source.cut(PLACE)]
    spark = start_session()

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                with stream.open("rb") as file:
                    file.seek(row["start"])
                    end = row["end"]
                    data = file.read() if end is None else file.read(end - row["start"])
                count = sum(1 for _ in ox.parse(data, ox.RdfFormat.N_QUADS))
                yield pa.RecordBatch.from_pylist([{"triples": count}])

    begin = time.perf_counter()
    rows = spark.createDataFrame(places, "start long, end long").repartition(len(places))
    rows.mapInArrow(parse, "triples long").toArrow()
    return time.perf_counter() - begin


def waits(stream: Path) -> list[float]:
    """Return the seconds from the start of each batch to the answers that come of it.

    Batches are small, so that most of them close one window.
    """
    engine = Engine(runner="spark", place_bytes=SMALL_PLACE)
    engine.register(f"PREFIX : <{EX}> {TOP}")
    engine.bind(f"{EX}s", str(stream))
    started = [time.perf_counter()]
    write = NextBatch.write

    def note(told: NextBatch, number: int, places: Any) -> None:  # noqa: ANN401
        write(told, number, places)
        started[0] = time.perf_counter()

    with patch.object(NextBatch, "write", note):
        found = [time.perf_counter() - started[0] for _ in engine.run()]
    return found[1:]  # the first batch waits for Spark to start the query


def memory() -> float:
    """Return the most memory that this process has used so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print triples a second, and ratios to parsing."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--triples", type=int, default=1_000_000)
    flags.add_argument("--runs", type=int, default=3)
    given = flags.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stream, small = Path(folder) / "stream.nq", Path(folder) / "small.nq"
        write_stream(stream, given.triples)
        write_stream(small, 50_000)
        for query in (TOP, JOINED, GENERAL):
            run(query, small)  # the session is warm
        parsed(stream)
        bases = []
        cases = {"top 10": (TOP, {}), "with SERVICE, AT-TSM": (JOINED, {"policy": "AT-TSM"})}
        cases["general path"] = (GENERAL, {})
        for name, (query, options) in cases.items():
            took = []
            for _ in range(given.runs):
                bases.append(parsed(stream))
                took.append(run(query, stream, **options)[0])
            rate, base = given.triples / median(took), given.triples / median(bases)
            print(
                f"  {name:22} {rate:9,.0f} triples/s   {rate / base:.2f} of parsing alone"
                f" ({base:,.0f})   memory {memory():,.0f} MB"
            )
        found = sorted(waits(stream))
        print(
            f"  from the batch that closes a window to its answer: median {median(found):.3f} s,"
            f" nine in ten under {found[len(found) * 9 // 10]:.3f} s"
        )
        longer = Path(folder) / "longer.nq"
        write_stream(longer, 5 * given.triples)
        before = memory()
        run(TOP, longer)
        print(f"  five times longer: memory {before:,.0f} MB before, {memory():,.0f} MB after")


if __name__ == "__main__":
    main()
