"""A live source as the drivers see it: a file that grows, and is read place by place."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.errors import DriverError, SourceError
from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.receiver import LARGEST_MESSAGE, Inbox, Receiver
from rsp_engine.io.sources.live.spool import Spool, read_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rsp_engine.io.sources.live.deduplicator import By
    from rsp_engine.io.sources.live.payloads import Payloads
    from rsp_engine.io.sources.live.receiver import Link
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.model.streams import DeadLetter, Element

__all__ = ["LiveSource", "Settings", "SpoolPart", "SpoolReader"]

ROOM = 256 << 20
_POLL_S = 0.2
_PLACE_BYTES = 1 << 20


class Settings(NamedTuple):
    """How messages are received."""

    dedup: By = "id"
    idle: int = 10_000
    """After so many milliseconds without a message, others do not wait for the source."""
    largest: int = LARGEST_MESSAGE
    room: int = ROOM
    """So many bytes of messages can wait on disk."""


@dataclass(frozen=True, slots=True)
class SpoolPart:
    """The messages of a place."""

    folder: Path
    payloads: Payloads
    place: Split

    blank_node_scope: BlankNodeScope = "element"
    leans_on_others: bool = False

    @property
    def name(self) -> str:
        """Return the address of the source."""
        return self.payloads.source

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the messages."""
        for record in read_place(self.folder, self.place):
            yield from self.payloads.elements(record)


@dataclass(frozen=True, slots=True)
class SpoolReader:
    """What others need to know to read places of a spool."""

    folder: Path
    payloads: Payloads

    def part(self, place: Split) -> SpoolPart:
        """Return the messages of a place."""
        return SpoolPart(self.folder, self.payloads, place)


class _Receiving(NamedTuple):
    """A source that is being listened to."""

    spool: Spool
    inbox: Inbox
    receiver: Receiver


class LiveSource:
    """Messages from elsewhere, once it was begun."""

    blank_node_scope: BlankNodeScope = "element"
    leans_on_others = False
    can_be_cut = True

    def __init__(
        self,
        payloads: Payloads,
        link: Callable[[Path, bool], Link],
        settings: Settings = Settings(),  # noqa: B008 - it cannot be changed
    ) -> None:
        """Take what makes a link, given the folder of the spool and whether that is kept."""
        self.name = payloads.source
        self._payloads = payloads
        self._link = link
        self._settings = settings
        self._received: _Receiving | None = None
        self._reader: SpoolReader | None = None

    def begin(self, folder: Path, *, is_kept: bool) -> None:
        """Listen, and write what comes to a folder; go on with what is there."""
        settings, folder = self._settings, folder.absolute()
        try:
            repeats = Deduplicator(settings.dedup)
            spool = Spool(folder, room=settings.room, repeats=repeats)
            link = self._link(folder, is_kept)
        except OSError as error:
            reason = error.strerror or str(error)
            hint = "name a checkpoint that can be written to, with room on its disk"
            raise DriverError(f"{self.name}: {folder} cannot be written: {reason}", hint) from None
        inbox = Inbox(self.name, spool, repeats, settings.largest)
        self._reader = SpoolReader(folder, self._payloads)
        self._received = _Receiving(spool, inbox, Receiver(link, inbox))
        self._received.receiver.start()

    def end(self) -> None:
        """Take no more messages; what has come is still to be read."""
        if self._received is not None:
            self._received.inbox.close()

    def close(self) -> None:
        """End, and let go of everything."""
        if self._received is not None:
            self.end()
            self._received.receiver.join(timeout=15)
            self._received.spool.close()
            self._received = None

    @property
    def has_ended(self) -> bool:
        """Whether no more messages will come; if that is for a failure, it is raised."""
        receiver = self._running.receiver
        if receiver.failure is not None:
            raise receiver.failure
        return not receiver.is_alive()

    @property
    def is_silent(self) -> bool:
        """Whether nothing has come for so long that others should not wait."""
        return time.monotonic() - self._running.inbox.heard > self._settings.idle / 1000

    @property
    def is_full(self) -> bool:
        """Whether the sender waits for something to be released."""
        return self._running.spool.is_full

    @property
    def repeated(self) -> int:
        """How many messages came again, and were left out."""
        return self._running.inbox.repeated

    def wait(self, since: Split | None, seconds: float) -> None:
        """Wait until there is something after a place, for so long at most."""
        after = 0 if since is None or since.end is None else since.end
        self._running.spool.wait_for_more(after, seconds)

    def go_on(self, since: Split) -> None:
        """Refuse to go on after a place that the spool does not reach any more.

        What comes would be written before that place, and nobody would ever read it.
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
        """Learn that nothing before a place is needed any more."""
        self._running.spool.release(until)

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield places with what has come so far; there may be more later."""
        return self._running.spool.cut(size, since)

    def part(self, place: Split) -> SpoolPart:
        """Return the messages of a place."""
        if self._reader is None:
            raise DriverError(f"{self.name}: nobody listens to it yet")
        return self._reader.part(place)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read what comes until it ends."""
        since: Split | None = None
        while True:
            is_over = self.has_ended  # asked first: what came before the end is read after it
            for place in self.cut(_PLACE_BYTES, since):
                yield from self.part(place)
                since = place
            if is_over:
                return
            self.wait(since, _POLL_S)

    @property
    def _running(self) -> _Receiving:
        if self._received is None:
            raise DriverError(f"{self.name}: nobody listens to it yet")
        return self._received

    def __reduce__(self) -> tuple[type[SpoolReader], tuple[Path, Payloads]]:
        """Others read the spool; only here is it written."""
        if self._reader is None:
            raise DriverError(f"{self.name}: nobody listens to it yet")
        return SpoolReader, (self._reader.folder, self._reader.payloads)
