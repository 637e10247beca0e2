"""One connection to a topic of Kafka, by librdkafka.

A failure that may pass is a `SenderUnreachable`. Offsets outside of the log are a `SourceError`:
the messages are gone, and no waiting brings them back.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from rsp_engine.errors import SourceError
from rsp_engine.io.kafka_settings import LARGEST_FETCH
from rsp_engine.io.sources.live.receiver import SenderUnreachable
from rsp_engine.io.sources.live.records import Message, checked_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message as KafkaMessage

    from rsp_engine.io.sources.live.records import SpoolRecord

__all__ = ["GONE_HINT", "Fetched", "TopicAddress", "TopicClient"]

REQUEST_S = 5.0
"""How long a request may take, in seconds."""
GONE_HINT = (
    "to go on without them, start with an empty checkpoint; a longer retention.ms keeps more"
)

_AWAY = "the broker cannot be reached"
_HANDSHAKE = "SSL handshake failed"
_NO_TIME = 0
"""The type of a timestamp that a message does not have."""
_UNKNOWN_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
_OUT_OF_RANGE = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)
_END = KafkaError._PARTITION_EOF
_SSL = KafkaError._SSL
_AUTHENTICATION = KafkaError._AUTHENTICATION
_RESOLVE = KafkaError._RESOLVE
_REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
_SETTINGS: Mapping[str, str | int | bool] = {
    "client.id": "rsp-engine",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    # A group that is never joined: a client must name one.
    "group.id": "rsp-engine",
    "log_level": 0,
    "topic.metadata.refresh.interval.ms": 10_000,
    "reconnect.backoff.max.ms": 2_000,
    # Short waits: while the broker waits to answer one request, it takes no other.
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 100,
    "fetch.queue.backoff.ms": 10,
    # What is read ahead of the split that is read.
    "queued.max.messages.kbytes": 8_192,
}


@dataclass(frozen=True, slots=True)
class TopicAddress:
    """All that a process needs to connect to a topic."""

    name: str
    """The address, as messages show it."""
    topic: str
    settings: Mapping[str, str] = field(repr=False)
    variables: str
    """The prefix of its environment variables, for hints."""
    group: str | None = None
    """The consumer group whose offsets are committed."""
    largest: int = 0
    """The limit of the size of a message, in bytes."""


class Fetched(NamedTuple):
    """What a partition has given: records, and where its log ends, if that was reached."""

    records: list[SpoolRecord]
    end: int | None = None


class TopicClient:
    """A connection to a topic, of which one partition at a time can be read."""

    def __init__(self, address: TopicAddress) -> None:
        """Start to connect, in threads of librdkafka."""
        self.address = address
        self._trouble = ""
        largest = max(LARGEST_FETCH, address.largest + (1 << 20))
        group = {} if address.group is None else {"group.id": address.group}
        own = {"error_cb": self._note, "receive.message.max.bytes": largest}
        self._consumer = Consumer({**_SETTINGS, **address.settings, **group, **own})

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def partitions(self) -> list[int]:
        """Return the numbers of the partitions of the topic."""
        try:
            found = self._consumer.list_topics(self.address.topic, timeout=REQUEST_S)
        except KafkaException as failure:
            raise self._away(failure.args[0]) from None
        topic = found.topics[self.address.topic]
        if topic.error is not None:
            raise self._away(topic.error)
        return sorted(topic.partitions)

    def ends(self, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition, and the one after its last message."""
        try:
            ends = self._consumer.get_watermark_offsets(self._at(partition), timeout=REQUEST_S)
        except KafkaException as failure:
            raise self._away(failure.args[0]) from None
        if ends is None:
            raise SenderUnreachable(self._reason(None))
        return ends

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        """Return the offset of the first message at a time, in ms, or later; None if none is."""
        try:
            wanted = [self._at(partition, timestamp)]
            found = self._consumer.offsets_for_times(wanted, timeout=REQUEST_S)[0]
        except KafkaException as failure:
            raise self._away(failure.args[0]) from None
        return None if found.offset < 0 else found.offset

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit an offset for each partition to the consumer group."""
        try:
            places = [self._at(partition, offset) for partition, offset in offsets.items()]
            committed = self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as failure:
            raise self._away(failure.args[0]) from None
        failed = [place.error for place in committed or () if place.error is not None]
        if failed:
            raise self._away(failed[0])

    def read_from(self, partition: int, offset: int) -> None:
        """Read a partition from an offset on."""
        self._trouble = ""
        self._consumer.assign([self._at(partition, offset)])

    def take(self, most: int, seconds: float) -> Fetched:
        """Return up to `most` messages that follow, waiting until there are so many."""
        records: list[SpoolRecord] = []
        end: int | None = None
        for message in self._consumer.consume(most, timeout=seconds):
            error = message.error()
            if error is None:
                self._trouble = ""
                records.append(self._record(message))
            elif error.code() == _END:
                end = message.offset()
            elif error.code() in _OUT_OF_RANGE:
                reason = f"the messages from offset {message.offset()} on are gone"
                name = f"{self.address.name}, partition {message.partition()}"
                raise SourceError(f"{name}: {reason}", GONE_HINT)
            else:
                raise self._away(error)
        return Fetched(records, end)

    def _at(self, partition: int, offset: int = -1) -> TopicPartition:
        return TopicPartition(self.address.topic, partition, offset)

    def _record(self, message: KafkaMessage) -> SpoolRecord:
        kind, stamp = message.timestamp()
        arrival = int(time.time() * 1000) if kind == _NO_TIME else stamp
        value, key, offset = message.value(), message.key(), message.offset()
        assert offset is not None, "a message of a broker has an offset"  # noqa: S101
        pairs = dict(message.headers() or ())  # of repeated ones, the last
        headers = tuple((name, _bytes(text)) for name, text in pairs.items()) if pairs else ()
        content = Message(
            _bytes(value) or b"", self.address.topic, key=_bytes(key), headers=headers
        )
        record = checked_record(offset, arrival, content, self.address.largest)
        return record._replace(fault="the message has no value") if value is None else record

    def _note(self, error: KafkaError) -> None:
        """Note why the broker cannot be reached; librdkafka calls this."""
        reason = self._reason(error)
        if reason != _AWAY or not self._trouble:
            self._trouble = reason

    def _away(self, error: KafkaError) -> SenderUnreachable:
        self._consumer.poll(0)  # it calls `_note`
        reason = self._reason(error)
        return SenderUnreachable(self._trouble if reason == _AWAY and self._trouble else reason)

    def _reason(self, error: KafkaError | None) -> str:
        variables, code = self.address.variables, None if error is None else error.code()
        if code in _UNKNOWN_TOPIC:
            return f"the broker has no topic {self.address.topic} (create it)"
        if code in _REFUSED:
            return f"the user may not read the topic (check {variables}_USER, or its rights)"
        if code == _AUTHENTICATION:
            hint = f"check {variables}_USER, ..._PASSWORD and ..._MECHANISM"
            return f"the broker refuses the user or the password ({hint})"
        if code == _SSL or (error is not None and _HANDSHAKE in error.str()):
            hint = f"{variables}_CA names a file of certificates to trust"
            return f"no connection with TLS is possible ({hint})"
        if code == _RESOLVE:
            return "the host of the broker is not known (check the address)"
        return _AWAY


def _bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
