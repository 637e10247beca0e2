"""The spool: messages on disk, from when they are acknowledged to when they are answered.

    00000000000000000000.spool    bytes 0 to 4,194,310 of all that was ever written
    00000000000004194310.spool    those after them; the last file is written, the others are not

A place in the spool counts the bytes of all files that ever were, so that it stays the same when
the first of them are removed. Messages are written in groups, and a group counts once it was
brought to disk. A file is removed when everything in it is committed elsewhere, and so many
messages follow it that none in it can be sent again.
"""

from __future__ import annotations

import os
import threading
from itertools import pairwise
from typing import TYPE_CHECKING

from rsp_engine.errors import SourceError
from rsp_engine.runtime.sources.cuts import Place
from rsp_engine.runtime.sources.live.records import end_of, records_in, written
from rsp_engine.runtime.sources.live.repeats import REMEMBERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rsp_engine.runtime.sources.live.records import Record

__all__ = ["Spool", "read_place"]

FILE_BYTES = 4 << 20
"""How long a file gets before the next one is begun."""

_SUFFIX = ".spool"


class Spool:
    """A folder of files that one writer appends to, and anybody reads."""

    def __init__(
        self,
        folder: Path,
        *,
        room: int,
        file_bytes: int = FILE_BYTES,
        remembered: int = REMEMBERED,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        """Open a folder, and forget what was not finished there; it holds up to `room` bytes."""
        self.folder = folder
        self._room = room
        self._file_bytes = file_bytes
        self._remembered = remembered
        self._write = write
        self._changed = threading.Condition()
        folder.mkdir(parents=True, exist_ok=True)
        self._files = sorted(int(path.stem) for path in folder.glob(f"*{_SUFFIX}")) or [0]
        self._mend()
        self._released = self._files[0]
        self._stream = os.open(self._path(self._files[-1]), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        _sync_folder(folder)

    def _mend(self) -> None:
        """Cut off what was written and never finished, and learn the numbers of messages."""
        self._counts: dict[int, int] = {}
        self._number = 0
        self.end = self._files[0]
        for start in self._files:
            path = self._path(start)
            data = path.read_bytes() if path.exists() else b""
            good = 0
            for end, record in records_in(data):
                good, self._number = end, record.number
                self._counts[start] = self._counts.get(start, 0) + 1
            self.end = start + good
            if good < len(data):
                if start != self._files[-1]:
                    hint = "start with an empty folder, or restore this one"
                    raise SourceError(f"{path} is damaged", hint)
                os.truncate(path, good)
        for start, following in pairwise(self._files):
            if start + self._path(start).stat().st_size != following:
                raise SourceError(f"a file is missing after {self._path(start)}")

    def __iter__(self) -> Iterator[Record]:
        """Yield all messages that are still there."""
        for start in list(self._files):
            for _, record in records_in(self._path(start).read_bytes()):
                yield record

    @property
    def next_number(self) -> int:
        """The number that the next message gets."""
        return self._number + 1

    def append(self, records: Sequence[Record]) -> None:
        """Write messages, and bring them to disk; if that fails, none of them is there."""
        data = b"".join(map(written, records))
        if not data:
            return
        if self.end - self._files[-1] >= self._file_bytes:
            self._begin_file()
        try:
            self._write_all(data)
            os.fsync(self._stream)
        except OSError:
            os.ftruncate(self._stream, self.end - self._files[-1])
            raise
        with self._changed:
            self._number = records[-1].number
            start = self._files[-1]
            self._counts[start] = self._counts.get(start, 0) + len(records)
            self.end += len(data)
            self._changed.notify_all()

    def _write_all(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._write(self._stream, bytes(left)) :]

    def _begin_file(self) -> None:
        stream = os.open(self._path(self.end), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        _sync_folder(self.folder)
        os.close(self._stream)
        with self._changed:
            self._stream = stream
            self._files.append(self.end)

    def wait_for_room(self, seconds: float) -> bool:
        """Wait until messages can be written without too many waiting; tell whether they can."""
        with self._changed:
            return self._changed.wait_for(self._has_room, seconds)

    def _has_room(self) -> bool:
        return self.end - self._released < self._room

    def wait_for_more(self, after: int, seconds: float) -> None:
        """Wait until there is something after a place, for so long at most."""
        with self._changed:
            self._changed.wait_for(lambda: self.end > after, seconds)

    def wake(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def release(self, until: int) -> None:
        """Learn that nothing before a place is needed any more, and remove what may go."""
        with self._changed:
            self._released = max(self._released, until)
            self._changed.notify_all()
            kept = sum(self._counts.get(start, 0) for start in self._files)
            while len(self._files) > 1 and self._files[1] <= self._released:
                kept -= self._counts.get(self._files[0], 0)
                if kept < self._remembered:
                    return
                start = self._files.pop(0)
                self._counts.pop(start, None)
                self._path(start).unlink(missing_ok=True)

    def cut(self, size: int, since: Place | None) -> Iterator[Place]:
        """Yield places of about so many bytes with whole messages, each within one file."""
        start = self._files[0] if since is None or since.end is None else since.end
        while start < self.end:
            with self._changed:
                files, end = [*self._files, self.end], self.end
            file = max(begin for begin in files[:-1] if begin <= start)
            last = min([other for other in files if other > start], default=end)
            stop = last if last - start <= size else self._cut(file, start, size)
            yield Place(start, stop)
            start = stop

    def _cut(self, file: int, start: int, size: int) -> int:
        """Return where the last message ends that does so within so many bytes, or the first."""
        with self._path(file).open("rb") as stream:
            stream.seek(start - file)
            data, at = stream.read(size), 0
            while (end := end_of(data, at)) is not None:
                at = end
            if at:
                return start + at
            stream.seek(start - file)
            data = stream.read(self.end - start)
            return start + (end_of(data, 0) or len(data))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._stream)

    def _path(self, start: int) -> Path:
        return self.folder / f"{start:020}{_SUFFIX}"


def read_place(folder: Path, place: Place) -> Iterator[Record]:
    """Yield the messages of a place, which is within one file; nothing if it is empty."""
    if place.end is None or place.end <= place.start:
        return
    files = sorted(int(path.stem) for path in folder.glob(f"*{_SUFFIX}"))
    before = [start for start in files if start <= place.start]
    if not before:
        raise SourceError(f"{folder}: what was there at {place.start} is gone", _LOST)
    with (folder / f"{before[-1]:020}{_SUFFIX}").open("rb") as stream:
        stream.seek(place.start - before[-1])
        data = stream.read(place.end - place.start)
    found = 0
    for end, record in records_in(data):
        found = end
        yield record
    if found < place.end - place.start:
        raise SourceError(f"{folder}: messages at {place.start + found} are missing", _LOST)


_LOST = "every executor must be able to read the spool; start anew with an empty checkpoint"


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
