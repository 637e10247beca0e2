"""What is known of messages whose spool file is gone: by what they would be known if sent again.

    00000000000000000000.seen    the keys of the messages that 00000000000000000000.spool held

A file holds a checksum, then a line of JSON with the number, the arrival and the id of the last
message, then the keys. It is written before the spool file is removed, and goes when so many
messages follow that none of these can be sent again.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.live.deduplicator import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["SpoolPast", "read_past", "sync_folder", "write_past"]


class SpoolPast(NamedTuple):
    """The messages of a spool file that is gone."""

    number: int = 0
    """The number of the last one."""
    arrival: int = 0
    id: str = ""
    """The id of the last one that has an id."""
    keys: Sequence[bytes] = ()


def write_past(path: Path, past: SpoolPast) -> None:
    """Write a file that is there as a whole or not at all."""
    head = json.dumps({"number": past.number, "arrival": past.arrival, "id": past.id})
    body = b"".join((head.encode(), b"\n", *past.keys))
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as stream:
        stream.write(b"%08x\n" % zlib.crc32(body) + body)
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def read_past(path: Path) -> SpoolPast:
    """Read a file; one that is damaged is refused."""
    check, _, body = path.read_bytes().partition(b"\n")
    try:
        if int(check, 16) != zlib.crc32(body):
            raise ValueError("its checksum does not fit")
        head, _, keys = body.partition(b"\n")
        told = json.loads(head)
        return SpoolPast(told["number"], told["arrival"], told["id"], list(_cut(keys)))
    except (ValueError, KeyError, TypeError) as error:
        hint = "restore it; or remove it: a message that is sent again may then count twice"
        raise SourceError(f"{path} is damaged: {error}", hint) from None


def _cut(keys: bytes) -> Iterator[bytes]:
    for at in range(0, len(keys), KEY_BYTES):
        yield keys[at : at + KEY_BYTES]


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
