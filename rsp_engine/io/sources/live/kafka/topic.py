"""A topic of Kafka as the drivers see it: partitions that grow, and that are read by offsets."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from dataclasses import replace
from typing import TYPE_CHECKING

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.live.kafka.client import GONE_HINT
from rsp_engine.io.sources.live.kafka.reader import (
    PartitionPart,
    PartitionReader,
    forget_readers,
    read_range,
)
from rsp_engine.io.sources.live.kafka.watch import Presence, TopicWatch
from rsp_engine.io.sources.live.receiver import FIRST_BYTES, SenderUnreachable, TroubleLog
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.io.sources.predicate_sample import PredicateSample
from rsp_engine.io.sources.splits import Split

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rsp_engine.io.sources.live.kafka.client import TopicAddress
    from rsp_engine.io.sources.live.kafka.watch import PartitionExtent, Start
    from rsp_engine.io.sources.live.payloads import Payloads
    from rsp_engine.io.sources.live.records import SpoolRecord
    from rsp_engine.io.sources.source import BlankNodeScope

__all__ = ["KafkaPartition", "TopicSource"]

_MOST_MESSAGES = 10_000
"""The most messages of a split."""
_SAMPLE = 100
"""How many messages are read to estimate the size of the others."""
_ESTIMATE_S = 60.0
"""How long an estimate is good, in seconds, if this process reads nothing."""
_RECENT = 4
"""How many splits of a partition are remembered: one with late elements is read again."""
_PAUSE_S = 0.2
"""How long to wait before a failed read is tried again, in seconds."""
_OVERHEAD = 64
"""About how many bytes a message has besides its payload."""


class TopicSource(LiveSource):
    """A topic; `begin` starts to ask how far its partitions go. Nothing is spooled."""

    def __init__(
        self,
        address: TopicAddress,
        payloads: Payloads,
        start: Start = "earliest",
        idle: int = 10_000,
    ) -> None:
        """Set where to start, and the idle timeout in milliseconds."""
        self.name = payloads.source
        self.address = address
        self.payloads = payloads
        self.idle = idle
        self.has_ended = False
        """Whether the run wants no more messages."""
        self.is_interrupted = False
        """Whether nobody waits for the broker any more."""
        self.is_away = False
        """Whether the broker was away when the partitions were asked for."""
        self.presence = Presence()
        """When it had answered."""
        self._start = start
        self._watch: TopicWatch | None = None
        self._partitions = [KafkaPartition(self, 0)]
        self._extents: Mapping[int, PartitionExtent] = {}
        self._first: list[SpoolRecord] = []
        self._first_bytes = 0

    def begin(self, folder: Path, *, is_kept: bool) -> None:
        """Start to watch the topic; nothing is written to the folder."""
        del folder, is_kept
        self._watch = TopicWatch(self.address, self._start)
        self._watch.start()

    def end(self) -> None:
        """Read no more messages."""
        self.has_ended = True
        self.interrupt()

    def interrupt(self) -> None:
        """Stop waiting for the broker in `KafkaPartition.part`, since the run stops."""
        self.is_interrupted = True

    def close(self) -> None:
        """Commit the offsets of the group, and close all connections."""
        self.end()
        if self._watch is not None:
            self._watch.close()
            self._watch.join(timeout=15)
            self._watch = None
        forget_readers(self.address)

    def partitions(self) -> Sequence[KafkaPartition]:
        """Return the partitions that are known; adopt what the watch has found meanwhile.

        All of them are adopted together: if one ran ahead, elements of others would be late.
        """
        if self._watch is None:
            return self._partitions
        self.is_away = self._watch.is_away
        self.presence = self._watch.presence  # before the extents, which must be as new
        if self._watch.extents is not self._extents:
            is_first = all(partition.start is None for partition in self._partitions)
            self._extents = self._watch.extents
            for number, extent in self._extents.items():
                self._partition(number).adopt(extent, is_first=is_first)
        return self._partitions

    def include(self, number: int, start: int) -> None:
        """Include the partition with a number, which is read from an offset on."""
        self._partition(number).start = start

    def _partition(self, number: int) -> KafkaPartition:
        while number >= len(self._partitions):
            self._partitions.append(KafkaPartition(self, len(self._partitions)))
        return self._partitions[number]

    def predicates(self) -> PredicateSample:
        """Return the predicates of the first messages that this process has read."""
        sample = PredicateSample(is_cut=self._first_bytes >= FIRST_BYTES)
        for record in self._first:
            deque(sample.take(self.payloads.elements(record)), maxlen=0)
        return sample

    @property
    def is_shut(self) -> bool:
        """Whether nothing is to be read: the broker is away, or the run has ended."""
        return self.is_away or self.has_ended

    def see(self, records: Sequence[SpoolRecord]) -> None:
        """Remember messages, if they are among the first."""
        if self._first_bytes < FIRST_BYTES:
            self._first += records
            self._first_bytes += sum(len(record.message.payload) for record in records)

    def commit(self, partition: int, offset: int) -> None:
        """Commit an offset to the consumer group, if one is named."""
        if self.address.group is not None and self._watch is not None:
            self._watch.commit(partition, offset)

    def wait(self, seconds: float) -> None:
        """Wait until the watch has found something new, or the time is up."""
        if self._watch is None:
            return
        if self._watch.failure is not None:
            raise self._watch.failure
        self._watch.wait_for_change(self._extents, seconds)


class KafkaPartition:
    """A partition of a topic."""

    blank_node_scope: BlankNodeScope = "element"
    can_be_cut = True

    def __init__(self, topic: TopicSource, number: int) -> None:
        self.name = f"{topic.name}#{number}"
        self.start: int | None = None
        self._topic = topic
        self._number = number
        self._payloads = replace(topic.payloads, source=self.name)
        self._trouble = TroubleLog(self.name)
        self._extent: PartitionExtent | None = None
        self._heard = time.monotonic()
        self._recent: OrderedDict[Split, list[SpoolRecord]] = OrderedDict()
        self._mean: float | None = None
        """The mean size of a message, in bytes."""
        self._estimated = -float("inf")

    def adopt(self, extent: PartitionExtent, *, is_first: bool) -> None:
        """Adopt how far the partition goes; `is_first` if the topic was never seen before.

        A partition that was added later is read from its first message on.
        """
        if self._extent is None or extent.end > self._extent.end:
            self._heard = time.monotonic()
        self._extent = extent
        if self.start is None:
            self.start = extent.chosen if is_first else extent.first

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of about `size` bytes of the messages so far."""
        at = self.start if since is None else since.end
        if at is None or self._extent is None or self._topic.is_shut:
            return
        self._check(at, self._extent)
        while at < self._extent.end:
            self._heard = time.monotonic()
            stop = min(at + self._messages_in(size, at), self._extent.end)
            yield Split(at, stop)
            at = stop

    def _check(self, at: int, extent: PartitionExtent) -> None:
        """Raise unless the log has an offset, or ends there."""
        if at < extent.first:
            reason = (
                f"the messages {at} to {extent.first - 1} are gone: Kafka keeps those after them"
            )
            raise SourceError(f"{self.name}: {reason}", GONE_HINT)
        if at > extent.end:
            reason = f"it ends at {extent.end}, and was read up to {at}"
            hint = "if the topic was made anew, start with an empty checkpoint"
            raise SourceError(f"{self.name}: {reason}", hint)

    def _messages_in(self, size: int, at: int) -> int:
        """Return how many messages have about `size` bytes, by the size of the last ones."""
        if time.monotonic() > self._estimated + _ESTIMATE_S and self._extent is not None:
            self._estimated = time.monotonic()
            sample = Split(at, min(at + _SAMPLE, self._extent.end))
            try:
                self._seen(read_range(self._topic.address, self._number, sample))
            except SenderUnreachable as away:
                self.report(str(away))
        mean = 1_000 if self._mean is None else self._mean
        return max(1, min(_MOST_MESSAGES, int(size / mean)))

    def _seen(self, records: Sequence[SpoolRecord]) -> None:
        self._topic.see(records)
        if records:
            whole = sum(len(record.message.payload) + _OVERHEAD for record in records)
            self._mean = whole / len(records)
            self._estimated = time.monotonic()

    def is_at_hand(self, split: Split) -> bool:
        """Return whether a split can be read now; if so, it is kept for `part`."""
        if split in self._recent:
            return True
        try:
            records = read_range(self._topic.address, self._number, split)
        except SenderUnreachable as away:
            self.report(str(away))
            time.sleep(_PAUSE_S)  # a failure may come at once
            return False
        self._trouble.is_over()
        self._seen(records)
        self._recent[split] = records
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return True

    def report(self, trouble: str) -> None:
        """Log once that the broker is away."""
        self._trouble.report(f"{trouble}; trying again")

    def part(self, split: Split) -> PartitionPart:
        """Return the messages of a split; wait for the broker if it is away."""
        while not self.is_at_hand(split):
            if self._topic.is_interrupted:
                hint = "run the same command again to resume"
                raise SourceError(f"{self.name}: the run stopped while its broker was away", hint)
        return PartitionPart(self._payloads, self._recent[split])

    def bytes_in(self, split: Split) -> int:
        """Return about how many bytes a split has."""
        count = 0 if split.end is None else split.end - split.start
        return int(count * (self._mean or 1_000))

    def go_on(self, since: Split) -> None:
        """Continue after a split; whether what follows is still there is checked later."""
        if self.start is None:
            self.start = since.start

    def release(self, until: int) -> None:
        """Commit an offset to the consumer group, if one is named."""
        self._topic.commit(self._number, until)

    def wait(self, since: Split | None, seconds: float) -> None:
        """Wait until there is news of the topic, or the time is up."""
        del since
        self._topic.wait(seconds)

    @property
    def has_ended(self) -> bool:
        """Whether the run wants no more messages."""
        return self._topic.has_ended

    @property
    def is_silent(self) -> bool:
        """Whether the idle timeout has passed while the broker was there, without a message."""
        return self._topic.presence.silence(self._heard) > self._topic.idle / 1000

    @property
    def is_full(self) -> bool:
        """Return False: the broker keeps what is not read."""
        return False

    def __reduce__(self) -> tuple[type[PartitionReader], tuple[TopicAddress, int, Payloads]]:
        """Pickle as a `PartitionReader`: executors only read."""
        return PartitionReader, (self._topic.address, self._number, self._payloads)
