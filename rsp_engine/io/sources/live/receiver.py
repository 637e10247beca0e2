"""The receiver: the thread of a live source, which reconnects whenever the connection breaks.

A failure is logged once, and so is the recovery. While the spool or the disk is full, messages are
neither read nor acknowledged, so that they wait at the sender (back-pressure). A link therefore has
at most one group of messages in memory, and what its library has read ahead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol

from rsp_engine.errors import RspError
from rsp_engine.io.sources.live.records import checked_record, record_bytes
from rsp_engine.monitor.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rsp_engine.io.sources.live.deduplicator import Deduplicator
    from rsp_engine.io.sources.live.records import Message, SpoolRecord
    from rsp_engine.io.sources.live.spool import Spool

__all__ = [
    "GROUP",
    "GROUP_BYTES",
    "LARGEST_MESSAGE",
    "POLL_S",
    "Inbox",
    "InboxClosed",
    "Link",
    "MessageQueue",
    "Receiver",
    "SenderUnreachable",
    "TroubleLog",
]

LARGEST_MESSAGE = 4 << 20
"""The default limit of the size of a message, in bytes."""
GROUP = 500
"""The most messages that are synced to disk together."""
GROUP_BYTES = 1 << 20
"""A group is full once it has this many bytes."""
FIRST_BYTES = 1 << 20
"""How many bytes of the first messages are remembered."""

_LOG = logging.getLogger("rsp")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
POLL_S = 0.2
"""How often waiting threads check whether they are closed, in seconds."""


class SenderUnreachable(Exception):  # noqa: N818 - it describes the sender, and the receiver always retries
    """The sender cannot be reached at the moment; the message is the reason."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        """Set the reason, and how many seconds the sender asks to wait."""
        super().__init__(reason)
        self.pause = pause


class InboxClosed(Exception):  # noqa: N818 - not a failure
    """The inbox was closed while a message waited for room."""


class MessageQueue:
    """A bounded queue between the thread that reads messages and the one that writes them.

    It has room for one group; `put` blocks while it is full.
    """

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._bytes = 0
        self._away: SenderUnreachable | None = None
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, message: Message) -> bool:
        """Add a message, once there is room; return False if the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or not self._is_full())
            self._messages.append(message)
            self._bytes += len(message.payload)
            self._changed.notify_all()
            return not self._is_closed

    def end(self, away: SenderUnreachable) -> None:
        """Mark the end of the messages, with the reason."""
        with self._changed:
            self._away = away
            self._changed.notify_all()

    def take(self) -> tuple[list[Message], SenderUnreachable | None]:
        """Return all messages, waiting up to `POLL_S`, and the reason if none will follow."""
        with self._changed:
            self._changed.wait_for(lambda: self._messages or self._away, POLL_S)
            messages, self._messages = list(self._messages), deque()
            self._bytes = 0
            self._changed.notify_all()
            return messages, self._away

    def close(self) -> None:
        """Close the queue, and release a blocked `put`."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _is_full(self) -> bool:
        return len(self._messages) >= GROUP or self._bytes >= GROUP_BYTES


class TroubleLog:
    """Logs each failure of a source once, and its recovery."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.trouble: str | None = None
        """The failure that is not over yet."""

    def report(self, trouble: str) -> None:
        """Log a failure once, without the secrets that the message of a library may contain."""
        trouble = without_secrets(trouble)
        if trouble != self.trouble:
            _LOG.warning("%s: %s", self._name, trouble)
            self.trouble = trouble

    def is_over(self) -> None:
        """Log the recovery, if a failure was logged."""
        if self.trouble is not None:
            _LOG.warning("%s: connected again", self._name)
            self.trouble = None


class Link(Protocol):
    """A connection to a sender, over one protocol."""

    def listen(self, inbox: Inbox) -> None:
        """Connect and deliver messages, until the stream has ended or the inbox is closed.

        Raise `SenderUnreachable` if the connection fails.
        """


class Inbox:
    """Writes messages to the spool, without duplicates."""

    def __init__(
        self,
        name: str,
        spool: Spool,
        deduplicator: Deduplicator,
        largest: int = LARGEST_MESSAGE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.last_id = ""
        """The id of the last message on disk that has one."""
        self.repeated = 0
        """The number of duplicate messages that were dropped."""
        self.heard = time.monotonic()
        """When the last message arrived, on the monotonic clock."""
        self.first: list[SpoolRecord] = []
        """The first messages that arrived in this run, up to `FIRST_BYTES`."""
        self._first_left = FIRST_BYTES
        self._spool = spool
        self._deduplicator = deduplicator
        self.largest = largest
        """The limit of the size of a message, in bytes."""
        self._clock = clock
        self._arrival = spool.past.arrival
        self._trouble = TroubleLog(name)
        self._closing = threading.Event()
        self.last_id = spool.past.id
        for key in spool.past.keys:
            self._deduplicator.add_key(key)
        for record in spool.recent():
            self._arrival = max(self._arrival, record.arrival)
            self._deduplicator.add(record.message)
            self.last_id = record.message.id or self.last_id

    @property
    def is_closed(self) -> bool:
        """Whether the source is closed."""
        return self._closing.is_set()

    @property
    def trouble(self) -> str | None:
        """The failure of the sender or the disk that is not over yet."""
        return self._trouble.trouble

    @property
    def is_in_first(self) -> bool:
        """Whether `first` has all messages that arrived in this run."""
        return self._first_left > 0

    def close(self) -> None:
        """Refuse further messages, and wake waiting threads."""
        self._closing.set()
        self._spool.wake()

    def pause(self, seconds: float) -> None:
        """Wait, until the time is up or the inbox is closed."""
        self._closing.wait(seconds)

    def is_well(self) -> None:
        """Log the recovery, if a failure was logged."""
        self._trouble.is_over()

    def report(self, trouble: str) -> None:
        """Log a failure once."""
        self._trouble.report(trouble)

    def put(
        self, messages: Sequence[Message], meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """Write messages to disk, without duplicates; block while the spool is full.

        `meanwhile` is called repeatedly while it blocks.
        """
        if not messages:
            return
        fresh = []
        for message in messages:
            if message in self._deduplicator:
                self.repeated += 1
            else:
                self._deduplicator.add(message)
                fresh.append(message)
        for records, data in self._pieces(self._records(fresh)):
            while not self._try_to_write(records, data):
                if self.is_closed:
                    raise InboxClosed
                meanwhile()
            if self._first_left > 0:
                self.first += records
                self._first_left -= len(data)
            for record in records:
                self.last_id = record.message.id or self.last_id
        self.heard = time.monotonic()

    def _pieces(self, records: Sequence[SpoolRecord]) -> Iterator[tuple[list[SpoolRecord], bytes]]:
        """Yield groups of records, with their bytes, that fit into half of the room."""
        most = min(GROUP_BYTES, self._spool.room // 2)
        piece: list[SpoolRecord] = []
        data = bytearray()
        for record in records:
            text = record_bytes(record)
            if piece and len(data) + len(text) > most:
                yield piece, bytes(data)
                piece, data = [], bytearray()
            piece.append(record)
            data += text
        if piece:
            yield piece, bytes(data)

    def _records(self, messages: Sequence[Message]) -> list[SpoolRecord]:
        self._arrival = max(self._arrival, int(self._clock() * 1000))
        first = self._spool.next_number
        return [
            checked_record(number, self._arrival, each, self.largest)
            for number, each in enumerate(messages, first)
        ]

    def _try_to_write(self, records: Sequence[SpoolRecord], data: bytes) -> bool:
        """Write records; return False if there is no room, or the write failed."""
        if not self._spool.wait_for_room(len(data), POLL_S):
            return False
        try:
            self._spool.append(records, data)
        except OSError as error:
            why = error.strerror or str(error)
            self.report(f"its messages cannot be written to {self._spool.folder}: {why}; they wait")
            self.pause(1)
            return False
        self.is_well()
        return True


class Receiver(threading.Thread):
    """A thread that listens to a link until the inbox is closed or the stream has ended."""

    def __init__(self, link: Link, inbox: Inbox) -> None:
        super().__init__(name=f"receiver of {inbox.name}", daemon=True)
        self._link = link
        self._inbox = inbox
        self.failure: RspError | None = None
        """The error of the engine that ended the thread, if any."""

    def run(self) -> None:
        """Listen, and retry after a failure, with exponential backoff."""
        pause = _FIRST_PAUSE
        while not self._inbox.is_closed:
            before = self._inbox.heard
            try:
                self._link.listen(self._inbox)
            except SenderUnreachable as away:
                self._inbox.report(f"{away}; trying again")
                pause = _FIRST_PAUSE if self._inbox.heard > before else pause
                self._inbox.pause(pause if away.pause is None else away.pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except InboxClosed:
                return
            except RspError as error:
                self.failure = error
                return
            except Exception as error:
                # What the client of a protocol raises beside its own errors: a new connection may
                # help, as after any other failure of the sender.
                self._inbox.report(f"receiving failed: {error!r}; trying again")
                self._inbox.pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                return
