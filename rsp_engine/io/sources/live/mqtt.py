"""MQTT source with QoS 1 (MQTT 5.0, OASIS, 2019; or 3.1.1).

A message is acknowledged once it is on disk. With a checkpoint the session is persistent: the
broker queues messages while the engine is down, as many as its configuration allows. Without a
checkpoint the session ends with the run.

One thread reads a group of messages, writes them to disk and acknowledges them. While the spool is
full it does not read. This is the back-pressure: messages wait in the socket buffers and then at
the broker, whatever their QoS and however many the broker sends before it needs an acknowledgement.
The thread still sends keep-alive pings.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from rsp_engine.io.sources.live.deduplicator import message_digest
from rsp_engine.io.sources.live.receiver import GROUP, GROUP_BYTES, POLL_S, SenderUnreachable
from rsp_engine.io.sources.live.records import Message, envelope_id

if TYPE_CHECKING:
    from pathlib import Path

    from paho.mqtt.reasoncodes import ReasonCode

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["MqttLink", "client_name", "open_connection", "refusal", "set_credentials"]

KEEP_ALIVE_S = 30
SESSION_S = 7 * 24 * 3600
"""Session expiry: how long a broker keeps messages for an engine that is down."""
IN_FLIGHT = GROUP
"""Receive maximum: how many unacknowledged messages a broker may send."""
# Reason codes of MQTT 5.0 (section 3.2.2.2) that point to wrong credentials.
_CREDENTIAL_CODES = {"Bad user name or password", "Not authorized"}


class MqttLink:
    """A subscription to a topic, which may contain wildcards."""

    def __init__(self, address: Address, version: int, client: str, *, is_kept: bool) -> None:
        """Set the client id, by which the broker recognises the session."""
        self._address = address
        self._version = version
        self._name = client
        self._is_kept = is_kept

    def listen(self, inbox: Inbox) -> None:
        """Connect, subscribe, and write messages to the spool before acknowledging them."""
        client = _Listener(self._address, self._version, self._name, is_kept=self._is_kept)
        self._set_callbacks(client, inbox)
        open_connection(client, self._address, self._version, is_kept=self._is_kept)
        try:
            while not inbox.is_closed:
                client.exchange()
                self._take(client, inbox)
        finally:
            client.disconnect()

    def _set_callbacks(self, client: _Listener, inbox: Inbox) -> None:
        def on_connect(
            _client: mqtt.Client,
            _data: object,
            _flags: object,
            code: ReasonCode,
            _properties: object,
        ) -> None:
            if code.is_failure:
                client.away = SenderUnreachable(refusal(self._address, code))
            else:
                client.subscribe(self._address.path, qos=1)

        def on_subscribe(
            _client: mqtt.Client,
            _data: object,
            _mid: int,
            codes: list[ReasonCode],
            _properties: object,
        ) -> None:
            if any(code.is_failure for code in codes):
                client.away = SenderUnreachable(f"the broker refuses the topic: {codes[0]}")
            else:
                inbox.is_well()

        client.on_connect = on_connect
        client.on_subscribe = on_subscribe

    def _take(self, client: _Listener, inbox: Inbox) -> None:
        """Write and acknowledge new messages; raise `SenderUnreachable` if disconnected."""
        arrived = client.take_arrived()
        inbox.put([_message(each) for each in arrived], client.keep_alive)
        for each in arrived:
            client.ack(each.mid, each.qos)
        if client.away is not None:
            raise client.away


class _Listener(mqtt.Client):
    """A client without a network thread: it reads only when `exchange` is called."""

    def __init__(self, address: Address, version: int, name: str, *, is_kept: bool) -> None:
        super().__init__(**_settings(version, name, is_kept=is_kept))
        set_credentials(self, address)
        self.away: SenderUnreachable | None = None
        """Why no more messages will arrive."""
        self._arrived: list[mqtt.MQTTMessage] = []
        self._bytes = 0
        self._last_ping = time.monotonic()
        self.on_message = lambda _client, _data, message: self._arrived.append(message)
        self.on_disconnect = self._disconnected

    def _disconnected(
        self,
        _client: mqtt.Client,
        _data: object,
        _flags: object,
        code: ReasonCode,
        _properties: object,
    ) -> None:
        if self.away is None:
            self.away = SenderUnreachable(f"the connection to the broker is lost: {code}")

    def exchange(self) -> None:
        """Read a group of messages, or wait up to `POLL_S` for one; send pending packets."""
        if (connection := self.socket()) is None:
            return
        writing = [connection] if self.want_write() else []
        pending = isinstance(connection, ssl.SSLSocket) and connection.pending()
        readable, _, _ = select.select([connection], writing, [], 0 if pending else POLL_S)
        if readable or pending:
            self._read()
        else:
            # A ping response may be queued behind unread messages: check whether the broker is
            # alive only when nothing is left to read.
            self.loop_misc()
        self.keep_alive()

    def _read(self) -> None:
        """Read until the socket is empty or the group is full."""
        before = -1
        while before < len(self._arrived) < GROUP and self._bytes < GROUP_BYTES:
            before = len(self._arrived)
            self.loop_read()
            self._bytes += sum(len(each.payload) for each in self._arrived[before:])

    def keep_alive(self) -> None:
        """Send pending packets, and a ping if one is due."""
        if self.want_write():
            self.loop_write()
        if (
            time.monotonic() - self._last_ping
            > min(self.keepalive or KEEP_ALIVE_S, KEEP_ALIVE_S) / 3
        ):
            self._last_ping = time.monotonic()
            self._send_pingreq()

    def take_arrived(self) -> list[mqtt.MQTTMessage]:
        """Return the messages that arrived since the last call."""
        arrived, self._arrived, self._bytes = self._arrived, [], 0
        return arrived


def _message(packet: mqtt.MQTTMessage) -> Message:
    """Return a message with the id of its envelope.

    Without an envelope id, the packet identifier and the content identify the message until it is
    acknowledged.
    """
    payload = bytes(packet.payload)
    if name := envelope_id(payload):
        return Message(payload, packet.topic, f"{packet.topic} {name}")
    message = Message(payload, packet.topic, "", packet.dup)
    if packet.qos == 0:
        return message
    return message._replace(id=f"{packet.mid} {message_digest(message).hex()}")


def client_name(folder: Path) -> str:
    """Return the client id of a spool; it is created once and stored next to the messages."""
    path = folder / "client"
    if not path.exists():
        path.write_text(f"rsp-{uuid4().hex[:16]}", encoding="utf-8")
    return path.read_text(encoding="utf-8")


def _settings(version: int, name: str, *, is_kept: bool) -> dict[str, Any]:
    is_old = version == 3
    return {
        "callback_api_version": CallbackAPIVersion.VERSION2,
        "client_id": name,
        "clean_session": not is_kept if is_old else None,
        "protocol": MQTTProtocolVersion.MQTTv311 if is_old else MQTTProtocolVersion.MQTTv5,
        "manual_ack": True,
        "reconnect_on_failure": False,
    }


def set_credentials(client: mqtt.Client, address: Address) -> None:
    """Give a client the trusted certificates and the user of an address."""
    tls, user = address.tls(), address.user()
    if tls is not None:
        client.tls_set_context(tls)
    if user is not None:
        client.username_pw_set(*user)


def open_connection(client: mqtt.Client, address: Address, version: int, *, is_kept: bool) -> None:
    """Connect a client to its broker; raise `SenderUnreachable` if that fails."""
    options: dict[str, Any] = {}
    if version != 3:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.ReceiveMaximum = IN_FLIGHT
        properties.SessionExpiryInterval = SESSION_S if is_kept else 0
        options = {"clean_start": not is_kept, "properties": properties}
    try:
        client.connect(address.host, address.port, KEEP_ALIVE_S, **options)
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason or str(error)
        hint = f"{address.variables}_CA names a file of certificates to trust"
        raise SenderUnreachable(f"the broker is not trusted: {reason} ({hint})") from None
    except socket.gaierror:
        raise SenderUnreachable(f"there is no host {address.host}") from None
    except OSError as error:
        raise SenderUnreachable(
            f"the broker cannot be reached: {error.strerror or error}"
        ) from None


def refusal(address: Address, code: ReasonCode) -> str:
    """Return why a broker refuses a client, with a hint about its credentials."""
    reason = f"the broker refuses the connection: {code}"
    if str(code) in _CREDENTIAL_CODES:
        reason += f" (check {address.variables}_USER and {address.variables}_PASSWORD)"
    return reason
