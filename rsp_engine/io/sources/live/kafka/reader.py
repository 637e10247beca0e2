"""Readers of partitions: the messages of a range of offsets, in any process.

A process keeps a connection for each of the partitions that it reads, because librdkafka reads
ahead: the next range of a partition is at hand when the one before was read.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.io.sources.live.kafka.client import TopicClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.io.sources.columns.quad_lines import ReadQuads, Rename
    from rsp_engine.io.sources.live.kafka.client import TopicAddress
    from rsp_engine.io.sources.live.payloads import Payloads
    from rsp_engine.io.sources.live.records import SpoolRecord
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.model.streams import DeadLetter, Element

__all__ = ["PartitionPart", "PartitionReader", "forget_readers", "read_range"]

_CONNECTIONS = 32
"""How many partitions a process reads ahead."""
_GROUP = 500
"""How many messages are taken together."""
_WAIT_S = 0.2
_PATIENCE_S = 3.0
"""After so long without a message, in seconds, the broker is asked whether it is there."""


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """The messages of a split, as a source."""

    payloads: Payloads
    records: Sequence[SpoolRecord]

    blank_node_scope: BlankNodeScope = "element"
    leans_on_others: bool = False

    @property
    def name(self) -> str:
        """Return the address of the topic, with the partition."""
        return self.payloads.source

    def read_columns(self, rename: Rename) -> ReadQuads | None:
        """Read the messages as columns; None if they must be read as elements."""
        return self.payloads.read_columns(self.records, rename)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the elements of the messages."""
        for record in self.records:
            yield from self.payloads.elements(record)


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """What an executor needs to read splits of a partition."""

    address: TopicAddress
    partition: int
    payloads: Payloads

    def part(self, split: Split) -> PartitionPart:
        """Return the messages of a split; raise `SenderUnreachable` if the broker is away."""
        return PartitionPart(self.payloads, read_range(self.address, self.partition, split))


class _Connection:
    """A connection that reads one partition, and what it has taken beyond the last range."""

    def __init__(self, address: TopicAddress, partition: int) -> None:
        self.client = TopicClient(address)
        self._partition = partition
        self._at: int | None = None
        """The end of the last range, where the connection reads on; None if it reads nowhere."""
        self._position = 0
        """The offset up to which the log was taken."""
        self._ahead: list[SpoolRecord] = []
        """What was taken beyond the last range."""

    def read(self, split: Split) -> list[SpoolRecord]:
        """Return the messages of a range; offsets without a message are left out."""
        end = split.start if split.end is None else split.end
        if self._at != split.start:
            self._ahead, self._position = [], split.start
            self.client.read_from(self._partition, split.start)
        self._at = None  # unless the range is read to its end
        taken = self._ahead
        heard = time.monotonic()
        while self._position < end:
            fetched = self.client.take(min(_GROUP, end - self._position), _WAIT_S)
            taken += fetched.records
            if fetched.records:
                self._position, heard = fetched.records[-1].number + 1, time.monotonic()
            if fetched.end is not None:
                self._position = max(self._position, fetched.end)
            if time.monotonic() > heard + _PATIENCE_S:
                self.client.partitions()  # raises if the broker is away
                heard = time.monotonic()
        self._at, self._ahead = end, [record for record in taken if record.number >= end]
        return [record for record in taken if record.number < end]


_connections: OrderedDict[tuple[str, int, int], _Connection] = OrderedDict()
"""The connections of this process, the last used one last."""


def read_range(address: TopicAddress, partition: int, split: Split) -> list[SpoolRecord]:
    """Return the messages of a range of offsets of a partition, which the log must have.

    Raises:
        SenderUnreachable: If the broker is away.
        SourceError: If the messages are gone.
    """
    key = (address.name, partition, address.largest)
    connection = _connections.pop(key, None) or _Connection(address, partition)
    try:
        records = connection.read(split)
    except BaseException:
        connection.client.close()
        raise
    _connections[key] = connection
    if len(_connections) > _CONNECTIONS:
        _connections.popitem(last=False)[1].client.close()
    return records


def forget_readers(address: TopicAddress) -> None:
    """Close the connections to a topic."""
    for key in [key for key in _connections if key[0] == address.name]:
        _connections.pop(key).client.close()
