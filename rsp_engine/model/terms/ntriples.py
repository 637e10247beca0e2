"""RDF terms, rows and triples as N-Triples text, for files and saved states."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.model.terms.term import Term


__all__ = ["read_rows", "read_terms", "read_triples", "row_text", "triples_text"]

# The outer form of an IRI or a literal: a text that matches is one term, without a comment.
_TERM = re.compile(r'<[^<>\s]*>|"(?:[^"\\\r\n]|\\.)*"(?:@[\w-]+|\^\^<[^<>\s]*>)?')


def read_terms(texts: Sequence[str]) -> list[Term]:
    r"""Parse many terms at once; raise `ValueError` for a text that is not exactly one term.

    >>> read_terms(["<urn:a>", '"b"@en'])
    [<NamedNode value=urn:a>, <Literal value=b language=en>]
    >>> read_terms(["<urn:a> . <urn:b> <urn:c> <urn:d>"])
    Traceback (most recent call last):
    ValueError: not a term: '<urn:a> . <urn:b> <urn:c> <urn:d>'
    """
    try:
        return _parse_all(texts)
    except (ValueError, SyntaxError):
        return [_parse_one(text) for text in texts]  # raises at the text that is wrong


def _parse_one(text: str) -> Term:
    try:
        return _parse_all([text])[0]
    except (ValueError, SyntaxError):
        raise ValueError(f"not a term: {text!r}") from None


def _parse_all(texts: Sequence[str]) -> list[Term]:
    """Parse terms as the objects of one N-Triples document; keep blank node labels unchanged."""
    if (iris := _plain_iris(texts)) is not None:
        return iris
    nodes = [text for text in texts if not text.startswith("_:")]
    if not all(map(_TERM.fullmatch, nodes)):
        raise ValueError("a text is not one term")
    lines = (
        "".join(("<urn:s> <urn:p> ", " .\n<urn:s> <urn:p> ".join(nodes), " .\n")) if nodes else ""
    )
    # Typed as Any since an object may be a triple term in general; `_TERM` matches none.
    objects: list[Any] = [quad.object for quad in ox.parse(lines, format=ox.RdfFormat.N_TRIPLES)]
    if len(nodes) == len(texts):
        return objects
    remaining = iter(objects)
    return [ox.BlankNode(text[2:]) if text.startswith("_:") else next(remaining) for text in texts]


def _plain_iris(texts: Sequence[str]) -> list[Term] | None:
    r"""Parse IRIs, at a third of the cost of a document; None if others are among them.

    >>> _plain_iris(["<urn:a>"]), _plain_iris(["<urn:\\u0061>"])
    ([<NamedNode value=urn:a>], None)
    """
    if not all(text[:1] == "<" and text[-1:] == ">" for text in texts):
        return None
    try:
        return [ox.NamedNode(text[1:-1]) for text in texts]
    except ValueError:  # one has escapes, or is no IRI: the parser decides
        return None


def row_text(terms: Sequence[Term | None]) -> str:
    r"""Write a row as a line: its terms separated by tabs, empty where a term is missing.

    This text also defines the order of rows.

    >>> row_text([None, ox.NamedNode("urn:a"), ox.Literal(1)])
    '\t<urn:a>\t"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    if all(terms):
        return "\t".join(map(str, terms))
    return "\t".join("" if term is None else str(term) for term in terms)


def read_rows(lines: Sequence[str], width: int) -> list[tuple[Term | None, ...]]:
    r"""Parse rows of `width` terms each.

    >>> read_rows(['\t<urn:a>'], 2)
    [(None, <NamedNode value=urn:a>)]
    """
    if width == 1 and all(lines) and "\t" not in "".join(lines):
        return list(zip(read_terms(lines)))
    rows = [line.split("\t") if width or line else [] for line in lines]
    if any(len(row) != width for row in rows):
        raise ValueError(f"a row is not {width} terms wide")
    terms = iter(read_terms([text for row in rows for text in row if text]))
    return [tuple([next(terms) if text else None for text in row]) for row in rows]


def triples_text(triples: Iterable[ox.Triple]) -> str:
    """Write triples, one per line.

    >>> a = ox.NamedNode("urn:a")
    >>> print(triples_text([ox.Triple(a, a, ox.Literal("b")), ox.Triple(a, a, a)]))
    <urn:a> <urn:a> "b"
    <urn:a> <urn:a> <urn:a>
    """
    return "\n".join(map(str, triples))


def read_triples(text: str) -> list[ox.Triple]:
    """Parse triples, one per line, in order."""
    if not text:
        return []
    try:
        quads = ox.parse(text.replace("\n", " .\n") + " .\n", format=ox.RdfFormat.N_TRIPLES)
        triples = [quad.triple for quad in quads]
    except SyntaxError as error:
        raise ValueError(f"not triples: {error}") from None
    if len(triples) != text.count("\n") + 1:
        raise ValueError("a line is not one triple")
    return triples
