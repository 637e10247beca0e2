"""WebSocket and server-sent events against real servers: none is lost, and none counts twice."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.data import PROJECT
from tests.io.live.numbered_messages import Listener, message, since
from tests.io.live.servers import free_port, wait_for_port
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator

AWAY_S = 10 if TIMES > 1 else 2
MESSAGES = {"ws": 20_001 if TIMES > 1 else 6_001, "sse": 20_001}
ADDRESSES = {"ws": "ws://127.0.0.1:{}/feed?resume=after", "sse": "sse+http://127.0.0.1:{}/feed"}


@contextmanager
def served(kind: str, port: int, messages: int, sent: int) -> Iterator[None]:
    command = ["-m", "tests.io.live.push_servers", kind, str(port), str(messages), str(sent)]
    process = subprocess.Popen([sys.executable, *command], cwd=PROJECT)  # noqa: S603 - our own
    try:
        wait_for_port(port)
        yield
    finally:
        process.kill()
        process.wait(timeout=30)


@pytest.mark.parametrize("kind", ["ws"] if TIMES == 1 else ["ws", "sse"])
def test_messages_come_once_through_three_kills_and_a_server_that_is_away(kind, tmp_path):
    port, messages = free_port(), MESSAGES[kind]
    listener = Listener(ADDRESSES[kind].format(port), tmp_path, messages)
    size = sum(len(message(number)) for number in range(messages))
    listener.start()
    try:
        with served(kind, port, messages, sent=int(0.8 * messages)):  # some are left for later
            for part in (0.1, 0.3, 0.5):
                listener.wait_for_spooled(int(part * size))
                listener.kill()
                listener.start()
            listener.wait_for_spooled(int(0.7 * size))
        time.sleep(AWAY_S)
        with served(kind, port, messages, sent=messages):
            listener.wait()
    finally:
        listener.kill()
    listed = listener.listed()
    assert set(listed) == since(messages), "none is lost"
    assert max(listed.values()) == 1, "none is twice"
    assert "the server cannot be reached: Connection refused; trying again" in listener.log()
    assert "connected again" in listener.log()
