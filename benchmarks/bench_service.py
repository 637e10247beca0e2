"""The first answer of a query with SERVICE: how long it takes against fetching the same bytes.

A server, `oxigraph serve`, has a value for each of 20,000 keys. The baseline is one request for all
of them, unsorted, whose bytes are received and thrown away. The engine registers a query, loads the
replica, and answers its first window. Both run in this process, after a warm-up, so imports are not
counted; the two alternate, and a row is the median. Wall time includes the server, CPU time does not.
"""

from __future__ import annotations

import socket
import subprocess
import sysconfig
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

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
MOST = 3.0
"""The first answer may take this many times as long as the request."""
QUERY = f"""PREFIX : <{EX}>
SELECT ?user ?mentions ?followers FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]
WHERE {{ WINDOW :w {{ ?user :mentions ?mentions }} SERVICE :sparql {{ ?user :followers ?followers }} }}
ORDER BY DESC(?mentions + ?followers) LIMIT 10"""
WHOLE = f"SELECT ?user ?followers WHERE {{ ?user <{EX}followers> ?followers }}"


@contextmanager
def server() -> Iterator[str]:
    """Start a server with its data in memory, and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{probe.getsockname()[1]}"
    binary = Path(sysconfig.get_path("scripts")) / "oxigraph"
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([binary, "serve", "--bind", bind], stdout=quiet, stderr=quiet)  # noqa: S603
    try:
        load(f"http://{bind}/store?default")
        yield f"http://{bind}/query"
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


def fetch(url: str) -> None:
    """Receive the bytes of all rows."""
    headers = {"Accept": "application/sparql-results+json"}
    reply = requests.post(url, data={"query": WHOLE}, headers=headers, timeout=20)
    assert reply.content.count(b"followers") > KEYS  # noqa: S101


def answer(url: str) -> None:
    """Answer one window of a query."""
    engine = Engine(t0=0)
    engine.service(f"{EX}sparql", url)
    engine.register(QUERY)
    engine.bind(f"{EX}s", [(1_000, f"<{EX}user/17> <{EX}mentions> 3 .")])
    [first] = engine.run()
    assert isinstance(first.content, Solutions) and len(first.content.rows) == 1  # noqa: S101


def seconds(act: Callable[[], None]) -> tuple[float, float]:
    """Return the wall time and the CPU time of an act."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Print both times, and their ratios."""
    acts: dict[str, Callable[[], None]]
    with server() as url:
        acts = {"request": lambda: fetch(url), "first answer": lambda: answer(url)}
        for act in acts.values():
            act()
        times = [[seconds(act) for act in acts.values()] for _ in range(RUNS)]
    middles = [[median(run[n][kind] for run in times) for n in range(2)] for kind in range(2)]
    print_table(
        (f"{KEYS:,} keys", *acts, "ratio"),
        (
            (kind, *(f"{value * 1e3:.1f} ms" for value in row), ratio(row[1] / row[0]))
            for kind, row in zip(("wall time", "CPU time"), middles, strict=True)
        ),
    )


if __name__ == "__main__":
    main()
