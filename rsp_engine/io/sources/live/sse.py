"""Server-sent events (WHATWG HTML, section 9.2): each event is a message, with its id.

After a reconnect, the server gets the id of the last event on disk in `Last-Event-ID`, and can
continue from there. A server that answers 204 ends the stream.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import requests
import urllib3

from rsp_engine.io.sources.live.receiver import LARGEST_MESSAGE, MessageQueue, SenderUnreachable
from rsp_engine.io.sources.live.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["EventParser", "SseLink"]

CONNECT_S = 10.0
SILENCE_S = 60.0
"""Read timeout: how long a server may be silent."""

_BLOCK = 1 << 16
_LONGEST_NAME = 1 << 16
"""The longest id, and the longest line without data, in bytes."""


class SseLink:
    """A link to a server of events."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._url = address.url.removeprefix("sse+")

    def listen(self, inbox: Inbox) -> None:
        """Request events, and deliver them until the connection ends."""
        with self._request(inbox.last_id) as response:
            if response.status_code == requests.codes.no_content:
                return
            inbox.is_well()
            arrivals = MessageQueue()
            _Reader(response, arrivals, inbox.largest).start()
            try:
                while not inbox.is_closed:
                    messages, away = arrivals.take()
                    inbox.put(messages)
                    if away is not None:
                        raise away
            finally:
                arrivals.close()

    def _request(self, last: str) -> requests.Response:
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        headers |= {"Cache-Control": "no-store", **self._address.headers()}
        if last:
            headers["Last-Event-ID"] = last
        self._address.tls()  # for its readable errors
        try:
            response = requests.get(
                self._url,
                stream=True,
                timeout=(CONNECT_S, SILENCE_S),
                allow_redirects=False,
                headers={name: value.encode() for name, value in headers.items()},
                verify=self._address.variable("CA") or True,
                cert=self._address.certificate(),
            )
        except requests.exceptions.SSLError:
            hint = f"{self._address.variables}_CA names a file of certificates to trust"
            raise SenderUnreachable(f"the server is not trusted ({hint})") from None
        except requests.Timeout:
            raise SenderUnreachable("the server does not answer") from None
        except (requests.RequestException, ValueError) as error:
            raise SenderUnreachable(f"the server cannot be reached: {_innermost(error)}") from None
        self._check(response)
        return response

    def _check(self, response: requests.Response) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == requests.codes.no_content:
            return
        if response.status_code != requests.codes.ok:
            reason = f"the server returns status {response.status_code} {response.reason}".rstrip()
            if response.status_code in (401, 403):
                reason += f" (check {self._address.variables}_TOKEN, or ..._USER and ..._PASSWORD)"
        elif kind != "text/event-stream":
            reason = f"the server sends {kind or 'something'}, not text/event-stream"
        else:
            return
        response.close()
        raise SenderUnreachable(reason)


class _Reader(threading.Thread):
    """A thread that reads ahead, so that events that arrive during a sync share the next one."""

    def __init__(self, response: requests.Response, arrivals: MessageQueue, largest: int) -> None:
        super().__init__(name="reader of events", daemon=True)
        self._response = response
        self._arrivals = arrivals
        self._events = EventParser(largest)

    def run(self) -> None:
        """Read until the response ends; block while the queue is full."""
        self._arrivals.end(self._read())

    def _read(self) -> SenderUnreachable:
        try:
            while chunk := self._response.raw.read1(_BLOCK):
                for message in self._events.feed(chunk):
                    if not self._arrivals.put(message):
                        return SenderUnreachable("the receiver has stopped")
        except urllib3.exceptions.ReadTimeoutError:
            return SenderUnreachable(f"the server has been silent for {SILENCE_S:g} s")
        except urllib3.exceptions.ProtocolError:
            return SenderUnreachable("the server broke off the connection")
        except Exception as error:
            return SenderUnreachable(f"the connection broke: {_innermost(error)}")
        return SenderUnreachable("the server ended the connection", self._events.retry)


class EventParser:
    r"""An incremental parser of event streams, which truncates events that are too large.

    >>> events = EventParser()
    >>> [(m.id, m.payload) for m in events.feed(b"id: 7\ndata: a\ndata: b\n\ndata: c")]
    [('7', b'a\nb')]
    >>> [(m.id, m.payload) for m in events.feed(b"d\r\n\r\n")]
    [('', b'cd')]
    """

    def __init__(self, largest: int = LARGEST_MESSAGE) -> None:
        self.retry: float | None = None
        """The reconnection time that the server asks for, in seconds."""
        self._largest = largest
        self._longest = largest + _LONGEST_NAME
        self._line = bytearray()
        self._left_out = 0
        """The number of bytes of the line that were dropped."""
        self._is_after_cr = False
        self._data: list[bytes] = []
        self._kept = 0
        self._size = 0
        self._id = ""

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """Add bytes; yield the events that they complete."""
        # The line feed may belong to a carriage return at the end of the previous chunk.
        chunk = chunk[1:] if self._is_after_cr and chunk.startswith(b"\n") else chunk
        for line in chunk.splitlines(keepends=True):
            text = line.rstrip(b"\r\n")
            room = max(0, self._longest - len(self._line))
            self._line += text[:room]
            self._left_out += max(0, len(text) - room)
            if len(text) == len(line):
                break  # the line continues in the next chunk
            if message := self._end_line():
                yield message
        self._is_after_cr = chunk.endswith(b"\r") if chunk else False

    def _end_line(self) -> Message | None:
        """Process a complete line; return the event that it ends, if any."""
        line, left_out = bytes(self._line), self._left_out
        self._line.clear()
        self._left_out = 0
        if not line:
            return self._event()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                self._add(value, left_out)
            case b"id" if b"\0" not in value:
                self._id = value[:_LONGEST_NAME].decode(errors="replace")
            case b"retry" if value.isdigit():
                self.retry = int(value) / 1000
            case _:
                pass  # comments and unknown fields
        return None

    def _add(self, value: bytes, left_out: int) -> None:
        """Add a line of data, unless the event is too large already."""
        self._size += len(value) + left_out + 1
        if self._kept <= self._largest:
            self._data.append(value)
            self._kept += len(value) + 1

    def _event(self) -> Message | None:
        payload, size = b"\n".join(self._data), max(0, self._size - 1)
        message = Message(payload, "", self._id, size=size if size > self._largest else 0)
        self._data, self._id, self._kept, self._size = [], "", 0, 0
        return message if payload else None


def _innermost(error: BaseException) -> str:
    """Return the innermost reason of a failure: the outer messages repeat the URL."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    for inner in (getattr(error, "reason", None), next(iter(error.args), None), error.__cause__):
        if isinstance(inner, BaseException):
            return _innermost(inner)
    return str(error) or type(error).__name__
