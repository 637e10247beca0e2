"""Numbered messages, and an engine in a process of its own that lists their numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.data import PROJECT
from tests.io.live.engine_process import EX

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["A_SECOND", "Listener", "last_second", "message", "since"]

A_SECOND = 1_000
"""The number of messages per second of event time."""

_START = 1_700_000_000
_AFTER = 10
"""Seconds from the other messages to the last one: more than the delay of the engine."""


def message(number: int, *, is_last: bool = False, padding: int = 0) -> str:
    """Return the message with a number, from 0; the last one closes the windows of all others.

    `padding` is the length of a comment that makes the message longer.
    """
    second, part = divmod(number, A_SECOND)
    time = 1000 * (_START + second + (_AFTER if is_last else 0)) + part % 999 + 1
    graph = f"[] <{EX}says> {number} ."  # a blank node: a duplicate would be listed twice
    graph += f" # {'x' * padding}" if padding else ""
    return json.dumps({"id": number, "timestamp": time, "graph": graph})


def last_second(messages: int) -> int:
    """Return the close of the window of the last message but one, in seconds."""
    return _START + (messages - 2) // A_SECOND + 1


def since(messages: int) -> set[int]:
    """Return the expected numbers: all but that of the last message."""
    return set(range(messages - 1))


class Listener:
    """An engine in a process group of its own."""

    def __init__(
        self,
        url: str,
        folder: Path,
        messages: int,
        runner: str = "local",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._command = [sys.executable, "-m", "tests.io.live.engine_process", url, str(folder)]
        self._command += [str(last_second(messages)), runner]
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._committed_before = self._committed()
        with (self._folder / "log.txt").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own engine
                self._command,
                cwd=PROJECT,
                env=self._environment,
                start_new_session=True,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """Kill the engine and all its child processes."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds: float = 120) -> None:
        assert self._process is not None
        assert self._process.wait(timeout=seconds) == 0, self.log()

    def log(self) -> str:
        return (self._folder / "log.txt").read_text(encoding="utf-8")

    def spooled(self) -> int:
        """Return how many bytes were written to the spool in total."""
        files = list((self._folder / "checkpoint" / "spool").glob("*/*.spool"))
        return max((int(file.stem) + file.stat().st_size for file in files), default=0)

    def wait_for_spooled(self, least: int, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while self.spooled() < least:
            assert self._process is not None
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < until, f"only {self.spooled()} bytes came\n{self.log()}"
            time.sleep(0.01)

    def wait_for_commit(self, seconds: float = 90) -> None:
        """Wait until the engine has committed since its start."""
        until = time.monotonic() + seconds
        while self._committed() == self._committed_before:
            assert self._process is not None
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < until, f"nothing was committed\n{self.log()}"
            time.sleep(0.05)

    def _committed(self) -> dict[str, int]:
        """Return the size of each log of commits."""
        logs = (self._folder / "checkpoint" / "commits").glob("*.log")
        return {path.name: path.stat().st_size for path in logs if path.stat().st_size}

    def listed(self) -> Counter[int]:
        """Return how often each message is in the answers."""
        path = self._folder / "answers.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        rows = [row for line in lines for row in json.loads(line)["rows"]]
        return Counter(int(row["bindings"]["number"]["value"]) for row in rows)
