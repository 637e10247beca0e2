"""Declared streams: their logs, their receivers, and their figures.

A stream that is pushed, or received from a broker, has a log that this process writes. A topic of
Kafka and a file are logs of their own, and the answers of a CONSTRUCT query are one, too.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.log.extent import message_extent
from rsp_engine.io.sources.live.log.log_reader import LogReader
from rsp_engine.io.sources.live.log.stream_log import Keep, StreamLog
from rsp_engine.io.sources.live.receiver import Inbox, Receiver
from rsp_engine.io.sources.live.schemes import open_live
from rsp_engine.io.sources.live.spooled import Settings, SpooledSource
from rsp_engine.model.streams import DeadLetter
from rsp_engine.monitor.redaction import without_secrets
from rsp_engine.server.pushes import PushInbox
from rsp_engine.server.refusals import ConflictError

if TYPE_CHECKING:
    from pathlib import Path

    from rsp_engine.io.sources.live.log.declaration import StreamDeclaration
    from rsp_engine.io.sources.live.log.extent import LogExtent
    from rsp_engine.io.sources.live.records import SpoolRecord
    from rsp_engine.io.sources.live.spooled import MessageFormat
    from rsp_engine.server.pushes import Push, Taken

__all__ = ["KEEP_ANSWERS_MS", "MOST_SEARCHED", "MOST_SHOWN", "DeclaredStream", "source_text"]

_LOG = logging.getLogger("rsp")
MOST_SHOWN = 64 << 10
"""How much of a payload is shown, in bytes."""
MOST_SEARCHED = 10_000
"""Among how many of the last messages dead letters are looked for."""
KEEP_ANSWERS_MS = 3650 * 24 * 3600 * 1000
"""How long answers are kept; what limits them is their size."""


@dataclass(frozen=True, slots=True)
class _Received:
    """The receiver of a stream, and where it puts messages."""

    inbox: Inbox
    receiver: Receiver


class DeclaredStream:
    """A stream, from its declaration until it is deleted."""

    def __init__(self, declaration: StreamDeclaration, folder: Path) -> None:
        """Check a declaration; raise `SourceError` if it is wrong. `open` begins to take in."""
        self.declaration = declaration
        self.folder = folder
        self.name, self.iri = declaration.name, declaration.iri
        self.reader = LogReader(folder, declaration.name)
        self._payloads: MessageFormat | None = None
        if declaration.kind in ("kafka", "file"):
            open_source(source_text(declaration, folder))
        else:
            self._payloads = declaration.payloads(folder)
        self._log: StreamLog | None = None
        self._pushed: PushInbox | None = None
        self._received: _Received | None = None

    @property
    def has_log(self) -> bool:
        """Whether its elements are in a log that this server or a worker writes."""
        return self._payloads is not None

    def open(self) -> None:
        """Open the log, and begin to receive."""
        match self.declaration.kind:
            case "push":
                self._open_pushed()
            case "live":
                self._open_received()
            case "kafka" | "file" | "query":
                return

    def _open_pushed(self) -> None:
        spec = self.declaration.spec(self.folder)
        rule: Any = spec.choice("dedup", ("id", "content", "none"))
        settings = Settings(rule, largest=spec.bytes("largest", Settings().largest))
        deduplicator = Deduplicator(settings.dedup)
        self._log = log = self._opened(deduplicator)
        payloads: Any = self._payloads
        self._pushed = PushInbox(log, payloads, deduplicator, settings.largest)

    def _open_received(self) -> None:
        source = open_live(self.declaration.spec(self.folder))
        assert isinstance(source, SpooledSource), "Kafka is no stream with a log"  # noqa: S101
        deduplicator = Deduplicator(source.settings.dedup)
        self._log = log = self._opened(deduplicator)
        inbox = Inbox(self.name, log, deduplicator, source.settings.largest)
        receiver = Receiver(source.link(self.folder.absolute(), True), inbox)
        self._received = _Received(inbox, receiver)
        receiver.start()

    def _opened(self, deduplicator: Deduplicator) -> StreamLog:
        keep = Keep(self.declaration.keep_bytes, self.declaration.keep_ms)
        return StreamLog(self.folder, self._extent, keep, deduplicator=deduplicator)

    def _extent(self, record: SpoolRecord) -> LogExtent:
        payloads = self._payloads
        return message_extent(record, () if payloads is None else payloads.elements(record))

    def push(self, push: Push) -> Taken:
        """Take pushed elements; return when they are on disk."""
        if self._pushed is None:
            source = without_secrets(self.declaration.source)
            message = f"the elements of {self.name} come from {source}, and cannot be pushed"
            raise ConflictError(message, 'declare a stream with the source "push"')
        return self._pushed.put(push)

    def greatest(self) -> int | None:
        """Return the greatest event time so far."""
        if self._log is not None:
            return self._log.figures().all.greatest
        if not self.has_log:
            return None
        last = self.reader.last(1)
        return int(last[0].message.topic) if last else self.reader.index().removed.greatest

    def tidy(self) -> None:
        """Remove what the retention does not keep."""
        if self._log is not None:
            try:
                self._log.tidy(int(time.time() * 1000))
            except OSError as error:
                _LOG.warning("%s cannot be tidied up: %s", self.name, error.strerror or error)

    def as_data(self) -> dict[str, Any]:
        """Return the declaration and the figures, as plain data."""
        declared = self.declaration
        data: dict[str, Any] = {
            "name": self.name,
            "iri": self.iri,
            "kind": declared.kind,
            "source": without_secrets(declared.source),
            "options": dict(declared.options),
            "template": declared.template,
            "keep": {"bytes": declared.keep_bytes, "time": declared.keep_ms},
            "created": declared.created,
        }
        return {**data, **self._figures(), **self._connection()}

    def _figures(self) -> dict[str, Any]:
        if self._log is None:
            names = "elements triples messages repeated unreadable watermark lag log".split()
            return {**dict.fromkeys(names), "rate": 0.0}
        figures = self._log.figures()
        greatest = figures.all.greatest
        repeated = self._pushed.repeated if self._pushed is not None else 0
        if self._received is not None:
            repeated = self._received.inbox.repeated
        return {
            "elements": figures.all.elements,
            "triples": figures.all.triples,
            "messages": figures.all.messages,
            "repeated": repeated,
            "unreadable": figures.all.unreadable,
            "rate": figures.rate,
            "watermark": greatest,
            "lag": None if greatest is None else int(time.time() * 1000) - greatest,
            "log": {
                "first": figures.first,
                "last": figures.last,
                "bytes": figures.bytes,
                "files": figures.files,
                "least": figures.kept.least,
                "greatest": figures.kept.greatest,
                "kept_from": figures.kept_from,
            },
        }

    def _connection(self) -> dict[str, Any]:
        if self._received is None:
            return {"connected": None, "trouble": None}
        failure = self._received.receiver.failure
        trouble = self._received.inbox.trouble if failure is None else str(failure)
        is_up = trouble is None and self._received.receiver.is_alive()
        return {"connected": is_up, "trouble": trouble}

    def last(self, count: int) -> list[dict[str, Any]]:
        """Return the last messages, as plain data."""
        payloads = self._payloads
        if payloads is None:
            message = f"{self.name} has a log of its own"
            raise ConflictError(message, "look at its source")
        return [_shown(record, payloads) for record in self.reader.last(count)]

    def letters(self, count: int) -> list[dict[str, Any]]:
        """Return the last dead letters among the last messages, as plain data."""
        payloads = self._payloads
        if payloads is None or self._log is None or not self._log.figures().kept.unreadable:
            return []
        found = []
        for record in self.reader.last(MOST_SEARCHED):
            letters = [i for i in payloads.elements(record) if isinstance(i, DeadLetter)]
            found += [_letter(record, letter) for letter in letters]
        return found[-count:]

    def close(self) -> None:
        """Stop receiving, and close the log."""
        if self._received is not None:
            self._received.inbox.close()
            self._received.receiver.join(timeout=15)
            self._received = None
        if self._log is not None:
            self._log.close()
            self._log = self._pushed = None
        self.reader.close()


def source_text(declaration: StreamDeclaration, folder: Path) -> str:
    """Return the source of a stream that has a log of its own, as `rsp run` takes it."""
    from urllib.parse import quote

    spec = declaration.spec(folder)
    pairs = "&".join(f"{quote(key)}={quote(value)}" for key, value in spec.options.items())
    return f"{spec.place}?{pairs}" if pairs or "?" in spec.place else spec.place


def _shown(record: SpoolRecord, payloads: MessageFormat) -> dict[str, Any]:
    message = record.message
    held = list(payloads.elements(record))
    elements = [item for item in held if not isinstance(item, DeadLetter)]
    reasons = [item.reason for item in held if isinstance(item, DeadLetter)]
    return {
        "number": record.number,
        "arrival": record.arrival,
        "id": message.id,
        "topic": message.topic,
        "bytes": len(message.payload),
        "payload": message.payload[:MOST_SHOWN].decode(errors="replace"),
        "timestamps": [element.timestamp for element in elements],
        "triples": sum(len(element.triples) for element in elements),
        "reason": reasons[0] if reasons else None,
    }


def _letter(record: SpoolRecord, letter: DeadLetter) -> dict[str, Any]:
    return {
        "number": record.number,
        "arrival": record.arrival,
        "kind": letter.kind,
        "reason": letter.reason,
        "bytes": len(letter.raw),
        "payload": letter.raw[:MOST_SHOWN].decode(errors="replace"),
        "query": None,
    }
