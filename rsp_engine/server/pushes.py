"""Pushes: the bodies of requests, cut into messages, and written to the log of a stream.

The messages of all requests that wait are written together, with one sync.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.io.sources.files.json_element import UnfitError, value_in
from rsp_engine.io.sources.files.rdf import GRAPH_FORMATS, MalformedRdfError, quads_of
from rsp_engine.io.sources.live.log.extent import message_extent
from rsp_engine.io.sources.live.records import Message, SpoolRecord, checked_record, envelope_id
from rsp_engine.io.sources.times import from_text
from rsp_engine.model.streams import DeadLetter
from rsp_engine.server.refusals import (
    MalformedError,
    UnfitElementsError,
    UnsupportedTypeError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.io.sources.live.deduplicator import Deduplicator
    from rsp_engine.io.sources.live.log.declaration import PushPayloads
    from rsp_engine.io.sources.live.log.extent import LogExtent
    from rsp_engine.io.sources.live.log.stream_log import StreamLog

__all__ = ["MEDIA_TYPES", "Push", "PushInbox", "Taken"]

_JSON, _LINES, _CSV = "application/json", "application/x-ndjson", "text/csv"
_RDF = {
    "text/turtle": "turtle",
    "application/n-triples": "ntriples",
    "application/n-quads": "nquads",
    "application/trig": "trig",
    "application/ld+json": "jsonld",
    "application/rdf+xml": "rdfxml",
    "text/n3": "n3",
}
MEDIA_TYPES = (_JSON, _LINES, "application/jsonl", _CSV, *_RDF)
"""The types of bodies."""
_PLAIN = ("json", "csv")
_QUADS = ("nquads", "trig")
_MOST_REASONS = 20


class Push(NamedTuple):
    """A request to push elements."""

    body: bytes
    media_type: str = _JSON
    timestamp: str | None = None
    """The time of RDF that does not say it: milliseconds, or ISO 8601."""
    key: str | None = None
    """The key of a request that may be repeated."""
    keeps_malformed: bool = False
    """Whether what cannot be read becomes dead letters; otherwise it refuses the request."""


class Taken(NamedTuple):
    """What was taken of a push. Numbers are those of messages."""

    accepted: int
    repeated: int
    set_aside: int
    first: int | None
    last: int | None


@dataclass(slots=True)
class _Ticket:
    """A request that waits to be written."""

    messages: Sequence[tuple[Message, LogExtent]]
    taken: Taken | None = None
    failure: OSError | None = None


@dataclass(slots=True)
class PushInbox:
    """Takes pushed messages into a log, without duplicates. Several threads may use it."""

    log: StreamLog
    payloads: PushPayloads
    deduplicator: Deduplicator
    largest: int
    repeated: int = 0
    _arrival: int = 0
    _waiting: list[_Ticket] = field(default_factory=list)
    _queue: threading.Lock = field(default_factory=threading.Lock)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._arrival = self.log.past.arrival
        for key in self.log.past.keys:
            self.deduplicator.add_key(key)
        for record in self.log.recent():
            self._arrival = max(self._arrival, record.arrival)
            self.deduplicator.add(record.message)

    def put(self, push: Push) -> Taken:
        """Take a request; return when it is on disk. Raise `OSError` if it cannot be written."""
        now = int(time.time() * 1000)
        messages = list(_messages(push, self.payloads))
        items = [list(self.payloads.elements(self._record(0, now, each))) for each in messages]
        if not push.keeps_malformed:
            _refuse_malformed(items)
        record = SpoolRecord(0, now, Message(b""))
        extents = [message_extent(record, held) for held in items]
        ticket = _Ticket(list(zip(messages, extents, strict=True)))
        with self._queue:
            self._waiting.append(ticket)
        with self._writing:
            if ticket.taken is None and ticket.failure is None:
                self._write()
        if ticket.failure is not None:
            raise ticket.failure
        assert ticket.taken is not None, "it was written"  # noqa: S101
        return ticket.taken

    def _record(self, number: int, arrival: int, message: Message) -> SpoolRecord:
        return checked_record(number, arrival, message, self.largest)

    def _write(self) -> None:
        """Write the messages of all requests that wait."""
        with self._queue:
            tickets, self._waiting = self._waiting, []
        with self.log.guard:
            self._arrival = max(self._arrival, int(time.time() * 1000))
            first = self.log.next_number
            records: list[SpoolRecord] = []
            extents: list[LogExtent] = []
            new: set[bytes] = set()
            taken = []
            for ticket in tickets:
                before = len(records)
                for message, extent in ticket.messages:
                    key = self.deduplicator.key(message)
                    if key is not None and (key in new or message in self.deduplicator):
                        continue
                    new.update(() if key is None else (key,))
                    records.append(self._record(first + len(records), self._arrival, message))
                    extents.append(extent)
                taken.append(_taken(ticket, first, before, extents))
            try:
                self.log.take(records, extents)
            except OSError as error:
                for ticket in tickets:
                    ticket.failure = error
                return
            for record in records:
                self.deduplicator.add(record.message)
        for ticket, result in zip(tickets, taken, strict=True):
            self.repeated += result.repeated
            ticket.taken = result


def _taken(ticket: _Ticket, first: int, before: int, extents: Sequence[LogExtent]) -> Taken:
    own = extents[before:]
    return Taken(
        len(own),
        len(ticket.messages) - len(own),
        sum(extent.unreadable for extent in own),
        first + before if own else None,
        first + len(extents) - 1 if own else None,
    )


def _refuse_malformed(items: Sequence[Sequence[object]]) -> None:
    wrong = [
        {"index": index, "reason": item.reason}
        for index, held in enumerate(items)
        for item in held
        if isinstance(item, DeadLetter)
    ]
    if wrong:
        some = f"element {wrong[0]['index']} cannot be taken: {wrong[0]['reason']}"
        hint = "mend it, or add ?malformed=keep: it then becomes a dead letter"
        raise UnfitElementsError(some, hint, wrong[:_MOST_REASONS])


def _messages(push: Push, payloads: PushPayloads) -> Iterator[Message]:
    """Yield the messages of a request."""
    usual = payloads.usual.format
    media_type = push.media_type.partition(";")[0].strip().lower()
    if media_type in _RDF:
        yield _with_key(_rdf(push, _RDF[media_type]), push.key, 0)
        return
    if push.timestamp is not None:
        raise MalformedError("?timestamp is the time of RDF", "JSON has the time of each element")
    if media_type == _CSV:
        if usual != "csv":
            raise UnsupportedTypeError("this stream takes no rows", "declare it with format=csv")
        yield _with_key(Message(push.body), push.key, 0)
        return
    if media_type not in (_JSON, _LINES, "application/jsonl"):
        raise UnsupportedTypeError(
            f"bodies of the type {media_type or 'unknown'} are not read",
            f"the types are {', '.join(MEDIA_TYPES)}",
        )
    if usual == "csv":
        raise UnsupportedTypeError("this stream takes rows", "send text/csv, or RDF")
    topic = "" if usual in ("jsonl", "json") else "jsonl"
    bodies = _items(push.body) if media_type == _JSON else _lines(push.body)
    for index, body in enumerate(bodies):
        own = envelope_id(body) if usual != "json" else ""
        yield _with_key(Message(body, topic, f"id:{own}" if own else ""), push.key, index)


def _with_key(message: Message, key: str | None, index: int) -> Message:
    if message.id or key is None:
        return message
    return message._replace(id=f"key:{key}/{index}")


def _items(body: bytes) -> Sequence[bytes]:
    try:
        value: Any = value_in(body)
    except UnfitError as error:
        message = str(error).replace("the line", "the body", 1)
        raise MalformedError(message, "lines of JSON have the type application/x-ndjson") from None
    if not isinstance(value, list):
        return [body]
    return [json.dumps(item, ensure_ascii=False).encode(errors="surrogatepass") for item in value]


def _lines(body: bytes) -> Sequence[bytes]:
    return [line for line in body.split(b"\n") if line.strip()]


def _rdf(push: Push, name: str) -> Message:
    """Return the message of an RDF document; one with a given time is put into an envelope."""
    if push.timestamp is None:
        return Message(push.body, name)
    try:
        time = from_text(push.timestamp)
    except ValueError as error:
        raise MalformedError(f"?timestamp={push.timestamp}: the time {error}") from None
    try:
        text = push.body.decode()
        if name in _QUADS:
            triples = dict.fromkeys(q.triple for q in quads_of(push.body, GRAPH_FORMATS[name]))
            text, name = "".join(f"{triple} .\n" for triple in triples), "ntriples"
    except (UnicodeDecodeError, MalformedRdfError) as error:
        raise UnfitElementsError(
            f"the graph cannot be read: {error}", "mend it", [{"index": 0, "reason": str(error)}]
        ) from None
    envelope = {"timestamp": time, "graph": text, "format": name}
    return Message(json.dumps(envelope, ensure_ascii=False).encode(), "jsonl")
