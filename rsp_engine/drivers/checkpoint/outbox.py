"""The outbox in a checkpoint: answers that are committed and not delivered yet, on disk.

    outbox/0-1f2e3d/...spool      deliveries in groups, each synced with the commit of its answers
    outbox/0-1f2e3d/delivered     how far they were delivered: an offset and a number
    outbox/0-1f2e3d/lock          locked by the process that delivers

What is put in waits in memory for the next commit, which writes it to a spool before the state that
names its position. So what follows the position of the last commit is dropped after a crash: the
run answers it again. How far the deliveries were acknowledged is written every moment, and not with
the commit; if the last of it is lost, a few are delivered again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from itertools import islice
from typing import TYPE_CHECKING

from rsp_engine.drivers.checkpoint.store import lock_folder
from rsp_engine.errors import DriverError, StateError
from rsp_engine.io.atomic_file import write_file
from rsp_engine.io.sinks.delivery.courier import Delivery
from rsp_engine.io.sinks.delivery.outbox import OUTBOX_ROOM, Outbox, Waiting
from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.records import Message, SpoolRecord, record_bytes
from rsp_engine.io.sources.live.spool import Spool, read_split
from rsp_engine.io.sources.splits import Split

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["SpooledOutbox"]

_LOG = logging.getLogger("rsp")
_NOTE_S = 0.2
"""How often the position of the deliveries is written, in seconds."""
_TAKEN_BYTES = 1 << 20
"""About how many bytes of deliveries are read at a time."""


class SpooledOutbox(Outbox):
    """An outbox on disk, which the next process of the same run goes on to deliver."""

    def __init__(self, folder: Path, room: int = OUTBOX_ROOM) -> None:
        self.room = room
        self._folder = folder
        self._spool: Spool | None = None
        self._lock: int | None = None
        self._pending: list[SpoolRecord] = []
        """What was put in since the last position."""
        self._pending_bytes = 0
        self._synced = self._committed = 0
        """How many deliveries are on disk, and how many of them can be delivered, ever."""
        self._committed_end = self._delivered_end = 0
        """The offsets up to which deliveries can be made, and were made."""
        self._delivered = 0
        self._taken: list[tuple[int, SpoolRecord]] = []
        """What was taken last, with the offsets of its ends."""
        self._noted = -float("inf")
        self._changed = threading.Condition()

    def go_back(self, position: Sequence[int] | None) -> None:
        """Open the outbox, and drop what was put in after a position: an offset and a number."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self._folder)
            # Nothing arrives twice: no keys of what was removed are kept.
            nothing = Deduplicator("none", most=0)
            self._spool = spool = Spool(self._folder, room=self.room, deduplicator=nothing)
            end, number = position or (spool.start, spool.past.number)
            if end > spool.end or end < spool.start:
                raise StateError(
                    f"{self._folder} ends at byte {spool.end}, and at {end} when the run stopped",
                    "restore it, or start with an empty folder for the checkpoint",
                )
            spool.cut_back(end, number)
        except OSError as error:
            raise _failure(self._folder, error) from None
        self._committed_end, self._synced, self._committed = end, number, number
        done_end, done = self._read_note()
        if done_end < spool.start:  # what is before was delivered, or it would be there
            done_end, done = spool.start, spool.past.number
        self._delivered_end, self._delivered = min(done_end, end), min(done, number)

    def put(self, delivery: Delivery) -> None:
        with self._changed:
            number = self._synced + len(self._pending) + 1
            message = Message(delivery.body, "", delivery.id)
            self._pending.append(SpoolRecord(number, int(time.time() * 1000), message))
            self._pending_bytes += len(delivery.body)

    def position(self) -> list[int]:
        """Write what was put in to disk; return the offset and the number of its end."""
        spool = self._opened()
        if self._pending:
            try:
                spool.append(self._pending)
            except OSError as error:
                raise _failure(self._folder, error) from None
        with self._changed:
            self._synced += len(self._pending)
            self._pending, self._pending_bytes = [], 0
        return [spool.end, self._synced]

    def committed(self) -> None:
        with self._changed:
            self._committed_end, self._committed = self._opened().end, self._synced
            self._changed.notify_all()

    def take(self, most: int, seconds: float) -> Sequence[Delivery]:
        with self._changed:
            if self._delivered_end >= self._committed_end:
                self._changed.wait(seconds)
            start, committed = self._delivered_end, self._committed_end
        self._taken = []
        split = next(self._opened().cut(_TAKEN_BYTES, Split(start, start)), None)
        if split is None or split.end is None or start >= committed:
            return []
        end = start
        known = Split(start, min(split.end, committed))
        for record in islice(read_split(self._folder, known), most):
            end += len(record_bytes(record))
            self._taken.append((end, record))
        return [Delivery(r.message.id, r.message.payload) for _, r in self._taken]

    def acknowledge(self, count: int) -> None:
        end, record = self._taken[count - 1]
        self._taken = self._taken[count:]  # other threads read it
        with self._changed:
            self._delivered_end, self._delivered = end, record.number
            is_all = end >= self._committed_end
        if is_all or time.monotonic() > self._noted + _NOTE_S:
            self._write_note()
            self._opened().release(end)

    def waiting(self) -> Waiting:
        with self._changed:
            count, taken = self._committed - self._delivered, self._taken
            first = taken[0][1].arrival / 1000 if taken and count else None
        return Waiting(count, first)

    @property
    def is_full(self) -> bool:
        with self._changed:
            end = 0 if self._spool is None else self._spool.end
            return end - self._delivered_end + self._pending_bytes >= self.room

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        if self._spool is not None:
            self._write_note()
            self._spool.close()
            self._spool = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _opened(self) -> Spool:
        assert self._spool is not None, "`go_back` was called"  # noqa: S101
        return self._spool

    def _write_note(self) -> None:
        """Write how far deliveries were made; if that fails, a resumed run repeats some."""
        with self._changed:
            text = f"{self._delivered_end} {self._delivered}\n"
        try:
            write_file(self._folder / "delivered", [text.encode()])
        except OSError as error:
            _LOG.warning("%s cannot be written: %s", self._folder, error.strerror or error)
        self._noted = time.monotonic()

    def _read_note(self) -> tuple[int, int]:
        try:
            end, number = (self._folder / "delivered").read_text(encoding="ascii").split()
            return int(end), int(number)
        except (FileNotFoundError, ValueError):
            return 0, 0  # nothing was delivered, or what was is delivered again
        except OSError as error:
            raise _failure(self._folder, error) from None


def _failure(folder: Path, error: OSError) -> DriverError:
    return DriverError(
        f"the outbox cannot be written to {folder}: {error.strerror or error}",
        "make room on its disk, or let it be written to",
    )
