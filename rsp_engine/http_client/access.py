"""Access to endpoints: requests go only to allowed origins, with the credentials of their service.

Credentials are read from the environment, sent in a header, and never shown.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from rsp_engine.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from requests import PreparedRequest

__all__ = ["Credentials", "allowed_origin", "credentials_of", "origin_of", "variables_of"]


_PORTS = {"http": 80, "https": 443}
_SINK_PORTS = {**_PORTS, "mqtt": 1883, "mqtts": 8883, "kafka": 9092, "kafkas": 9093}


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port (RFC 6454)."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        shown = "" if self.port == _SINK_PORTS.get(self.scheme) else f":{self.port}"
        return f"{self.scheme}://{host}{shown}"


def origin_of(url: str, ports: Mapping[str, int] = _PORTS) -> Origin:
    """Return the origin of a URL; raise `ServiceError`, which never shows the URL, if it has none.

    >>> print(origin_of("HTTPS://Data.Example.org:443/sparql?key=secret"))
    https://data.example.org
    """
    parts = _split(url)
    if parts.username is not None or parts.password is not None:
        hint = "remove the part before the @, and set it in the environment"
        raise ServiceError("the URL of a service must not contain a user name or a password", hint)
    if parts.scheme not in ports:
        raise ServiceError("the URL of a service must begin with http:// or https://")
    try:
        port = parts.port
    except ValueError:
        raise ServiceError("the port in the URL of a service is not valid") from None
    if not parts.hostname:
        raise ServiceError("the URL of a service must name a host")
    return Origin(parts.scheme, parts.hostname, ports[parts.scheme] if port is None else port)


def allowed_origin(url: str, allowed: Iterable[str], *, of_sink: bool = False) -> Origin:
    """Return the origin of a URL; raise `ServiceError` if none of the allowed URLs has it.

    Services have URLs of HTTP, sinks also of MQTT and Kafka; a list of allowed ones may have both.

    >>> print(allowed_origin("http://e.org/sparql", ["http://e.org"]))
    http://e.org
    """
    origin = origin_of(url, _SINK_PORTS if of_sink else _PORTS)
    if origin not in {origin_of(other, _SINK_PORTS) for other in allowed}:
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


class Credentials:
    """The Authorization header of a service, or none: what requests calls to authenticate."""

    def __init__(self, header: str | None = None) -> None:
        self._header = header

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        if self._header is not None:
            request.headers["Authorization"] = self._header
        return request

    def __repr__(self) -> str:
        return f"Credentials({'none' if self._header is None else 'redacted'})"

    def __reduce__(self) -> str:
        raise TypeError("credentials are not saved")


def variables_of(origin: Origin) -> str:
    """Return the prefix of the environment variables of a service.

    >>> variables_of(origin_of("http://data.example.org:8890/sparql"))
    'RSP_SERVICE_DATA_EXAMPLE_ORG_8890'
    """
    host = str(origin).split("://", 1)[1]
    return "RSP_SERVICE_" + re.sub(r"[^A-Z0-9]+", "_", host.upper()).strip("_")


def credentials_of(prefix: str, environment: Mapping[str, str]) -> Credentials:
    """Read the credentials of a service from its environment variables, if they are set.

    >>> credentials_of("RSP_SERVICE_E_ORG", {"RSP_SERVICE_E_ORG_TOKEN": "secret"})
    Credentials(redacted)
    """
    user, password, token = (
        environment.get(f"{prefix}_{name}") for name in ("USER", "PASSWORD", "TOKEN")
    )
    if token is not None:
        if user is not None or password is not None:
            raise ServiceError(
                f"{prefix}_TOKEN and {prefix}_USER are both set", "unset one of them"
            )
        # A header is one line of visible characters; the library would show others in its error.
        if not re.fullmatch(r"[!-~]+", token):
            raise ServiceError(f"{prefix}_TOKEN contains characters that no token has")
        return Credentials(f"Bearer {token}")
    if user is None and password is None:
        return Credentials()
    if user is None or password is None:
        raise ServiceError(f"{prefix}_USER and {prefix}_PASSWORD must be set together")
    if ":" in user:
        raise ServiceError(f"{prefix}_USER must not contain a colon")
    pair = f"{user}:{password}".encode("utf-8", "surrogateescape")
    return Credentials(f"Basic {base64.b64encode(pair).decode()}")
