"""A publisher that is faster than the engine: memory and disk are bounded, and nothing is lost.

With `RSP_THOROUGH=1` two minutes of each, or as long as `RSP_SOAK_SECONDS` says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.data import PROJECT
from tests.io.live.numbered_messages import A_SECOND, Listener, last_second, since
from tests.io.live.servers import free_port, mosquitto, needs_mosquitto, wait_for_port
from tests.soak.processes import disk_bytes, resident_bytes
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(TIMES == 1, reason="it takes minutes: RSP_THOROUGH=1 runs it")

SECONDS = float(os.environ.get("RSP_SOAK_SECONDS") or 120)
MESSAGES = 1_001 + 500 * int(SECONDS)
PADDING = max(5_000, 60_000_000 // MESSAGES)
"""Makes at least sixty megabytes, more than all buffers between sender and engine."""
PAUSE = 2 * SECONDS * A_SECOND / MESSAGES
"""Makes the engine take twice as long as the sender."""
ROOM = 1_000_000
MEMORY = 48 << 20
"""How much the engine may grow after its start: a group of messages, and its evaluation."""
DISK = ROOM + (8 << 20)
"""The bound in docs/how-to/live.md: the room, and a constant."""


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.io.live.soak_processes", *arguments]
    process = subprocess.Popen(command, cwd=PROJECT)  # noqa: S603 - our own
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=30)


class Soak:
    """A running engine, and its peak memory and disk usage."""

    def __init__(self, folder: Path, engine: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._engine = engine
        self._first = resident_bytes(engine.pid)
        self.grown = self.disk = 0

    def watch(self, until: float, other: subprocess.Popen[bytes] | None = None) -> None:
        """Sample the engine until an instant, or until it or another process ends."""
        while time.monotonic() < until and self._engine.poll() is None:
            if other is not None and other.poll() is not None:
                return
            self.grown = max(self.grown, resident_bytes(self._engine.pid) - self._first)
            self.disk = max(self.disk, disk_bytes(self._folder / "checkpoint" / "spool"))
            time.sleep(0.05)

    def end(self) -> None:
        """Let the engine continue without pauses, and wait for its end."""
        (self._folder / "fast").touch()
        self.watch(time.monotonic() + 60 + 10 * SECONDS)
        assert self._engine.poll() == 0
        assert self.grown < MEMORY, f"it grew by {self.grown >> 20} MB"
        assert self.disk < DISK, f"{self.disk >> 20} MB were on disk"


@contextmanager
def soak(url: str, folder: Path) -> Iterator[Soak]:
    """Start a slow engine; sample it once it has a spool."""
    more = ("&" if "?" in url else "?") + f"room={ROOM}"
    last = str(last_second(MESSAGES))
    with started("listen", url + more, str(folder), last, str(PAUSE)) as engine:
        until = time.monotonic() + 60
        while not disk_bytes(folder / "checkpoint" / "spool") and not list(
            (folder / "checkpoint").glob("spool/*/*.spool")
        ):
            assert time.monotonic() < until
            time.sleep(0.02)
        yield Soak(folder, engine)


@needs_mosquitto
@pytest.mark.parametrize("qos", [0, 1])
def test_a_fast_publisher_over_a_broker(tmp_path, qos):
    with mosquitto(tmp_path) as broker, soak(f"{broker.url}/soak", tmp_path) as soaking:
        broker.wait_for_subscriber("soak")
        sender = ["mqtt", str(broker.port), str(MESSAGES), str(PADDING), str(qos), str(SECONDS)]
        with started(*sender) as publisher:
            soaking.watch(time.monotonic() + 10 * SECONDS + 60, publisher)
            assert publisher.wait(timeout=60) == 0
        soaking.end()
    check(tmp_path, is_whole=qos == 1)


@pytest.mark.parametrize("kind", ["ws", "sse"])
def test_a_fast_server(tmp_path, kind):
    port = free_port()
    address = {"ws": "ws", "sse": "sse+http"}[kind]
    with started(kind, str(port), str(MESSAGES), str(PADDING)):
        wait_for_port(port)
        with soak(f"{address}://127.0.0.1:{port}/feed", tmp_path) as soaking:
            soaking.watch(time.monotonic() + SECONDS)
            soaking.end()
    check(tmp_path, is_whole=True)


def check(folder: Path, *, is_whole: bool) -> None:
    """Check that all messages reached the spool, and that each is answered once."""
    listed = Listener("", folder, MESSAGES).listed()
    assert max(listed.values()) == 1, "none is twice"
    if is_whole:
        assert set(listed) == since(MESSAGES), "none is lost"
    taken = int((folder / "elements.txt").read_text())
    assert len(listed) == taken - 1, "all that was acknowledged is answered"
