"""The outbox of a sink: the answers that are not delivered yet, in their order.

With a checkpoint the outbox is a part of it, `drivers.checkpoint.outbox`: what is put in waits for
the next commit. Without one it is in memory: what is put in can be delivered at once, and what is
not delivered when the process ends is lost.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.io.sinks.delivery.courier import Delivery

__all__ = ["OUTBOX_ROOM", "MemoryOutbox", "Outbox", "Waiting"]

OUTBOX_ROOM = 64 << 20
"""The default room of an outbox, in bytes."""


class Waiting(NamedTuple):
    """What is in an outbox: how many deliveries, and since when the first one waits."""

    deliveries: int
    since: float | None
    """In seconds since 1970; None if nothing is known to wait."""


class Outbox(Protocol):
    """A queue with one writer and one deliverer, each in a thread of its own."""

    room: int
    """How many bytes may wait before the input has to."""

    def put(self, delivery: Delivery) -> None:
        """Add a delivery; one that exceeds the room is accepted too."""

    def position(self) -> Any:  # noqa: ANN401 - plain data
        """Sync what was put in to disk, and return the current position as plain data."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Open the outbox, and drop what was put in after a position; `None` is the start."""

    def committed(self) -> None:
        """Let everything before the last position be delivered."""

    def take(self, most: int, seconds: float) -> Sequence[Delivery]:
        """Return the first deliveries, without removing them; wait for one up to some seconds."""

    def acknowledge(self, count: int) -> None:
        """Remove the first `count` of the deliveries that were taken last."""

    def waiting(self) -> Waiting:
        """Return what can be delivered, and is not."""

    @property
    def is_full(self) -> bool:
        """Whether the room is used up."""

    def wake(self) -> None:
        """Wake a thread that waits for deliveries."""

    def close(self) -> None:
        """Close the outbox; closing it again has no effect."""


class MemoryOutbox(Outbox):
    """An outbox in memory, which ends with the process.

    >>> from rsp_engine.io.sinks.delivery.courier import Delivery
    >>> outbox = MemoryOutbox()
    >>> for text in (b"a", b"b", b"c"): outbox.put(Delivery(text.decode(), text))
    >>> [delivery.id for delivery in outbox.take(2, 0)]
    ['a', 'b']
    >>> outbox.acknowledge(2)
    >>> outbox.waiting().deliveries
    1
    """

    def __init__(self, room: int = OUTBOX_ROOM) -> None:
        self.room = room
        self._deliveries: deque[tuple[Delivery, float]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()

    def put(self, delivery: Delivery) -> None:
        with self._changed:
            self._deliveries.append((delivery, time.time()))
            self._bytes += len(delivery.body)
            self._changed.notify_all()

    def position(self) -> None:
        """Return `None`: memory does not outlast the process."""

    def go_back(self, position: None) -> None:
        """Do nothing: the outbox of a new process is empty."""

    def committed(self) -> None:
        """Do nothing: everything can be delivered at once."""

    def take(self, most: int, seconds: float) -> Sequence[Delivery]:
        with self._changed:
            if not self._deliveries:
                self._changed.wait(seconds)
            return [delivery for delivery, _ in islice(self._deliveries, most)]

    def acknowledge(self, count: int) -> None:
        with self._changed:
            for _ in range(count):
                self._bytes -= len(self._deliveries.popleft()[0].body)

    def waiting(self) -> Waiting:
        with self._changed:
            since = self._deliveries[0][1] if self._deliveries else None
            return Waiting(len(self._deliveries), since)

    @property
    def is_full(self) -> bool:
        return self._bytes >= self.room

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Do nothing: nothing is open."""
