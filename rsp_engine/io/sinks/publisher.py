"""Messages to a broker: each is sent until the broker says that it has it (MQTT, QoS 1).

A message that is sent again after the connection broke may come twice; the id in its envelope tells
those who read it.
"""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, Self
from uuid import uuid4

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from rsp_engine.errors import DriverError, SourceError
from rsp_engine.io.sources.live.address import address_of
from rsp_engine.io.sources.live.mqtt import reached, refusal
from rsp_engine.io.sources.live.receiver import Away

if TYPE_CHECKING:
    from types import TracebackType

    from paho.mqtt.reasoncodes import ReasonCode

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.model.streams import Element

__all__ = ["Publisher"]

_LOG = logging.getLogger("rsp")
_ON_THE_WAY = 1_000
"""So many messages at most are sent, and not yet acknowledged."""
_CONNECT_S = 10.0
_PATIENCE_S = 60.0
"""How long nothing is acknowledged before it is given up."""


class Publisher:
    """Sends elements to a topic, each in a jsonl envelope; used in a `with`."""

    def __init__(self, spec: Spec) -> None:
        """Connect; what cannot work is refused."""
        self._address = _target(spec)
        self._version = int(spec.choice("version", ("5", "3")))
        self._run, self._number = uuid4().hex[:12], 0
        self._room = threading.Semaphore(_ON_THE_WAY)
        self._is_connected = threading.Event()
        self._failure: str | None = None
        self._client = self._made()

    def __enter__(self) -> Self:
        try:
            reached(self._client, self._address, self._version, is_kept=False)
        except Away as away:
            raise DriverError(f"{self._address.url}: {away}", "check the address") from None
        self._client.loop_start()
        if not self._is_connected.wait(_CONNECT_S) or self._failure is not None:
            self._client.loop_stop()
            reason = self._failure or "the broker does not answer"
            raise DriverError(f"{self._address.url}: {reason}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                for _ in range(_ON_THE_WAY):
                    self._wait()
        finally:
            self._client.disconnect()
            self._client.loop_stop()

    def send(self, element: Element) -> None:
        """Send an element; wait where too many are on the way."""
        self._wait()
        self._number += 1
        envelope = {
            "id": f"{self._run}-{self._number}",
            "timestamp": element.timestamp,
            "format": "ntriples",
            "graph": "".join(f"{triple} .\n" for triple in element.triples),
        }
        self._client.publish(self._address.path, json.dumps(envelope), qos=1)

    def _wait(self) -> None:
        if not self._room.acquire(timeout=_PATIENCE_S):
            message = f"the broker has acknowledged nothing for {_PATIENCE_S:g} s"
            raise DriverError(f"{self._address.url}: {message}")

    def _made(self) -> mqtt.Client:
        is_old = self._version == 3
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"rsp-replay-{self._run}",
            protocol=MQTTProtocolVersion.MQTTv311 if is_old else MQTTProtocolVersion.MQTTv5,
        )
        client.max_queued_messages_set(0)
        client.max_inflight_messages_set(200)
        client.reconnect_delay_set(1, 5)
        tls, user = self._address.tls(), self._address.user()
        if tls is not None:
            client.tls_set_context(tls)
        if user is not None:
            client.username_pw_set(*user)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = lambda *_: self._room.release()
        return client

    def _on_connect(
        self,
        _client: mqtt.Client,
        _data: object,
        _flags: object,
        code: ReasonCode,
        _more: object,
    ) -> None:
        self._failure = refusal(self._address, code) if code.is_failure else None
        if self._is_connected.is_set() and self._failure is None:
            _LOG.warning("%s: it is back", self._address.url)
        self._is_connected.set()

    def _on_disconnect(
        self,
        _client: mqtt.Client,
        _data: object,
        _flags: object,
        code: ReasonCode,
        _more: object,
    ) -> None:
        if code.is_failure and self._failure is None:
            _LOG.warning("%s: the connection is lost: %s; trying again", self._address.url, code)


def _target(spec: Spec) -> Address:
    if unknown := [option for option in spec.options if option != "version"]:
        hint = "the option is: version"
        raise SourceError(f"{spec.place}: there is no option {unknown[0]}", hint)
    address = address_of(spec.place)
    if address.scheme not in ("mqtt", "mqtts"):
        hint = "write mqtt://host/topic, or mqtts://host/topic"
        raise SourceError(f"{spec.place}: streams are replayed to MQTT brokers", hint)
    if not address.path or "#" in address.path or "+" in address.path:
        hint = "write one topic after the host, without + and #"
        raise SourceError(f"{spec.place}: it names no topic to send to", hint)
    return address
