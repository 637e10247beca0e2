"""WebSocket (RFC 6455): each frame of text or bytes is a message.

The protocol knows no acknowledgement. A server that can go on from where it was is told the id of
the last message on disk, in a parameter of the address: `?resume=NAME`. Of any other, what it sends
while nobody listens is gone.

While there is no room nothing is read, and so neither are the server's pings: one that asks for an
answer within some seconds closes the connection, and is asked again when there is room.
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

from rsp_engine.io.sources.live.receiver import GROUP, GROUP_BYTES, POLL_S, Away
from rsp_engine.io.sources.live.records import Message, envelope_id

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["WebSocketLink", "resumed"]

_LARGEST_FRAME = 64 << 20
_AHEAD = 4
"""So many frames at most are read before they are taken."""
_BUFFER = 256 << 10
"""How much the system holds back: what is behind it, as a ping, is not long in coming."""
_SILENCE_MS = 60_000
"""How long what is sent can stay without an answer of the other computer."""
_CONNECT_S = 10.0


class WebSocketLink:
    """Listens to a server."""

    def __init__(self, address: Address, resume: str | None) -> None:
        """Take the name of the parameter that says where to go on, if the server knows one."""
        self._address = address
        self._resume = resume

    def listen(self, inbox: Inbox) -> None:
        """Connect, and take frames until the server goes away."""
        url = self._address.url
        if self._resume is not None and inbox.last_id:
            url = resumed(url, self._resume, inbox.last_id)
        try:
            with self._connected(url) as connection:
                _prepare(connection.socket)
                inbox.is_well()
                while not inbox.is_closed:
                    inbox.put(list(map(_message, _frames(connection))))
        except ConnectionClosed as closed:
            raise Away(f"the server closed the connection: {closed}") from None

    def _connected(self, url: str) -> ClientConnection:
        try:
            return connect(
                url,
                ssl=self._address.tls(),
                additional_headers=self._address.headers(),
                open_timeout=_CONNECT_S,
                max_size=_LARGEST_FRAME,
                max_queue=_AHEAD,
                compression=None,  # a few bytes could become any number of frames
                ping_timeout=None,  # its answer is not read while there is no room
            )
        except InvalidStatus as error:
            told = f"the server answers {error.response.status_code}"
            if error.response.status_code in (401, 403):
                told += f" (check {self._address.variables}_TOKEN, or ..._USER and ..._PASSWORD)"
            raise Away(told) from None
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", None) or error.reason or str(error)
            hint = f"{self._address.variables}_CA names a file of certificates to trust"
            raise Away(f"the server is not trusted: {reason} ({hint})") from None
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise Away(f"the server cannot be reached: {reason}") from None
        except (InvalidHandshake, WebSocketException) as error:
            raise Away(f"the server does not speak WebSocket here: {error}") from None


def resumed(url: str, parameter: str, last: str) -> str:
    """Return an address with the id of the last message in a parameter.

    >>> resumed("ws://example.org/feed?room=7", "after", "a b")
    'ws://example.org/feed?room=7&after=a%20b'
    """
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, f"{quote(parameter)}={quote(last)}")))
    return urlunsplit(parts._replace(query=query))


def _prepare(found: socket.socket) -> None:
    """Let the system hold little back, and end a connection to a computer that is gone."""
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENCE_MS)


def _frames(connection: ClientConnection) -> list[str | bytes]:
    """Return the frames that have come, or wait a while."""
    found: list[str | bytes] = []
    size = 0
    try:
        found.append(connection.recv(timeout=POLL_S))
        while len(found) < GROUP and (size := size + len(found[-1])) < GROUP_BYTES:
            found.append(connection.recv(timeout=0))
    except TimeoutError:
        pass
    except ConnectionClosed:
        if not found:  # what came before is taken first
            raise
    return found


def _message(frame: str | bytes) -> Message:
    payload = frame.encode() if isinstance(frame, str) else frame
    return Message(payload, "", envelope_id(payload))
