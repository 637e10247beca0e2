"""A run that can be killed: `python -m tests.drivers.spark.recovering FOLDER POINT NUMBER`.

It ranks users by what they say and by remote values that change all the time, under a policy that
learns and is told what has changed. At the point, the so-manieth time that it comes there, the
whole group of processes is killed:

    fetch    what services answered is written, and no answer that comes of it has left
    output   the answers of a batch are written, and its state is not
    state    the state of a batch is written, and Spark does not know that it is done
    time     so many milliseconds after the first state was written
    never    it runs to its end

Two more arguments, `groups` or `general` and a master, take a query without remote values instead,
whose windows executors evaluate from pane files.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import zlib
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode

from rsp_engine.drivers.checkpoint.store import Checkpoint
from rsp_engine.engine import Engine
from rsp_engine.io.sinks import open_sink
from rsp_engine.replica.endpoints.endpoint import FetchResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern

EX = "http://example.org/"
USERS = [f"{EX}u{number}" for number in range(30)]
QUERY = f"""PREFIX : <{EX}>
REGISTER RSTREAM :best AS SELECT ?user (?n + ?f AS ?score)
FROM NAMED WINDOW :w ON STREAM :s [RANGE 9s STEP 3s]
WHERE {{ WINDOW :w {{ ?user :mentions ?n }} SERVICE :BKG {{ ?user :followers ?f }} }}
ORDER BY DESC(?score) LIMIT 3"""
EVALUATED = {
    "groups": f"""PREFIX : <{EX}> REGISTER RSTREAM :most AS SELECT ?user (SUM(?n) AS ?sum)
        FROM NAMED WINDOW :w ON STREAM :s [RANGE 9s STEP 3s]
        WHERE {{ WINDOW :w {{ ?user :mentions ?n }} }}
        GROUP BY ?user ORDER BY DESC(?sum) LIMIT 3""",
    "general": f"""PREFIX : <{EX}> REGISTER ISTREAM :twins AS SELECT ?user ?other ?n
        FROM NAMED WINDOW :w ON STREAM :s [RANGE 9s STEP 3s]
        WHERE {{ WINDOW :w {{ ?user :mentions ?n . ?other :mentions ?n }}
            FILTER (str(?user) < str(?other)) }}""",
}
"""Queries whose windows executors evaluate."""
WINDOWS = 70
POINTS = ("fetch", "output", "state", "time", "never")


class Restless:
    """Remote values that change, each at its own times, and the stamps of these changes."""

    def __init__(self, pattern: RemotePattern) -> None:
        [self._variable] = pattern.variables

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        return self._told(keys, now)

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        return self._told([(NamedNode(user),) for user in USERS], now)

    def _told(self, keys: Iterable[Key], now: int) -> FetchResult:
        values = {key: self._value(str(key), now) for key in keys}
        return FetchResult({k: ({self._variable: Literal(v)},) for k, v in values.items()}, 1)

    def _value(self, key: str, now: int) -> int:
        since = (now + zlib.crc32(key.encode()) % 9000) // 9000
        return since if self._variable == "modified" else zlib.crc32(f"{key}{since}".encode()) % 100

    def close(self) -> None:
        pass


def write_stream(path: Path) -> None:
    """Write mentions, some a little late."""
    chance, lines = Random(7), []  # noqa: S311 - a story
    for second in range(3 * WINDOWS):
        for _ in range(5):
            time = 1000 * second + chance.randrange(1000)
            user, number = chance.choice(USERS), chance.randrange(50)
            value = f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            lines.append(f"<{user}> <{EX}mentions> {value} <{EX}g/{time}> .\n")
    path.write_text("".join(lines), encoding="utf-8")


def evaluated(folder: Path, checkpoint: Path | None, kind: str, master: str = "local[2]") -> Engine:
    """Return the engine of a run whose windows executors evaluate, if it has a checkpoint."""
    where: dict[str, Any] = {"runner": "spark", "checkpoint": checkpoint, "master": master}
    where["split_bytes"] = 500
    engine = Engine(max_delay=2000, **(where if checkpoint is not None else {}))
    engine.register(EVALUATED[kind])
    engine.bind(f"{EX}s", str(folder / "stream.nq"))
    return engine


def made(folder: Path, checkpoint: Path | None) -> Engine:
    """Return the engine of the run."""
    where: dict[str, Any] = {"runner": "spark", "checkpoint": checkpoint, "master": "local[1]"}
    engine = Engine(
        policy="AT-VOI",
        budget=4,
        n=3,
        max_delay=2000,
        split_bytes=2000,
        **(where if checkpoint is not None else {}),
    )
    engine.service(f"{EX}BKG", Restless, modified="http://purl.org/dc/terms/modified")
    engine.register(QUERY)
    engine.bind(f"{EX}s", str(folder / "stream.nq"))
    return engine


def kill() -> None:
    os.killpg(0, signal.SIGKILL)


def after(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Return a function that kills the process when it is called the given number of times."""
    calls = iter(range(number))

    def called(*arguments: Any) -> Any:
        found = function(*arguments)
        if next(calls, None) == number - 1:
            kill()
        return found

    return called


def main(
    folder: Path, point: str, number: int, kind: str = "served", master: str = "local[2]"
) -> None:
    if kind == "served":
        engine = made(folder, folder / "checkpoint")
    else:
        from rsp_engine.drivers.spark import driver

        options: Any = partial(driver.SparkOptions, where="executors", buckets=3, small_bytes=0)
        driver.SparkOptions = options  # type: ignore[misc]
        engine = evaluated(folder, folder / "checkpoint", kind, master)
    sink = open_sink("jsonl", str(folder / "answers.jsonl"), "SELECT", keep=True)
    checkpoint: Any = Checkpoint
    match point:
        case "fetch":
            checkpoint.note = after(checkpoint.note, number)
        case "output":
            sink.position = after(sink.position, number)  # type: ignore[method-assign]
        case "state":
            checkpoint.write_state = after(checkpoint.write_state, number)
        case "time":
            written = checkpoint.write_state

            def soon(*arguments: Any) -> None:
                written(*arguments)
                threading.Timer(number / 1000, kill).start()

            checkpoint.write_state = soon
    for answer in engine.run([sink]):
        sink.write(answer)
    sink.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
