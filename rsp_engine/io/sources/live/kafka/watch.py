"""The watch over a topic: a thread that asks the broker how far its partitions go."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Literal, NamedTuple

from rsp_engine.io.sources.live.kafka.client import TopicClient
from rsp_engine.io.sources.live.receiver import SenderUnreachable, TroubleLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.io.sources.live.kafka.client import TopicAddress

__all__ = ["PartitionExtent", "Presence", "Start", "TopicWatch"]

Start = Literal["earliest", "latest"] | int
"""Where a run starts to read: at the first message, after the last, or at a time in ms."""

_POLL_S = 0.1
"""How often the ends of partitions are asked for, in seconds."""
_PARTITIONS_S = 5.0
"""How often new partitions are looked for, in seconds."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 2.0
_LAST_COMMIT_S = 8.0
"""How long to try to commit the last offsets, in seconds, while the broker answers."""


class PartitionExtent(NamedTuple):
    """How far a partition goes."""

    first: int
    """The first offset that the broker keeps."""
    end: int
    """The offset after the last message."""
    chosen: int
    """The offset at which the options start to read."""


class Presence(NamedTuple):
    """Since when a broker answers without a break, and when it last did, on the monotonic clock."""

    since: float | None = None
    """None if it has not answered yet."""
    last: float = 0.0

    def silence(self, heard: float) -> float:
        """Return for how many seconds it is known that nothing has come since a moment.

        While the broker is away nothing is known; and those who send to it may have to wait, too.
        """
        return 0.0 if self.since is None else self.last - max(heard, self.since)


class TopicWatch(threading.Thread):
    """A thread that publishes the extents of all partitions, together; it retries for ever."""

    def __init__(self, address: TopicAddress, start: Start) -> None:
        super().__init__(name=f"watch over {address.name}", daemon=True)
        self._address = address
        self._start = start
        self._trouble = TroubleLog(address.name)
        self._group_trouble = TroubleLog(f"{address.name}, group {address.group}")
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._partitions: list[int] = []
        self._asked = -float("inf")
        """When the partitions were asked for, on the monotonic clock."""
        self._chosen: dict[int, int] = {}
        self._extents: Mapping[int, PartitionExtent] = {}
        self._uncommitted: dict[int, int] = {}
        self.presence = Presence()
        """When the broker answered; the extents are at least as new."""
        self.is_away = False
        """Whether the last request failed."""
        self.failure: Exception | None = None
        """The unexpected exception that ended the thread, if any."""

    @property
    def extents(self) -> Mapping[int, PartitionExtent]:
        """The last extents of all partitions; empty until the broker was reached."""
        return self._extents

    def wait_for_change(self, known: Mapping[int, PartitionExtent], seconds: float) -> None:
        """Wait until the extents differ from known ones, or the time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self._extents != known, seconds)

    def commit(self, partition: int, offset: int) -> None:
        """Commit an offset to the consumer group, soon."""
        with self._changed:
            self._uncommitted[partition] = offset

    def close(self) -> None:
        """Commit what is left to commit if the broker is there, and end the thread."""
        self._closing.set()

    def run(self) -> None:
        """Ask until the watch is closed."""
        try:
            self._run()
        except Exception as error:
            self.failure = error

    def _run(self) -> None:
        client = TopicClient(self._address)
        pause = _FIRST_PAUSE
        try:
            while not self._closing.is_set():
                try:
                    self._ask(client)
                except SenderUnreachable as away:
                    self.is_away = True
                    self._trouble.report(f"{away}; trying again")
                    self._closing.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                else:
                    now = time.monotonic()
                    is_back = self.is_away or self.presence.since is None
                    self.presence = Presence(now if is_back else self.presence.since, now)
                    self.is_away = False
                    self._trouble.is_over()
                    pause = _FIRST_PAUSE
                    self._commit(client)
                    self._closing.wait(_POLL_S)
            # A broker that has just started may not take them at once.
            until = time.monotonic() + (0.0 if self.is_away else _LAST_COMMIT_S)
            while not self._commit(client) and time.monotonic() < until:
                time.sleep(_FIRST_PAUSE)
        finally:
            client.close()

    def _ask(self, client: TopicClient) -> None:
        if time.monotonic() > self._asked + _PARTITIONS_S:
            self._partitions, self._asked = client.partitions(), time.monotonic()
        extents = {number: self._extent(client, number) for number in self._partitions}
        if extents != self._extents:
            with self._changed:
                self._extents = extents
                self._changed.notify_all()

    def _extent(self, client: TopicClient, partition: int) -> PartitionExtent:
        first, end = client.ends(partition)
        if partition not in self._chosen:
            match self._start:
                case "earliest":
                    chosen = first
                case "latest":
                    chosen = end
                case timestamp:
                    found = client.offset_at(partition, timestamp)
                    chosen = end if found is None else found
            self._chosen[partition] = chosen
        return PartitionExtent(first, end, self._chosen[partition])

    def _commit(self, client: TopicClient) -> bool:
        """Commit offsets to the group, for monitors; return False if that failed.

        What is read does not depend on it.
        """
        with self._changed:
            offsets, self._uncommitted = self._uncommitted, {}
        if not offsets:
            return True
        try:
            client.commit(offsets)
        except SenderUnreachable as away:
            self._group_trouble.report(f"{away}; its offsets are not committed")
            with self._changed:
                self._uncommitted = {**offsets, **self._uncommitted}
            return False
        self._group_trouble.is_over()
        return True
