"""How queries scale on Spark: what executors spend, what the driver does, and what it receives.

Each run has a process and a warm session of its own. CPU seconds are user and system, of the
driver's Python process alone, and of all processes. Groups are counted with more and more keys per
window; the general path joins two patterns that share no subject. With SERVICE, each key of a
window is another one, and loading the replica is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyoxigraph as ox

from benchmarks.markdown import print_head, print_row
from benchmarks.size import sized
from rsp_engine.drivers.spark import split_job
from rsp_engine.drivers.spark.session import start_context
from rsp_engine.engine import Engine
from rsp_engine.evaluators.service.refresh import Refresh
from rsp_engine.replica.endpoints.endpoint import FetchResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemoteSolution

EX = "http://example.org/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
KEYS = sized(short=(10_000, 100_000), full=(10_000, 100_000, 1_000_000))
TRIPLES = sized(short=400_000, full=2_000_000)
JOINED_TRIPLES = sized(short=100_000, full=1_000_000)
MASTERS = sized(
    short=("local[1]", "local[2]"), full=("local[1]", "local[2]", "local-cluster[4,1,1024]")
)
QUERIES = {
    "groups": """SELECT ?s (SUM(?v) AS ?x) FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 2s]
        WHERE { WINDOW :w { ?s :p ?v } } GROUP BY ?s ORDER BY DESC(?x) LIMIT 10""",
    "general": """SELECT ?a (COUNT(?v) AS ?n) (SUM(?v) AS ?x)
        FROM NAMED WINDOW :w ON :s [RANGE 100s STEP 10s]
        WHERE { WINDOW :w { ?a :knows ?b . ?b :has ?v FILTER (?v > 900) } }
        GROUP BY ?a ORDER BY DESC(?x) ?a LIMIT 10""",
    "latest arrivals, SERVICE": """SELECT ?s ?v ?f FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 2s]
        WHERE { WINDOW :w { ?s :p ?v } SERVICE :remote { ?s :f ?f } }
        ORDER BY DESC(?v + ?f) LIMIT 10""",
    "groups, SERVICE": """SELECT ?s (SUM(?v) AS ?x) ?f
        FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 2s]
        WHERE { WINDOW :w { ?s :p ?v } SERVICE :remote { ?s :f ?f } }
        GROUP BY ?s ?f ORDER BY DESC(SUM(?v) + ?f) LIMIT 10""",
}
BUDGET = 7
TICKS = os.sysconf("SC_CLK_TCK")


def write_groups(path: Path, keys: int) -> None:
    """Write a stream of 100,000 triples a second over some keys."""
    draw = random.Random(1)  # noqa: S311 - the same stream in every run
    with path.open("w") as file:
        for number in range(TRIPLES):
            value = f'"{draw.randrange(1_000)}"^^<{INTEGER}>'
            subject = f"<{EX}user/{draw.randrange(keys):07d}>"
            file.write(f"{subject} <{EX}p> {value} <{EX}g/{1_000 + number // 100}> .\n")


def write_joined(path: Path) -> None:
    """Write a stream of 1,000 triples a second, of two kinds by turns."""
    draw = random.Random(1)  # noqa: S311 - the same stream in every run
    with path.open("w") as file:
        for number in range(JOINED_TRIPLES):
            one, other = (f"<{EX}u{draw.randrange(20_000)}>" for _ in range(2))
            value = f'"{draw.randrange(1_000)}"^^<{INTEGER}>'
            said = f"<{EX}knows> {other}" if number % 2 else f"<{EX}has> {value}"
            file.write(f"{one} {said} <{EX}g/{1_000 + number}> .\n")


def write_distinct(path: Path, keys: int) -> None:
    """Write a stream of 100,000 triples a second; a key comes again after 12 seconds."""
    draw = random.Random(1)  # noqa: S311 - the same stream in every run
    order = list(range(_cycle(keys)))
    draw.shuffle(order)
    with path.open("w") as file:
        for number in range(2 * keys):
            value = f'"{draw.randrange(1_000)}"^^<{INTEGER}>'
            subject = f"<{EX}user/{order[number % len(order)]:07d}>"
            at = 1_000 + number * 10_000 // keys
            file.write(f"{subject} <{EX}p> {value} <{EX}g/{at}> .\n")


def _cycle(keys: int) -> int:
    """Return the number of all keys if a window has this many."""
    return keys * 12 // 10


class Remote:
    """A remote dataset with a value for each key, some of which change every two seconds."""

    def __init__(self, keys: int) -> None:
        self._keys = keys

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        """Return the values of keys at an instant."""
        del limits
        return FetchResult({key: (_value(key, now),) for key in keys}, 1)

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        """Return the values of all keys."""
        every = [(ox.NamedNode(f"{EX}user/{number:07d}"),) for number in range(self._keys)]
        return self.fetch(every, limits, now)

    def close(self) -> None:
        """Do nothing."""


def _value(key: Key, now: int) -> RemoteSolution:
    number = int(str(key[0])[-8:-1])
    return {"f": ox.Literal((number * 7_919 + now // 2_000 * (number % 13)) % 1_000)}


def cpu_of_all() -> float:
    """Return the CPU seconds of this process and of all below it, so far."""
    found: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            found[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    family = [os.getpid()]
    for parent in family:
        family += [number for number, (above, _) in found.items() if above == parent]
    return sum(found[number][1] for number in family if number in found) / TICKS


def measured(kind: str, path: str, master: str) -> dict[str, float]:
    """Run a query in this process, and return what it took."""
    options: dict[str, Any] = {"operator": "general"} if kind == "general" else {}
    has_service = "SERVICE" in QUERIES[kind]
    if has_service:
        options = {"policy": "AT-TSM", "budget": BUDGET}
    engine = Engine(runner="spark", master=master, **options)
    if has_service:
        engine.service(f"{EX}remote", Remote(_cycle(KEYS[-1])))
    engine.register(f"PREFIX : <{EX}> REGISTER RSTREAM :q AS {QUERIES[kind]}")
    engine.bind(f"{EX}s", path)
    context = start_context(master)
    cores = context.defaultParallelism
    context.parallelize(range(4 * cores), 4 * cores).map(lambda _: time.sleep(0.1)).collect()
    received = [0]

    def read(encoded: bytes) -> Any:  # noqa: ANN401 - a table
        received[0] += len(encoded)
        return table(encoded)

    def evaluate(*given: Any) -> Any:  # noqa: ANN401
        results = windows(*given)
        received[0] += sum(len(text) for result in results for text in result.answers)
        return results

    def load(refresh: Refresh, now: int) -> Any:  # noqa: ANN401 - numbers of keys
        start = time.process_time()
        keys = begin(refresh, now)
        loading[0] += time.process_time() - start
        return keys

    loading = [0.0]
    table, windows = split_job._table, split_job.evaluate_windows
    begin = Refresh.begin
    module = "rsp_engine.drivers.spark"
    with (
        patch(f"{module}.split_job._table", read),
        patch(f"{module}.driver.evaluate_windows", evaluate),
        patch.object(Refresh, "begin", load),
    ):
        every, own, start = cpu_of_all(), time.process_time(), time.perf_counter()
        answers = sum(1 for _ in engine.run())
        wall, own = time.perf_counter() - start, time.process_time() - own - loading[0]
        every = cpu_of_all() - every - loading[0]
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return {
        "wall": wall, "all": every, "driver": own, "bytes": received[0], "windows": answers,
        "memory": peak,
    }  # fmt: skip


def run(kind: str, path: Path, master: str) -> dict[str, float]:
    """Measure a run in a process of its own."""
    command = [sys.executable, __file__, "--one", kind, str(path), master]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(name: str, master: str, found: dict[str, float]) -> list[object]:
    """Return the cells of a run."""
    windows = found["windows"]
    return [
        name,
        f"`{master}`",
        f"{found['wall']:.1f}",
        f"{found['all']:.1f}",
        f"{1000 * found['driver'] / windows:.0f}",
        f"{100 * found['driver'] / found['all']:.1f} %",
        f"{found['bytes'] / windows / 1000:.1f}",
        f"{found['memory']:.0f}",
    ]


def main() -> None:
    """Print a row for each query, number of keys and master."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--one", nargs=3, metavar=("KIND", "FILE", "MASTER"))
    options = flags.parse_args()
    if options.one is not None:
        print(json.dumps(measured(*options.one)))
        return
    print_head(
        ["query", "master", "wall s", "CPU s", "driver ms per window", "driver's share of CPU",
         "kB received per window", "driver MB"]
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        stream = Path(folder) / "stream.nq"
        for keys in KEYS:
            write_groups(stream, keys)
            for master in MASTERS if keys == KEYS[1] else ["local[2]"]:
                print_row(row(f"groups, {keys:,} keys", master, run("groups", stream, master)))
        write_distinct(stream, KEYS[-1])
        for kind in ("latest arrivals, SERVICE", "groups, SERVICE"):
            print_row(row(f"{kind}, {KEYS[-1]:,} keys", "local[2]", run(kind, stream, "local[2]")))
        write_joined(stream)
        for master in MASTERS:
            print_row(row("general", master, run("general", stream, master)))


if __name__ == "__main__":
    main()
