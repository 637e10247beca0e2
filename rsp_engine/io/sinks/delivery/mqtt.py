"""Messages for an MQTT broker, with QoS 1: the broker acknowledges each of them.

With MQTT 5, the id of a message is its user property `id`, and its content type is set.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from uuid import uuid4

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from rsp_engine.io.sinks.delivery.courier import NotDelivered
from rsp_engine.io.sources.live.mqtt import open_connection, refusal, set_credentials
from rsp_engine.io.sources.live.receiver import SenderUnreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paho.mqtt.reasoncodes import ReasonCode

    from rsp_engine.io.sinks.delivery.courier import Delivery
    from rsp_engine.io.sources.live.address import Address

__all__ = ["MqttBroker"]

_IN_FLIGHT = 200
"""How many messages may be unacknowledged."""
_CONNECT_S = 10.0
"""Seconds to wait for the broker to accept the connection."""
_ACK_TIMEOUT_S = 30.0
"""Seconds without any acknowledgement after which delivery fails."""


class MqttBroker:
    """Publishes answers to a topic, in their order."""

    most = _IN_FLIGHT

    def __init__(
        self, address: Address, media_type: str, version: int, *, is_retained: bool
    ) -> None:
        self._address = address
        self._media_type = media_type
        self._version = version
        self._is_retained = is_retained
        self._client: mqtt.Client | None = None
        self._is_connected = threading.Event()
        self._away: str | None = None
        """Why the connection cannot be used."""
        self._outcomes: dict[int, str | None] = {}
        """What the broker answers, by the number of a packet: None, or why it refuses it."""
        self._news = threading.Condition()

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Publish messages, and wait until all of them are acknowledged."""
        if self._away is not None:
            self.close()
        client = self._client or self._connect()
        self._outcomes = {}
        numbers = [self._publish(client, each) for each in deliveries]
        for done, number in enumerate(numbers):
            if (reason := self._wait(number)) is not None:
                self.close()
                raise NotDelivered(reason, done)

    def _wait(self, number: int) -> str | None:
        """Wait for the acknowledgement of a message; return why there is none, if so.

        The callbacks tell, rather than the handles of the client: these raise if the connection
        breaks while they are asked.
        """
        with self._news:
            is_over = self._news.wait_for(
                lambda: number in self._outcomes or self._away is not None, _ACK_TIMEOUT_S
            )
            if number in self._outcomes:
                return self._outcomes[number]
        if is_over:
            return self._away
        return f"the broker has acknowledged nothing for {_ACK_TIMEOUT_S:g} s"

    def _publish(self, client: mqtt.Client, delivery: Delivery) -> int:
        """Send a message, and return the number of its packet."""
        properties = None
        if self._version != 3:
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            properties.ContentType = self._media_type
            properties.UserProperty = [("id", delivery.id)]
        sent = client.publish(
            self._address.path, delivery.body, 1, self._is_retained, properties=properties
        )
        if sent.rc != mqtt.MQTT_ERR_SUCCESS:
            reason = f"the message cannot be sent: {mqtt.error_string(sent.rc)}"
            self._outcomes.setdefault(sent.mid, reason)
        return sent.mid

    def _connect(self) -> mqtt.Client:
        self._begin()
        client = self._new_client()
        try:
            open_connection(client, self._address, self._version, is_kept=False)
        except SenderUnreachable as away:
            raise NotDelivered(str(away)) from None
        self._client = client
        client.loop_start()
        if not self._is_connected.wait(_CONNECT_S) or self._away is not None:
            reason = self._away or "the broker does not answer"
            self.close()
            raise NotDelivered(reason)
        return client

    def _begin(self) -> None:
        """Forget what is known of the connection before."""
        self._is_connected.clear()
        self._away, self._outcomes = None, {}

    def _new_client(self) -> mqtt.Client:
        is_old = self._version == 3
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"rsp-sink-{uuid4().hex[:12]}",
            protocol=MQTTProtocolVersion.MQTTv311 if is_old else MQTTProtocolVersion.MQTTv5,
            reconnect_on_failure=False,
        )
        client.max_queued_messages_set(0)
        client.max_inflight_messages_set(_IN_FLIGHT)
        set_credentials(client, self._address)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = self._on_publish
        return client

    def _on_connect(
        self, _client: mqtt.Client, _data: object, _flags: object, code: ReasonCode, _more: object
    ) -> None:
        if code.is_failure:
            self._away = refusal(self._address, code)
        self._is_connected.set()

    def _on_disconnect(
        self, _client: mqtt.Client, _data: object, _flags: object, code: ReasonCode, _more: object
    ) -> None:
        with self._news:
            if self._away is None:
                self._away = f"the connection to the broker is lost: {code}"
            self._news.notify()
        self._is_connected.set()

    def _on_publish(
        self, _client: mqtt.Client, _data: object, number: int, code: ReasonCode, _more: object
    ) -> None:
        with self._news:
            refused = f"the broker refuses the message: {code}"
            self._outcomes[number] = refused if code.is_failure else None
            self._news.notify()

    def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            self._client.on_disconnect = None
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None
