"""The spool: messages on disk, from their arrival until the run no longer needs them.

    00000000000000000000.seen     the deduplication keys of messages at bytes 0 to 4,194,310
    00000000000004194310.spool    messages from byte 4,194,310 on; no longer written
    00000000000008388620.spool    messages from byte 8,388,620 on; the last file is appended to

An offset counts the bytes of all files ever written, so that it stays valid when the first files
are removed. Messages are written in groups; one fsync commits a group. A file is removed once all
of it is released. A `.seen` file then keeps the deduplication keys of its messages, in case the
sender repeats them: a checksum, a line of JSON with the number, the arrival and the id of the last
message, and the keys. It is written before the spool file is removed, and removed when the
deduplicator has forgotten its keys.

On disk are at most `room` bytes of unreleased messages, or one message that is larger; a file that
is released in part; and 16 bytes per message that is remembered.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from rsp_engine.errors import SourceError
from rsp_engine.io.atomic_file import sync_folder, write_file
from rsp_engine.io.sources.live.deduplicator import KEY_BYTES, Deduplicator
from rsp_engine.io.sources.live.records import (
    end_of,
    number_at_start,
    record_bytes,
    records_in,
    whole_record_after,
)
from rsp_engine.io.sources.splits import Split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rsp_engine.io.sources.live.records import SpoolRecord

__all__ = [
    "Spool",
    "SpoolPast",
    "first_number",
    "read_split",
    "split_end",
    "spool_path",
    "spool_starts",
]

FILE_BYTES = 4 << 20
"""The size at which a file is closed and the next one started."""
LEAST_FILE_BYTES = 64 << 10
"""The same size for a spool with little room, at least."""
FILES = 4
"""The room is divided into at least this many files, because files are removed as a whole."""

_LOG = logging.getLogger("rsp")
_SUFFIX, _SEEN = ".spool", ".seen"
_RESTORE = "restore it from a copy, or start with an empty checkpoint"
_LOST = "every executor must be able to read the spool; start again with an empty checkpoint"


class SpoolPast(NamedTuple):
    """What is known of messages whose spool files were removed."""

    number: int = 0
    """The number of the last message."""
    arrival: int = 0
    id: str = ""
    """The id of the last message that has one."""
    keys: Sequence[bytes] = ()


class Spool:
    """A folder of files with one writer and any number of readers."""

    def __init__(  # noqa: PLR0913 - all but the room have a default
        self,
        folder: Path,
        *,
        room: int,
        file_bytes: int | None = None,
        deduplicator: Deduplicator | None = None,
        write: Callable[[int, bytes], int] = os.write,
        checks_all: bool = True,
    ) -> None:
        """Open a folder, and truncate a message whose write was not finished.

        `room` is the capacity in bytes. `deduplicator` gives the key of a message, and how many
        messages are remembered. Unless it `checks_all`, only the last two files are read.
        """
        self.folder = folder
        self.room = room
        usual = max(LEAST_FILE_BYTES, min(FILE_BYTES, room // FILES))
        self._file_bytes = usual if file_bytes is None else file_bytes
        self._deduplicator = deduplicator or Deduplicator("none")
        self._write = write
        self.is_full = False
        """Whether the receiver is blocked until messages are released."""
        self._changed = threading.Condition()
        folder.mkdir(parents=True, exist_ok=True)
        self._files = list(spool_starts(folder)) or [0]
        self._seen: dict[int, int] = {}
        """The number of the last message of each removed file, by the start of the file."""
        self.past = self._read_seen()
        """What is known of messages whose files were removed."""
        self.end = self._files[0]
        checked = self._files if checks_all else self._files[-2:]
        self._number = self._number_before(checked[0])
        for start in checked:
            self._recover(start)
        self._check_starts()
        self._released = self._files[0]
        self._stream = os.open(self._path(self._files[-1]), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        sync_folder(folder)

    def _read_seen(self) -> SpoolPast:
        """Read the `.seen` files."""
        last = SpoolPast()
        keys: list[bytes] = []
        for start in spool_starts(self.folder, _SEEN):
            if start >= self._files[0]:  # a crash before its spool file was removed
                self._path(start, _SEEN).unlink()
                continue
            past = _read_past(self._path(start, _SEEN))
            keys.extend(past.keys)
            last = past._replace(id=past.id or last.id)
            self._seen[start] = past.number
        return last._replace(keys=keys)

    def _number_before(self, start: int) -> int:
        """Return the number of the last message before a file."""
        if start == self._files[0]:
            return self.past.number
        return self._number if start == self.end else first_number(self.folder, start) - 1

    def _recover(self, start: int) -> None:
        """Truncate a message whose write was not finished; refuse a damaged file."""
        path = self._path(start)
        data = path.read_bytes() if path.exists() else b""
        good = 0
        for end, record in records_in(data):
            if self._number and record.number != self._number + 1:
                reason = f"message {record.number} follows message {self._number}"
                raise SourceError(f"{path} is damaged at byte {good}: {reason}", _RESTORE)
            good, self._number = end, record.number
        self.end = start + good
        if good == len(data):
            return
        following = whole_record_after(data, good, self._number)
        if start != self._files[-1] or following is not None:
            self._refuse(path, good, following)
        message = "%s: its last %d bytes are incomplete, and are cut off"
        _LOG.warning(message, path, len(data) - good)
        os.truncate(path, good)

    def _refuse(self, path: Path, good: int, following: int | None) -> NoReturn:
        """Refuse a file with an incomplete record that is not the last one."""
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
                reason = f"{path} ends at {end}, and the next file starts at {following}"
                raise SourceError(f"the spool is damaged: {reason}", _RESTORE)

    def __iter__(self) -> Iterator[SpoolRecord]:
        """Yield all messages whose files were not removed."""
        for start in list(self._files):
            for _, record in records_in(self._path(start).read_bytes()):
                yield record

    def recent(self) -> Iterator[SpoolRecord]:
        """Yield the messages of the last files: at least those that the deduplicator remembers."""
        files = [*self._files]
        last = len(files) - 1
        while last and self._number - self._number_before(files[last]) < self._deduplicator.most:
            last -= 1
        for start in files[last:]:
            for _, record in records_in(self._path(start).read_bytes()):
                yield record

    @property
    def next_number(self) -> int:
        """The number of the next message."""
        return self._number + 1

    @property
    def start(self) -> int:
        """The first offset that was not removed."""
        return self._files[0]

    def append(self, records: Sequence[SpoolRecord], data: bytes | None = None) -> None:
        """Write messages and sync them to disk; if that fails, none of them is in the spool.

        `data` are the serialized records, if the caller has them.
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

    def cut_back(self, end: int, number: int) -> None:
        """Drop the messages after an offset, at which the message of a number ends."""
        for start in [start for start in self._files[1:] if start >= end]:
            self._files.remove(start)
            self._path(start).unlink()
        os.close(self._stream)
        path = self._path(self._files[-1])
        os.truncate(path, end - self._files[-1])
        self._stream = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.fsync(self._stream)
        sync_folder(self.folder)
        self.end, self._number = end, number

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
        """Wait until `size` bytes can be written; return whether they can.

        A message larger than the room can be written when the spool is empty.
        """
        with self._changed:
            self.is_full = not self._has_room(size)
            self.is_full = not self._changed.wait_for(lambda: self._has_room(size), seconds)
            return not self.is_full

    def _has_room(self, size: int) -> bool:
        waiting = self.end - self._released
        return not waiting or waiting + size <= self.room

    def wait_for_more(self, after: int, seconds: float) -> None:
        """Wait until there are messages after an offset, or the time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self.end > after, seconds)

    def wake(self) -> None:
        """Wake all waiting threads."""
        with self._changed:
            self._changed.notify_all()

    def release(self, until: int) -> None:
        """Release everything before an offset, and remove the files that this completes.

        Files are removed before waiting writers are woken, so that the old and the new messages are
        never on disk together.
        """
        with self._changed:
            released = [start for start, after in pairwise(self._files) if after <= until]
        try:
            for start in released:
                self._remove(start)
            self._forget()
        except OSError as error:  # the disk is full: the next release tries again
            _LOG.warning("%s cannot be tidied up: %s", self.folder, error.strerror or error)
        with self._changed:
            self._released = max(self._released, until)
            self._changed.notify_all()

    def _remove(self, start: int) -> None:
        """Replace a spool file by a `.seen` file with the deduplication keys of its messages."""
        path, past = self._path(start), self.past._replace(keys=())
        keys: list[bytes] = []
        for _, record in records_in(path.read_bytes()):
            key, name = self._deduplicator.key(record.message), record.message.id
            keys.extend(() if key is None else (key,))
            past = SpoolPast(record.number, record.arrival, name or past.id)
        _write_past(self._path(start, _SEEN), past._replace(keys=keys))
        with self._changed:
            self.past, self._seen[start] = past, past.number
            self._files.remove(start)
        path.unlink(missing_ok=True)

    def _forget(self) -> None:
        """Remove `.seen` files that the deduplicator no longer needs; keep the last one."""
        for start in sorted(self._seen)[:-1]:
            if self._number - self._seen[start] < self._deduplicator.most:
                return
            del self._seen[start]
            self._path(start, _SEEN).unlink(missing_ok=True)

    def cut(self, size: int, since: Split | None) -> Iterator[Split]:
        """Yield splits of about `size` bytes; each has whole messages of one file."""
        start = self._files[0] if since is None or since.end is None else since.end
        while start < self.end:
            with self._changed:
                files = [*self._files, self.end]
            stop = split_end(self.folder, files, start, size)
            yield Split(start, stop)
            start = stop

    def close(self) -> None:
        """Close the file that is written."""
        os.close(self._stream)

    def _path(self, start: int, suffix: str = _SUFFIX) -> Path:
        return spool_path(self.folder, start, suffix)


def spool_path(folder: Path, start: int, suffix: str = _SUFFIX) -> Path:
    """Return the file that starts at an offset."""
    return folder / f"{start:020}{suffix}"


def spool_starts(folder: Path, suffix: str = _SUFFIX) -> Iterator[int]:
    """Yield the start offsets of files in order; ignore files of other origin."""
    stems = (path.stem for path in folder.glob(f"*{suffix}"))
    yield from sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())


def split_end(folder: Path, edges: Sequence[int], start: int, size: int) -> int:
    """Return the end of the split from an offset on: whole messages of one file, of about `size`.

    `edges` are the starts of the files, and the end of the last one.
    """
    file = max(edge for edge in edges[:-1] if edge <= start)
    last = min(edge for edge in edges if edge > start)
    if last - start <= size:
        return last
    with spool_path(folder, file).open("rb") as stream:
        stream.seek(start - file)
        data, at = stream.read(size), 0
        while (end := end_of(data, at)) is not None:
            at = end
        if not at:  # the first message is larger
            stream.seek(start - file)
            data = stream.read(last - start)
            at = end_of(data, 0) or len(data)
    return start + at


def first_number(folder: Path, start: int) -> int:
    """Return the number of the first message of a file."""
    path = spool_path(folder, start)
    with path.open("rb") as stream:
        number = number_at_start(stream.read(64))
    if number is None:
        raise SourceError(f"{path} is damaged: it has no message", _RESTORE)
    return number


def read_split(folder: Path, split: Split) -> Iterator[SpoolRecord]:
    """Yield the messages of a split, which is within one file."""
    if split.end is None or split.end <= split.start:
        return
    before = [start for start in spool_starts(folder) if start <= split.start]
    if not before:
        raise SourceError(f"{folder}: the messages at {split.start} are gone", _LOST)
    path = spool_path(folder, before[-1])
    try:
        with path.open("rb") as stream:
            stream.seek(split.start - before[-1])
            data = stream.read(split.end - split.start)
    except FileNotFoundError:  # removed since the folder was listed
        raise SourceError(f"{folder}: the messages at {split.start} are gone", _LOST) from None
    read = 0
    for end, record in records_in(data):
        read = end
        yield record
    if read < split.end - split.start:
        at = split.start + read - before[-1]
        raise SourceError(f"{path}: messages at byte {at} are missing or damaged", _LOST)


def _write_past(path: Path, past: SpoolPast) -> None:
    """Write a `.seen` file atomically."""
    head = json.dumps({"number": past.number, "arrival": past.arrival, "id": past.id})
    body = b"".join((head.encode(), b"\n", *past.keys))
    write_file(path, [b"%08x\n" % zlib.crc32(body), body])


def _read_past(path: Path) -> SpoolPast:
    """Read a `.seen` file; refuse a damaged one."""
    check, _, body = path.read_bytes().partition(b"\n")
    try:
        if int(check, 16) != zlib.crc32(body):
            raise ValueError("its checksum does not match")
        head, _, keys = body.partition(b"\n")
        last = json.loads(head)
        return SpoolPast(last["number"], last["arrival"], last["id"], list(_split_keys(keys)))
    except (ValueError, KeyError, TypeError) as error:
        hint = "restore it; or remove it: a message that is sent again may then count twice"
        raise SourceError(f"{path} is damaged: {error}", hint) from None


def _split_keys(keys: bytes) -> Iterator[bytes]:
    for at in range(0, len(keys), KEY_BYTES):
        yield keys[at : at + KEY_BYTES]
