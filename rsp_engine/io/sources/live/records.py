"""The binary format of spool records.

    size, checksum | number, arrival, sizes of the texts | id, topic, fault | payload

A record whose size or checksum is wrong was not finished, if no complete record follows it. If one
does, the file is damaged.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Message",
    "SpoolRecord",
    "checked_record",
    "end_of",
    "envelope_id",
    "number_at_start",
    "record_bytes",
    "records_in",
    "whole_record_after",
]

_SHOWN = 1_000  # bytes of a message that is too large, for its dead letter
_HEAD = struct.Struct(">II")  # the size of the body, and its checksum
_BODY = struct.Struct(">QQHHH")
_START = struct.Struct(">IIQ")  # the head, and the number in the body


class Message(NamedTuple):
    """A message as a broker or server sends it."""

    payload: bytes
    topic: str = ""
    id: str = ""
    """The id that the sender assigns; empty if it assigns none."""
    may_repeat: bool = True
    """Whether the message may be a duplicate, as far as the protocol tells."""
    size: int = 0
    """The full size of the payload, if it is too large and was truncated; otherwise 0."""
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class SpoolRecord(NamedTuple):
    """A message on disk, with its number, from 1, and its arrival in milliseconds."""

    number: int
    arrival: int
    message: Message
    fault: str = ""
    """Why the message is a dead letter; empty if it is not."""


def checked_record(number: int, arrival: int, message: Message, largest: int) -> SpoolRecord:
    """Return the record of a message; one that is too large becomes a dead letter.

    >>> checked_record(1, 5, Message(b"payload"), largest=4).fault
    'large: the message has 7 bytes, more than 4; its start is kept'
    """
    size = message.size or len(message.payload)
    if size <= largest:
        return SpoolRecord(number, arrival, message)
    fault = f"large: the message has {size} bytes, more than {largest}; its start is kept"
    start = message._replace(payload=message.payload[:_SHOWN])
    return SpoolRecord(number, arrival, start, fault)


def record_bytes(record: SpoolRecord) -> bytes:
    """Serialize a record.

    >>> record = SpoolRecord(7, 1_000, Message(b"payload", "a/b", "id"))
    >>> read = records_in(record_bytes(record))
    >>> [(end, each.number, each.message.topic) for end, each in read]
    [(42, 7, 'a/b')]
    """
    message = record.message
    texts = [_short(text) for text in (message.id, message.topic, record.fault)]
    sizes = _BODY.pack(record.number, record.arrival, *map(len, texts))
    body = b"".join((sizes, *texts, message.payload))
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def records_in(data: bytes) -> Iterator[tuple[int, SpoolRecord]]:
    """Yield records with their end offsets, up to the first that is incomplete."""
    start = 0
    while (end := end_of(data, start)) is not None:
        body = data[start + _HEAD.size : end]
        if zlib.crc32(body) != _HEAD.unpack_from(data, start)[1]:
            return
        yield end, _read(body)
        start = end


def end_of(data: bytes, start: int) -> int | None:
    """Return the end offset of the record at an offset; `None` if it is incomplete."""
    if start + _HEAD.size > len(data):
        return None
    size: int = _HEAD.unpack_from(data, start)[0]
    end = start + _HEAD.size + size
    return end if size >= _BODY.size and end <= len(data) else None


def number_at_start(data: bytes) -> int | None:
    """Return the number of the record that data begin with; `None` if they are too short.

    >>> number_at_start(record_bytes(SpoolRecord(7, 1_000, Message(b"payload"))))
    7
    """
    if len(data) < _START.size:
        return None
    number: int = _START.unpack_from(data)[2]
    return number


def whole_record_after(data: bytes, start: int, number: int) -> int | None:
    """Return the offset of the first complete record after an offset; `None` if there is none.

    Its number must be larger than `number`, that of the last valid record: this excludes bytes
    that look like a record by chance or in a payload.

    >>> first, second = (record_bytes(SpoolRecord(n, 5, Message(b"payload"))) for n in (1, 2))
    >>> whole_record_after(b"?" + first[1:] + second, 0, 0) == len(first)
    True
    >>> whole_record_after(first + second[:-1], len(first), 1)
    """
    highest = number + len(data)  # a record has more than one byte
    for at in range(start + 1, len(data) - _HEAD.size - _BODY.size + 1):
        size, check, candidate = _START.unpack_from(data, at)
        end = at + _HEAD.size + size
        if size < _BODY.size or end > len(data) or not number < candidate <= highest:
            continue
        if zlib.crc32(memoryview(data)[at + _HEAD.size : end]) == check:
            return at
    return None


def _read(body: bytes) -> SpoolRecord:
    number, arrival, *sizes = _BODY.unpack_from(body)
    texts, at = [], _BODY.size
    for size in sizes:
        texts.append(body[at : at + size].decode(errors="replace"))
        at += size
    name, topic, fault = texts
    return SpoolRecord(number, arrival, Message(body[at:], topic, name), fault)


def _short(text: str) -> bytes:
    return text.encode(errors="replace")[:0xFFFF]


def envelope_id(payload: bytes) -> str:
    """Return the `"id"` of a JSON object, as text; empty if it has none.

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
