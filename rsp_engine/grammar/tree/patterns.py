"""Graph patterns: SPARQL 1.1, sections 5 to 12, and the WINDOW clause of RSP-QL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.grammar.tree.node import Node
from rsp_engine.grammar.tree.paths import Path
from rsp_engine.grammar.tree.terms import BlankNode, Iri, Literal, Var

if TYPE_CHECKING:
    from rsp_engine.grammar.tree.expressions import Expression
    from rsp_engine.grammar.tree.queries import SubSelect

__all__ = [
    "Bind",
    "BlankNodeProperties",
    "Collection",
    "Filter",
    "Graph",
    "Group",
    "InlineData",
    "Minus",
    "Optional",
    "Pattern",
    "Property",
    "Service",
    "SubjectTriples",
    "TriplesBlock",
    "TriplesNode",
    "Union",
    "Window",
]


@dataclass(frozen=True, slots=True)
class Collection(Node):
    """`(x y ...)`; the empty one is `rdf:nil`."""

    items: tuple[TriplesNode, ...]


@dataclass(frozen=True, slots=True)
class BlankNodeProperties(Node):
    """`[ :p :o ; ... ]`; the empty one, `[]`, is a fresh blank node."""

    properties: tuple[Property, ...]


TriplesNode = Var | Iri | Literal | BlankNode | Collection | BlankNodeProperties


@dataclass(frozen=True, slots=True)
class Property(Node):
    """A verb and its objects: `:p :o, ...`."""

    verb: Var | Path
    objects: tuple[TriplesNode, ...]


@dataclass(frozen=True, slots=True)
class SubjectTriples(Node):
    """A subject and its properties: `:s :p :o ; ...`."""

    subject: TriplesNode
    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class TriplesBlock(Node):
    """Triple patterns with nothing between them."""

    subjects: tuple[SubjectTriples, ...]


@dataclass(frozen=True, slots=True)
class Group(Node):
    """`{ ... }`. A sub-query is the only element of its group."""

    elements: tuple[Pattern | SubSelect, ...]


@dataclass(frozen=True, slots=True)
class Union(Node):
    """`{ ... } UNION { ... } ...`, two or more."""

    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Optional(Node):
    """`OPTIONAL { ... }`."""

    group: Group


@dataclass(frozen=True, slots=True)
class Minus(Node):
    """`MINUS { ... }`."""

    group: Group


@dataclass(frozen=True, slots=True)
class Graph(Node):
    """`GRAPH name { ... }`: a static graph."""

    name: Var | Iri
    group: Group


@dataclass(frozen=True, slots=True)
class Window(Node):
    """`WINDOW name { ... }`: the content of a window when it closes."""

    name: Var | Iri
    group: Group


@dataclass(frozen=True, slots=True)
class Service(Node):
    """`SERVICE [SILENT] name { ... }`: data behind a SPARQL endpoint."""

    name: Var | Iri
    group: Group
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """`FILTER (...)`."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Bind(Node):
    """`BIND (... AS ?v)`."""

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class InlineData(Node):
    """`VALUES (?x ...) { (...) ... }`; nothing stands for UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]


Pattern = (
    TriplesBlock | Group | Union | Optional | Minus | Graph | Window | Service
    | Filter | Bind | InlineData
)  # fmt: skip
