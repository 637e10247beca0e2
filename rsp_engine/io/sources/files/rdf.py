"""Safe parsing of RDF text, with readable errors.

The parser recurses as deep as the text nests and expands XML entities, so that a small text could
exhaust the stack or the memory. Such texts are refused before they are parsed.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING

import pyoxigraph as ox

if TYPE_CHECKING:
    from pyoxigraph import Quad, Triple

__all__ = [
    "DEEPEST_TRIPLE",
    "GRAPH_FORMATS",
    "MalformedRdfError",
    "graph_of",
    "parse_reason",
    "quads_of",
]

DEEPEST_TRIPLE = 1_000
"""The deepest nesting of triple terms."""

DEEPEST_JSON = 100
"""The deepest nesting of objects and arrays in JSON-LD."""

_NAMES = {
    ox.RdfFormat.TURTLE: "turtle ttl text/turtle",
    ox.RdfFormat.N_TRIPLES: "ntriples nt n-triples application/n-triples",
    ox.RdfFormat.JSON_LD: "jsonld json-ld application/ld+json",
    ox.RdfFormat.RDF_XML: "rdfxml xml rdf rdf/xml application/rdf+xml",
    ox.RdfFormat.N3: "n3 text/n3",
    ox.RdfFormat.TRIG: "trig application/trig",
    ox.RdfFormat.N_QUADS: "nquads nq n-quads application/n-quads",
}
GRAPH_FORMATS = {name: syntax for syntax, names in _NAMES.items() for name in names.split()}
"""The syntaxes of a graph by all their names, media types included."""

_PLACE = re.compile(r"Parser error (?:at|between) [^:]*: ")
_NESTING = re.compile(rb"<<|>>")
_JSON_NESTING = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_STEP = {b"<<": 1, b">>": -1, b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_ENTITY = re.compile(rb"<!ENTITY", re.IGNORECASE)


class MalformedRdfError(ValueError):
    """A text is not RDF: `what` is wrong, and on which `line`, if that is known."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what if line is None else f"line {line}: {what}")
        self.what = what
        self.line = line


def graph_of(data: bytes, syntax: ox.RdfFormat) -> tuple[Triple, ...]:
    """Parse a text as one graph; return its triples without duplicates.

    >>> graph_of(b"<http://example.org/a> a", ox.RdfFormat.TURTLE)
    Traceback (most recent call last):
    rsp_engine.io.sources.files.rdf.MalformedRdfError: line 1: Unexpected end
    """
    quads = quads_of(data, syntax, without_named_graphs=True)
    return tuple(dict.fromkeys(quad.triple for quad in quads))


def quads_of(
    data: bytes, syntax: ox.RdfFormat, *, without_named_graphs: bool = False
) -> list[Quad]:
    """Parse a text as quads; raise `MalformedRdfError` if it is not RDF."""
    _check_harmless(data, syntax)
    try:
        return list(ox.parse(data, syntax, without_named_graphs=without_named_graphs))
    except SyntaxError as error:
        raise MalformedRdfError(_plain(error.msg), error.lineno) from None
    except ValueError as error:
        raise MalformedRdfError(_plain(str(error))) from None


def parse_reason(error: Exception) -> str:
    """Return why a file of RDF cannot be read, with the line but without the parser's position."""
    if isinstance(error, SyntaxError):
        return str(MalformedRdfError(_plain(error.msg), error.lineno))
    return getattr(error, "strerror", None) or _plain(str(error))


def _check_harmless(data: bytes, syntax: ox.RdfFormat) -> None:
    if data.count(b"<<") > DEEPEST_TRIPLE and _depth(_NESTING, data) > DEEPEST_TRIPLE:
        raise MalformedRdfError(f"triples are nested more than {DEEPEST_TRIPLE} deep")
    if syntax == ox.RdfFormat.JSON_LD and _depth(_JSON_NESTING, data) > DEEPEST_JSON:
        raise MalformedRdfError(f"the JSON-LD is nested more than {DEEPEST_JSON} deep")
    if syntax == ox.RdfFormat.RDF_XML and _ENTITY.search(data):
        raise MalformedRdfError("XML entities are not read: write their text in full")


def _depth(brackets: re.Pattern[bytes], data: bytes) -> int:
    """Return how deep the brackets of a text are nested."""
    steps = (_STEP.get(match[0], 0) for match in brackets.finditer(data))
    return max(accumulate(steps, lambda depth, step: max(depth + step, 0), initial=0))


def _plain(message: str) -> str:
    """Return a parser message without the position, which is relative to the parsed piece."""
    return _PLACE.sub("", message, count=1)
