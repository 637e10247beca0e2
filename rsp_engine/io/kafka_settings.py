"""The settings of a Kafka client: its broker, TLS and SASL, by the address and the environment.

For `kafka://broker.example.org:9092/topic`, besides the variables of every address:

    RSP_SOURCE_BROKER_EXAMPLE_ORG_9092_MECHANISM    PLAIN (default), SCRAM-SHA-256, SCRAM-SHA-512

`kafkas://` uses TLS. SASL is used if a user and a password are set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.errors import SourceError

if TYPE_CHECKING:
    from rsp_engine.io.sources.live.address import Address

__all__ = ["LARGEST_FETCH", "client_settings", "topic_of"]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LARGEST_FETCH = 100_000_000
"""The most bytes of a broker's response unless a larger message is allowed: librdkafka's own."""
_FILES = {"CA": "ssl.ca.location", "CERT": "ssl.certificate.location", "KEY": "ssl.key.location"}


def topic_of(address: Address) -> str:
    """Return the topic of an address; raise `SourceError` if it names none."""
    if not address.path or "/" in address.path:
        hint = "write it after the host: kafka://host:9092/vibrations"
        raise SourceError(f"{address.name}: it names no topic", hint)
    return address.path


def client_settings(address: Address) -> dict[str, str]:
    """Return the settings by which a client connects; raise `SourceError` if they are invalid.

    >>> from rsp_engine.io.sources.live.address import address_of
    >>> client_settings(address_of("kafka://localhost/readings", {}))
    {'bootstrap.servers': 'localhost:9092', 'security.protocol': 'PLAINTEXT'}
    """
    user = address.user()
    protocol = "SSL" if address.is_safe else "PLAINTEXT"
    host = f"[{address.host}]" if ":" in address.host else address.host
    settings = {
        "bootstrap.servers": f"{host}:{address.port}",
        "security.protocol": protocol if user is None else f"SASL_{protocol}",
    }
    if user is not None:
        settings["sasl.mechanism"] = _mechanism(address)
        settings["sasl.username"], settings["sasl.password"] = user
    if address.is_safe:
        settings |= _certificates(address)
    return settings


def _mechanism(address: Address) -> str:
    mechanism = address.variable("MECHANISM") or MECHANISMS[0]
    if mechanism not in MECHANISMS:
        hint = f"it is one of: {', '.join(MECHANISMS)}"
        raise SourceError(f"{address.variables}_MECHANISM cannot be {mechanism!r}", hint)
    return mechanism


def _certificates(address: Address) -> dict[str, str]:
    address.tls()  # which refuses files that are no certificates, and names their variables
    paths = {name: address.variable(name) for name in _FILES}
    return {_FILES[name]: path for name, path in paths.items() if path is not None}
