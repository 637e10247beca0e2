"""Kafka publisher: sends elements to a topic, by an idempotent producer.

The key of a message is its id, so the elements go to all partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from uuid import uuid4

from confluent_kafka import KafkaError, Producer

from rsp_engine.errors import DriverError, SourceError
from rsp_engine.io.kafka_settings import client_settings, topic_of
from rsp_engine.io.sinks.publishers.envelope import envelope_of
from rsp_engine.io.sources.live.address import address_of

if TYPE_CHECKING:
    from types import TracebackType

    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.model.streams import Element

__all__ = ["KafkaPublisher"]

_CONNECT_S = 10.0
"""Seconds to wait for the broker at the start."""
_ACK_TIMEOUT_S = 60.0
"""Seconds that a broker may take to acknowledge a message."""
_QUEUE = 10_000
"""The most messages that wait for an acknowledgement."""


class KafkaPublisher:
    """Sends elements to a topic, each in a jsonl envelope; a context manager."""

    def __init__(self, spec: Spec) -> None:
        """Check the address; entering the context connects."""
        self._address = address_of(spec.place)
        self._topic = topic_of(self._address)
        if unknown := list(spec.options):
            raise SourceError(f"{self._address.name}: there is no option {unknown[0]}")
        self._run, self._number = uuid4().hex[:12], 0
        self._failure: str | None = None
        self._trouble: str | None = None
        self._producer = Producer(
            {
                **client_settings(self._address),
                "client.id": "rsp-replay",
                "enable.idempotence": True,
                "delivery.timeout.ms": int(1000 * _ACK_TIMEOUT_S),
                "queue.buffering.max.messages": _QUEUE,
                "linger.ms": 5,
                "log_level": 0,
                "error_cb": self._note,
            }
        )

    def __enter__(self) -> Self:
        try:
            found = self._producer.list_topics(self._topic, timeout=_CONNECT_S)
        except Exception as error:
            reason = self._trouble or str(error)
            raise DriverError(
                f"{self._address.name}: the broker cannot be reached: {reason}", "check the address"
            ) from None
        if found.topics[self._topic].error is not None:
            hint = "create it"
            raise DriverError(f"{self._address.name}: the broker has no such topic", hint)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._producer.flush()
            self._check()
        else:
            self._producer.purge()

    def send(self, element: Element) -> None:
        """Send an element; block while too many messages are unacknowledged."""
        self._number += 1
        name = f"{self._run}-{self._number}"
        message = envelope_of(element, name)
        while True:
            self._check()
            try:
                self._producer.produce(self._topic, message, name, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def _check(self) -> None:
        if self._failure is not None:
            raise DriverError(f"{self._address.name}: {self._failure}")

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._failure = f"the broker has not acknowledged a message: {error.str()}"

    def _note(self, error: KafkaError) -> None:
        """Remember why the broker cannot be reached; librdkafka calls this."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._trouble = error.str()
