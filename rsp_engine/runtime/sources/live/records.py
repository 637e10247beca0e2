"""How messages are written to the spool: one record after the other.

    size, checksum | number, arrival, sizes of the texts | id, topic, fault | payload

A record whose size or checksum does not fit was not finished: nothing after it counts.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Message", "Record", "end_of", "envelope_id", "records_in", "written"]

_HEAD = struct.Struct(">II")  # the size of the body, and its checksum
_BODY = struct.Struct(">QQHHH")


class Message(NamedTuple):
    """What a broker sends."""

    payload: bytes
    topic: str = ""
    id: str = ""
    """By what the sender tells messages apart; empty if it does not."""
    may_repeat: bool = True
    """Whether the sender says that it may have sent the message before."""


class Record(NamedTuple):
    """A message on disk: its number from 1, and when it came, in milliseconds."""

    number: int
    arrival: int
    message: Message
    fault: str = ""
    """Why it is not read, if it is not."""


def written(record: Record) -> bytes:
    """Return the bytes of a record.

    >>> record = Record(7, 1_000, Message(b"payload", "a/b", "id"))
    >>> [(end, found.number, found.message.topic) for end, found in records_in(written(record))]
    [(42, 7, 'a/b')]
    """
    message = record.message
    texts = [_short(text) for text in (message.id, message.topic, record.fault)]
    sizes = _BODY.pack(record.number, record.arrival, *map(len, texts))
    body = b"".join((sizes, *texts, message.payload))
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def records_in(data: bytes) -> Iterator[tuple[int, Record]]:
    """Yield the records of bytes, each with where it ends, up to the first that is not whole."""
    start = 0
    while (end := end_of(data, start)) is not None:
        body = data[start + _HEAD.size : end]
        if zlib.crc32(body) != _HEAD.unpack_from(data, start)[1]:
            return
        yield end, _read(body)
        start = end


def end_of(data: bytes, start: int) -> int | None:
    """Return where a record ends that starts at a place; nothing if its end is missing."""
    if start + _HEAD.size > len(data):
        return None
    size: int = _HEAD.unpack_from(data, start)[0]
    end = start + _HEAD.size + size
    return end if size >= _BODY.size and end <= len(data) else None


def _read(body: bytes) -> Record:
    number, arrival, *sizes = _BODY.unpack_from(body)
    texts, at = [], _BODY.size
    for size in sizes:
        texts.append(body[at : at + size].decode(errors="replace"))
        at += size
    name, topic, fault = texts
    return Record(number, arrival, Message(body[at:], topic, name), fault)


def _short(text: str) -> bytes:
    return text.encode(errors="replace")[:0xFFFF]


def envelope_id(payload: bytes) -> str:
    """Return the `"id"` of a JSON object, as text; nothing if it has none.

    >>> envelope_id(b'{"id": 7, "graph": ""}'), envelope_id(b"<a> <b> <c> .")
    ('7', '')
    """
    if b'"id"' not in payload or not payload.lstrip().startswith(b"{"):
        return ""
    try:
        value = json.loads(payload).get("id")
    except (ValueError, RecursionError):
        return ""
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_id else ""
