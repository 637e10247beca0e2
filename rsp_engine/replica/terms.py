"""RDF terms as text in files and saved states: N-Triples, read back as they were."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyoxigraph as ox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.replica.pattern import Key, Solution, Term

__all__ = ["key_text", "read_term", "read_terms", "solution_text"]

# The outer form of an IRI or a literal: what stands for one cannot hold a second, or a comment.
_TERM = re.compile(r'<[^<>\s]*>|"(?:[^"\\\r\n]|\\.)*"(?:@[\w-]+|\^\^<[^<>\s]*>)?')
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


def solution_text(solution: Solution) -> dict[str, str]:
    """Write the terms of a solution, its variables in order.

    >>> solution_text({"n": ox.Literal("a"), "m": ox.NamedNode("urn:b")})
    {'m': '<urn:b>', 'n': '"a"'}
    """
    return {name: str(solution[name]) for name in sorted(solution)}


def read_terms(texts: Sequence[str]) -> list[Term]:
    r"""Read many terms at once; a text that is not one term is refused.

    >>> read_terms(["<urn:a>", '"b"@en'])
    [<NamedNode value=urn:a>, <Literal value=b language=en>]
    >>> read_terms(["<urn:a> . <urn:b> <urn:c> <urn:d>"])
    Traceback (most recent call last):
    ValueError: not a term: '<urn:a> . <urn:b> <urn:c> <urn:d>'
    """
    try:
        return _parsed(texts)
    except (ValueError, SyntaxError):
        return [_one(text) for text in texts]


def _one(text: str) -> Term:
    try:
        return _parsed([text])[0]
    except (ValueError, SyntaxError):
        raise ValueError(f"not a term: {text!r}") from None


def _parsed(texts: Sequence[str]) -> list[Term]:
    """Read what stands as objects of triples; labels of blank nodes are taken as they are."""
    nodes = [text for text in texts if not text.startswith("_:")]
    if not all(map(_TERM.fullmatch, nodes)):
        raise ValueError("a text is not one term")
    lines = "".join(f"<urn:s> <urn:p> {text} .\n" for text in nodes)
    found = iter([quad.object for quad in ox.parse(lines, format=ox.RdfFormat.N_TRIPLES)])
    return [ox.BlankNode(t[2:]) if t.startswith("_:") else _term(next(found)) for t in texts]


def _term(found: Term | ox.Triple) -> Term:
    assert not isinstance(found, ox.Triple), "the form of a triple is another"  # noqa: S101
    return found


def read_term(text: str) -> Term:
    """Read a term as people write it in a table: N-Triples, or a number or truth value bare.

    >>> read_term("12")
    <Literal value=12 datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#integer>>
    >>> read_term("<urn:a>")
    <NamedNode value=urn:a>
    """
    text = text.strip()
    for kind, form in _BARE.items():
        if form.fullmatch(text):
            return ox.Literal(text, datatype=ox.NamedNode(_XSD + kind))
    return _one(text)
