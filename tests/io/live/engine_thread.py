"""An engine in a thread, with its answers and dead letters."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from rsp_engine.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter

__all__ = ["EX", "Running", "element", "publish", "until"]

EX = "http://example.org/"


def element(second: float, value: int, *, base: int = 1_700_000_000) -> str:
    """Return a message in Turtle with a value, at a number of seconds after `base`."""
    return (
        f"<{EX}s{value}> <{EX}v> {value} . <{EX}at{value}>"
        f" <http://www.w3.org/ns/prov#generatedAtTime> {int(1000 * (base + second))} ."
    )


class Running(threading.Thread):
    """A thread that runs a query over live streams."""

    def __init__(self, query: str, streams: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self.answers: list[Answer] = []
        self.letters: list[DeadLetter] = []
        self.engine = Engine(dead_letter=self.letters.append)
        self.engine.register(query)
        for stream, url in streams.items():
            self.engine.bind(f"{EX}{stream}", url)

    def run(self) -> None:
        self.answers.extend(())
        for answer in self.engine.run():
            self.answers.append(answer)

    @contextmanager
    def listening(self) -> Iterator[Running]:
        self.start()
        try:
            yield self
        finally:
            self.engine.stop()
            self.join(timeout=30)
            assert not self.is_alive()

    def values(self) -> list[list[int]]:
        """Return the values of each answer."""
        rows = [answer.content.rows for answer in self.answers]  # type: ignore[union-attr]
        return [[int(row.bindings["v"].value) for row in answer] for answer in rows]


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def publish(
    port: int,
    messages: Sequence[tuple[str, str | bytes]],
    user: tuple[str, str] | None = None,
) -> None:
    """Send messages, each with its topic, and wait until the broker acknowledges them."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    if user is not None:
        client.username_pw_set(*user)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for sent in [client.publish(topic, payload, qos=1) for topic, payload in messages]:
        sent.wait_for_publish(30)
    client.disconnect()
    client.loop_stop()
