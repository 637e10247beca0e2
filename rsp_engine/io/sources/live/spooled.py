"""Live sources with a spool: to the drivers, a file that grows and is read split by split."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rsp_engine.errors import DriverError, SourceError
from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.receiver import LARGEST_MESSAGE, Inbox, Receiver
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.io.sources.live.spool import Spool, read_split
from rsp_engine.io.sources.predicate_sample import PredicateSample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from rsp_engine.io.sources.columns.quad_lines import ReadQuads, Rename
    from rsp_engine.io.sources.live.deduplicator import DuplicateRule
    from rsp_engine.io.sources.live.payloads import Payloads
    from rsp_engine.io.sources.live.receiver import Link
    from rsp_engine.io.sources.live.records import SpoolRecord
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.model.streams import DeadLetter, Element

__all__ = ["ROOM", "MessageFormat", "Settings", "SpoolPart", "SpoolReader", "SpooledSource"]

ROOM = 256 << 20
"""The default capacity of a spool, in bytes."""


class Settings(NamedTuple):
    """The options of receiving messages."""

    dedup: DuplicateRule = "id"
    idle: int = 10_000
    """Idle timeout in milliseconds, after which the source no longer holds back the watermark."""
    largest: int = LARGEST_MESSAGE
    room: int = ROOM
    """The capacity of the spool, in bytes."""


class MessageFormat(Protocol):
    """What reads the elements of messages."""

    @property
    def source(self) -> str:
        """The name of the stream."""

    def elements(self, record: SpoolRecord) -> Iterable[Element | DeadLetter]:
        """Yield the elements and dead letters of a message."""

    def read_columns(self, records: Sequence[SpoolRecord], rename: Rename) -> ReadQuads | None:
        """Read messages as columns; None if they must be read as elements."""


@dataclass(frozen=True, slots=True)
class SpoolPart:
    """The messages of a split, as a source."""

    folder: Path
    payloads: MessageFormat
    split: Split

    blank_node_scope: BlankNodeScope = "element"
    leans_on_others: bool = False

    @property
    def name(self) -> str:
        """Return the address of the source."""
        return self.payloads.source

    def read_columns(self, rename: Rename) -> ReadQuads | None:
        """Read the messages as columns; None if they must be read as elements."""
        return self.payloads.read_columns([*read_split(self.folder, self.split)], rename)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the elements of the messages."""
        for record in read_split(self.folder, self.split):
            yield from self.payloads.elements(record)


@dataclass(frozen=True, slots=True)
class SpoolReader:
    """What an executor needs to read splits of a spool."""

    folder: Path
    payloads: MessageFormat

    def part(self, split: Split) -> SpoolPart:
        """Return the messages of a split."""
        return SpoolPart(self.folder, self.payloads, split)


class _Receiving(NamedTuple):
    """The parts of a source that is receiving messages."""

    spool: Spool
    inbox: Inbox
    receiver: Receiver


class SpooledSource(LiveSource):
    """A source of messages that are written to disk; it is its own only partition."""

    can_be_cut = True
    start: int | None = None

    def __init__(
        self,
        payloads: Payloads,
        link: Callable[[Path, bool], Link],
        settings: Settings = Settings(),  # noqa: B008 - it is immutable
    ) -> None:
        """Set the link factory, which gets the spool folder and whether that outlives the run."""
        self.name = payloads.source
        self.payloads = payloads
        self.link = link
        self.settings = settings
        self._receiving: _Receiving | None = None
        self._reader: SpoolReader | None = None
        self._inbox: Inbox | None = None

    def begin(self, folder: Path, *, is_kept: bool) -> None:
        """Start to receive messages into a folder; continue a spool that is there."""
        settings, folder = self.settings, folder.absolute()
        try:
            deduplicator = Deduplicator(settings.dedup)
            spool = Spool(folder, room=settings.room, deduplicator=deduplicator)
            link = self.link(folder, is_kept)
        except OSError as error:
            reason = error.strerror or str(error)
            hint = "name a checkpoint that can be written to, with room on its disk"
            raise DriverError(f"{self.name}: {folder} cannot be written: {reason}", hint) from None
        inbox = Inbox(self.name, spool, deduplicator, settings.largest)
        self._reader = SpoolReader(folder, self.payloads)
        self._inbox = inbox
        self._receiving = _Receiving(spool, inbox, Receiver(link, inbox))
        self._receiving.receiver.start()

    def end(self) -> None:
        """Stop receiving; the messages in the spool can still be read."""
        if self._receiving is not None:
            self._receiving.inbox.close()

    def close(self) -> None:
        """Stop receiving, and close the spool."""
        if self._receiving is not None:
            self.end()
            self._receiving.receiver.join(timeout=15)
            self._receiving.spool.close()
            self._receiving = None

    @property
    def has_ended(self) -> bool:
        """Whether the receiver has stopped; raise the failure if it failed."""
        receiver = self._running.receiver
        if receiver.failure is not None:
            raise receiver.failure
        return not receiver.is_alive()

    @property
    def is_silent(self) -> bool:
        """Whether the idle timeout has passed without a message."""
        return time.monotonic() - self._running.inbox.heard > self.settings.idle / 1000

    @property
    def is_full(self) -> bool:
        """Whether the receiver is blocked until messages are released."""
        return self._running.spool.is_full

    @property
    def repeated(self) -> int:
        """The number of duplicate messages that were dropped."""
        return self._running.inbox.repeated

    def partitions(self) -> Sequence[SpooledSource]:
        """Return the source itself."""
        return (self,)

    def is_at_hand(self, split: Split) -> bool:
        """Return True: what was received is on disk."""
        return split.end is not None

    def report(self, trouble: str) -> None:
        """Log a failure once."""
        self._running.inbox.report(trouble)

    def bytes_in(self, split: Split) -> int:
        """Return how many bytes a split has."""
        return 0 if split.end is None else split.end - split.start

    def wait(self, since: Split | None, seconds: float) -> None:
        """Wait until there are messages after a split, or the time is up."""
        after = 0 if since is None or since.end is None else since.end
        self._running.spool.wait_for_more(after, seconds)

    def go_on(self, since: Split) -> None:
        """Check that the spool still covers the end of a split; raise `SourceError` if not.

        New messages would be written before that offset, and never be read.
        """
        spool = self._running.spool
        if since.end is None or spool.start <= since.end <= spool.end:
            return
        side = f"ends at {spool.end}" if spool.end < since.end else f"starts at {spool.start}"
        raise SourceError(
            f"{self.name}: its spool {side}, and was read up to {since.end}",
            "restore the folder of the checkpoint, or start with an empty one",
        )

    def release(self, until: int) -> None:
        """Release the messages before an offset: the run no longer needs them."""
        self._running.spool.release(until)

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of the messages received so far; a later call may yield more."""
        return self._running.spool.cut(size, since)

    def part(self, split: Split) -> SpoolPart:
        """Return the messages of a split."""
        if self._reader is None:
            raise DriverError(f"{self.name}: its receiver has not started")
        return self._reader.part(split)

    def predicates(self) -> PredicateSample:
        """Return the predicates of the first messages that arrived in this run."""
        if self._inbox is None:
            return PredicateSample()
        sample = PredicateSample(is_cut=not self._inbox.is_in_first)
        for record in self._inbox.first:
            deque(sample.take(self.payloads.elements(record)), maxlen=0)
        return sample

    @property
    def _running(self) -> _Receiving:
        if self._receiving is None:
            raise DriverError(f"{self.name}: its receiver has not started")
        return self._receiving

    def __reduce__(self) -> tuple[type[SpoolReader], tuple[Path, MessageFormat]]:
        """Pickle as a `SpoolReader`: executors only read the spool."""
        if self._reader is None:
            raise DriverError(f"{self.name}: its receiver has not started")
        return SpoolReader, (self._reader.folder, self._reader.payloads)
