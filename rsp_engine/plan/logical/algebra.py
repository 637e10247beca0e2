"""The logical plan: the SPARQL 1.1 algebra (section 18.2) with the windows and streams of RSP-QL.

Each node has the name of its operator in the specification. Expressions and terms are nodes of the
syntax tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rsp_engine.grammar.tree import (
        Expression,
        GroupKey,
        InlineData,
        Iri,
        OrderCondition,
        Register,
        Var,
    )
    from rsp_engine.grammar.triples import PlainTriple

__all__ = [
    "Ask",
    "Bgp",
    "Construct",
    "Distinct",
    "Extend",
    "Filter",
    "Graph",
    "Group",
    "Join",
    "LeftJoin",
    "Logical",
    "Minus",
    "OrderBy",
    "Project",
    "Reduced",
    "Service",
    "Slice",
    "Stream",
    "Union",
    "Values",
    "Window",
]


@dataclass(frozen=True, slots=True)
class Bgp:
    """A basic graph pattern with property paths; the empty pattern has one empty solution."""

    triples: tuple[PlainTriple, ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Compatible solutions of both sides, merged."""

    left: Logical
    right: Logical


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """Solutions of the left, extended by compatible ones of the right if the conditions hold."""

    left: Logical
    right: Logical
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Union:
    """Solutions of both sides, as one bag."""

    left: Logical
    right: Logical


@dataclass(frozen=True, slots=True)
class Minus:
    """Solutions of the left that are compatible with none of the right that shares a variable."""

    left: Logical
    right: Logical


@dataclass(frozen=True, slots=True)
class Filter:
    """Solutions for which all conditions hold."""

    conditions: tuple[Expression, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Extend:
    """Solutions with one more variable, bound to the value of an expression."""

    input: Logical
    variable: Var
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values:
    """Inline data: solutions that the query text lists."""

    data: InlineData


@dataclass(frozen=True, slots=True)
class Graph:
    """A pattern over static named graphs."""

    name: Var | Iri
    input: Logical


@dataclass(frozen=True, slots=True)
class Window:
    """A pattern over the content of a window."""

    name: Var | Iri
    input: Logical


@dataclass(frozen=True, slots=True)
class Service:
    """A pattern over a remote dataset."""

    name: Var | Iri
    input: Logical
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Solutions grouped by keys; without a key, all solutions are one group."""

    keys: tuple[GroupKey, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class OrderBy:
    """Solutions in order."""

    conditions: tuple[OrderCondition, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Project:
    """Solutions restricted to some variables."""

    variables: tuple[str, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each solution once."""

    input: Logical


@dataclass(frozen=True, slots=True)
class Reduced:
    """Solutions of which duplicates may be dropped; the engine keeps them all."""

    input: Logical


@dataclass(frozen=True, slots=True)
class Slice:
    """Solutions after an offset, at most `limit` of them."""

    input: Logical
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Construct:
    """A graph, built from a template for each solution."""

    template: tuple[PlainTriple, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Ask:
    """A boolean: whether there is a solution."""

    input: Logical


@dataclass(frozen=True, slots=True)
class Stream:
    """The output stream of the query: RSTREAM, ISTREAM or DSTREAM."""

    register: Register | None
    input: Logical


Logical = (
    Bgp | Join | LeftJoin | Union | Minus | Filter | Extend | Values | Graph | Window | Service
    | Group | OrderBy | Project | Distinct | Reduced | Slice | Construct | Ask | Stream
)  # fmt: skip
