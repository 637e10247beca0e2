"""The HTTP client: one request, answered completely and in time, or a fault with its cause.

The size limit of an answer holds for the bytes on the wire and for the decompressed body: a few
kilobytes of gzip can expand to gigabytes, so decompression stops at the limit.
"""

from __future__ import annotations

import ssl
import time
import zlib
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import (
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
)

from rsp_engine.http_client import faults
from rsp_engine.http_client.deadline_transport import Alarm, DeadlineAdapter
from rsp_engine.http_client.faults import FaultError, status_cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rsp_engine.http_client.access import Credentials

__all__ = ["HttpClient", "Reply", "seconds_to_wait", "whole_body"]

_HEADERS = {
    "Accept": "application/sparql-results+json, application/json;q=0.5",
    "Accept-Encoding": "gzip",
    "User-Agent": "rsp-engine",
}
_GZIP = 31  # window bits of zlib that mean gzip
_CHUNK = 64 * 1024
_MOST_ERROR_BYTES = 64 * 1024
_PARTIAL = "S1TAT"  # Virtuoso's state of a query that ran out of time, with status 200
# In order of precedence: in urllib3 every failure to connect is also a time-out.
_CAUSES: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((ConnectionRefusedError,), faults.REFUSED),
    ((NameResolutionError,), faults.UNKNOWN_HOST),
    ((TimeoutError, ReadTimeoutError), faults.TIME_OUT),
    ((ssl.SSLError,), faults.TLS),
    ((NewConnectionError,), faults.UNREACHABLE),
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete body. `is_capped` if the server announces a maximum number of rows."""

    body: bytes
    is_capped: bool


class HttpClient:
    """Sends queries to one URL over one kept-alive connection. Not thread-safe."""

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        most_bytes: int,
        ca_file: str | None = None,
        certificate: tuple[str, str] | str | None = None,
    ) -> None:
        self._url = url
        self._most_bytes = most_bytes
        self._alarm = Alarm()
        self._session = requests.Session()
        # Ignore proxies and .netrc passwords of the environment: they are not configured here.
        self._session.trust_env = False
        self._session.auth = credentials
        self._session.headers.clear()
        self._session.headers.update(_HEADERS)
        self._session.verify = True if ca_file is None else ca_file
        self._session.cert = certificate
        self._session.adapters.clear()
        self._session.mount(f"{urlsplit(url).scheme}://", DeadlineAdapter(self._alarm))

    def ask(self, query: str, until: float) -> Reply:
        """Send a query, to be answered by `until` on the monotonic clock, or raise `FaultError`."""
        self._alarm.until = until
        try:
            with self._post(query) as response:
                self._check_status(response)
                return self._read(response)
        except (OSError, HTTPError, ValueError) as error:
            raise FaultError(_cause(error)) from None

    def send(
        self, body: bytes | Mapping[str, str], headers: Mapping[str, str], until: float
    ) -> None:
        """Post a body or a form, to be accepted (2xx) by `until`, or raise `FaultError`."""
        self._alarm.until = until
        try:
            with self._session.post(
                self._url, data=body, headers=headers, stream=True, allow_redirects=False
            ) as response:
                if not 200 <= response.status_code < 300:
                    raise _refusal(response)
                _drain(response)
        except (OSError, HTTPError, ValueError) as error:
            raise FaultError(_cause(error)) from None

    def close(self) -> None:
        self._session.close()

    def _post(self, query: str) -> requests.Response:
        """Send the query as a form, since not every server accepts it as the body."""
        form = {"query": query}
        return self._session.post(self._url, data=form, stream=True, allow_redirects=False)

    def _read(self, response: requests.Response) -> Reply:
        encoding = response.headers.get("Content-Encoding", "")
        try:
            body = whole_body(_chunks(response), encoding, self._most_bytes)
        except (OSError, HTTPError) as error:
            cause = _cause(error)
            # A connection that breaks within the body means a truncated answer.
            raise FaultError(faults.TRUNCATED if cause == faults.BROKEN else cause) from None
        return Reply(body, "X-SPARQL-MaxRows" in response.headers)

    def _check_status(self, response: requests.Response) -> None:
        status = response.status_code
        is_partial = status == requests.codes.partial_content
        if is_partial or response.headers.get("X-SQL-State") == _PARTIAL:
            raise FaultError(faults.ROWS_CUT)
        if status == requests.codes.ok:
            return
        raise _refusal(response)


def _refusal(response: requests.Response) -> FaultError:
    """Return the fault of a response that reports an error."""
    status = response.status_code
    if 300 <= status < 400:
        return FaultError(faults.REDIRECT, status)
    _drain(response)
    wait = seconds_to_wait(response.headers.get("Retry-After"), time.time())
    return FaultError(status_cause(status), status, wait)


def seconds_to_wait(retry_after: str | None, now: float) -> float | None:
    """Read a Retry-After header: seconds, or a date (RFC 9110, section 10.2.3).

    >>> seconds_to_wait("2", 0)
    2.0
    >>> seconds_to_wait("Thu, 01 Jan 1970 00:00:05 GMT", 2)
    3.0
    >>> seconds_to_wait("soon", 0)
    """
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def whole_body(chunks: Iterable[bytes], encoding: str, most_bytes: int) -> bytes:
    """Join the chunks of a body; raise `FaultError` if it is too large or incomplete.

    >>> whole_body([b"ab", b"c"], "identity", 3)
    b'abc'
    """
    bounded = _bounded(chunks, most_bytes)
    match encoding.strip().lower():
        case "" | "identity":
            return b"".join(bounded)
        case "gzip" | "x-gzip":
            return b"".join(_bounded(_unzipped(bounded, most_bytes), most_bytes))
        case _:
            raise FaultError(faults.ENCODING)


def _bounded(chunks: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most_bytes:
            raise FaultError(faults.TOO_LARGE)
        yield chunk


def _unzipped(chunks: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """Decompress; there may be several members in a row."""
    unpacker = zlib.decompressobj(_GZIP)
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if unpacker.eof:
                    unpacker = zlib.decompressobj(_GZIP)
                # One byte beyond the limit is enough to detect that it is exceeded.
                yield unpacker.decompress(rest, most_bytes + 1)
                rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    except zlib.error:
        raise FaultError(faults.ENCODING) from None
    if not unpacker.eof:
        raise FaultError(faults.TRUNCATED)


def _chunks(response: requests.Response) -> Iterator[bytes]:
    while chunk := response.raw.read(_CHUNK, decode_content=False):
        yield chunk


def _drain(response: requests.Response) -> None:
    """Read the body of an error, so that the connection can be reused."""
    try:
        whole_body(_chunks(response), "identity", _MOST_ERROR_BYTES)
    except (OSError, HTTPError, FaultError):
        response.close()


def _cause(error: BaseException) -> str:
    """Return the fault of an error by its root cause: each library wraps it once more."""
    chain = list(_chain(error))
    for kinds, cause in _CAUSES:
        if any(isinstance(inner, kinds) for inner in chain):
            return cause
    return faults.BROKEN


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, BaseException) and id(inner) not in seen:
            seen.add(id(inner))
            yield inner
            waiting += [inner.__cause__, inner.__context__, getattr(inner, "reason", None)]
            waiting += inner.args
