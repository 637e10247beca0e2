"""Server-sent events (WHATWG HTML, section 9.2): each event is a message, with its id.

Where the connection breaks, the server is told the id of the last event that is on disk, and can go
on from there. A server that answers 204 has no more to say.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import requests
import urllib3

from rsp_engine.io.sources.live.receiver import LARGEST_MESSAGE, Away, MessageQueue
from rsp_engine.io.sources.live.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["EventParser", "SseLink"]

CONNECT_S = 10.0
SILENCE_S = 60.0
"""How long a server can be silent before the connection is given up."""

_BLOCK = 1 << 16
_LONGEST_NAME = 1 << 16
"""How long an id can be, or a line that holds no data."""


class SseLink:
    """Listens to a server."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._url = address.url.removeprefix("sse+")

    def listen(self, inbox: Inbox) -> None:
        """Ask for events, and take them until the server goes away."""
        with self._answer(inbox.last_id) as answer:
            if answer.status_code == requests.codes.no_content:
                return
            inbox.is_well()
            arrivals = MessageQueue()
            _Reader(answer, arrivals, inbox.largest).start()
            try:
                while not inbox.is_closed:
                    found, away = arrivals.take()
                    inbox.put(found)
                    if away is not None:
                        raise away
            finally:
                arrivals.close()

    def _answer(self, last: str) -> requests.Response:
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        headers |= {"Cache-Control": "no-store", **self._address.headers()}
        if last:
            headers["Last-Event-ID"] = last
        self._address.tls()  # for the words of its errors
        try:
            answer = requests.get(
                self._url,
                stream=True,
                timeout=(CONNECT_S, SILENCE_S),
                allow_redirects=False,
                headers={name: value.encode() for name, value in headers.items()},
                verify=self._address.variable("CA") or True,
                cert=self._certificate(),
            )
        except requests.exceptions.SSLError:
            hint = f"{self._address.variables}_CA names a file of certificates to trust"
            raise Away(f"the server is not trusted ({hint})") from None
        except requests.Timeout:
            raise Away("the server does not answer") from None
        except (requests.RequestException, ValueError) as error:
            raise Away(f"the server cannot be reached: {_innermost(error)}") from None
        self._check(answer)
        return answer

    def _certificate(self) -> tuple[str, str] | str | None:
        own, key = self._address.variable("CERT"), self._address.variable("KEY")
        return own if own is None or key is None else (own, key)

    def _check(self, answer: requests.Response) -> None:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.status_code == requests.codes.no_content:
            return
        if answer.status_code != requests.codes.ok:
            told = f"the server answers {answer.status_code} {answer.reason}".rstrip()
            if answer.status_code in (401, 403):
                told += f" (check {self._address.variables}_TOKEN, or ..._USER and ..._PASSWORD)"
        elif kind != "text/event-stream":
            told = f"the server sends {kind or 'something'}, not text/event-stream"
        else:
            return
        answer.close()
        raise Away(told)


class _Reader(threading.Thread):
    """Reads an answer as it comes: what has come meanwhile is brought to disk together."""

    def __init__(self, answer: requests.Response, arrivals: MessageQueue, largest: int) -> None:
        super().__init__(name="reader of events", daemon=True)
        self._answer = answer
        self._arrivals = arrivals
        self._events = EventParser(largest)

    def run(self) -> None:
        """Read until the answer breaks off; the server is not read on while nobody takes."""
        self._arrivals.end(self._read())

    def _read(self) -> Away:
        try:
            while chunk := self._answer.raw.read1(_BLOCK):
                for message in self._events.feed(chunk):
                    if not self._arrivals.put(message):
                        return Away("nobody listens any more")
        except urllib3.exceptions.ReadTimeoutError:
            return Away(f"the server has been silent for {SILENCE_S:g} s")
        except urllib3.exceptions.ProtocolError:
            return Away("the server broke off the connection")
        except Exception as error:
            return Away(f"the connection broke: {_innermost(error)}")
        return Away("the server ended the connection", self._events.retry)


class EventParser:
    r"""Takes the text of a stream apart; of an event that is too large, only the start is kept.

    >>> events = EventParser()
    >>> [(m.id, m.payload) for m in events.feed(b"id: 7\ndata: a\ndata: b\n\ndata: c")]
    [('7', b'a\nb')]
    >>> [(m.id, m.payload) for m in events.feed(b"d\r\n\r\n")]
    [('', b'cd')]
    """

    def __init__(self, largest: int = LARGEST_MESSAGE) -> None:
        self.retry: float | None = None
        """How many seconds the server asks to wait before it is asked again."""
        self._largest = largest
        self._longest = largest + _LONGEST_NAME
        self._line = bytearray()
        self._left_out = 0
        """How many bytes of the line were not kept."""
        self._is_after_cr = False
        self._data: list[bytes] = []
        self._kept = 0
        self._size = 0
        self._id = ""

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """Take some bytes; yield the events that they complete."""
        # A line feed may be the second character at the end of a line whose first came before.
        chunk = chunk[1:] if self._is_after_cr and chunk.startswith(b"\n") else chunk
        for line in chunk.splitlines(keepends=True):
            text = line.rstrip(b"\r\n")
            room = max(0, self._longest - len(self._line))
            self._line += text[:room]
            self._left_out += max(0, len(text) - room)
            if len(text) == len(line):
                break  # it goes on in the next bytes
            if message := self._take():
                yield message
        self._is_after_cr = chunk.endswith(b"\r") if chunk else False

    def _take(self) -> Message | None:
        """Take the line that has come."""
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
                pass  # comments, and fields that nobody knows
        return None

    def _add(self, value: bytes, left_out: int) -> None:
        """Keep a line of data, unless there is too much already."""
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
    """Return the innermost reason of a failure: the outer ones repeat it with the address."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    for inner in (getattr(error, "reason", None), next(iter(error.args), None), error.__cause__):
        if isinstance(inner, BaseException):
            return _innermost(inner)
    return str(error) or type(error).__name__
