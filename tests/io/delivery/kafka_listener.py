"""An independent consumer of Kafka, aiokafka, that lists the messages of a topic."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Self

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from tests.io.delivery.receivers import Received

__all__ = ["KafkaListener"]


class KafkaListener(threading.Thread):
    """A thread that reads a topic from its start."""

    def __init__(self, address: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._topic = topic
        self._ending = threading.Event()
        self.received: list[Received] = []
        """The messages, each with its key and its headers."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self.join(30)

    def run(self) -> None:
        """Read until the end."""
        asyncio.run(self._read())

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(
            self._topic, bootstrap_servers=self._address, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            while not self._ending.is_set():
                with suppress(KafkaError):
                    arrived = await consumer.getmany(timeout_ms=100)
                    for records in arrived.values():
                        for one in records:
                            headers = {name: value.decode() for name, value in one.headers}
                            self.received.append(Received(one.key.decode(), one.value, headers))
        finally:
            await consumer.stop()
