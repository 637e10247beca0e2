"""A file of records: each a line of text with its checksum, brought to disk before it counts.

Records are only added at the end. The last one may be torn, where a crash came in between: it never
counted, and is left out. One that is damaged with another after it is refused; and so is one that
is missing, since a checksum is over all records before as well.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

from rsp_engine.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["HINT", "RecordLog", "write_file"]

HINT = "start with an empty folder, or restore this one"


class RecordLog:
    """The records of one file, and where the next one goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = 0
        """So many bytes are whole records."""
        self._check = 0

    @classmethod
    def created(cls, path: Path, records: Iterable[bytes]) -> RecordLog:
        """Make a file of whole records: it is there as a whole, or not at all."""
        made = cls(path)
        write_file(path, map(made._line, records))
        return made

    def _line(self, record: bytes) -> bytes:
        """Return a record as it is written after those before."""
        self._check = zlib.crc32(record, self._check)
        written = b"%08x %s\n" % (self._check, record)
        self.end += len(written)
        return written

    @classmethod
    def opened(cls, path: Path) -> tuple[RecordLog, list[bytes]]:
        """Return a file that is there, and its records."""
        try:
            *lines, torn = path.read_bytes().split(b"\n")
        except OSError as error:
            raise StateError(f"{path} cannot be read: {error.strerror}", HINT) from None
        made, found = cls(path), list[bytes]()
        for place, each in enumerate(lines):
            check, _, record = each.partition(b" ")
            if check != b"%08x" % zlib.crc32(record, made._check):
                if torn or place < len(lines) - 1:
                    raise StateError(f"{path} is damaged: a checksum does not fit", HINT)
                break
            made._line(record)
            found.append(record)
        return made, found

    def append(self, record: bytes) -> None:
        """Add a record; if that fails, the file is as it was."""
        before = self.end, self._check
        with self.path.open("r+b") as stream:
            try:
                stream.truncate(self.end)  # what is torn goes
                stream.seek(self.end)
                stream.write(self._line(record))
                stream.flush()
                os.fsync(stream.fileno())
            except OSError:
                self.end, self._check = before
                os.truncate(self.path, self.end)
                raise


def write_file(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file that is there as a whole or not at all, also after the power fails."""
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as stream:
        stream.writelines(parts)
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
