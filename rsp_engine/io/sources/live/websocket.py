"""WebSocket (RFC 6455): each text or binary frame is a message.

The protocol has no acknowledgements. A server that can resume gets the id of the last message on
disk in a parameter of the URL, which `?resume=NAME` names. Messages that any other server sends
while the engine is disconnected are lost.

While the spool is full nothing is read, and pings of the server are not answered. A server with a
ping timeout then closes the connection; the link reconnects when there is room.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    WebSocketException,
)
from websockets.sync.client import connect

from rsp_engine.io.sources.live.receiver import GROUP, GROUP_BYTES, POLL_S, SenderUnreachable
from rsp_engine.io.sources.live.records import Message, envelope_id

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["WebSocketLink"]

_LARGEST_FRAME = 64 << 20
_READ_AHEAD = 4
"""The most frames that the library reads ahead."""
_RECEIVE_BUFFER = 256 << 10
"""The receive buffer of the socket: small, so that a ping is not queued behind many messages."""
_USER_TIMEOUT_MS = 60_000
"""How long sent data may stay unacknowledged by TCP before the connection is closed."""
_CONNECT_S = 10.0


class WebSocketLink:
    """A link to a WebSocket server."""

    def __init__(self, address: Address, resume: str | None) -> None:
        """Set the URL parameter with which the server resumes, if it has one."""
        self._address = address
        self._resume = resume

    def listen(self, inbox: Inbox) -> None:
        """Connect, and deliver frames until the connection ends."""
        url = self._address.url
        if self._resume is not None and inbox.last_id:
            url = _with_parameter(url, self._resume, inbox.last_id)
        try:
            with self._connected(url) as connection:
                _prepare(connection.socket)
                inbox.is_well()
                while not inbox.is_closed:
                    inbox.put(list(map(_message, _frames(connection))))
        except ConnectionClosed as closed:
            raise SenderUnreachable(f"the server closed the connection: {closed}") from None

    def _connected(self, url: str) -> ClientConnection:
        try:
            return connect(
                url,
                ssl=self._address.tls(),
                additional_headers=self._address.headers(),
                open_timeout=_CONNECT_S,
                max_size=_LARGEST_FRAME,
                max_queue=_READ_AHEAD,
                compression=None,  # a few compressed bytes could expand to any size
                ping_timeout=None,  # a pong is not read while the spool is full
            )
        except InvalidStatus as error:
            reason = f"the server returns status {error.response.status_code}"
            if error.response.status_code in (401, 403):
                reason += f" (check {self._address.variables}_TOKEN, or ..._USER and ..._PASSWORD)"
            raise SenderUnreachable(reason) from None
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", None) or error.reason or str(error)
            hint = f"{self._address.variables}_CA names a file of certificates to trust"
            raise SenderUnreachable(f"the server is not trusted: {reason} ({hint})") from None
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise SenderUnreachable(f"the server cannot be reached: {reason}") from None
        except (InvalidHandshake, WebSocketException) as error:
            raise SenderUnreachable(f"the server does not accept WebSocket here: {error}") from None


def _with_parameter(url: str, parameter: str, value: str) -> str:
    """Return a URL with a parameter added to its query.

    >>> _with_parameter("ws://example.org/feed?room=7", "after", "a b")
    'ws://example.org/feed?room=7&after=a%20b'
    """
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, f"{quote(parameter)}={quote(value)}")))
    return urlunsplit(parts._replace(query=query))


def _prepare(connection: socket.socket) -> None:
    """Limit the receive buffer, and detect a peer that is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MS)


def _frames(connection: ClientConnection) -> list[str | bytes]:
    """Return the frames that have arrived, waiting up to `POLL_S` for the first."""
    frames: list[str | bytes] = []
    size = 0
    try:
        frames.append(connection.recv(timeout=POLL_S))
        while len(frames) < GROUP and (size := size + len(frames[-1])) < GROUP_BYTES:
            frames.append(connection.recv(timeout=0))
    except TimeoutError:
        pass
    except ConnectionClosed:
        if not frames:  # deliver the frames before the close first
            raise
    return frames


def _message(frame: str | bytes) -> Message:
    payload = frame.encode() if isinstance(frame, str) else frame
    return Message(payload, "", envelope_id(payload))
