"""RDF terms as text in files and saved states: N-Triples, which restores them exactly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.model.terms.ntriples import read_terms

if TYPE_CHECKING:
    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.pattern import Key, RemoteSolution

__all__ = ["key_text", "read_term", "solution_text"]

_BARE = {
    "integer": re.compile(r"[+-]?[0-9]+"),
    "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    "double": re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+"),
    "boolean": re.compile(r"true|false"),
}
_XSD = "http://www.w3.org/2001/XMLSchema#"


def key_text(key: Key) -> list[str]:
    """Write the terms of a key."""
    return [str(term) for term in key]


def solution_text(solution: RemoteSolution) -> dict[str, str]:
    """Write the terms of a solution, by variable name.

    >>> solution_text({"n": ox.Literal("a"), "m": ox.NamedNode("urn:b")})
    {'m': '<urn:b>', 'n': '"a"'}
    """
    return {name: str(solution[name]) for name in sorted(solution)}


def read_term(text: str) -> Term:
    """Read a term of a CSV cell: N-Triples, or a bare number or boolean.

    >>> read_term("12")
    <Literal value=12 datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#integer>>
    >>> read_term("<urn:a>")
    <NamedNode value=urn:a>
    """
    text = text.strip()
    for kind, form in _BARE.items():
        if form.fullmatch(text):
            return ox.Literal(text, datatype=ox.NamedNode(_XSD + kind))
    [term] = read_terms([text])
    return term
