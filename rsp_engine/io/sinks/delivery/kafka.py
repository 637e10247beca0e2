"""Messages for a topic of Kafka: an idempotent producer, whose keys are query and window.

The broker drops what the producer sends twice. What a new process delivers again has the same key
and the same header `id`, so a compacted topic keeps one message for each window.
"""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Producer

from rsp_engine.io.kafka_settings import client_settings, topic_of
from rsp_engine.io.sinks.delivery.courier import NotDelivered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.io.sinks.delivery.courier import Delivery
    from rsp_engine.io.sources.live.address import Address

__all__ = ["KafkaTopic"]

_Outcome = KafkaError | bool | None
"""Whether a message was acknowledged, or why not; None while nothing is known."""

_TIMEOUT_S = 30.0
"""How long the brokers may take to acknowledge a message."""
_LARGEST = 1_000_000_000
"""The most bytes of a message that librdkafka allows: the brokers have limits of their own."""
_UNKNOWN_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
_POLL_S = 0.1
_CREDENTIALS = "authentication"
_STATE = re.compile(r" \(after \d+ms in state [^)]*\)")
"""What librdkafka adds to a reason, each time another: the same trouble is reported once."""
_SILENT = logging.Logger("librdkafka", logging.CRITICAL)
"""Takes what librdkafka prints otherwise: the reasons of failures are in `NotDelivered`."""


class KafkaTopic:
    """Produces answers to a topic, in their order."""

    most = 500

    def __init__(self, address: Address, media_type: str) -> None:
        self._address = address
        self._topic = topic_of(address)
        self._media_type = media_type
        self._timeout = _TIMEOUT_S
        self._settings = client_settings(address)
        self._producer: Producer | None = None
        self._trouble: str | None = None
        """What the client reports of its connections."""
        self._is_away = False
        """Whether it has none."""

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Produce messages, and wait until all of them are acknowledged."""
        outcomes: list[_Outcome] = [None] * len(deliveries)
        self._trouble, self._is_away = None, False
        try:
            producer = self._producer or self._connect()
            for number, delivery in enumerate(deliveries):
                self._produce(producer, delivery, number, outcomes)
            self._wait(producer, outcomes)
        except (KafkaException, BufferError) as error:
            self._give_up(outcomes, str(error.args[0]) if error.args else repr(error))
        failed = [each for each in outcomes if isinstance(each, KafkaError)]
        if failed:
            is_unknown = failed[0].code() in _UNKNOWN_TOPIC
            missing = f"there is no topic {self._topic} (create it)"
            self._give_up(outcomes, missing if is_unknown else failed[0].str())
        if _is_waiting(outcomes):
            self._give_up(outcomes, "the brokers acknowledge nothing")

    def _produce(
        self,
        producer: Producer,
        delivery: Delivery,
        number: int,
        outcomes: list[_Outcome],
    ) -> None:
        def record(error: KafkaError | None, _message: object) -> None:
            outcomes[number] = True if error is None else error

        producer.produce(
            self._topic,
            delivery.body,
            delivery.id.encode(),
            headers=[("id", delivery.id), ("content-type", self._media_type)],
            on_delivery=record,
        )

    def _wait(self, producer: Producer, outcomes: list[_Outcome]) -> None:
        until = time.monotonic() + self._timeout
        while _is_waiting(outcomes) and time.monotonic() < until:
            producer.poll(_POLL_S)
            if self._is_away or _CREDENTIALS in (self._trouble or "").lower():
                return  # the client would try until the time is up, and say nothing

    def _connect(self) -> Producer:
        self._producer = Producer(
            {
                **self._settings,
                "client.id": "rsp-sink",
                "enable.idempotence": True,
                "delivery.timeout.ms": int(self._timeout * 1000),
                "linger.ms": 5,
                "message.max.bytes": _LARGEST,
                "topic.metadata.propagation.max.ms": 5_000,
                "error_cb": self._note,
                "logger": _SILENT,
            }
        )
        return self._producer

    def _note(self, error: KafkaError) -> None:
        """Remember what the client reports; that all brokers are down says less than why."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._is_away = True
        if not self._is_away or self._trouble is None:
            self._trouble = _STATE.sub("", error.str())

    def _give_up(self, outcomes: Sequence[_Outcome], reason: str) -> None:
        """Drop the producer with all that it holds; raise `NotDelivered`."""
        trouble = self._trouble or reason
        self.close()
        delivered = next((n for n, each in enumerate(outcomes) if each is not True), len(outcomes))
        if _CREDENTIALS in trouble.lower():
            names = self._address.variables
            trouble += f" (check {names}_USER and {names}_PASSWORD)"
        raise NotDelivered(f"the brokers take nothing: {trouble}", delivered)

    def close(self) -> None:
        """Drop the producer; what it holds was not acknowledged, and is delivered again."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.poll(0)
            self._producer = None


def _is_waiting(outcomes: Sequence[_Outcome]) -> bool:
    return any(each is None for each in outcomes)  # an error cannot be compared with None
