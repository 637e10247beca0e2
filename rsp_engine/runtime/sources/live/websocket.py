"""WebSocket (RFC 6455): each frame of text or bytes is a message.

The protocol knows no acknowledgement. A server that can go on from where it was is told the id of
the last message on disk, in a parameter of the address: `?resume=NAME`. Of any other, what it sends
while nobody listens is gone.
"""

from __future__ import annotations

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

from rsp_engine.runtime.sources.live.receiving import POLL_S, Away
from rsp_engine.runtime.sources.live.records import Message, envelope_id

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

    from rsp_engine.runtime.sources.live.address import Address
    from rsp_engine.runtime.sources.live.receiving import Inbox

__all__ = ["WebSocketLink", "resumed"]

_AT_ONCE = 500
_LARGEST_FRAME = 64 << 20
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


def _frames(connection: ClientConnection) -> list[str | bytes]:
    """Return the frames that have come, or wait a while."""
    found: list[str | bytes] = []
    try:
        found.append(connection.recv(timeout=POLL_S))
        while len(found) < _AT_ONCE:
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
