"""Runs that are killed while they deliver: each window arrives, once or again with the same id.

A run is killed at three points, goes on each time, and the other side goes away meanwhile. A small
room makes the input wait for the other side, so that the kills fall into the run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest

from tests.data import PROJECT
from tests.io.delivery.kafka_listener import KafkaListener
from tests.io.delivery.receivers import GraphServer, Subscriber, until
from tests.io.delivery.starlette_hook import StarletteHook
from tests.io.live.apache_kafka import apache_kafka
from tests.io.live.kafka_broker import KafkaBroker, kafka_broker
from tests.io.live.servers import mosquitto, needs_mosquitto
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.outside

EX = "http://example.org/"
WINDOWS = 600 if TIMES > 1 else 120
POINTS = (0.15, 0.4, 0.75)
"""When a run is killed: after so large a part of the windows."""
AWAY_S = 5 if TIMES > 1 else 0.5
QUERY = f"""PREFIX : <{EX}>
REGISTER STREAM :hot AS CONSTRUCT {{ [] :of ?room ; :degrees ?t }}
FROM NAMED WINDOW :w ON STREAM :s [RANGE 2s STEP 1s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} }}"""


class Other:
    """The other side of a sink: what has arrived there, by the close of its window."""

    def __init__(self, server: Any, url: str, program: Any = None) -> None:
        self.server = server
        self.url = f"{url}?room=3000"
        self._program = program or server
        """What goes away and comes back."""

    def arrived(self) -> list[tuple[str, str]]:
        """Return id and content of each message, in order."""
        return [(each.id, each.body.decode()) for each in self.server.received]

    def away(self) -> None:
        if isinstance(self._program, KafkaBroker):
            self._program.pause()  # its messages are in its memory
            time.sleep(AWAY_S)
            self._program.go_on()
            return
        self._program.stop()
        time.sleep(AWAY_S)
        self._program.start()


class GraphSide(Other):
    """A store, in which a repeated graph cannot be seen: the name of the graph is its id."""

    def arrived(self) -> list[tuple[str, str]]:
        graphs: dict[str, list[str]] = {}
        for quad in ox.parse("\n".join(self.server.quads()), ox.RdfFormat.N_QUADS):
            value = "b" if isinstance(quad.object, ox.BlankNode) else str(quad.object)
            line = f"{quad.predicate} {value}"
            graphs.setdefault(quad.graph_name.value, []).append(line)
        order = sorted(graphs, key=lambda name: int(name.rpartition("/")[2]))
        return [(name, "\n".join(sorted(graphs[name]))) for name in order]


@contextmanager
def webhook(folder: Path) -> Iterator[Other]:
    with StarletteHook(folder) as server:
        yield Other(server, server.url)


@contextmanager
def broker(folder: Path) -> Iterator[Other]:
    with mosquitto(folder) as server, Subscriber(server, "hot") as listener:
        yield Other(listener, f"{server.url}/hot", server)


@contextmanager
def graphs(folder: Path) -> Iterator[Other]:
    with GraphServer(folder / "store") as server:
        yield GraphSide(server, server.url)


@contextmanager
def kafka(_folder: Path) -> Iterator[Other]:
    with kafka_broker(hot=1) as server, KafkaListener(server.address, "hot") as listener:
        yield Other(listener, server.url("hot"), server)


@contextmanager
def apache(folder: Path) -> Iterator[Other]:
    with apache_kafka(folder) as server:
        server.create("hot")
        with KafkaListener(server.plain, "hot") as listener:
            yield Other(listener, server.url("hot"), server)


def write(folder: Path) -> None:
    (folder / "q.rspql").write_text(QUERY)
    lines = (
        f'<{EX}r{n % 3}> <{EX}temperature> "{n % 41}" <{EX}g/{500 * n + 1}> .\n'
        for n in range(2 * WINDOWS)
    )
    (folder / "s.nq").write_text("".join(lines))


def start(folder: Path, *outputs: str, runner: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rsp_engine.cli", "run", "q.rspql", "--stream=:s=s.nq"]
    command += [f"--runner={runner}", "--split-bytes=4000", "--delivery-wait=60s"]
    command += [f"--output={each}" for each in outputs]
    if len(outputs) > 1:
        command += ["--checkpoint=checkpoint"]
    if runner == "spark":
        command += ["--master=local[1]"]
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            stderr=log,
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the answers of a run that nothing breaks off, as it writes them."""
    folder = tmp_path_factory.mktemp("whole")
    write(folder)
    assert start(folder, "whole.jsonl", runner="local").wait(600) == 0
    return (folder / "whole.jsonl").read_bytes()


def log_of(folder: Path) -> str:
    return (folder / "log.txt").read_text(encoding="utf-8")[-3000:]


FEW = POINTS if TIMES > 1 else POINTS[1:2]
"""A usual run kills at three points with one sink, and at one with the others, to be short."""
SIDES = [
    (webhook, POINTS),
    pytest.param(broker, FEW, marks=needs_mosquitto),
    (graphs, FEW),
    (kafka, FEW),
    *([(apache, FEW)] if TIMES > 1 else []),
]


@pytest.mark.parametrize("runner", ["local", *(["spark"] if TIMES > 1 else [])])
@pytest.mark.parametrize(("side", "points"), SIDES)
def test_each_window_arrives_once_or_again_with_its_id_through_kills(
    side, points, runner, tmp_path, answers
):
    write(tmp_path)
    whole = [json.loads(line) for line in answers.splitlines()]
    with side(tmp_path) as other:
        for point in points:
            process = start(tmp_path, other.url, "answers.jsonl", runner=runner)
            until(lambda: len(dict(other.arrived())) >= point * len(whole), 300)  # noqa: B023
            assert process.poll() is None, log_of(tmp_path)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process = start(tmp_path, other.url, "answers.jsonl", runner=runner)
        until(lambda: len(dict(other.arrived())) >= 0.85 * len(whole), 300)
        other.away()
        assert process.wait(600) == 0, log_of(tmp_path)
        until(lambda: len(dict(other.arrived())) >= len(whole))
        arrived = other.arrived()
        again = start(tmp_path, other.url, "answers.jsonl", runner=runner)
        assert again.wait(600) == 0, log_of(tmp_path)
        assert other.arrived() == arrived, "what is done is not delivered again"
    contents = dict(arrived)
    assert list(contents) == [id_of(other, each) for each in whole], "in order, and none is lost"
    for name, text in arrived:
        assert text == contents[name], "equal ids have equal content"
    for each, text in zip(whole, contents.values(), strict=True):
        check(other, each, text)
    assert (tmp_path / "answers.jsonl").read_bytes() == answers


def id_of(other: Other, answer: Mapping[str, Any]) -> str:
    window = answer["window"]
    if isinstance(other, GraphSide):
        return f"{EX}hot/{window['close']}"
    return f"http%3A%2F%2Fexample.org%2Fhot/{window['open']}/{window['close']}"


def check(other: Other, answer: Mapping[str, Any], text: str) -> None:
    """Compare what has arrived with the answer of a run that nothing breaks off."""
    if isinstance(other, GraphSide):
        triples = ox.parse(answer["graph"], ox.RdfFormat.N_TRIPLES)
        assert text == "\n".join(sorted(f"{each.predicate} {each.object}" for each in triples))
        return
    line = json.loads(text)
    assert line.pop("id") == id_of(other, answer)
    assert line == answer
