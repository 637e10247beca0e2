"""A reader of a log that another process or thread writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.live.log.extent import read_index
from rsp_engine.io.sources.live.log.stream_log import END_RECORD
from rsp_engine.io.sources.live.records import records_in
from rsp_engine.io.sources.live.spool import first_number, split_end, spool_path, spool_starts
from rsp_engine.io.sources.splits import Split

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rsp_engine.io.sources.live.log.extent import LogIndex
    from rsp_engine.io.sources.live.records import SpoolRecord

__all__ = ["LogEnd", "LogReader", "PlaceGoneError"]

_READ_BYTES = 1 << 20


class PlaceGoneError(SourceError):
    """What is to be read is no longer kept."""


class LogEnd(NamedTuple):
    """The end of what can be read of a log."""

    offset: int = 0
    number: int = 0
    """The number of the last message."""


class LogReader:
    """A reader of a log; it keeps no position."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self._end_file: int | None = None

    def end(self) -> LogEnd:
        """Return the end of what can be read."""
        if self._end_file is None:
            try:
                self._end_file = os.open(self.folder / "end", os.O_RDONLY)
            except FileNotFoundError:
                return LogEnd()
        data = os.pread(self._end_file, END_RECORD.size, 0)
        return LogEnd(*END_RECORD.unpack(data)) if len(data) == END_RECORD.size else LogEnd()

    def starts(self) -> list[int]:
        """Return the starts of the files."""
        return list(spool_starts(self.folder)) or [0]

    def index(self) -> LogIndex:
        """Return the index of the files that are no longer written."""
        return read_index(self.folder)

    def cut(self, size: int, start: int) -> Iterator[Split]:
        """Yield splits from an offset on, of about `size` bytes."""
        end = self.end().offset
        if start >= end:
            return
        edges = self.starts()
        if start < edges[0]:
            raise PlaceGoneError(
                f"{self.name}: the messages from byte {start} on are gone: those after byte"
                f" {edges[0]} are kept",
                "start the query anew, or keep more of the stream",
            )
        edges = [*(edge for edge in edges if edge < end), end]
        while start < end:
            stop = split_end(self.folder, edges, start, size)
            yield Split(start, stop)
            start = stop

    def offset_for(self, time: int) -> int:
        """Return an offset before all elements at or after a time.

        At least one earlier element follows it too, if one is kept.
        """
        starts = self.starts()
        first = self.index().first_for(time)
        place = starts.index(starts[-1] if first not in starts else first)
        return starts[max(place - 1, 0)]

    def records(self, start: int, end: int | None = None) -> Iterator[tuple[int, SpoolRecord]]:
        """Yield messages from an offset on, each with the offset of its end."""
        last = self.end().offset if end is None else end
        for split in self.cut(_READ_BYTES, start):
            if split.start >= last or split.end is None:
                return
            base = max(edge for edge in self.starts() if edge <= split.start)
            with spool_path(self.folder, base).open("rb") as stream:
                stream.seek(split.start - base)
                data = stream.read(split.end - split.start)
            for at, record in records_in(data):
                if split.start + at > last:
                    return
                yield split.start + at, record

    def first(self) -> int:
        """Return the number of the first message that is kept, or the one to come."""
        starts, end = self.starts(), self.end()
        if starts[0] >= end.offset:
            return end.number + 1
        return first_number(self.folder, starts[0])

    def from_number(self, number: int) -> Iterator[tuple[int, SpoolRecord]]:
        """Yield messages from a number on, each with the offset of its end."""
        end, begin = self.end(), 0
        for start in self.starts():
            if start >= end.offset or first_number(self.folder, start) > number:
                break
            begin = start
        for at, record in self.records(max(begin, self.starts()[0])):
            if record.number >= number:
                yield at, record

    def last(self, count: int) -> list[SpoolRecord]:
        """Return the last messages."""
        number = max(self.end().number - count + 1, 1)
        return [record for _, record in self.from_number(number)] if count > 0 else []

    def close(self) -> None:
        """Close the file that says where the log ends."""
        if self._end_file is not None:
            os.close(self._end_file)
            self._end_file = None
