"""Throughput of `rsp run`: triples a second, from a file of N-Quads to a file of answers.

Each run is a separate process, timed from its start to its end; numbers are medians of some runs.
The baseline is parsing the same file with pyoxigraph alone, before and after each run: on a busy
machine, the ratio is more reliable than the seconds.

Count-based windows are measured per slide, in this process: from the text of its elements to its
answer. The baseline is the general path, which takes turns with the operator.
"""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice, product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import pyoxigraph as ox

from benchmarks.size import sized
from rsp_engine import Engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.options import OperatorName

TRIPLES = sized(short=50_000, full=200_000)
RUNS = sized(short=1, full=3)
STREAM = "http://example.org/s"
HEAD = f"FROM NAMED WINDOW <urn:w> ON STREAM <{STREAM}> [RANGE 10s STEP 2s]"
PATTERN = "WHERE { WINDOW <urn:w> { ?s <http://example.org/p> ?v } }"
ALL_ROWS = f"SELECT ?s ?v {HEAD} {PATTERN}"
QUERIES = {
    "all rows": ALL_ROWS,
    "rows above a value": f"SELECT ?s ?v {HEAD} {PATTERN[:-1]} FILTER (?v > 990000) }}",
    "top 10": f"SELECT ?s ?v {HEAD} {PATTERN} ORDER BY DESC(?v) LIMIT 10",
    "sum by subject": f"SELECT ?s (SUM(?v) AS ?sum) {HEAD} {PATTERN} GROUP BY ?s",
}
RANKED = {
    "the best 10": ("?s ?v", "ORDER BY DESC(?v) LIMIT 10"),
    "the 10 largest sums": ("?s (SUM(?v) AS ?x)", "GROUP BY ?s ORDER BY DESC(?x) LIMIT 10"),
}
SMALL = ((100, 10), (1_000, 100), (1_000, 10))
LARGE = ((10_000, 1_000), (10_000, 100), (10_000, 10))
COUNTED = sized(short=SMALL, full=(*SMALL, *LARGE))
SLIDES = sized(short=10, full=40)


class RunTime(NamedTuple):
    """The wall seconds and the CPU seconds of a run."""

    wall: float
    cpu: float


def write_stream(path: Path, triples: int, in_element: int) -> None:
    """Write a stream of 1,000 triples a second, with `in_element` triples in an element."""
    draw = random.Random(7)  # noqa: S311 - the same stream in every run
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    with path.open("w") as file:
        for number in range(triples):
            at = 1_700_000_000_000 + number // in_element * in_element
            value = f'"{draw.randrange(1_000_000)}"^^<{integer}>'
            subject = f"<http://example.org/u{number % 5000}>"
            file.write(f"{subject} <http://example.org/p> {value} <http://example.org/g/{at}> .\n")


def parse_seconds(path: Path) -> float:
    """Return the CPU seconds to parse a file and drop its quads."""
    begin = time.process_time()
    for _ in ox.parse(path=path, format=ox.RdfFormat.N_QUADS):
        pass
    return time.process_time() - begin


def run(query: str, stream: Path, source: str | None = None) -> RunTime:
    """Return the time of `rsp run` from one file, or another source, to another file."""
    text, answers = stream.with_suffix(".rspql"), stream.with_name("answers.jsonl")
    text.write_text(query)
    command = [sys.executable, "-m", "rsp_engine.cli", "run", str(text)]
    command += [
        "--runner",
        "local",
        "--stream",
        f"{STREAM}={source or stream}",
        "--output",
        str(answers),
    ]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True)  # noqa: S603 - it is our own program
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return RunTime(wall, cpu)


def typical(query: str, stream: Path, runs: int = RUNS) -> tuple[RunTime, float]:
    """Return the median time of some runs, and of the baseline between them."""
    bases, times = [parse_seconds(stream)], []
    for _ in range(runs):
        times.append(run(query, stream))
        bases.append(parse_seconds(stream))
    walls, cpus = zip(*times, strict=True)
    return RunTime(median(walls), median(cpus)), median(bases)


def by_query(folder: Path) -> None:
    """Print the throughput of each query, for elements of one triple and of ten."""
    print("RANGE 10s STEP 2s, 1,000 triples a second   triples/s   a CPU second   times parsing")
    for in_element in (1, 10):
        stream = folder / f"{in_element}.nq"
        write_stream(stream, TRIPLES, in_element)
        for name, query in QUERIES.items():
            time_of_run, base = typical(query, stream)
            case = f"{name}, {in_element} triple{'s' * (in_element > 1)} an element"
            speed = f"{TRIPLES / time_of_run.wall:12,.0f} {TRIPLES / time_of_run.cpu:14,.0f}"
            print(f"{case:41} {speed} {time_of_run.cpu / base:13.1f} x", flush=True)


def by_length(folder: Path) -> None:
    """Print the cost of a triple in a stream, and in a stream that is ten times longer."""
    print("\nall rows                  microseconds of CPU a triple                times parsing")
    first = first_ratio = 0.0
    for triples in (TRIPLES, 10 * TRIPLES):
        stream = folder / "long.nq"
        write_stream(stream, triples, 10)
        time_of_run, base = typical(ALL_ROWS, stream, runs=RUNS if triples == TRIPLES else 1)
        each, ratio = time_of_run.cpu / triples * 1e6, time_of_run.cpu / base
        first, first_ratio = first or each, first_ratio or ratio
        compared = f"{each:20.1f} {each / first:14.2f} x {ratio:15.1f} {ratio / first_ratio:7.2f} x"
        print(f"{triples:12,} triples {compared}", flush=True)


def write_json_lines(path: Path, source: Path) -> None:
    """Write a stream of N-Quads as JSON lines, with one triple in an element."""
    with source.open() as quads, path.open("w") as file:
        for line in quads:
            triple, _, graph = line.rpartition(" <http://example.org/g/")
            element = {"timestamp": int(graph[: -len("> .\n")]), "graph": f"{triple} ."}
            file.write(json.dumps(element) + "\n")


def write_plain_json(path: Path, source: Path, in_element: int) -> str:
    """Write a stream of N-Quads as plain JSON, and its template; return the source with options."""
    quad = re.compile(r'<http://example.org/(u[0-9]+)> \S+ "([0-9]+)".*/g/([0-9]+)> \.')
    with source.open() as quads, path.open("w") as file:
        while lines := list(islice(quads, in_element)):
            parts = [match.groups() for match in map(quad.match, lines) if match is not None]
            fields = [(f"s{n}", s) for n, (s, _, _) in enumerate(parts)]
            fields += [(f"v{n}", int(v)) for n, (_, v, _) in enumerate(parts)]
            file.write(json.dumps({"at": int(parts[0][2]), **dict(fields)}) + "\n")
    template = path.with_suffix(".ttl")
    subject, verb = "<http://example.org/{s%d}>", "<http://example.org/p>"
    value = '"{v%d}"^^xsd:integer'
    triples = (f"{subject % n} {verb} {value % n} .\n" for n in range(in_element))
    template.write_text("".join(triples))
    return f"{path}?template={template}&time=at"


def by_format(folder: Path) -> None:
    """Print the cost of a triple in JSON, beside that in N-Quads, for one and three an element."""
    print("\ntop 10                          microseconds of CPU a triple   times N-Quads")
    nquads, lines = folder / "1.nq", folder / "1.jsonl"
    write_stream(nquads, 10 * TRIPLES, 1)
    write_json_lines(lines, nquads)
    plain = write_plain_json(folder / "1.json", nquads, 1)
    _print_formats(nquads, {"JSON lines": str(lines), "JSON with a template": plain})
    nquads = folder / "3.nq"
    write_stream(nquads, 10 * TRIPLES // 3 * 3, 3)
    plain = write_plain_json(folder / "3.json", nquads, 3)
    _print_formats(nquads, {"JSON with three triples": plain})


def _print_formats(nquads: Path, others: Mapping[str, str]) -> None:
    streams = {"N-Quads": str(nquads), **others}
    query = QUERIES["top 10"]
    turns = [[run(query, nquads, each).cpu for each in streams.values()] for _ in range(RUNS)]
    empty = nquads.with_name("empty.nq")
    empty.write_text("")
    start = median(run(query, empty).cpu for _ in range(RUNS))  # what a run takes by itself
    turns = [[cpu - start for cpu in turn] for turn in turns]
    for name, times in zip(streams, zip(*turns, strict=True), strict=True):
        each = median(times) / (10 * TRIPLES) * 1e6
        ratio = median(cpu / turn[0] for cpu, turn in zip(times, turns, strict=True))
        print(f"{name:31} {each:28.2f} {ratio:13.1f} x", flush=True)


def slide(stream: Path, ranking: str, frame: tuple[int, int], operator: OperatorName) -> float:
    """Return the CPU seconds of a slide of a count-based window."""
    engine = Engine(operator=operator)
    variables, tail = RANKED[ranking]
    window = "FROM NAMED WINDOW <urn:w> ON STREAM <{}> [ELEMENTS {} STEP {}]"
    engine.register(f"SELECT {variables} {window.format(STREAM, *frame)} {PATTERN} {tail}")
    engine.bind(STREAM, str(stream))
    with engine:
        answers = engine.run()
        next(answers)  # the first window takes as long as all its slides
        begin = time.process_time()
        for _ in range(SLIDES):
            next(answers)
        return (time.process_time() - begin) / SLIDES


def by_count(folder: Path) -> None:
    """Print the time of a slide of count-based windows, beside that of the general path."""
    print("one triple an element                                  ms of CPU   general path   times")
    stream = folder / "counted.nq"
    for ranking, frame in product(RANKED, COUNTED):
        size, step = frame
        write_stream(stream, size + (SLIDES + 2) * step, 1)
        turns = [
            (slide(stream, ranking, frame, "auto"), slide(stream, ranking, frame, "general"))
            for _ in range(RUNS)
        ]
        own, general = map(median, zip(*turns, strict=True))
        case = f"a slide of {ranking}, ELEMENTS {size:,} STEP {step:,}"
        print(
            f"{case:58} {own * 1e3:5.2f} {general * 1e3:14.2f} {general / own:7.1f} x", flush=True
        )
    print()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        by_count(Path(name))
        by_query(Path(name))
        by_length(Path(name))
        by_format(Path(name))
