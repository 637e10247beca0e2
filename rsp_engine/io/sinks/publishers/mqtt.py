"""MQTT publisher: sends elements to a topic with QoS 1.

Each message is sent until the broker acknowledges it. After a reconnect a message may be delivered
twice; subscribers recognise the duplicate by the id in its envelope.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from rsp_engine.errors import DriverError, SourceError
from rsp_engine.io.sinks.delivery.mqtt import new_publisher
from rsp_engine.io.sinks.publishers.envelope import envelope_of
from rsp_engine.io.sources.live.address import address_of
from rsp_engine.io.sources.live.mqtt import open_connection, refusal
from rsp_engine.io.sources.live.receiver import SenderUnreachable

if TYPE_CHECKING:
    from types import TracebackType

    import paho.mqtt.client as mqtt
    from paho.mqtt.reasoncodes import ReasonCode

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.model.streams import Element

__all__ = ["Publisher"]

_LOG = logging.getLogger("rsp")
_IN_FLIGHT = 1_000
"""Maximum number of unacknowledged messages."""
_CONNECT_S = 10.0
"""Seconds to wait for the broker to accept the connection."""
_ACK_TIMEOUT_S = 60.0
"""Seconds without any acknowledgement after which sending fails."""


class Publisher:
    """Sends elements to a topic, each in a jsonl envelope; a context manager."""

    def __init__(self, spec: Spec) -> None:
        """Check the address and the options; entering the context connects."""
        self._address = _target(spec)
        self._version = int(spec.choice("version", ("5", "3")))
        self._run, self._number = uuid4().hex[:12], 0
        self._free_slots = threading.Semaphore(_IN_FLIGHT)
        self._is_connected = threading.Event()
        self._failure: str | None = None
        self._refusal: str | None = None
        """Why the broker refuses what was sent: it has acknowledged a message, and dropped it."""
        self._client = self._new_client()

    def __enter__(self) -> Self:
        try:
            open_connection(self._client, self._address, self._version, is_kept=False)
        except SenderUnreachable as away:
            raise DriverError(f"{self._address.name}: {away}", "check the address") from None
        self._client.loop_start()
        if not self._is_connected.wait(_CONNECT_S) or self._failure is not None:
            self._client.loop_stop()
            reason = self._failure or "the broker does not answer"
            raise DriverError(f"{self._address.name}: {reason}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                for _ in range(_IN_FLIGHT):
                    self._wait_for_slot()
        finally:
            self._client.disconnect()
            self._client.loop_stop()

    def send(self, element: Element) -> None:
        """Send an element; block while too many messages are unacknowledged."""
        self._wait_for_slot()
        self._number += 1
        message = envelope_of(element, f"{self._run}-{self._number}")
        self._client.publish(self._address.path, message, qos=1)

    def _wait_for_slot(self) -> None:
        if not self._free_slots.acquire(timeout=_ACK_TIMEOUT_S):
            message = f"the broker has acknowledged nothing for {_ACK_TIMEOUT_S:g} s"
            raise DriverError(f"{self._address.name}: {message}")
        if self._refusal is not None:
            raise DriverError(f"{self._address.name}: {self._refusal}")

    def _new_client(self) -> mqtt.Client:
        name = f"rsp-replay-{self._run}"
        client = new_publisher(self._address, self._version, name, reconnects=True)
        client.reconnect_delay_set(1, 5)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = self._on_publish
        return client

    def _on_publish(
        self, _client: mqtt.Client, _data: object, _number: int, code: ReasonCode, _more: object
    ) -> None:
        if code.is_failure:
            self._refusal = f"the broker refuses a message: {code}"
        self._free_slots.release()

    def _on_connect(
        self,
        _client: mqtt.Client,
        _data: object,
        _flags: object,
        code: ReasonCode,
        _properties: object,
    ) -> None:
        self._failure = refusal(self._address, code) if code.is_failure else None
        if self._is_connected.is_set() and self._failure is None:
            _LOG.warning("%s: connected again", self._address.name)
        self._is_connected.set()

    def _on_disconnect(
        self,
        _client: mqtt.Client,
        _data: object,
        _flags: object,
        code: ReasonCode,
        _properties: object,
    ) -> None:
        if code.is_failure and self._failure is None:
            _LOG.warning("%s: the connection is lost: %s; trying again", self._address.name, code)


def _target(spec: Spec) -> Address:
    address = address_of(spec.place)  # which refuses a password before anything quotes the address
    if unknown := [option for option in spec.options if option != "version"]:
        hint = "the option is: version"
        raise SourceError(f"{address.name}: there is no option {unknown[0]}", hint)
    if address.scheme not in ("mqtt", "mqtts"):
        hint = "write mqtt://host/topic, or kafka://host/topic"
        raise SourceError(f"{address.name}: streams are replayed to MQTT and Kafka", hint)
    if not address.path or "#" in address.path or "+" in address.path:
        hint = "write one topic after the host, without + and #"
        raise SourceError(f"{address.name}: it names no topic to send to", hint)
    return address
