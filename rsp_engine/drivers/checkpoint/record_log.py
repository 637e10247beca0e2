"""An append-only file of records: each is a line of text with a checksum, synced to disk.

A crash may tear the last record: it was never committed, and is left out. A damaged record before
the last one is refused; so is a missing one, since each checksum covers all records before it.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

from rsp_engine.errors import StateError
from rsp_engine.io.atomic_file import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["HINT", "RecordLog"]

HINT = "start with an empty folder, or restore this one"


class RecordLog:
    """The records of one file, and the position of the next one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = 0
        """How many bytes of the file are whole records."""
        self._checksum = 0

    @classmethod
    def created(cls, path: Path, records: Iterable[bytes]) -> RecordLog:
        """Write a new file of records atomically."""
        log = cls(path)
        write_file(path, map(log._line, records))
        return log

    def _line(self, record: bytes) -> bytes:
        """Return the line of a record that follows all others."""
        self._checksum = zlib.crc32(record, self._checksum)
        line = b"%08x %s\n" % (self._checksum, record)
        self.end += len(line)
        return line

    @classmethod
    def opened(cls, path: Path) -> tuple[RecordLog, list[bytes]]:
        """Open an existing file, and return it with its records."""
        try:
            *lines, torn = path.read_bytes().split(b"\n")
        except OSError as error:
            raise StateError(f"{path} cannot be read: {error.strerror}", HINT) from None
        log, records = cls(path), list[bytes]()
        for number, line in enumerate(lines):
            checksum, _, record = line.partition(b" ")
            if checksum != b"%08x" % zlib.crc32(record, log._checksum):
                if torn or number < len(lines) - 1:
                    raise StateError(f"{path} is damaged: a checksum does not match", HINT)
                break
            log._line(record)
            records.append(record)
        return log, records

    def append(self, record: bytes) -> None:
        """Append a record; if that fails, the file stays as it was."""
        before = self.end, self._checksum
        with self.path.open("r+b") as stream:
            try:
                stream.truncate(self.end)  # drops a torn record
                stream.seek(self.end)
                stream.write(self._line(record))
                stream.flush()
                os.fsync(stream.fileno())
            except OSError:
                self.end, self._checksum = before
                os.truncate(self.path, self.end)
                raise
