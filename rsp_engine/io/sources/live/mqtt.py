"""MQTT with QoS 1: a message is acknowledged when it is on disk (MQTT 5.0, OASIS, 2019; or 3.1.1).

With a checkpoint the session is kept by the broker, so that it holds messages back while the engine
is away, as many as its configuration allows. Otherwise it begins and ends with the run.

One thread reads a group of messages, brings them to disk and acknowledges them. While there is no
room it does not read: messages wait in the buffers of the connection, and then at the broker, of
whatever QoS they are and however many the broker sends before one is acknowledged. It does tell the
broker that it is alive.
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
from rsp_engine.io.sources.live.receiver import GROUP, GROUP_BYTES, POLL_S, Away
from rsp_engine.io.sources.live.records import Message, envelope_id

if TYPE_CHECKING:
    from pathlib import Path

    from paho.mqtt.reasoncodes import ReasonCode

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["MqttLink", "client_name", "made_client", "reached"]

KEEP_ALIVE_S = 30
SESSION_S = 7 * 24 * 3600
"""How long a broker keeps messages for an engine that is away."""
IN_FLIGHT = GROUP
"""How many messages a broker may send before one is acknowledged."""
_REFUSALS = {"Bad user name or password", "Not authorized"}


class MqttLink:
    """Listens to a topic, which may hold wildcards."""

    def __init__(self, address: Address, version: int, client: str, *, is_kept: bool) -> None:
        """Take the name of the client, by which a broker knows its session."""
        self._address = address
        self._version = version
        self._name = client
        self._is_kept = is_kept

    def listen(self, inbox: Inbox) -> None:
        """Connect, subscribe, and take messages to the spool before they are acknowledged."""
        client = _Listener(self._address, self._version, self._name, is_kept=self._is_kept)
        self._hear(client, inbox)
        reached(client, self._address, self._version, is_kept=self._is_kept)
        try:
            while not inbox.is_closed:
                client.exchange()
                self._take(client, inbox)
        finally:
            client.disconnect()

    def _hear(self, client: _Listener, inbox: Inbox) -> None:
        def on_connect(
            _client: mqtt.Client, _data: object, _flags: object, code: ReasonCode, _more: object
        ) -> None:
            if code.is_failure:
                client.away = Away(refusal(self._address, code))
            else:
                client.subscribe(self._address.path, qos=1)

        def on_subscribe(
            _client: mqtt.Client, _data: object, _mid: int, codes: list[ReasonCode], _more: object
        ) -> None:
            if any(code.is_failure for code in codes):
                client.away = Away(f"the broker refuses the topic: {codes[0]}")
            else:
                inbox.is_well()

        client.on_connect = on_connect
        client.on_subscribe = on_subscribe

    def _take(self, client: _Listener, inbox: Inbox) -> None:
        """Take what has arrived; where the connection is lost, say so."""
        found = client.taken()
        inbox.put([_message(each) for each in found], client.stay)
        for each in found:
            client.ack(each.mid, each.qos)
        if client.away is not None:
            raise client.away


class _Listener(mqtt.Client):
    """A client that reads when it is told to, and only then."""

    def __init__(self, address: Address, version: int, name: str, *, is_kept: bool) -> None:
        super().__init__(**_settings(version, name, is_kept=is_kept))
        _introduce(self, address)
        self.away: Away | None = None
        """Why nothing follows what has arrived."""
        self._arrived: list[mqtt.MQTTMessage] = []
        self._bytes = 0
        self._told = time.monotonic()
        self.on_message = lambda _client, _data, message: self._arrived.append(message)
        self.on_disconnect = self._lost

    def _lost(
        self, _client: mqtt.Client, _data: object, _flags: object, code: ReasonCode, _more: object
    ) -> None:
        if self.away is None:
            self.away = Away(f"the connection to the broker is lost: {code}")

    def exchange(self) -> None:
        """Read a group of messages, or wait a while; and write what is to be written."""
        if (found := self.socket()) is None:
            return
        writing = [found] if self.want_write() else []
        pending = isinstance(found, ssl.SSLSocket) and found.pending()
        readable, _, _ = select.select([found], writing, [], 0 if pending else POLL_S)
        if readable or pending:
            self._read()
        else:
            # An answer to a ping may be behind messages that nobody has read yet: whether the
            # broker is alive is asked only where nothing is left to read.
            self.loop_misc()
        self.stay()

    def _read(self) -> None:
        """Read until nothing more comes, or there is a whole group."""
        before = -1
        while before < len(self._arrived) < GROUP and self._bytes < GROUP_BYTES:
            before = len(self._arrived)
            self.loop_read()
            self._bytes += sum(len(each.payload) for each in self._arrived[before:])

    def stay(self) -> None:
        """Write what is to be written, and tell the broker now and then that somebody is here."""
        if self.want_write():
            self.loop_write()
        if time.monotonic() - self._told > min(self.keepalive or KEEP_ALIVE_S, KEEP_ALIVE_S) / 3:
            self._told = time.monotonic()
            self._send_pingreq()

    def taken(self) -> list[mqtt.MQTTMessage]:
        """Return the messages that have arrived, once."""
        found, self._arrived, self._bytes = self._arrived, [], 0
        return found


def _message(found: mqtt.MQTTMessage) -> Message:
    """Return a message with the id of its envelope.

    Without one, the number of its packet tells it apart while it is not acknowledged.
    """
    payload = bytes(found.payload)
    if name := envelope_id(payload):
        return Message(payload, found.topic, f"{found.topic} {name}")
    message = Message(payload, found.topic, "", found.dup)
    if found.qos == 0:
        return message
    return message._replace(id=f"{found.mid} {message_digest(message).hex()}")


def client_name(folder: Path) -> str:
    """Return the name by which a broker knows who reads a spool, for as long as that is kept."""
    path = folder / "client"
    if not path.exists():
        path.write_text(f"rsp-{uuid4().hex[:16]}", encoding="utf-8")
    return path.read_text(encoding="utf-8")


def made_client(address: Address, version: int, name: str, *, is_kept: bool) -> mqtt.Client:
    """Return a client that is not connected, with whom it trusts and who it is."""
    client = mqtt.Client(**_settings(version, name, is_kept=is_kept))
    _introduce(client, address)
    return client


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


def _introduce(client: mqtt.Client, address: Address) -> None:
    """Tell a client whom it trusts, and who it is."""
    tls, user = address.tls(), address.user()
    if tls is not None:
        client.tls_set_context(tls)
    if user is not None:
        client.username_pw_set(*user)


def reached(client: mqtt.Client, address: Address, version: int, *, is_kept: bool) -> None:
    """Open the connection of a client; `Away` if nobody is there."""
    more: dict[str, Any] = {}
    if version != 3:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.ReceiveMaximum = IN_FLIGHT
        properties.SessionExpiryInterval = SESSION_S if is_kept else 0
        more = {"clean_start": not is_kept, "properties": properties}
    try:
        client.connect(address.host, address.port, KEEP_ALIVE_S, **more)
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason or str(error)
        hint = f"{address.variables}_CA names a file of certificates to trust"
        raise Away(f"the broker is not trusted: {reason} ({hint})") from None
    except socket.gaierror:
        raise Away(f"there is no host {address.host}") from None
    except OSError as error:
        raise Away(f"the broker cannot be reached: {error.strerror or error}") from None


def refusal(address: Address, code: ReasonCode) -> str:
    """Return why a broker does not let a client in."""
    told = f"the broker refuses the connection: {code}"
    if str(code) in _REFUSALS:
        told += f" (check {address.variables}_USER and {address.variables}_PASSWORD)"
    return told
