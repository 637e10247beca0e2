"""CSV templates: Turtle with `{column}` placeholders, filled in for each row of a table.

    <http://example.org/user/{user_id}> <http://example.org/mentions> "{n}"^^xsd:integer .

The template is parsed once, with a safe word in place of each column. Values are put into the
resulting terms, never into the text: percent-encoded in an IRI, unchanged in a literal. A value can
therefore never change the structure of a triple. A triple with an empty value is left out. Double a
brace to write it literally. The prefixes rdf, rdfs and xsd are predefined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import pyoxigraph as ox

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.files.rdf import MalformedRdfError, graph_of
from rsp_engine.io.sources.spec import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CsvTemplate"]

Row: TypeAlias = "Sequence[str]"
Term: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
Fill: TypeAlias = "Callable[[Row], Any]"  # returns a term that is valid in its position

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}\r\n]+)\}|[{}]")
_PREFIXES = (
    "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . "
    "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
    "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
)
_WHERE = "use a column in an IRI, after its start, or in a literal, between its quotes"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One triple of a template: how to fill its terms, and the columns it uses."""

    columns: tuple[int, ...]
    subject: Fill
    predicate: Fill
    object: Fill


class CsvTemplate:
    """A parsed template, which turns a row into triples.

    >>> text = "<http://example.org/{a}> rdfs:label '{b}'@en ."
    >>> template = CsvTemplate(text, ["a", "b"], "t.ttl")
    >>> print(*template.triples(["x/y", "says 'hi'"]))
    <http://example.org/x%2Fy> <http://www.w3.org/2000/01/rdf-schema#label> "says 'hi'"@en
    >>> template.triples(["x/y", ""])
    ()
    """

    def __init__(self, text: str, columns: Sequence[str], name: str) -> None:
        self._name = name
        self._columns = columns
        self._mark = _unused_word(text)
        self._token = re.compile(f"{self._mark}([0-9]+)z")
        self._patterns = [self._pattern(triple) for triple in self._parse(text)]

    def triples(self, row: Row) -> tuple[ox.Triple, ...]:
        """Return the triples of a row; raise `ValueError` if a value makes an IRI invalid."""
        patterns = self._patterns
        if "" in row:
            patterns = [p for p in patterns if all(row[column] for column in p.columns)]
        triples = [ox.Triple(p.subject(row), p.predicate(row), p.object(row)) for p in patterns]
        return tuple(dict.fromkeys(triples))

    def _parse(self, text: str) -> tuple[ox.Triple, ...]:
        safe = _BRACES.sub(self._word_for, text)
        try:
            triples = graph_of((_PREFIXES + safe).encode(), ox.RdfFormat.TURTLE)
        except MalformedRdfError as error:
            raise SourceError(
                f"{self._name}: the template is not Turtle: {error}", _WHERE
            ) from None
        if not triples:
            raise SourceError(f"{self._name}: the template holds no triple", "write one per fact")
        return triples

    def _word_for(self, braces: re.Match[str]) -> str:
        if braces[0] in ("{{", "}}"):
            return braces[0][0]
        column = braces[1]
        if column is None:
            message = f"{self._name}: the template has an unmatched brace"
            raise SourceError(message, "write {column}, or double a literal brace")
        if column not in self._columns:
            message = f"{self._name}: the template names {column}, which is not a column"
            known = f"the columns are: {', '.join(self._columns)}"
            raise SourceError(message, nearest(column, self._columns) or known)
        if self._columns.count(column) > 1:
            message = f"{self._name}: several columns have the name {column}"
            raise SourceError(message, "name each column once")
        return f"{self._mark}{self._columns.index(column)}z"

    def _pattern(self, triple: ox.Triple) -> _Pattern:
        columns = {int(index) for index in self._token.findall(str(triple))}
        terms = (triple.subject, triple.predicate, triple.object)
        return _Pattern(tuple(sorted(columns)), *map(self._fill, terms))

    def _fill(self, term: Term) -> Fill:
        """Return a function from a row to the term that a template term becomes."""
        if self._token.search(str(term)) is None:
            return lambda _: term
        match term:
            case ox.NamedNode():
                return _fill_iri(self._split(term.value))
            case ox.Literal() if self._token.search(f"{term.datatype} {term.language}") is None:
                return _fill_literal(self._split(term.value), term)
            case ox.Triple():
                fills = [self._fill(part) for part in (term.subject, term.predicate, term.object)]
                return lambda row: ox.Triple(*(fill(row) for fill in fills))
            case _:
                message = f"{self._name}: a column is used in a datatype, a language or a label"
                raise SourceError(message, _WHERE)

    def _split(self, text: str) -> tuple[list[str], list[int]]:
        """Return the constant texts of a template term, and the columns between them."""
        parts = self._token.split(text)
        return parts[::2], [int(index) for index in parts[1::2]]


def _fill_iri(parts: tuple[list[str], list[int]]) -> Fill:
    (start, *rest), columns = parts
    pairs = list(zip(columns, rest, strict=True))

    def fill(row: Row) -> Term:
        return ox.NamedNode(start + "".join([_encoded(row[c]) + text for c, text in pairs]))

    return fill


def _fill_literal(parts: tuple[list[str], list[int]], term: ox.Literal) -> Fill:
    (start, *rest), columns = parts
    pairs = list(zip(columns, rest, strict=True))
    kind = {"language": term.language} if term.language else {"datatype": term.datatype}

    def fill(row: Row) -> Term:
        return ox.Literal(start + "".join([row[c] + text for c, text in pairs]), **kind)

    return fill


def _encoded(value: str) -> str:
    return value if value.isascii() and value.isalnum() else quote(value, safe="")


def _unused_word(text: str) -> str:
    """Return a lower-case word that does not occur in a text."""
    lower = text.lower()
    return next(word for word in ("column" + "x" * n for n in count()) if word not in lower)
