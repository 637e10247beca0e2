"""RDF text into triples, with what is wrong in plain words, and nothing that could harm the reader.

The parser nests as deep as the text does and writes entities out in full, so that a small text
could exhaust the stack or the memory. Such texts are refused before they are parsed.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING

import pyoxigraph as ox

if TYPE_CHECKING:
    from pyoxigraph import Quad, Triple

__all__ = ["DEEPEST_TRIPLE", "GRAPH_FORMATS", "MalformedRdfError", "graph_of", "quads_of"]

DEEPEST_TRIPLE = 1_000
"""How deep triples can stand in triples."""

DEEPEST_JSON = 100
"""How deep objects and arrays of JSON-LD can stand in each other."""

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
"""Every name of a syntax that a graph can be written in, media types included."""

_PLACE = re.compile(r"Parser error (?:at|between) [^:]*: ")
_NESTING = re.compile(rb"<<|>>")
_JSON_NESTING = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_STEP = {b"<<": 1, b">>": -1, b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_ENTITY = re.compile(rb"<!ENTITY", re.IGNORECASE)


class MalformedRdfError(ValueError):
    """A text is not RDF: what is wrong, and on which line of it if that is known."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what if line is None else f"line {line}: {what}")
        self.what = what
        self.line = line


def graph_of(data: bytes, syntax: ox.RdfFormat) -> tuple[Triple, ...]:
    """Return the triples of a text that holds one graph, each once.

    >>> graph_of(b"<http://example.org/a> a", ox.RdfFormat.TURTLE)
    Traceback (most recent call last):
    rsp_engine.io.sources.files.rdf.MalformedRdfError: line 1: Unexpected end
    """
    quads = quads_of(data, syntax, without_named_graphs=True)
    return tuple(dict.fromkeys(quad.triple for quad in quads))


def quads_of(
    data: bytes, syntax: ox.RdfFormat, *, without_named_graphs: bool = False
) -> list[Quad]:
    """Return the quads of a text; raise `MalformedRdfError` if it is not RDF."""
    _refuse_harm(data, syntax)
    try:
        return list(ox.parse(data, syntax, without_named_graphs=without_named_graphs))
    except SyntaxError as error:
        raise MalformedRdfError(_plain(error.msg), error.lineno) from None
    except ValueError as error:
        raise MalformedRdfError(_plain(str(error))) from None


def _refuse_harm(data: bytes, syntax: ox.RdfFormat) -> None:
    if data.count(b"<<") > DEEPEST_TRIPLE and _depth(_NESTING, data) > DEEPEST_TRIPLE:
        raise MalformedRdfError(f"triples stand in triples more than {DEEPEST_TRIPLE} deep")
    if syntax == ox.RdfFormat.JSON_LD and _depth(_JSON_NESTING, data) > DEEPEST_JSON:
        raise MalformedRdfError(f"the JSON-LD is nested more than {DEEPEST_JSON} deep")
    if syntax == ox.RdfFormat.RDF_XML and _ENTITY.search(data):
        raise MalformedRdfError("XML entities are not read: write their text in full")


def _depth(brackets: re.Pattern[bytes], data: bytes) -> int:
    """Return how deep the brackets of a text are nested."""
    steps = (_STEP.get(found[0], 0) for found in brackets.finditer(data))
    return max(accumulate(steps, lambda depth, step: max(depth + step, 0), initial=0))


def _plain(message: str) -> str:
    """Return a parser's message without the place, which it counts from the start of the text."""
    return _PLACE.sub("", message, count=1)
