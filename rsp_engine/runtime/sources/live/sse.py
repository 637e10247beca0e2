"""Server-sent events (WHATWG HTML, section 9.2): each event is a message, with its id.

Where the connection breaks, the server is told the id of the last event that is on disk, and can go
on from there. A server that answers 204 has no more to say.
"""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import requests
import urllib3

from rsp_engine.runtime.sources.live.receiving import POLL_S, Away, arrivals
from rsp_engine.runtime.sources.live.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.runtime.sources.live.address import Address
    from rsp_engine.runtime.sources.live.receiving import Inbox

__all__ = ["Events", "SseLink"]

CONNECT_S = 10.0
SILENCE_S = 60.0
"""How long a server can be silent before the connection is given up."""

_BLOCK = 1 << 16
_AT_ONCE = 1_000


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
            reader = _Reader(answer)
            reader.start()
            try:
                while not inbox.is_closed:
                    found, away = reader.taken()
                    inbox.put(found)
                    if away is not None:
                        raise away
            finally:
                reader.is_over.set()

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

    def __init__(self, answer: requests.Response) -> None:
        super().__init__(name="reader of events", daemon=True)
        self.is_over = threading.Event()
        self._answer = answer
        self._arrived: queue.Queue[Message | Away] = queue.Queue(_AT_ONCE)

    def run(self) -> None:
        """Read until the answer breaks off; the server is not read on while nobody takes."""
        events = Events()
        try:
            while chunk := self._answer.raw.read1(_BLOCK):
                for message in events.feed(chunk):
                    self._put(message)
        except urllib3.exceptions.ReadTimeoutError:
            self._put(Away(f"the server has been silent for {SILENCE_S:g} s"))
        except urllib3.exceptions.ProtocolError:
            self._put(Away("the server broke off the connection"))
        except Exception as error:
            self._put(Away(f"the connection broke: {_innermost(error)}"))
        else:
            self._put(Away("the server ended the connection", events.retry))

    def _put(self, item: Message | Away) -> None:
        while not self.is_over.is_set():
            with suppress(queue.Full):
                self._arrived.put(item, timeout=POLL_S)
                return

    def taken(self) -> tuple[list[Message], Away | None]:
        """Return the events that have come, and why there are no more."""
        return arrivals(self._arrived, _AT_ONCE)


class Events:
    r"""Takes the text of a stream apart.

    >>> events = Events()
    >>> [(m.id, m.payload) for m in events.feed(b"id: 7\ndata: a\ndata: b\n\ndata: c")]
    [('7', b'a\nb')]
    >>> [(m.id, m.payload) for m in events.feed(b"d\r\n\r\n")]
    [('', b'cd')]
    """

    def __init__(self) -> None:
        self.retry: float | None = None
        """How many seconds the server asks to wait before it is asked again."""
        self._rest = b""
        self._data: list[bytes] = []
        self._id = ""

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """Take some bytes; yield the events that they complete."""
        text = self._rest + chunk
        lines = text.splitlines(keepends=True)
        # A line may go on in the next bytes, and so may the two characters at its end.
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            if message := self._take(line.rstrip(b"\r\n")):
                yield message

    def _take(self, line: bytes) -> Message | None:
        if not line:
            message = Message(b"\n".join(self._data), "", self._id)
            self._data, self._id = [], ""
            return message if message.payload else None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                self._data.append(value)
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit():
                self.retry = int(value) / 1000
            case _:
                pass  # comments, and fields that nobody knows
        return None


def _innermost(error: BaseException) -> str:
    """Return the innermost reason of a failure: the outer ones repeat it with the address."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    for inner in (getattr(error, "reason", None), next(iter(error.args), None), error.__cause__):
        if isinstance(inner, BaseException):
            return _innermost(inner)
    return str(error) or type(error).__name__
