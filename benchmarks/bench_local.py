"""How fast the local driver runs: triples a second, from a file of N-Quads to a file of answers.

The baseline is reading the same file with pyoxigraph alone, in the same process.
"""

from __future__ import annotations

import gc
import random
import tempfile
import time
from pathlib import Path

import pyoxigraph as ox

from rsp_engine.engine import Engine
from rsp_engine.runtime.sinks import open_sink

TRIPLES = 200_000
STREAM = "http://example.org/s"
HEAD = f"FROM NAMED WINDOW <urn:w> ON STREAM <{STREAM}> [RANGE 10s STEP 2s]"
PATTERN = "WHERE { WINDOW <urn:w> { ?s <http://example.org/p> ?v } }"
QUERIES = {
    "all rows": f"SELECT ?s ?v {HEAD} {PATTERN}",
    "rows above a value": f"SELECT ?s ?v {HEAD} {PATTERN[:-1]} FILTER (?v > 990000) }}",
    "top 10": f"SELECT ?s ?v {HEAD} {PATTERN} ORDER BY DESC(?v) LIMIT 10",
    "sum by subject": f"SELECT ?s (SUM(?v) AS ?sum) {HEAD} {PATTERN} GROUP BY ?s",
}


def write_stream(path: Path, triples: int, in_element: int) -> None:
    """Write a stream of 1,000 triples a second, so many in an element."""
    draw = random.Random(7)  # noqa: S311 - the same stream in every run
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    with path.open("w") as file:
        for number in range(triples):
            at = 1_700_000_000_000 + number // in_element * in_element
            value = f'"{draw.randrange(1_000_000)}"^^<{integer}>'
            subject = f"<http://example.org/u{number % 5000}>"
            file.write(f"{subject} <http://example.org/p> {value} <http://example.org/g/{at}> .\n")


def parsed(path: Path) -> float:
    """Return the seconds to parse a file and do nothing."""
    begin = time.perf_counter()
    for _ in ox.parse(path=path, format=ox.RdfFormat.N_QUADS):
        pass
    return time.perf_counter() - begin


def run(query: str, path: Path, answers: Path) -> float:
    """Return the seconds to run a query over a file."""
    begin = time.perf_counter()
    engine = Engine()
    engine.register(query)
    engine.bind(STREAM, str(path))
    sink = open_sink("jsonl", str(answers), "SELECT")
    for answer in engine.run():
        sink.write(answer)
    sink.close()
    return time.perf_counter() - begin


def by_query(folder: Path) -> None:
    """Print the speed of each query, for elements of one triple and of ten."""
    print("RANGE 10s STEP 2s, 1,000 triples a second      triples/s    against parsing alone")
    for in_element in (1, 10):
        stream = folder / f"{in_element}.nq"
        write_stream(stream, TRIPLES, in_element)
        base = parsed(stream)
        for name, query in QUERIES.items():
            took = run(query, stream, folder / "answers.jsonl")
            told = f"{name}, {in_element} triple{'s' * (in_element > 1)} an element"
            print(f"{told:44} {TRIPLES / took:12,.0f} {base / took:16.2f} x")


def by_length(folder: Path) -> None:
    """Print the cost of a triple in a stream and in one that is ten times longer."""
    print("\nlength of the stream, all rows                 microseconds a triple")
    first = 0.0
    for triples in (TRIPLES, 10 * TRIPLES):
        stream = folder / "long.nq"
        write_stream(stream, triples, 10)
        each = run(QUERIES["all rows"], stream, folder / "answers.jsonl") / triples * 1e6
        first = first or each
        print(f"{triples:12,} triples {each:40.1f}    {each / first:.2f} x")


if __name__ == "__main__":
    gc.freeze()  # as `rsp run` does
    with tempfile.TemporaryDirectory() as name:
        by_query(Path(name))
        by_length(Path(name))
