"""The HTTP input: the bytes of a URL, as they arrive.

Redirects are followed only on the same host; any other host must be named by the user. The module
is imported only for a URL, because importing the HTTP client is slow.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.inputs import InputBroken, chunks_of, unzipped
from rsp_engine.monitor.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WebInput"]

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
"""Read timeout: how long a server may be silent."""

_MOST_REDIRECTIONS = 5


class WebInput:
    """The body of a URL. The first request is sent at once, to report errors early."""

    def __init__(self, url: str) -> None:
        self.name = without_secrets(url)
        self._url = url
        self._response: requests.Response | None = _request(url)
        # A stream that is never read must not keep its connection.
        weakref.finalize(self, self._response.close)

    def chunks(self) -> Iterator[bytes]:
        """Read the body; send the request again if it was read before."""
        response, self._response = self._response, None
        if response is None:
            response = _request(self._url)
        try:
            with response:  # a server may decompress a `.gz` file itself: only the bytes decide
                yield from unzipped(chunks_of(response.raw.read1))
        except urllib3.exceptions.ReadTimeoutError:
            reason = f"the server has been silent for {SILENCE_SECONDS:g} s"
            raise InputBroken(reason) from None
        except (OSError, urllib3.exceptions.HTTPError) as error:
            raise InputBroken(f"the connection broke: {_reason(error)}") from None


def _request(url: str) -> requests.Response:
    target = url
    for _ in range(_MOST_REDIRECTIONS + 1):
        response = _get(url, target)
        if not response.is_redirect:
            return _checked(url, response)
        response.close()
        target = _redirected(url, target, response.headers["location"])
    raise SourceError(f"{without_secrets(url)}: it redirects more than {_MOST_REDIRECTIONS} times")


def _get(url: str, target: str) -> requests.Response:
    parts = urlsplit(target)
    if parts.username is not None or parts.password is not None:
        hint = "remove the part before the @"
        raise SourceError("a URL must not contain a user name or a password", hint)
    try:
        return requests.get(
            target,
            stream=True,
            timeout=(CONNECT_SECONDS, SILENCE_SECONDS),
            allow_redirects=False,
            # `unzipped` handles gzip for all inputs.
            headers={"Accept-Encoding": "identity"},
        )
    except requests.Timeout:
        raise SourceError(
            f"{without_secrets(url)}: it does not answer", "check the address and the server"
        ) from None
    except (requests.RequestException, ValueError) as error:
        raise SourceError(
            f"{without_secrets(url)}: it cannot be reached: {_reason(error)}"
        ) from None


def _checked(url: str, response: requests.Response) -> requests.Response:
    encoding = response.headers.get("content-encoding", "identity").lower()
    if response.status_code != requests.codes.ok:
        message = f"it answers {response.status_code} {response.reason}".rstrip()
    elif encoding not in ("identity", "gzip", "x-gzip"):
        message = f"its response has the encoding {encoding}, which is not supported"
    else:
        return response
    response.close()
    raise SourceError(f"{without_secrets(url)}: {message}", "check the address")


def _redirected(url: str, current: str, location: str) -> str:
    target = urljoin(current, location)
    try:
        if _is_same_host(current, target):
            return target
    except ValueError:  # an invalid port
        target = location
    raise SourceError(
        f"{without_secrets(url)}: it redirects to {without_secrets(target)}",
        "name that address if you trust it",
    )


def _is_same_host(current: str, target: str) -> bool:
    """Return whether a redirect stays on the same host and port, or upgrades it to https."""
    before, after = urlsplit(current), urlsplit(target)
    is_upgrade = (before.scheme, after.scheme) == ("http", "https")
    is_same = (before.scheme, before.port) == (after.scheme, after.port)
    return before.hostname == after.hostname and (is_upgrade or is_same)


def _reason(error: Exception) -> str:
    """Return the innermost reason of a failure: the outer messages repeat the URL."""
    inner = getattr(error, "reason", None) or next(iter(error.args), None)
    if isinstance(inner, Exception):
        return _reason(inner)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
