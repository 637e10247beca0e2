"""Secrets are hidden before anything is shown, counted by name, or written down.

What may hold one: the user and the password of a URL, the values in its query and its fragment, and
whatever the environment calls a token or a password, wherever it turns up.
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
# A binding is IRI=URL: what follows the equals sign is a URL of its own.
_URL = re.compile(rf"({_SCHEME})((?:(?!{_SCHEME})[^\s<>\"'])*)")
_SECRET_NAME = re.compile(
    r"TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|API_?KEY|ACCESS_?KEY"
)
# A new token does not make another source of it: what these parameters say is not looked at.
_SECRET_PARAMETER = re.compile(
    rf"{_SECRET_NAME.pattern}|SIGNATURE|JWT|^(KEY|SIG|AUTH|PWD?|PASS)$|[-_]KEY$"
)
_SHORTEST = 4
"""What is shorter would be found by chance in anything."""


class Redactor:
    """Hides secrets in texts.

    >>> hide = Redactor({"RSP_SERVICE_E_ORG_TOKEN": "t0ps3cret"})
    >>> hide("http://ann:pw@e.org/sparql?key=1&x=2 says t0ps3cret")
    'http://***@e.org/sparql?key=***&x=*** says ***'
    >>> hide(":people=http://e.org/q, trades.csv?template=trades.ttl")
    ':people=http://e.org/q, trades.csv?template=trades.ttl'
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        found = {
            value
            for name, value in environment.items()
            if _SECRET_NAME.search(name.upper()) and len(value) >= _SHORTEST
        }
        written = found | {quote(value, safe="") for value in found}
        self._secrets = sorted(written, key=lambda secret: (-len(secret), secret))

    def __repr__(self) -> str:
        return "Redactor()"

    def __call__(self, text: str) -> str:
        """Return a text without its secrets."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return without_secrets(text)

    def data(self, value: Any) -> Any:  # noqa: ANN401 - plain data
        """Return plain data without the secrets in its texts; keys are texts too."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(inner) for inner in value]
        return value


def without_secrets(text: str) -> str:
    """Return a text whose URLs tell no user, no password and no value of a query.

    >>> without_secrets("wss://example.org/feed?token=t0ps3cret&room=7")
    'wss://example.org/feed?token=***&room=***'
    """
    return _URL.sub(partial(_shown, value=lambda _key, _value: HIDDEN), text)


def fingerprint(place: str) -> str:
    """Return what tells a place from others, without its secrets.

    Who asks, and what a parameter says that is called a token, a key or the like, do not count: a
    token may be replaced by another. Any other value counts, by a hash of it.

    >>> fingerprint("wss://example.org/feed?token=t0ps3cret&room=7")
    'wss://example.org/feed?token=***&room=~7902699be42c'
    """
    return _URL.sub(partial(_shown, value=_hashed), place)


def _hashed(key: str, value: str) -> str:
    if _SECRET_PARAMETER.search(key.upper()):
        return HIDDEN
    return f"~{hashlib.sha256(value.encode(errors='replace')).hexdigest()[:12]}"


def _shown(url: re.Match[str], *, value: Callable[[str, str], str]) -> str:
    """Return a URL in which a function says what is shown of a value, given its key."""
    scheme, rest = url.groups()
    end = re.search(r"[/?#]", rest)
    host, path = (rest, "") if end is None else (rest[: end.start()], rest[end.start() :])
    user, at, address = host.rpartition("@")
    if re.search(r":(?!\d*$)", address.rpartition("]")[2]) and "@" in path:
        # A password with a slash in it: where it ends, nobody can say.
        return f"{scheme}{HIDDEN}"
    place, mark, said = re.split(r"([?#])", path, maxsplit=1) if re.search("[?#]", path) else (
        path, "", ""
    )  # fmt: skip
    pairs = partial(_pair, value=value)
    shown = re.sub(r"(^|[?&#;])([^=&#;?]*)(=?)([^&#;?]*)", pairs, said)
    return f"{scheme}{HIDDEN + at if user or at else ''}{address}{place}{mark}{shown}"


def _pair(pair: re.Match[str], *, value: Callable[[str, str], str]) -> str:
    lead, key, equals, text = pair.groups()
    if equals:
        return f"{lead}{key}={value(key, text) if text else ''}"
    return f"{lead}{value('', key) if key else ''}"
