"""The thread of a live source: it listens, and listens again whenever that breaks.

What is wrong is told once, in the log, and so is that it is well again. Messages wait at the sender
while the spool is full or the disk is: nobody acknowledges them, and nobody reads on. So a link
holds a group of messages in memory at most, and what its library has read ahead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol

from rsp_engine.io.sources.live.records import SpoolRecord, record_bytes
from rsp_engine.monitor.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rsp_engine.io.sources.live.deduplicator import Deduplicator
    from rsp_engine.io.sources.live.records import Message
    from rsp_engine.io.sources.live.spool import Spool

__all__ = [
    "GROUP",
    "GROUP_BYTES",
    "LARGEST_MESSAGE",
    "POLL_S",
    "Away",
    "Closed",
    "Inbox",
    "Link",
    "MessageQueue",
    "Receiver",
]

LARGEST_MESSAGE = 4 << 20
"""How large a message may be, in bytes, unless the user says otherwise."""
GROUP = 500
"""So many messages at most are brought to disk together."""
GROUP_BYTES = 1 << 20
"""A group ends with the message that brings it to so many bytes."""

_LOG = logging.getLogger("rsp")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
POLL_S = 0.2
_SHOWN = 1_000


class Away(Exception):  # noqa: N818 - it says how the other side is
    """The other side cannot be heard, for a reason, and for now."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        """Take the reason, and how many seconds the other side asks to wait."""
        super().__init__(reason)
        self.pause = pause


class Closed(Exception):  # noqa: N818 - nothing went wrong
    """Nobody reads the messages any more."""


class MessageQueue:
    """Messages between the thread that reads them and the one that writes them: a group of them.

    Whoever puts waits while there is a whole group, and does not read on meanwhile.
    """

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._bytes = 0
        self._away: Away | None = None
        self._is_over = False
        self._changed = threading.Condition()

    def put(self, message: Message) -> bool:
        """Hand over a message, once there is room; tell whether anybody takes it."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or not self._is_full())
            self._messages.append(message)
            self._bytes += len(message.payload)
            self._changed.notify_all()
            return not self._is_over

    def end(self, away: Away) -> None:
        """Say why nothing follows."""
        with self._changed:
            self._away = away
            self._changed.notify_all()

    def take(self) -> tuple[list[Message], Away | None]:
        """Return what has arrived, or wait a while; and why nothing follows it."""
        with self._changed:
            self._changed.wait_for(lambda: self._messages or self._away, POLL_S)
            found, self._messages = list(self._messages), deque()
            self._bytes = 0
            self._changed.notify_all()
            return found, self._away

    def close(self) -> None:
        """Take nothing any more; whoever waits goes on."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _is_full(self) -> bool:
        return len(self._messages) >= GROUP or self._bytes >= GROUP_BYTES


class Link(Protocol):
    """One protocol, and one place where messages come from."""

    def listen(self, inbox: Inbox) -> None:
        """Connect, and hand over messages; return when the stream has ended, or is closed.

        Where the connection breaks, or there is none, `Away` is raised.
        """


class Inbox:
    """Takes messages to the spool."""

    def __init__(
        self,
        name: str,
        spool: Spool,
        repeats: Deduplicator,
        largest: int = LARGEST_MESSAGE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.last_id = ""
        """The id of the last message that is on disk and has one."""
        self.repeated = 0
        """How many messages came again, and were left out."""
        self.heard = time.monotonic()
        self._spool = spool
        self._repeats = repeats
        self.largest = largest
        """How many bytes of a message are kept."""
        self._clock = clock
        self._arrival = spool.past.arrival
        self._trouble: str | None = None
        self._closing = threading.Event()
        self.last_id = spool.past.id
        for key in spool.past.keys:
            self._repeats.add_key(key)
        for record in spool:
            self._arrival = max(self._arrival, record.arrival)
            self._repeats.add(record.message)
            self.last_id = record.message.id or self.last_id

    @property
    def is_closed(self) -> bool:
        """Whether nobody reads messages any more."""
        return self._closing.is_set()

    def close(self) -> None:
        """Take no more messages."""
        self._closing.set()
        self._spool.wake()

    def pause(self, seconds: float) -> None:
        """Wait, or until it is closed."""
        self._closing.wait(seconds)

    def is_well(self) -> None:
        """Learn that the other side is there."""
        if self._trouble is not None:
            _LOG.warning("%s: it is back", self.name)
            self._trouble = None

    def tell(self, trouble: str) -> None:
        """Say what is wrong, once, and without the secrets that a library may tell."""
        trouble = without_secrets(trouble)
        if trouble != self._trouble:
            _LOG.warning("%s: %s", self.name, trouble)
            self._trouble = trouble

    def put(
        self, messages: Sequence[Message], meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """Bring messages to disk, but for those that came before; wait where there is no room.

        `meanwhile` is called again and again while it waits.
        """
        if not messages:
            return
        fresh = []
        for message in messages:
            if message in self._repeats:
                self.repeated += 1
            else:
                self._repeats.add(message)
                fresh.append(message)
        for records, data in self._pieces(self._records(fresh)):
            while not self._wrote(records, data):
                if self.is_closed:
                    raise Closed
                meanwhile()
            for record in records:
                self.last_id = record.message.id or self.last_id
        self.heard = time.monotonic()

    def _pieces(self, records: Sequence[SpoolRecord]) -> Iterator[tuple[list[SpoolRecord], bytes]]:
        """Yield records, with their bytes, so many together as fit into a part of the room."""
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
        return [self._record(number, each) for number, each in enumerate(messages, first)]

    def _record(self, number: int, message: Message) -> SpoolRecord:
        size = message.size or len(message.payload)
        if size <= self.largest:
            return SpoolRecord(number, self._arrival, message)
        fault = f"large: the message has {size} bytes, more than {self.largest}; its start is kept"
        start = message._replace(payload=message.payload[:_SHOWN])
        return SpoolRecord(number, self._arrival, start, fault)

    def _wrote(self, records: Sequence[SpoolRecord], data: bytes) -> bool:
        """Write records; tell whether that was done."""
        if not self._spool.wait_for_room(len(data), POLL_S):
            return False
        try:
            self._spool.append(records, data)
        except OSError as error:
            why = error.strerror or str(error)
            self.tell(f"its messages cannot be written to {self._spool.folder}: {why}; they wait")
            self.pause(1)
            return False
        self.is_well()
        return True


class Receiver(threading.Thread):
    """Listens to a source until it is closed, or the source has ended."""

    def __init__(self, link: Link, inbox: Inbox) -> None:
        super().__init__(name=f"receiver of {inbox.name}", daemon=True)
        self._link = link
        self._inbox = inbox
        self.failure: Exception | None = None
        """What ended it, if it was something that nobody had thought of."""

    def run(self) -> None:
        """Listen; where that breaks, wait a little longer each time, and listen again."""
        pause = _FIRST_PAUSE
        while not self._inbox.is_closed:
            before = self._inbox.heard
            try:
                self._link.listen(self._inbox)
            except Away as away:
                self._inbox.tell(f"{away}; trying again")
                pause = _FIRST_PAUSE if self._inbox.heard > before else pause
                self._inbox.pause(pause if away.pause is None else away.pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Closed:
                return
            except Exception as error:
                self.failure = error
                return
            else:
                return
