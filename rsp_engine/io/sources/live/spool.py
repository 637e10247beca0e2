"""The spool: messages on disk, from when they are acknowledged to when they are answered.

    00000000000000000000.seen     by what the messages are known that bytes 0 to 4,194,310 held
    00000000000004194310.spool    the bytes after them of all that was ever written
    00000000000008388620.spool    those after them; the last file is written, the others are not

A place in the spool counts the bytes of all files that ever were, so that it stays the same when
the first of them are removed. Messages are written in groups, and a group counts once it was
brought to disk. A file is removed when everything in it is committed elsewhere; what is left of it
is how to know its messages again, should they be sent again.

On disk are at most `room` bytes that wait, or one message that is larger; a file that is released
in part; and a few bytes for each message that is remembered.
"""

from __future__ import annotations

import logging
import os
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.past import SpoolPast, read_past, sync_folder, write_past
from rsp_engine.io.sources.live.records import (
    end_of,
    record_bytes,
    records_in,
    whole_record_after,
)
from rsp_engine.io.sources.splits import Split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rsp_engine.io.sources.live.records import SpoolRecord

__all__ = ["Spool", "read_place"]

FILE_BYTES = 4 << 20
"""How long a file gets before the next one is begun."""
LEAST_FILE_BYTES = 64 << 10
"""Where there is little room, files are shorter, down to this."""
FILES = 4
"""The room is so many files at least: a file is removed as a whole."""

_LOG = logging.getLogger("rsp")
_SUFFIX, _SEEN = ".spool", ".seen"
_RESTORE = "restore it from a copy, or start with an empty checkpoint"


class Spool:
    """A folder of files that one writer appends to, and anybody reads."""

    def __init__(
        self,
        folder: Path,
        *,
        room: int,
        file_bytes: int | None = None,
        repeats: Deduplicator | None = None,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        """Open a folder, and forget what was not finished there; it holds up to `room` bytes.

        `repeats` tells by what a message is known that is sent again, and for how long.
        """
        self.folder = folder
        self.room = room
        usual = max(LEAST_FILE_BYTES, min(FILE_BYTES, room // FILES))
        self._file_bytes = usual if file_bytes is None else file_bytes
        self._repeats = repeats or Deduplicator("none")
        self._write = write
        self.is_full = False
        """Whether somebody waits for room."""
        self._changed = threading.Condition()
        folder.mkdir(parents=True, exist_ok=True)
        self._files = list(_starts(folder, _SUFFIX)) or [0]
        self._seen: dict[int, int] = {}
        """The numbers of the last messages of files that are gone, by their starts."""
        self.past = self._remember()
        """What is known of messages that are gone."""
        self._number = self.past.number
        self.end = self._files[0]
        for start in self._files:
            self._mend(start)
        self._check_starts()
        self._released = self._files[0]
        self._stream = os.open(self._path(self._files[-1]), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        sync_folder(folder)

    def _remember(self) -> SpoolPast:
        """Return what is known of messages whose files are gone."""
        last = SpoolPast()
        keys: list[bytes] = []
        for start in _starts(self.folder, _SEEN):
            if start >= self._files[0]:  # its file was to be removed, and is still there
                self._path(start, _SEEN).unlink()
                continue
            found = read_past(self._path(start, _SEEN))
            keys.extend(found.keys)
            last = found._replace(id=found.id or last.id)
            self._seen[start] = found.number
        return last._replace(keys=keys)

    def _mend(self, start: int) -> None:
        """Cut off what was written last and never finished; what is damaged is refused."""
        path = self._path(start)
        data = path.read_bytes() if path.exists() else b""
        good = 0
        for end, record in records_in(data):
            if self._number and record.number != self._number + 1:
                told = f"message {record.number} follows message {self._number}"
                raise SourceError(f"{path} is damaged at byte {good}: {told}", _RESTORE)
            good, self._number = end, record.number
        self.end = start + good
        if good == len(data):
            return
        following = whole_record_after(data, good, self._number)
        if start != self._files[-1] or following is not None:
            self._refuse(path, good, following)
        told = "%s: its last %d bytes were not finished, and are cut off"
        _LOG.warning(told, path, len(data) - good)
        os.truncate(path, good)

    def _refuse(self, path: Path, good: int, following: int | None) -> NoReturn:
        """Refuse a file with a record that is not whole, and that others follow."""
        message = f"{path} is damaged: the message at byte {good} is not whole"
        hint = _RESTORE
        if following is not None:
            message += f", and there are others from byte {following} on"
        if path == self._path(self._files[-1]):
            hint += f"; or lose the messages from there on: truncate -s {good} {path}"
        raise SourceError(message, hint)

    def _check_starts(self) -> None:
        for start, following in pairwise(self._files):
            path = self._path(start)
            if (end := start + path.stat().st_size) != following:
                told = f"{path} ends at {end}, and the next file starts at {following}"
                raise SourceError(f"the spool is damaged: {told}", _RESTORE)

    def __iter__(self) -> Iterator[SpoolRecord]:
        """Yield all messages that are still there."""
        for start in list(self._files):
            for _, record in records_in(self._path(start).read_bytes()):
                yield record

    @property
    def next_number(self) -> int:
        """The number that the next message gets."""
        return self._number + 1

    @property
    def start(self) -> int:
        """The first place that is still there."""
        return self._files[0]

    def append(self, records: Sequence[SpoolRecord], data: bytes | None = None) -> None:
        """Write messages, and bring them to disk; if that fails, none of them is there.

        `data` are their bytes, where these are known already.
        """
        data = b"".join(map(record_bytes, records)) if data is None else data
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
            self.end += len(data)
            self._changed.notify_all()

    def _write_all(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._write(self._stream, bytes(left)) :]

    def _begin_file(self) -> None:
        stream = os.open(self._path(self.end), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        sync_folder(self.folder)
        os.close(self._stream)
        with self._changed:
            self._stream = stream
            self._files.append(self.end)

    def wait_for_room(self, size: int, seconds: float) -> bool:
        """Wait until so many bytes can be written; tell whether they can.

        What is larger than the room is written when nothing else waits.
        """
        with self._changed:
            self.is_full = not self._has_room(size)
            self.is_full = not self._changed.wait_for(lambda: self._has_room(size), seconds)
            return not self.is_full

    def _has_room(self, size: int) -> bool:
        waiting = self.end - self._released
        return not waiting or waiting + size <= self.room

    def wait_for_more(self, after: int, seconds: float) -> None:
        """Wait until there is something after a place, for so long at most."""
        with self._changed:
            self._changed.wait_for(lambda: self.end > after, seconds)

    def wake(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def release(self, until: int) -> None:
        """Learn that nothing before a place is needed any more, and remove what may go.

        Files are removed before anybody who waits for room is told: there are never both.
        """
        with self._changed:
            over = [start for start, after in pairwise(self._files) if after <= until]
        try:
            for start in over:
                self._remove(start)
            self._forget()
        except OSError as error:  # the disk is full: it is tried again at the next release
            _LOG.warning("%s cannot be tidied up: %s", self.folder, error.strerror or error)
        with self._changed:
            self._released = max(self._released, until)
            self._changed.notify_all()

    def _remove(self, start: int) -> None:
        """Remove a file, but for what tells its messages if they are sent again."""
        path, past = self._path(start), self.past._replace(keys=())
        keys: list[bytes] = []
        for _, record in records_in(path.read_bytes()):
            key, name = self._repeats.key(record.message), record.message.id
            keys.extend(() if key is None else (key,))
            past = SpoolPast(record.number, record.arrival, name or past.id)
        write_past(self._path(start, _SEEN), past._replace(keys=keys))
        with self._changed:
            self.past, self._seen[start] = past, past.number
            self._files.remove(start)
        path.unlink(missing_ok=True)

    def _forget(self) -> None:
        """Forget messages that so many follow that they are not sent again; not the last ones."""
        for start in sorted(self._seen)[:-1]:
            if self._number - self._seen[start] < self._repeats.most:
                return
            del self._seen[start]
            self._path(start, _SEEN).unlink(missing_ok=True)

    def cut(self, size: int, since: Split | None) -> Iterator[Split]:
        """Yield places of about so many bytes with whole messages, each within one file."""
        start = self._files[0] if since is None or since.end is None else since.end
        while start < self.end:
            with self._changed:
                files, end = [*self._files, self.end], self.end
            file = max(begin for begin in files[:-1] if begin <= start)
            last = min([other for other in files if other > start], default=end)
            stop = last if last - start <= size else self._cut(file, start, size)
            yield Split(start, stop)
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

    def _path(self, start: int, suffix: str = _SUFFIX) -> Path:
        return _path(self.folder, start, suffix)


def _path(folder: Path, start: int, suffix: str = _SUFFIX) -> Path:
    return folder / f"{start:020}{suffix}"


def _starts(folder: Path, suffix: str) -> Iterator[int]:
    """Yield where files start, in order; others' files do not count."""
    stems = (path.stem for path in folder.glob(f"*{suffix}"))
    yield from sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())


def read_place(folder: Path, place: Split) -> Iterator[SpoolRecord]:
    """Yield the messages of a place, which is within one file; nothing if it is empty."""
    if place.end is None or place.end <= place.start:
        return
    before = [start for start in _starts(folder, _SUFFIX) if start <= place.start]
    if not before:
        raise SourceError(f"{folder}: what was there at {place.start} is gone", _LOST)
    path = _path(folder, before[-1])
    with path.open("rb") as stream:
        stream.seek(place.start - before[-1])
        data = stream.read(place.end - place.start)
    found = 0
    for end, record in records_in(data):
        found = end
        yield record
    if found < place.end - place.start:
        at = place.start + found - before[-1]
        raise SourceError(f"{path}: messages at byte {at} are missing or damaged", _LOST)


_LOST = "every executor must be able to read the spool; start anew with an empty checkpoint"
