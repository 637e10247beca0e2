"""Bytes from the web, as they arrive.

A redirection is followed on the same host only: another host has to be named by the user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.inputs import Broken, chunks_of, unzipped
from rsp_engine.monitor.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WebInput"]

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
"""How long a server can be silent before the connection is given up."""

_MOST_REDIRECTIONS = 5


class WebInput:
    """What a URL answers. The first answer is asked for at once, to know that there is one."""

    def __init__(self, url: str) -> None:
        self.name = without_secrets(url)
        self._url = url
        self._answer: requests.Response | None = _ask(url)

    def chunks(self) -> Iterator[bytes]:
        """Read the answer; ask again if it was read before."""
        answer, self._answer = self._answer, None
        if answer is None:
            answer = _ask(self._url)
        try:
            with answer:  # a server may have undone gzip itself, whatever the name says
                yield from unzipped(chunks_of(answer.raw.read1))
        except urllib3.exceptions.ReadTimeoutError:
            reason = f"the server has been silent for {SILENCE_SECONDS:g} s"
            raise Broken(reason) from None
        except (OSError, urllib3.exceptions.HTTPError) as error:
            raise Broken(f"the connection broke: {_reason(error)}") from None


def _ask(url: str) -> requests.Response:
    asked = url
    for _ in range(_MOST_REDIRECTIONS + 1):
        answer = _get(url, asked)
        if not answer.is_redirect:
            return _checked(url, answer)
        answer.close()
        asked = _next(url, asked, answer.headers["location"])
    raise SourceError(f"{without_secrets(url)}: it redirects more than {_MOST_REDIRECTIONS} times")


def _get(url: str, asked: str) -> requests.Response:
    parts = urlsplit(asked)
    if parts.username is not None or parts.password is not None:
        hint = "leave out what stands before the @"
        raise SourceError("a URL with a user name or a password is not asked for", hint)
    try:
        return requests.get(
            asked,
            stream=True,
            timeout=(CONNECT_SECONDS, SILENCE_SECONDS),
            allow_redirects=False,
            # Gzip is undone by this room, wherever it comes from.
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


def _checked(url: str, answer: requests.Response) -> requests.Response:
    encoding = answer.headers.get("content-encoding", "identity").lower()
    if answer.status_code != requests.codes.ok:
        message = f"it answers {answer.status_code} {answer.reason}".rstrip()
    elif encoding not in ("identity", "gzip", "x-gzip"):
        message = f"its answer is packed as {encoding}, which is not read"
    else:
        return answer
    answer.close()
    raise SourceError(f"{without_secrets(url)}: {message}", "check the address")


def _next(url: str, asked: str, location: str) -> str:
    target = urljoin(asked, location)
    try:
        if _is_same_host(asked, target):
            return target
    except ValueError:  # a port that is none
        target = location
    raise SourceError(
        f"{without_secrets(url)}: it redirects to {without_secrets(target)}",
        "name that address if you trust it",
    )


def _is_same_host(asked: str, target: str) -> bool:
    """Tell whether a redirection stays where it was, or goes from http to https there."""
    before, after = urlsplit(asked), urlsplit(target)
    is_upgrade = (before.scheme, after.scheme) == ("http", "https")
    is_same = (before.scheme, before.port) == (after.scheme, after.port)
    return before.hostname == after.hostname and (is_upgrade or is_same)


def _reason(error: Exception) -> str:
    """Return the innermost reason of a failure: the outer ones repeat it with the address."""
    inner = getattr(error, "reason", None) or next(iter(error.args), None)
    if isinstance(inner, Exception):
        return _reason(inner)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
