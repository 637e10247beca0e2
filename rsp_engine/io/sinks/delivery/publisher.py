"""The publisher of `rsp replay`: sends the elements of a recorded stream to a topic.

Each element is a jsonl object with its time and an id, by which subscribers recognise a message
that comes again. The couriers of sinks deliver them, and try again after a failure.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from rsp_engine.errors import DriverError, SourceError
from rsp_engine.io.sinks.delivery.courier import Delivery
from rsp_engine.io.sinks.delivery.deliverer import Deliverer
from rsp_engine.io.sinks.delivery.outbox import MemoryOutbox
from rsp_engine.io.sources.live.address import address_of
from rsp_engine.io.sources.spec import need

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rsp_engine.io.sinks.delivery.courier import Courier
    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.model.streams import Element

__all__ = ["Publisher"]

_ROOM = 1 << 20
"""How many bytes of messages may wait to be acknowledged."""
_PATIENCE_S = 60.0
"""How long to try again while nothing is acknowledged; not at all before the first message was."""
_POLL_S = 0.01
_MEDIA_TYPE = "application/json"


class Publisher:
    """Sends elements to a topic, each in a jsonl envelope; a context manager."""

    def __init__(self, spec: Spec) -> None:
        """Check the address and the options; entering the context connects."""
        address = address_of(spec.place)  # which refuses a password before anything quotes it
        self._name = address.name
        self._outbox = MemoryOutbox(_ROOM)
        self._deliverer = Deliverer(self._name, self._outbox, _courier(spec, address), "messages")
        self._run, self._number = uuid4().hex[:12], 0

    def __enter__(self) -> Self:
        self._deliverer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            while kind is None and self._outbox.waiting().deliveries:
                self._check()
                time.sleep(_POLL_S)
        finally:
            self._deliverer.close(2 * _POLL_S if kind else 2.0)

    def send(self, element: Element) -> None:
        """Send an element; block while too many messages are unacknowledged."""
        self._number += 1
        name = f"{self._run}-{self._number}"
        graph = "".join(f"{triple} .\n" for triple in element.triples)
        envelope = {
            "id": name,
            "timestamp": element.timestamp,
            "format": "ntriples",
            "graph": graph,
        }
        self._outbox.put(Delivery(name, json.dumps(envelope).encode()))
        self._check()
        while self._outbox.is_full:
            time.sleep(_POLL_S)
            self._check()

    def _check(self) -> None:
        """Raise if the topic takes nothing."""
        work = self._deliverer
        if work.defect is not None:
            raise work.defect
        patience = _PATIENCE_S if work.delivered else 0.0
        if work.trouble is not None and time.monotonic() > work.progress + patience:
            raise DriverError(f"{self._name}: {work.trouble}", "check the address and the topic")


def _courier(spec: Spec, address: Address) -> Courier:
    """Return what delivers to an address; raise `SourceError` if that is no topic."""
    if address.scheme in ("kafka", "kafkas"):
        _check_options(spec, ())
        need(address.name, "kafka", "confluent_kafka")
        from rsp_engine.io.sinks.delivery.kafka import KafkaTopic

        return KafkaTopic(address, _MEDIA_TYPE)
    if address.scheme in ("mqtt", "mqtts"):
        _check_options(spec, ("version",))
        address.check_single_topic()
        need(address.name, "mqtt", "paho")
        from rsp_engine.io.sinks.delivery.mqtt import MqttBroker

        version = int(spec.choice("version", ("5", "3")))
        return MqttBroker(address, _MEDIA_TYPE, version, is_retained=False)
    hint = "write mqtt://host/topic, or kafka://host/topic"
    raise SourceError(f"{address.name}: streams are replayed to MQTT and Kafka", hint)


def _check_options(spec: Spec, known: Sequence[str]) -> None:
    for option in spec.options:
        if option not in known:
            hint = f"the option is: {known[0]}" if known else "leave it out"
            raise SourceError(f"{spec.name}: there is no option {option}", hint)
