"""Logs that a worker writes: readers see what the checkpoint has committed, and nothing else.

What was written since the last commit is dropped after a crash, and answered again: so each answer
is in its log once, with a number that never changes.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from rsp_engine.errors import DriverError, StateError
from rsp_engine.io.sinks.dead_letters import dead_letter_json
from rsp_engine.io.sinks.jsonl import JsonLinesWriter
from rsp_engine.io.sources.live.log.extent import LogExtent
from rsp_engine.io.sources.live.log.stream_log import Keep, StreamLog
from rsp_engine.io.sources.live.records import Message, SpoolRecord

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter

__all__ = ["AnswerLog", "CommittedLog", "LetterLog", "close_of"]

_MOST_WAITING = 8 << 20
"""How many bytes wait for a commit, before the run makes one."""
_FILE_BYTES = 1 << 20


def close_of(record: SpoolRecord) -> int:
    """Return the close of the window that an answer in a log belongs to."""
    return int(record.message.topic)


def _extent(record: SpoolRecord) -> LogExtent:
    if not record.message.topic:
        return LogExtent(1, arrival=record.arrival)
    close = close_of(record)
    return LogExtent(1, 1, least=close, greatest=close, arrival=record.arrival)


class CommittedLog:
    """A log that is written by a run with a checkpoint."""

    def __init__(self, folder: Path, base: Sequence[int] | None, keep: Keep) -> None:
        """Set the folder, and the offset and the number at which the run began."""
        self._folder = folder
        self._base = base
        self._keep = keep
        self._log: StreamLog | None = None
        self._waiting: list[SpoolRecord] = []
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether so much waits that the run should commit."""
        return self._bytes > _MOST_WAITING

    def _put(self, topic: str, line: bytes) -> None:
        number = self._opened().last_number + len(self._waiting) + 1
        self._waiting.append(SpoolRecord(number, int(time.time() * 1000), Message(line, topic)))
        self._bytes += len(line)

    def go_back(self, position: Sequence[int] | None) -> None:
        """Open the log, and drop what was written after a position: an offset and a number."""
        try:
            log = StreamLog(
                self._folder, _extent, self._keep, file_bytes=_FILE_BYTES, publishes=False
            )
            end, number = position or self._base or (log.start, log.past.number)
            if not log.start <= end <= log.end:
                raise StateError(
                    f"{self._folder} ends at byte {log.end}, and at {end} when the run stopped",
                    "restore it, or delete the query and register it again",
                )
            log.cut_back(end, number)
        except OSError as error:
            raise self._failure(error) from None
        self._log = log

    def position(self) -> list[int]:
        """Write what waits to disk; return the offset and the number of its end."""
        log = self._opened()
        try:
            log.append(self._waiting)
        except OSError as error:
            raise self._failure(error) from None
        self._waiting, self._bytes = [], 0
        return [log.end, log.last_number]

    def committed(self) -> None:
        """Let readers see what was written before the last position."""
        if not self._waiting:
            self._opened().publish()

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _opened(self) -> StreamLog:
        assert self._log is not None, "`go_back` was called"  # noqa: S101
        return self._log

    def _failure(self, error: OSError) -> DriverError:
        reason = error.strerror or str(error)
        hint = "make room on its disk, or let it be written to"
        return DriverError(f"{self._folder} cannot be written: {reason}", hint)


class AnswerLog(CommittedLog):
    """The answers of a query, as `rsp run` prints them: a line of JSON for each window."""

    def __init__(self, folder: Path, base: Sequence[int] | None, keep: Keep) -> None:
        super().__init__(folder, base, keep)
        self._text = JsonLinesWriter()

    def write(self, answer: Answer) -> None:
        """Write an answer; readers see it after the next commit."""
        self._put(str(answer.window.close), self._text(answer).rstrip("\n").encode())


class LetterLog(CommittedLog):
    """The dead letters of the queries of a group."""

    def write(self, letter: DeadLetter, stream: str) -> None:
        """Write a dead letter of a stream."""
        fields = json.loads(dead_letter_json(letter))
        line = json.dumps({"stream": stream, "kind": letter.kind, **fields}, ensure_ascii=False)
        self._put("", line.encode())
