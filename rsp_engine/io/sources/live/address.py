"""Addresses of live sources and of sinks, and the credentials to connect to them.

Credentials come from environment variables named after the host and the port, and are never shown:

    RSP_SOURCE_BROKER_EXAMPLE_ORG_8883_USER, ..._PASSWORD, or ..._TOKEN
    RSP_SOURCE_BROKER_EXAMPLE_ORG_8883_CA               a file of trusted certificates
    RSP_SOURCE_BROKER_EXAMPLE_ORG_8883_CERT, ..._KEY    the files of a client certificate

The names contain the port only if the address does. Those of sinks begin with `RSP_SINK_`.
"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

from rsp_engine.errors import SourceError
from rsp_engine.monitor.redaction import without_secrets

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

__all__ = ["Address", "Role", "address_of", "ports_of_sources"]

_PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443, "sse+http": 80, "sse+https": 443}
_PORTS |= {"kafka": 9092, "kafkas": 9093, "http": 80, "https": 443}
_PORTS |= {"sparql+http": 80, "sparql+https": 443}
_TLS = {"mqtts", "wss", "sse+https", "kafkas", "https", "sparql+https"}
Role = Literal["SOURCE", "SINK"]


@dataclass(frozen=True, slots=True)
class Address:
    """A scheme, a host, a port and a path, with access to its environment variables."""

    url: str
    scheme: str
    host: str
    port: int
    path: str
    variables: str = ""
    """The prefix of its environment variables."""
    _environment: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The address as messages and logs show it."""
        return without_secrets(self.url)

    @property
    def is_safe(self) -> bool:
        """Whether the scheme uses TLS."""
        return self.scheme in _TLS

    def check_single_topic(self) -> None:
        """Raise `SourceError` unless the path is one topic of MQTT, to which to send."""
        if not self.path or "#" in self.path or "+" in self.path:
            hint = "write one topic after the host, without + and #: mqtt://host/ranking"
            raise SourceError(f"{self.name}: it names no topic to send to", hint)

    def variable(self, name: str) -> str | None:
        """Return the value of an environment variable of the address."""
        return self._environment.get(f"{self.variables}_{name}")

    def user(self) -> tuple[str, str] | None:
        """Return the user and the password; `None` if they are not set."""
        user, password = self.variable("USER"), self.variable("PASSWORD")
        if user is None and password is None:
            return None
        if user is None or password is None:
            names = f"{self.variables}_USER and {self.variables}_PASSWORD"
            raise SourceError(f"{names} must be set together")
        return user, password

    def headers(self) -> dict[str, str]:
        """Return the `Authorization` header; empty if no credentials are set."""
        token, user = self.variable("TOKEN"), self.user()
        if token is not None and user is not None:
            message = f"{self.variables}_TOKEN and {self.variables}_USER are both set"
            raise SourceError(message, "unset one of them")
        if token is not None:
            if not re.fullmatch(r"[!-~]+", token):
                raise SourceError(f"{self.variables}_TOKEN contains characters that no token has")
            return {"Authorization": f"Bearer {token}"}
        if user is None:
            return {}
        pair = ":".join(user).encode("utf-8", "surrogateescape")
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}

    def certificate(self) -> tuple[str, str] | str | None:
        """Return the files of a client certificate and its key, as requests takes them."""
        own, key = self.variable("CERT"), self.variable("KEY")
        return own if own is None or key is None else (own, key)

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context with the configured certificates; `None` without TLS."""
        if not self.is_safe:
            return None
        import ssl  # few sources need it, and its import is slow

        try:
            context = ssl.create_default_context(cafile=self.variable("CA"))
            if (certificate := self.variable("CERT")) is not None:
                context.load_cert_chain(certificate, self.variable("KEY"))
        except OSError as error:
            reason = error.strerror or "it is no certificate"
            hint = f"check {self.variables}_CA, ..._CERT and ..._KEY"
            raise SourceError(
                f"{self.name}: a certificate cannot be read: {reason}", hint
            ) from None
        return context


def ports_of_sources() -> Mapping[str, int]:
    """Return the usual port of each protocol by which streams and services are reached."""
    return {scheme: port for scheme, port in _PORTS.items() if not scheme.startswith("sparql")}


def address_of(
    url: str, environment: Mapping[str, str] | None = None, role: Role = "SOURCE"
) -> Address:
    """Parse an address; refuse one that contains a password, without showing it.

    `role` is a part of the names of its environment variables.

    >>> address = address_of("mqtt://broker.example.org/factory/+/vibration/#", {})
    >>> address.host, address.port, address.path, address.variables
    ('broker.example.org', 1883, 'factory/+/vibration/#', 'RSP_SOURCE_BROKER_EXAMPLE_ORG')
    """
    try:
        parts = urlsplit(url.replace("#", "%23"))
        port = parts.port
    except ValueError as error:
        raise SourceError(f"this address cannot be read: {error}", "check it") from None
    if parts.username is not None or parts.password is not None:
        hint = "remove the part before the @, and set it in the environment"
        raise SourceError("an address must not contain a user or a password", hint)
    if not parts.hostname:
        raise SourceError(f"{without_secrets(url)}: it names no host", "check the address")
    name = parts.hostname if port is None else f"{parts.hostname}_{port}"
    variables = f"RSP_{role}_" + re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
    path = unquote(parts.path).removeprefix("/")
    return Address(
        url,
        parts.scheme,
        parts.hostname,
        _PORTS.get(parts.scheme, 0) if port is None else port,
        path,
        variables,
        os.environ if environment is None else environment,
    )
