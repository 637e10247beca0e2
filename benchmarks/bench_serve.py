"""The cost of a service: CPU seconds of `rsp serve` with many clients, against `rsp run`.

The first table feeds 50 queries of one group at a steady pace, and 100 clients follow their answers
as server-sent events. `rsp run` reads the same log meanwhile, with a checkpoint. Each client must
receive each answer once, and its bytes must be those of `rsp run`.

The second table evaluates one query, ten that are equal to it, and ten others.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.markdown import print_table, ratio
from rsp_engine import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

IS_FULL = bool(os.environ.get("RSP_FULL"))
SECONDS = 60 if IS_FULL else 20
QUERIES, CLIENTS = 50, 100
RATE, PIECE = 500, 50
"""Elements per second, and in a request."""
ELEMENTS = 40_000 if IS_FULL else 10_000
EX = "http://example.org/"
_TICKS = os.sysconf("SC_CLK_TCK")


def text(number: int, name: str = "") -> str:
    """Return a query; those of other numbers have other windows, filters or places."""
    return f"""PREFIX : <{EX}>
REGISTER RSTREAM :{name or f"q{number}"} AS SELECT ?s ?v
FROM NAMED WINDOW :w ON :readings [RANGE {1 + number % 5}s STEP 1s]
WHERE {{ WINDOW :w {{ ?s :v ?v . FILTER (?v > {number}) }} }} ORDER BY DESC(?v) LIMIT 3"""  # noqa: S608 - it is no SQL


def elements(begin: int, end: int) -> list[tuple[int, str]]:
    """Return elements whose event times are as far apart as they are sent."""
    return [
        (1_000 + 1_000 * n // RATE, f"<{EX}s{n % 97}> <{EX}v> {(7919 * n) % 1000} .")
        for n in range(begin, end)
    ]


@contextmanager
def started(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command for the duration of the context."""
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603 - it is our own
            [sys.executable, "-m", "rsp_engine.cli", *command], stderr=errors
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def service(folder: Path) -> Iterator[tuple[Client, int]]:
    """Run a server, and declare a stream; yield a client and the process of the server."""
    folder.mkdir()
    log = folder / "server.log"
    with started(["serve", "--data", str(folder / "data"), "--port", "0"], log) as process:
        while (found := re.search(r"serving on (\S+)", log.read_text())) is None:
            time.sleep(0.05)
        with Client(found[1]) as client:
            client.declare("readings", f"{EX}readings")
            yield client, process.pid


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process and of all below it that run."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task").glob("*/children")
    below = {int(child) for path in children for child in path.read_text().split()}
    return sum(map(int, fields[11:15])) / _TICKS + sum(map(cpu_of, below))


async def follow(url: str, name: str, count: int) -> list[bytes]:
    """Return the first answers of a query, as events bring them; raise if an id is missing."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1 << 24)
    head = f"GET /queries/{name}/answers?after=0 HTTP/1.1\r\nHost: localhost\r\n"
    writer.write(f"{head}Accept: text/event-stream\r\n\r\n".encode())
    lines: list[bytes] = []
    number = 0
    while len(lines) < count:
        line = (await reader.readline()).rstrip()
        if line.startswith(b"id: "):
            number = int(line[4:])
        elif line.startswith(b'data: {"query"'):
            lines.append(line[6:])
            if number != len(lines):
                raise SystemExit(f"{name}: answer {number} came as the {len(lines)}th")
    writer.close()
    return lines


async def follow_all(url: str, names: list[str], count: int) -> list[list[bytes]]:
    """Return what all clients receive."""
    return await asyncio.gather(*(follow(url, name, count) for name in names))


def many_clients(folder: Path) -> tuple[float, float]:
    """Return the CPU seconds of the service and of `rsp run`; raise if an answer differs."""
    texts = [text(number) for number in range(QUERIES)]
    files = []
    for number, each in enumerate(texts):
        (file := folder / f"q{number}.rspql").write_text(each)
        files.append(str(file))
    windows = SECONDS - 6  # the widest window closes after 5 s
    with service(folder / "many") as (client, server):
        for each in texts:
            client.submit(each, start="earliest", group="all")
        log = folder / "many" / "data" / "streams" / "readings"
        output = folder / "run.jsonl"
        flags = ["--stream", f"{EX}readings=log://{log}", "--checkpoint", str(folder / "run")]
        command = ["run", *files, *flags, "--output", str(output), "--quiet"]
        while any(query["state"] != "running" for query in client.queries()):
            time.sleep(0.1)
        with started(command, folder / "run.log") as run:
            time.sleep(5)  # both have started
            begun = cpu_of(server), cpu_of(run.pid)
            names = [f"q{number % QUERIES}" for number in range(CLIENTS)]
            received: list[list[list[bytes]]] = []
            thread = threading.Thread(
                target=lambda: received.append(asyncio.run(follow_all(client.url, names, windows)))
            )
            thread.start()
            start = time.monotonic()
            for begin in range(0, RATE * SECONDS, PIECE):
                client.push("readings", elements(begin, begin + PIECE))
                time.sleep(max(start + begin / RATE - time.monotonic(), 0))
            thread.join(120)
            expected = [f'"query":"{EX}q{number}"'.encode() for number in range(QUERIES)]
            until = time.monotonic() + 60
            while time.monotonic() < until:
                printed = output.read_bytes().splitlines() if output.exists() else []
                told = [[line for line in printed if each in line[:80]] for each in expected]
                if all(len(each) >= windows for each in told):
                    break
                time.sleep(0.5)
            used = cpu_of(server) - begun[0], cpu_of(run.pid) - begun[1]
        if not received:
            raise SystemExit("a client has not received all answers")
        for number, lines in enumerate(received[0]):
            if lines != told[number % QUERIES][:windows]:
                raise SystemExit(f"client {number} has received other answers than `rsp run`")
    return used


def registrations(folder: Path, texts: list[str]) -> float:
    """Return the CPU seconds of a service that evaluates queries over all elements."""
    with service(folder) as (client, server):
        for number, each in enumerate(texts):
            client.submit(each, name=f"n{number}", start="earliest")
        while any(query["state"] != "running" for query in client.queries()):
            time.sleep(0.1)
        begun = cpu_of(server)
        for begin in range(0, ELEMENTS, 500):
            client.push("readings", elements(begin, begin + 500))
        client.push("readings", [(10**9, f"<{EX}end> <{EX}v> 1 .")])
        for number in range(len(texts)):
            while last_close(client, f"n{number}") < 1_000 * ELEMENTS // RATE:
                time.sleep(0.2)
        return cpu_of(server) - begun


def last_close(client: Client, name: str) -> int:
    """Return the close of the last window that a query has answered."""
    answers = client.last(name, 1)
    return int(json.loads(answers[0].line)["window"]["close"]) if answers else 0


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        served, run = many_clients(folder)
        head = ("", "CPU seconds", "times `rsp run`")
        title = f"rsp serve, {QUERIES} queries of a group, {CLIENTS} clients, {SECONDS} s"
        rows = [
            ("rsp run", f"{run:.1f}", ratio(1)),
            (title, f"{served:.1f}", ratio(served / run)),
        ]
        print_table(head, rows)
        print()
        one = registrations(folder / "one", [text(1)])
        equal = registrations(folder / "equal", [text(1)] * 10)
        others = registrations(folder / "others", [text(number) for number in range(10)])
        print_table(
            ("registered", "CPU seconds", "times one query"),
            [
                ("one query", f"{one:.1f}", ratio(1)),
                ("ten that are equal", f"{equal:.1f}", ratio(equal / one)),
                ("ten others", f"{others:.1f}", ratio(others / one)),
            ],
        )


if __name__ == "__main__":
    main()
