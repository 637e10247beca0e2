"""RDF terms and variables (SPARQL 1.1, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

from rsp_engine.grammar.tree.node import Node
from rsp_engine.model.terms.xsd import XSD, XSD_STRING

__all__ = [
    "ONE",
    "RDF_LANG_STRING",
    "RDF_TYPE",
    "BlankNode",
    "Iri",
    "Literal",
    "TermNode",
    "Var",
]

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"


@dataclass(frozen=True, slots=True)
class Iri(Node):
    """An IRI, with prefix and base resolved. It is relative only if the query has no BASE."""

    value: str


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A literal. `1` and `"1"^^xsd:integer` are equal; a language implies `rdf:langString`."""

    lexical: str
    datatype: str = XSD_STRING
    language: str | None = None


@dataclass(frozen=True, slots=True)
class BlankNode(Node):
    """A blank node with a label, `_:b`."""

    label: str


@dataclass(frozen=True, slots=True)
class Var(Node):
    """A variable; the name excludes `?` or `$`."""

    name: str


TermNode = Iri | Literal | BlankNode
ONE = Literal("1", XSD + "integer")
