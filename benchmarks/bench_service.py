"""The first answer of a query with SERVICE: how long it takes against fetching the same bytes.

A server, `oxigraph serve`, has a value for each of 20,000 keys. The baseline is one request for all
of them, unsorted, whose bytes are received and thrown away. The engine registers a query, loads the
replica, and answers its first window. Both run in this process, after a warm-up, so imports are not
counted. They alternate, and a row is the median, or the mean of the CPU time of both processes.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sysconfig
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import requests

from benchmarks.markdown import print_table, ratio
from benchmarks.size import sized
from rsp_engine.engine import Engine
from rsp_engine.model.answers import Solutions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EX = "http://example.org/"
KEYS = 20_000
RUNS = sized(short=15, full=60)
QUERY = """PREFIX : <http://example.org/>
SELECT ?user ?mentions ?followers FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]
WHERE {
  WINDOW :w { ?user :mentions ?mentions }
  SERVICE :sparql { ?user :followers ?followers }
}
ORDER BY DESC(?mentions + ?followers) LIMIT 10"""
WHOLE = f"SELECT ?user ?followers WHERE {{ ?user <{EX}followers> ?followers }}"


class Server(NamedTuple):
    """A server with its data in memory."""

    url: str
    process: int

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that it has taken."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server() -> Iterator[Server]:
    """Start a server, and load its data."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{probe.getsockname()[1]}"
    binary = Path(sysconfig.get_path("scripts")) / "oxigraph"
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([binary, "serve", "--bind", bind], stdout=quiet, stderr=quiet)  # noqa: S603
    try:
        load(f"http://{bind}/store?default")
        yield Server(f"http://{bind}/query", process.pid)
    finally:
        process.terminate()
        process.wait()


def load(url: str) -> None:
    """Load the keys into a server, as soon as it listens."""
    triples = "".join(
        f"<{EX}user/{n}> <{EX}followers> {n * 7919 % 100_003} .\n" for n in range(KEYS)
    )
    until = time.monotonic() + 20
    while True:
        try:
            reply = requests.post(
                url, data=triples.encode(), headers={"Content-Type": "text/turtle"}, timeout=20
            )
        except requests.ConnectionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            reply.raise_for_status()
            return


def fetch(url: str) -> Iterator[None]:
    """Receive the bytes of all rows."""
    headers = {"Accept": "application/sparql-results+json"}
    reply = requests.post(url, data={"query": WHOLE}, headers=headers, timeout=20)
    yield
    assert reply.content.count(b"followers") > KEYS


def answer(url: str) -> Iterator[None]:
    """Answer one window of a query."""
    engine = Engine(t0=0)
    engine.service(f"{EX}sparql", url)
    engine.register(QUERY)
    engine.bind(f"{EX}s", [(1_000, f"<{EX}user/17> <{EX}mentions> 3 .")])
    answers = engine.run()
    first = next(answers)
    yield
    assert isinstance(first.content, Solutions)
    assert len(first.content.rows) == 1
    assert not list(answers)


def seconds(act: Callable[[str], Iterator[None]], remote: Server) -> tuple[float, float]:
    """Return the wall time of an act, and the CPU time of both processes."""
    doing = act(remote.url)
    cpu = time.process_time() + remote.cpu_seconds()
    wall = time.perf_counter()
    next(doing)
    wall = time.perf_counter() - wall
    cpu = time.process_time() + remote.cpu_seconds() - cpu
    assert not list(doing)
    return wall, cpu


def main() -> None:
    """Print both times, and their ratios."""
    with server() as remote:
        runs = [[seconds(act, remote) for act in (fetch, answer)] for _ in range(RUNS + 1)][1:]
    walls = [median(run[number][0] for run in runs) for number in range(2)]
    cpus = [fmean(run[number][1] for run in runs) for number in range(2)]
    print_table(
        (f"{KEYS:,} keys", "request", "first answer", "ratio"),
        (
            (kind, *(f"{value * 1e3:.0f} ms" for value in row), ratio(row[1] / row[0]))
            for kind, row in (("wall time", walls), ("CPU time", cpus))
        ),
    )


if __name__ == "__main__":
    main()
