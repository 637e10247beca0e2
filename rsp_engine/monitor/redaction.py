"""Redaction of secrets in messages, metrics, manifests and logs.

Secrets are the user and password of a URL, the values in its query and fragment, and the values of
environment variables that are named like a token or a password, wherever they occur.
"""

from __future__ import annotations

import hashlib
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["HIDDEN", "Redactor", "fingerprint", "without_secrets"]

HIDDEN = "***"

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*://"
# A binding is IRI=URL: the text after the equals sign is a URL of its own.
_URL = re.compile(rf"({_SCHEME})((?:(?!{_SCHEME})[^\s<>\"'])*)")
_SECRET_NAME = re.compile(
    r"TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|API_?KEY|ACCESS_?KEY|_KEY$"
)
# The values of these parameters do not identify a source: a token may be renewed.
_SECRET_PARAMETER = re.compile(
    rf"{_SECRET_NAME.pattern}|SIGNATURE|JWT|^(KEY|SIG|AUTH|PWD?|PASS)$|-KEY$"
)
_SHORTEST = 4
"""The shortest secret: a shorter one would match ordinary text."""


class Redactor:
    """Replaces secrets in texts by `***`.

    >>> hide = Redactor({"RSP_SERVICE_E_ORG_TOKEN": "t0ps3cret"})
    >>> hide("http://ann:pw@e.org/sparql?key=1&x=2 says t0ps3cret")
    'http://***@e.org/sparql?key=***&x=*** says ***'
    >>> hide(":people=http://e.org/q, trades.csv?template=trades.ttl")
    ':people=http://e.org/q, trades.csv?template=trades.ttl'
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        secrets = {
            value
            for name, value in environment.items()
            if _SECRET_NAME.search(name.upper()) and len(value) >= _SHORTEST
        }
        spellings = secrets | {quote(value, safe="") for value in secrets}
        # Longest first: a secret may contain another.
        self._secrets = sorted(spellings, key=lambda secret: (-len(secret), secret))

    def __repr__(self) -> str:
        return "Redactor()"

    def __call__(self, text: str) -> str:
        """Return a text with its secrets replaced."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return without_secrets(text)

    def data(self, value: Any) -> Any:  # noqa: ANN401 - plain data
        """Return plain data with the secrets in its strings replaced, keys included."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(inner) for inner in value]
        return value


def without_secrets(text: str) -> str:
    """Return a text whose URLs have no user, no password and no query values.

    >>> without_secrets("wss://example.org/feed?token=t0ps3cret&room=7")
    'wss://example.org/feed?token=***&room=***'
    """
    return _URL.sub(partial(_shown, value=lambda _key, _value: HIDDEN), text)


def fingerprint(place: str) -> str:
    """Return a text that identifies a place without revealing its secrets.

    The user and parameters that are named like a token or a key are left out, because a token may
    be renewed. Every other value is replaced by its hash.

    >>> fingerprint("wss://example.org/feed?token=t0ps3cret&room=7")
    'wss://example.org/feed?token=***&room=~7902699be42c'
    """
    return _URL.sub(partial(_shown, value=_hashed), place)


def _hashed(key: str, value: str) -> str:
    if _SECRET_PARAMETER.search(key.upper()):
        return HIDDEN
    return f"~{hashlib.sha256(value.encode(errors='replace')).hexdigest()[:12]}"


def _shown(url: re.Match[str], *, value: Callable[[str, str], str]) -> str:
    """Return a redacted URL; `value` maps a key and a value to the text that is shown."""
    scheme, rest = url.groups()
    end = re.search(r"[/?#]", rest)
    host, path = (rest, "") if end is None else (rest[: end.start()], rest[end.start() :])
    user, at, address = host.rpartition("@")
    if re.search(r":(?!\d*$)", address.rpartition("]")[2]) and "@" in path:
        # A password that contains a slash: its end is ambiguous.
        return f"{scheme}{HIDDEN}"
    place, mark, query = re.split(r"([?#])", path, maxsplit=1) if re.search("[?#]", path) else (
        path, "", ""
    )  # fmt: skip
    pairs = partial(_pair, value=value)
    shown = re.sub(r"(^|[?&#;])([^=&#;?]*)(=?)([^&#;?]*)", pairs, query)
    return f"{scheme}{HIDDEN + at if user or at else ''}{address}{place}{mark}{shown}"


def _pair(pair: re.Match[str], *, value: Callable[[str, str], str]) -> str:
    lead, key, equals, text = pair.groups()
    if equals:
        return f"{lead}{key}={value(key, text) if text else ''}"
    return f"{lead}{value('', key) if key else ''}"
