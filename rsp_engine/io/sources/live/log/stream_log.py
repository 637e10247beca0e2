"""The writer of a log: a spool that is kept by time and size, with an index of event times.

Taking in never waits for a reader: what the retention removes is gone for all of them.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.log.extent import LogExtent, read_index
from rsp_engine.io.sources.live.records import records_in
from rsp_engine.io.sources.live.spool import FILE_BYTES, Spool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rsp_engine.io.sources.live.log.extent import LogIndex
    from rsp_engine.io.sources.live.records import SpoolRecord

__all__ = ["END_RECORD", "Keep", "LogFigures", "StreamLog"]

END_RECORD = struct.Struct(">QQ")
"""The file `end`: the offset after the last message that can be read, and its number."""
_ROOM = 1 << 62
_TIDY_S = 5.0
"""How often appending looks for files to remove, in seconds."""
_RATE_S = 10
"""Over how many seconds a rate is measured."""


class Keep(NamedTuple):
    """How much of a log is kept."""

    bytes: int = 1 << 30
    milliseconds: int = 7 * 24 * 3600 * 1000
    """How long after its arrival a message is kept."""


class LogFigures(NamedTuple):
    """The figures of a log."""

    all: LogExtent
    """What the log has ever held."""
    kept: LogExtent
    first: int
    """The number of the first message that is kept; larger than `last` if none is."""
    last: int
    bytes: int
    files: int
    kept_from: int | None
    """Elements after this time are all there; None if nothing was removed."""
    rate: float
    """Elements per second, lately."""


class StreamLog(Spool):
    """The writer of a log; several threads may append."""

    def __init__(  # noqa: PLR0913 - a spool, and what makes it a log
        self,
        folder: Path,
        read: Callable[[SpoolRecord], LogExtent],
        keep: Keep = Keep(),  # noqa: B008 - it is immutable
        *,
        file_bytes: int = FILE_BYTES,
        deduplicator: Deduplicator | None = None,
        publishes: bool = True,
    ) -> None:
        """Open a log. `read` returns the extent of a message.

        Unless it `publishes`, readers see what was appended after `publish` was called.
        """
        self._read = read
        self._keep = keep
        self._publishes = publishes
        self.guard = threading.RLock()
        """Appending and tidying up hold it."""
        self._recent: deque[tuple[int, int]] = deque(maxlen=_RATE_S + 1)
        """The last seconds, and how many elements arrived in each."""
        self._tidied = time.monotonic()
        nothing = Deduplicator("none", most=0)
        super().__init__(
            folder,
            room=_ROOM,
            file_bytes=min(file_bytes, max(keep.bytes // 4, 1)),
            deduplicator=deduplicator or nothing,
            checks_all=False,
        )
        self._end_file = os.open(folder / "end", os.O_CREAT | os.O_RDWR, 0o644)
        self._index = self._opened_index(read_index(folder))
        self._active = self._extent_of(self._files[-1])
        if publishes:
            self.publish()

    def _opened_index(self, index: LogIndex) -> LogIndex:
        """Return the index of the files that are there: a crash may have come before it."""
        known, files = index.files, self._files[:-1]
        for start in [start for start in known if start not in files]:
            extent = known.pop(start)
            if start < self._files[0]:
                index.removed += extent
        for start in [start for start in files if start not in known]:
            known[start] = self._extent_of(start)
        return index

    def _extent_of(self, start: int) -> LogExtent:
        data = path.read_bytes() if (path := self._path(start)).exists() else b""
        return sum((self._read(record) for _, record in records_in(data)), LogExtent())

    def append(self, records: Sequence[SpoolRecord], data: bytes | None = None) -> None:
        """Write messages and sync them to disk; if that fails, none of them is in the log."""
        self.take(records, [self._read(record) for record in records], data)

    def take(
        self,
        records: Sequence[SpoolRecord],
        extents: Sequence[LogExtent],
        data: bytes | None = None,
    ) -> None:
        """Append messages whose extents are known."""
        with self.guard:
            super().append(records, data)
            added = sum(extents, LogExtent())
            self._active += added
            self._count(added.elements)
            if self._publishes:
                self.publish()
            if time.monotonic() > self._tidied + _TIDY_S:
                self.tidy(int(time.time() * 1000))

    def _count(self, elements: int) -> None:
        second = int(time.monotonic())
        if self._recent and self._recent[-1][0] == second:
            elements += self._recent.pop()[1]
        self._recent.append((second, elements))

    def publish(self) -> None:
        """Let readers see all messages so far."""
        os.pwrite(self._end_file, END_RECORD.pack(self.end, self._number), 0)

    def _begin_file(self) -> None:
        super()._begin_file()
        self._index.files[self._files[-2]] = self._active
        self._active = LogExtent()
        self._index.write(self.folder)

    def cut_back(self, end: int, number: int) -> None:
        """Drop the messages after an offset, at which the message of a number ends."""
        with self.guard:
            super().cut_back(end, number)
            for start in [start for start in self._index.files if start >= self._files[-1]]:
                del self._index.files[start]
            self._active = self._extent_of(self._files[-1])
            self._index.write(self.folder)

    def tidy(self, now: int) -> None:
        """Remove the files that the retention does not keep; `now` is in milliseconds."""
        with self.guard:
            self._tidied = time.monotonic()
            if self._active.messages and self._is_old(self._active, now):
                self._begin_file()
            while len(self._files) > 1 and self._is_done_with(self._files[0], now):
                start = self._files[0]
                self._index.removed += self._index.files.pop(start)
                self._index.write(self.folder)
                self._remove(start)
            self._forget()

    def _is_done_with(self, start: int, now: int) -> bool:
        return self.end - start > self._keep.bytes or self._is_old(self._index.files[start], now)

    def _is_old(self, extent: LogExtent, now: int) -> bool:
        return extent.arrival < now - self._keep.milliseconds

    def figures(self) -> LogFigures:
        """Return the figures of the log."""
        with self.guard:
            kept = sum(self._index.files.values(), self._active)
            now = int(time.monotonic())
            recent = sum(count for second, count in self._recent if second >= now - _RATE_S)
            return LogFigures(
                self._index.removed + kept,
                kept,
                self._number - kept.messages + 1,
                self._number,
                self.end - self._files[0],
                len(self._files),
                self._index.removed.greatest,
                recent / _RATE_S,
            )

    @property
    def last_number(self) -> int:
        """The number of the last message."""
        return self._number

    def close(self) -> None:
        """Close the files that are written."""
        with self.guard:
            super().close()
            os.close(self._end_file)
