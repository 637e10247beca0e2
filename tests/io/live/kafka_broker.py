"""A Kafka broker on a free local port: librdkafka's mock cluster, in a process of its own.

    python -m tests.io.live.kafka_broker TOPIC=PARTITIONS ...

It needs nothing but confluent-kafka. Messages are in memory. The independent client that produces
and consumes is aiokafka.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.data import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["KafkaBroker", "KafkaServer", "Sent", "kafka_broker"]

Sent = tuple[int, bytes] | tuple[int, bytes, dict[str, Any]]
"""A partition, a value, and other arguments of the producer."""


class KafkaServer:
    """A broker, as its clients see it."""

    address: str
    """Where the engine connects."""
    plain: str
    """Where the tests connect, without credentials."""

    def url(self, topic: str, options: str = "") -> str:
        return f"kafka://{self.address}/{topic}" + (f"?{options}" if options else "")

    def send(self, topic: str, messages: Iterable[Sent]) -> None:
        """Send messages, and wait until the broker has acknowledged all."""
        asyncio.run(self._send(topic, list(messages)))

    async def _send(self, topic: str, messages: Sequence[Sent]) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.plain, max_request_size=64 << 20, linger_ms=5
        )
        await producer.start()
        try:
            waiting = []
            for partition, value, *others in messages:
                options: dict[str, Any] = others[0] if others else {}
                waiting.append(await producer.send(topic, value, partition=partition, **options))
            await asyncio.gather(*waiting)
        finally:
            await producer.stop()

    def committed(self, topic: str, group: str, partitions: int) -> list[int | None]:
        """Return the offset that a group has committed for each partition."""

        async def ask() -> list[int | None]:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self.plain, group_id=group, enable_auto_commit=False
            )
            await consumer.start()
            try:
                places = [TopicPartition(topic, number) for number in range(partitions)]
                return [await consumer.committed(place) for place in places]
            finally:
                await consumer.stop()

        return asyncio.run(ask())


class KafkaBroker(KafkaServer):
    """A mock broker that can be paused, as if the network to it were cut."""

    def __init__(self, **topics: int) -> None:
        command = [sys.executable, "-m", __name__, *(f"{t}={n}" for t, n in topics.items())]
        self._process = subprocess.Popen(  # noqa: S603 - our own broker
            command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.address = self.plain = self._process.stdout.readline().strip()
        assert self.address, "the broker has not started"

    def pause(self) -> None:
        """Answer nothing from now on."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def kafka_broker(**topics: int) -> Iterator[KafkaBroker]:
    """Run a broker with some topics, each with its number of partitions."""
    broker = KafkaBroker(**topics)
    try:
        yield broker
    finally:
        broker.stop()


def _serve(topics: Sequence[str]) -> None:
    """Start a mock cluster by the functions of librdkafka, and print its address."""
    import confluent_kafka

    folder = Path(confluent_kafka.__file__).parent
    found = [*folder.parent.glob("confluent_kafka.libs/librdkafka*"), *folder.glob(".dylibs/lib*")]
    library = ctypes.CDLL(str(found[0]) if found else "librdkafka.so.1")
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    library.rd_kafka_conf_new.restype = pointer
    library.rd_kafka_new.restype = pointer
    library.rd_kafka_new.argtypes = [number, pointer, text, ctypes.c_size_t]
    library.rd_kafka_mock_cluster_new.restype = pointer
    library.rd_kafka_mock_cluster_new.argtypes = [pointer, number]
    library.rd_kafka_mock_topic_create.argtypes = [pointer, text, number, number]
    library.rd_kafka_mock_cluster_bootstraps.restype = text
    library.rd_kafka_mock_cluster_bootstraps.argtypes = [pointer]
    reason = ctypes.create_string_buffer(512)
    client = library.rd_kafka_new(0, library.rd_kafka_conf_new(), reason, len(reason))
    cluster = library.rd_kafka_mock_cluster_new(client, 1)
    for each in topics:
        name, _, partitions = each.partition("=")
        library.rd_kafka_mock_topic_create(cluster, name.encode(), int(partitions), 1)
    sys.stdout.write(library.rd_kafka_mock_cluster_bootstraps(cluster).decode() + "\n")
    sys.stdout.flush()
    while os.getppid() != 1:  # the tests have gone
        signal.sigtimedwait([signal.SIGTERM], 1)


if __name__ == "__main__":
    _serve(sys.argv[1:])
