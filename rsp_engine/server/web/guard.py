"""What is refused before a route is called.

A browser sends requests of any page to this computer. So the host of a request must be a name of
this server, or an address (a page whose name is bound to another address by its DNS sends its own
name), and its origin, if it names one, must be the server itself. Bodies are limited, and on
addresses that others reach a token is needed.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from rsp_engine.server.refusals import TooLargeError
from rsp_engine.server.web.problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["COOKIE", "Guard", "Guarded", "is_loopback", "is_token"]

COOKIE = "rsp_token"
_FREE = ("/health", "/session")
_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(frozen=True, slots=True)
class Guarded:
    """What a guard checks."""

    hosts: frozenset[str]
    """Names of this server, in lower case."""
    token: str | None
    largest: int
    """How many bytes a body may have."""
    static: frozenset[str]
    """Paths of files that need no token."""


class Guard:
    """An application that refuses some requests, and passes on the others."""

    def __init__(self, app: ASGIApp, guarded: Guarded) -> None:
        self._app = app
        self._guarded = guarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope["path"], headers)
        if refusal is not None:
            status, detail, hint = refusal
            await problem(status, detail, hint)(scope, receive, _with_headers(send))
            return
        await self._pass_on(scope, receive, _with_headers(send))

    def _refusal(self, path: str, headers: Headers) -> tuple[int, str, str] | None:
        guarded = self._guarded
        host = headers.get("host", "")
        if not _is_own(host, guarded.hosts):
            hint = "start the server with --trusted-host NAME if that is its name"
            return 403, f"the host {host[:100]!r} is not this server", hint
        origin = headers.get("origin")
        if origin is not None and not _is_same(origin, host, guarded.hosts):
            hint = "requests of pages of other servers are refused"
            return 403, f"the origin {origin[:100]!r} is not allowed", hint
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") not in (
            "navigate",
            None,
        ):
            return 403, "requests of pages of other servers are refused", "open its own page"
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > guarded.largest:
            return 413, f"the body has more than {guarded.largest} bytes", "send it in parts"
        is_free = path in _FREE or path in guarded.static
        if guarded.token is not None and not is_free and not _has_token(headers, guarded.token):
            return 401, "the token is missing or wrong", "send it: Authorization: Bearer TOKEN"
        return None

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; stop reading a body that turns out too large."""
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._guarded.largest:
                detail = f"the body has more than {self._guarded.largest} bytes"
                raise TooLargeError(detail, "send it in parts")
            return message

        await self._app(scope, counted, send)


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await send(message)

    return sent


def _is_own(host: str, names: frozenset[str]) -> bool:
    """Return whether a Host header names this server: by a known name, or by an address."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        _ = urlsplit(f"//{host}").port
    except ValueError:
        return False
    if any(c in host for c in "/\\@?# "):
        return False
    return name in names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_same(origin: str, host: str, names: frozenset[str]) -> bool:
    """Return whether an Origin header is that of this server, as the request calls it."""
    try:
        parts = urlsplit(origin)
        own = urlsplit(f"//{host}")
        is_plain = parts.scheme in ("http", "https") and not parts.path and not parts.query
        usual = {"http": 80, "https": 443}.get(parts.scheme)
        same_port = (parts.port or usual) == (own.port or usual)
    except ValueError:
        return False
    return is_plain and parts.hostname == own.hostname and same_port and _is_own(host, names)


def _has_token(headers: Headers, token: str) -> bool:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and is_token(given.strip(), token):
        return True
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except Exception:
        return False
    return cookie is not None and is_token(cookie.value, token)


def is_token(given: str, token: str) -> bool:
    """Return whether a token is the right one, in a time that does not tell how much of it is."""
    return hmac.compare_digest(given.encode(errors="replace"), token.encode(errors="replace"))


def is_loopback(host: str) -> bool:
    """Return whether only this computer reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
