"""Cells of answer tables: terms as Turtle writes them, numbers and times in one form."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from rsp_engine.io.canonical_literals import TripleTermError, canonical_triples
from rsp_engine.io.sources.files.rdf import MalformedRdfError, graph_of
from rsp_engine.model.quantities import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NOTHING", "TermCells", "declarations", "instant_cell", "number_cell"]

NOTHING = "-"
"""The cell of what is absent: an unbound variable, a row of an empty answer."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_BARE = {
    f"{_XSD}integer": re.compile(r"[+-]?[0-9]+"),
    f"{_XSD}decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    f"{_XSD}double": re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+"),
    f"{_XSD}boolean": re.compile(r"true|false"),
}
"""The literals that Turtle writes without quotes."""
_NO_EXPONENT = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
"""Doubles as stores write them, which Turtle would read as other numbers."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
"""The same for decimals."""
_LOCAL = re.compile(r"(?:\w(?:[\w.-]*[\w-])?)?")
"""Local names that need no escapes."""


def declarations(prefixes: Mapping[str, str]) -> str:
    """Return the declarations of prefixes, in Turtle.

    >>> declarations({"": "http://example.org/"})
    '@prefix : <http://example.org/> .'
    """
    return " ".join(f"@prefix {prefix}: <{iri}> ." for prefix, iri in prefixes.items())


class TermCells:
    """The cells of terms, with the prefixes of a query.

    >>> cells = TermCells({"": "http://example.org/"})
    >>> cells.of({"type": "uri", "value": "http://example.org/ann"}), cells.read("<http://e.org/a>")
    (':ann', '<http://e.org/a>')
    >>> cells.read('"25"^^xsd:integer'), cells.read("7.00"), cells.read("2.5E0")
    ('25', '7.0', '2.5e0')
    """

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = {"xsd": _XSD, **prefixes}
        self._longest_first = sorted(self._prefixes.items(), key=lambda pair: -len(pair[1]))
        self._declarations = declarations(self._prefixes)

    def of(self, term: Mapping[str, str]) -> str:
        """Return the cell of a term of SPARQL's JSON results."""
        match term["type"]:
            case "uri":
                return self._iri(term["value"])
            case "bnode":
                return f"_:{term['value']}"
            case _:
                return self._literal(
                    term["value"], term.get("datatype", f"{_XSD}string"), term.get("xml:lang")
                )

    def read(self, cell: str) -> str:
        """Return a cell in its one form; a cell that is no term stays as it is."""
        if cell.startswith("_:") or cell == NOTHING:
            return cell
        try:
            [triple] = canonical_triples(self.triples(f"<urn:s> <urn:p> {cell} ."))
        except (MalformedRdfError, TripleTermError, ValueError):
            return cell
        return self.of_term(triple.object)

    def triples(self, turtle: str) -> tuple[ox.Triple, ...]:
        """Return the triples of a Turtle text that uses the prefixes."""
        return graph_of(f"{self._declarations} {turtle}".encode(), ox.RdfFormat.TURTLE)

    def of_term(self, term: object) -> str:
        """Return the cell of a term."""
        match term:
            case ox.NamedNode():
                return self._iri(term.value)
            case ox.Literal():
                return self._literal(term.value, term.datatype.value, term.language)
            case _:
                return str(term)

    def _iri(self, iri: str) -> str:
        for prefix, namespace in self._longest_first:
            if iri.startswith(namespace) and _LOCAL.fullmatch(iri[len(namespace) :]):
                return f"{prefix}:{iri[len(namespace) :]}"
        return f"<{iri}>"

    def _literal(self, value: str, datatype: str, language: str | None) -> str:
        if datatype == f"{_XSD}double" and _NO_EXPONENT.fullmatch(value):
            return f"{value}e0"
        if datatype == f"{_XSD}decimal" and _WHOLE.fullmatch(value):
            return f"{value}.0"
        if datatype in _BARE and _BARE[datatype].fullmatch(value):
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        if language is not None:
            return f"{quoted}@{language}"
        return quoted if datatype == f"{_XSD}string" else f"{quoted}^^{self._iri(datatype)}"


def number_cell(value: Any) -> str:  # noqa: ANN401 - whatever JSON has
    """Return the cell of a number or another JSON value; whole numbers have no fraction.

    >>> number_cell(25.0), number_cell(None), number_cell(True), number_cell("0.50")
    ('25', '-', 'true', '0.5')
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    if value is None:
        return NOTHING
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def instant_cell(text: str) -> str:
    """Return the cell of an instant in milliseconds, which may be written with a unit.

    >>> instant_cell("10s"), instant_cell("10000"), instant_cell("soon")
    ('10000', '10000', 'soon')
    """
    try:
        return str(parse_duration(text))
    except ValueError:
        return text
