"""Many queries in one run: what another query costs beside a query that runs alone.

A file of N-Quads has the readings of 400 sensors. Queries rank readings, or sensors by a sum.
`equal` queries differ in their names only, and `matching` ones share all matching: they differ in
k, in OFFSET, or in RANGE over the same panes. A run has N of a kind. Its cost beyond a run of one
query, divided by N - 1, is what an added query costs; it is shown as a part of a query alone, which
is a run of one without the start of the process. Each run is a process of its own, runs alternate,
and a cell is the median of CPU seconds, or of the largest resident memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.markdown import print_table
from benchmarks.size import sized
from rsp_engine.engine import Engine
from rsp_engine.io.sinks.jsonl import JSONL

EX = "http://example.org/"
READINGS = sized(short=100_000, full=400_000)
RUNS = sized(short=3, full=5)
COUNTS = (1, 10, 50, 200)
HEAD = (
    "PREFIX : <http://example.org/> REGISTER RSTREAM :{name} AS SELECT {shown}"
    " FROM NAMED WINDOW :w ON :readings [RANGE {range}s STEP 10s]"
)
BODIES = {
    "ranked": ("?s ?v", " WHERE {{ WINDOW :w {{ ?s :value ?v }} }} ORDER BY DESC(?v)"),
    "grouped": (
        "?s (SUM(?v) AS ?t)",
        " WHERE {{ WINDOW :w {{ ?s :value ?v }} }} GROUP BY ?s ORDER BY DESC(?t)",
    ),
}
CUT = " LIMIT {k} OFFSET {offset}"


def query(body: str, kind: str, number: int) -> str:
    """Return a query; of the matching ones, no two are equal."""
    shown, rest = BODIES[body]
    is_first = kind == "equal" or not number
    return (HEAD + rest + CUT).format(
        name=f"q{number}",
        shown=shown,
        range=20 if is_first else 10 * (1 + number % 4),
        k=10 if is_first else 1 + number // 4 % 25,
        offset=0 if is_first else number // 100,
    )


def write_readings(path: Path) -> None:
    """Write the file: a thousand readings in a second of event time."""
    with path.open("w") as file:
        for number in range(READINGS):
            sensor, value = number * 7919 % 400, number * 104_729 % 1_000_003
            file.write(
                f"<{EX}sensor/{sensor}> <{EX}value>"
                f' "{value}"^^<http://www.w3.org/2001/XMLSchema#integer> <{EX}at/{number + 1}> .\n'
            )


def run(path: str, body: str, kind: str, count: int) -> dict[str, float]:
    """Run queries; return the CPU seconds, those of the start aside, and the largest memory."""
    engine = Engine(runner="local")
    for number in range(count):
        engine.register(query(body, kind, number))
    engine.bind(f"{EX}readings", path)
    write = JSONL.writer()
    begun = time.process_time()
    answers = sum(bool(write(answer)) for answer in engine.run())
    cpu = time.process_time() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"cpu": cpu, "memory": float(memory), "answers": float(answers)}


def in_process(path: Path, body: str, kind: str, count: int) -> dict[str, float]:
    """Run queries in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.bench_many", str(path), body, kind, str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the cost of an added query of each kind."""
    cases = list(product(BODIES, ("equal", "matching"), COUNTS))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "readings.nq"
        write_readings(path)
        runs = [{case: in_process(path, *case) for case in cases} for _ in range(RUNS)]
    rows = []
    for body, kind, count in cases:
        cpu, memory, alone_cpu, alone_memory = (
            median(each[body, kind, size][what] for each in runs)
            for size in (count, 1)
            for what in ("cpu", "memory")
        )
        added = [
            f"{100 * (whole - alone) / alone / (count - 1):.1f} %" if count > 1 else "-"
            for whole, alone in ((cpu, alone_cpu), (memory, alone_memory))
        ]
        rows.append(
            (
                f"{body}, {kind}",
                str(count),
                f"{cpu:.2f} s",
                added[0],
                f"{memory / 2**20:.0f} MB",
                added[1],
            )
        )
    head = ("queries", "number", "CPU time", "an added one", "memory", "an added one")
    print_table(head, rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        main()
