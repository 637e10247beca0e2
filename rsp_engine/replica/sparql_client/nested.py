"""The check for a SERVICE nested in a SERVICE clause.

Oxigraph itself sends requests for every SERVICE in a query. Only configured services may receive
requests, so endpoints that evaluate a clause with Oxigraph refuse a nested SERVICE.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rsp_engine.errors import ServiceError

if TYPE_CHECKING:
    from rsp_engine.replica.pattern import RemotePattern

__all__ = ["holds_service", "refuse_nested"]

# Tokens in which the word is no keyword. IRIs must have a scheme, as all full IRIs do, so that a
# comparison with `<` is never mistaken for one.
_NO_KEYWORD = re.compile(
    r"""
      \"{3}(?:\"{0,2}(?:[^"\\]|\\.))*\"{3} | '{3}(?:'{0,2}(?:[^'\\]|\\.))*'{3}
    | "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*'
    | <[A-Za-z][A-Za-z0-9+.-]*:[^<>"{}|^`\\\x00-\x20]*>
    | \#[^\r\n]*
    | [?$@]\w+ | _:[\w.-]+
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U00([0-9A-Fa-f]{6})")


def holds_service(body: str) -> bool:
    r"""Return whether a text with full IRIs has the keyword SERVICE; if in doubt, True.

    >>> holds_service("{ ?service <urn:service> 'a SERVICE' } # SERVICE")
    False
    >>> holds_service("{ Service<http://example.org/sparql>{ } }")
    True
    >>> holds_service(r"{ \u0053ERVICE <http://example.org/sparql> { } }")
    True
    """
    return _says_service(body) or _says_service(_ESCAPE.sub(_unescaped, body))


def _says_service(text: str) -> bool:
    rest = _NO_KEYWORD.sub(" ", text)
    return "service" in rest.lower() or "\\" in rest


def _unescaped(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    return chr(code) if code <= 0x10FFFF else match[0]


def refuse_nested(pattern: RemotePattern) -> None:
    """Raise `ServiceError` for a clause with a nested SERVICE."""
    if holds_service(pattern.body):
        raise ServiceError(
            f"SERVICE <{pattern.service}> contains another SERVICE, which an endpoint must call",
            "bind it to the URL of an endpoint, or remove the inner SERVICE",
        )
