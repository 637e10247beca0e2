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
    "FilterClause",
    "GraphPattern",
    "GroupPattern",
    "InlineData",
    "MinusPattern",
    "OptionalPattern",
    "Pattern",
    "Property",
    "ServicePattern",
    "SubjectTriples",
    "TriplesBlock",
    "TriplesNode",
    "UnionPattern",
    "WindowPattern",
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
    """Adjacent triple patterns."""

    subjects: tuple[SubjectTriples, ...]


@dataclass(frozen=True, slots=True)
class GroupPattern(Node):
    """`{ ... }`. A sub-query is the only element of its group."""

    elements: tuple[Pattern | SubSelect, ...]


@dataclass(frozen=True, slots=True)
class UnionPattern(Node):
    """`{ ... } UNION { ... } ...`, two or more."""

    keyword = "UNION"

    groups: tuple[GroupPattern, ...]


@dataclass(frozen=True, slots=True)
class OptionalPattern(Node):
    """`OPTIONAL { ... }`."""

    keyword = "OPTIONAL"

    group: GroupPattern


@dataclass(frozen=True, slots=True)
class MinusPattern(Node):
    """`MINUS { ... }`."""

    keyword = "MINUS"

    group: GroupPattern


@dataclass(frozen=True, slots=True)
class GraphPattern(Node):
    """`GRAPH name { ... }`: a static graph."""

    keyword = "GRAPH"

    name: Var | Iri
    group: GroupPattern


@dataclass(frozen=True, slots=True)
class WindowPattern(Node):
    """`WINDOW name { ... }`: the content of a window when it closes."""

    keyword = "WINDOW"

    name: Var | Iri
    group: GroupPattern


@dataclass(frozen=True, slots=True)
class ServicePattern(Node):
    """`SERVICE [SILENT] name { ... }`: data behind a SPARQL endpoint."""

    keyword = "SERVICE"

    name: Var | Iri
    group: GroupPattern
    silent: bool = False


@dataclass(frozen=True, slots=True)
class FilterClause(Node):
    """`FILTER (...)`."""

    keyword = "FILTER"

    condition: Expression


@dataclass(frozen=True, slots=True)
class Bind(Node):
    """`BIND (... AS ?v)`."""

    keyword = "BIND"

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class InlineData(Node):
    """`VALUES (?x ...) { (...) ... }`; UNDEF is `None`."""

    keyword = "VALUES"

    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]


Pattern = (
    TriplesBlock | GroupPattern | UnionPattern | OptionalPattern | MinusPattern | GraphPattern
    | WindowPattern | ServicePattern | FilterClause | Bind | InlineData
)  # fmt: skip
