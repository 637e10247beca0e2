"""Origins: requests go only to those that the configuration allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from rsp_engine.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Origin", "allowed_origin", "origin_of"]

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port (RFC 6454)."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        shown = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{shown}"


def origin_of(url: str) -> Origin:
    """Return the origin of a URL; raise `ServiceError`, which never shows the URL, if it has none.

    >>> print(origin_of("HTTPS://Data.Example.org:443/sparql?key=secret"))
    https://data.example.org
    """
    parts = _split(url)
    if parts.username is not None or parts.password is not None:
        hint = "remove the part before the @, and set it in the environment"
        raise ServiceError("the URL of a service must not contain a user name or a password", hint)
    if parts.scheme not in _PORTS:
        raise ServiceError("the URL of a service must begin with http:// or https://")
    try:
        port = parts.port
    except ValueError:
        raise ServiceError("the port in the URL of a service is not valid") from None
    if not parts.hostname:
        raise ServiceError("the URL of a service must name a host")
    return Origin(parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port)


def allowed_origin(url: str, allowed: Iterable[str]) -> Origin:
    """Return the origin of a URL; raise `ServiceError` if none of the allowed URLs has it.

    >>> print(allowed_origin("http://e.org/sparql", ["http://e.org"]))
    http://e.org
    """
    origin = origin_of(url)
    if origin not in {origin_of(other) for other in allowed}:
        hint = "name it in the configuration, if you trust it"
        raise ServiceError(f"the origin {origin} is not allowed", hint)
    return origin


def _split(url: str) -> SplitResult:
    # URL parsers disagree on the host of a URL with forbidden characters.
    if any(c <= " " or c in '\\<>"{}|^`\x7f' or not c.isprintable() for c in url):
        raise ServiceError("the URL of a service must not contain blanks, controls or brackets")
    try:
        return urlsplit(url)
    except ValueError:
        raise ServiceError("the URL of a service cannot be read") from None
