"""The time to parse a query: by its length, against rdflib, and in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rdflib.plugins.sparql import prepareQuery

from benchmarks.size import sized
from rsp_engine.grammar import parse, to_sparql, validate

if TYPE_CHECKING:
    from collections.abc import Callable

QUERIES = sorted((Path(__file__).parents[1] / "queries").glob("*.rspql"))
LENGTHS = sized(short=(1_000, 10_000, 100_000), full=(1_000, 10_000, 100_000, 1_000_000))


def seconds(act: Callable[[], object], runs: int = 5) -> float:
    """Return the median time of some runs, after a warm-up run."""
    act()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        act()
        times.append(time.perf_counter() - begin)
    return median(times)


def text_of_length(length: int) -> str:
    """Return a query of about `length` characters, with varied syntax in each pattern."""
    patterns, size, number = [], 0, 0
    while size < length:
        user, count = f"?user{number}", f"?n{number}"
        pattern = (
            f"  WINDOW :w {{ {user} :mentions/:count {count}, {number} ; a :User . }}\n"
            f"  OPTIONAL {{ {user} :name ?name{number} FILTER ({count} > 3 + {number}) }}\n"
        )
        patterns.append(pattern)
        size += len(pattern)
        number += 1
    head = "PREFIX : <http://example.org/> SELECT * FROM NAMED WINDOW :w ON :s [RANGE 9m STEP 3m]\n"
    return f"{head}WHERE {{\n{''.join(patterns)}}}"


def by_length() -> None:
    """Print the time for texts of growing length; a ratio of 1 is perfectly linear."""
    print("characters          time    for 1,000    against the shortest")
    base = 0.0
    for length in LENGTHS:
        text = text_of_length(length)
        whole = seconds(lambda text=text: parse(text), 3)  # type: ignore[misc]
        each = whole / len(text) * 1000
        base = base or each
        print(f"{len(text):10,} {whole * 1e3:10.1f} ms {each * 1e3:9.2f} ms {each / base:21.2f} x")


def against_rdflib() -> None:
    """Print the time to parse each query of the project, against rdflib's for its SPARQL form."""
    print("\nquery                                  parse    validate    rdflib / parse")
    for path in QUERIES:
        text = path.read_text(encoding="utf-8")
        plain = to_sparql(parse(text))
        ours = seconds(lambda text=text: parse(text))  # type: ignore[misc]
        whole = seconds(lambda text=text: validate(text))  # type: ignore[misc]
        theirs = seconds(lambda plain=plain: prepareQuery(plain))  # type: ignore[misc]
        print(f"{path.name:34} {ours * 1e3:7.2f} ms {whole * 1e3:8.2f} ms {theirs / ours:12.1f} x")


def fresh_process() -> None:
    """Print the time of `rsp validate` in a fresh process, without and with cached tables."""
    command = [sys.executable, "-m", "rsp_engine.cli", "validate", str(QUERIES[0])]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "RSP_CACHE_DIR": folder}

        def run() -> None:
            subprocess.run(command, env=environment, check=True, capture_output=True)  # noqa: S603

        begin = time.perf_counter()
        run()
        first = time.perf_counter() - begin
        later = seconds(run)
    print(f"\nrsp validate, the very first time: {first:.2f} s; later: {later:.2f} s")


if __name__ == "__main__":
    by_length()
    against_rdflib()
    fresh_process()
