"""The logical plan: the SPARQL 1.1 algebra (section 18.2), with Window and the streams of RSP-QL.

Each node is named after its operator in the specification. Expressions and terms stay as they are
in the syntax tree.
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
    """A basic graph pattern, property paths included; the empty one has one empty solution."""

    triples: tuple[PlainTriple, ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Solutions of both sides that agree."""

    left: Logical
    right: Logical


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """Solutions of the left, extended by the right where they agree and the conditions hold."""

    left: Logical
    right: Logical
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Union:
    """Solutions of either side."""

    left: Logical
    right: Logical


@dataclass(frozen=True, slots=True)
class Minus:
    """Solutions of the left that agree with none of the right."""

    left: Logical
    right: Logical


@dataclass(frozen=True, slots=True)
class Filter:
    """Solutions for which all conditions hold."""

    conditions: tuple[Expression, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Extend:
    """Solutions with one more variable."""

    input: Logical
    variable: Var
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values:
    """Solutions that the query gives itself."""

    data: InlineData


@dataclass(frozen=True, slots=True)
class Graph:
    """A pattern over a static graph."""

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
    """Solutions put together by keys; no key makes one group of all."""

    keys: tuple[GroupKey, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class OrderBy:
    """Solutions in order."""

    conditions: tuple[OrderCondition, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Project:
    """Solutions cut to some variables."""

    variables: tuple[str, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each solution once."""

    input: Logical


@dataclass(frozen=True, slots=True)
class Reduced:
    """Equal solutions may be left out; here none is."""

    input: Logical


@dataclass(frozen=True, slots=True)
class Slice:
    """Solutions from a place on, and at most so many."""

    input: Logical
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Construct:
    """A graph, by a template."""

    template: tuple[PlainTriple, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Ask:
    """Whether there is a solution."""

    input: Logical


@dataclass(frozen=True, slots=True)
class Stream:
    """What leaves the query at each evaluation: RSTREAM, ISTREAM or DSTREAM."""

    register: Register | None
    input: Logical


Logical = (
    Bgp | Join | LeftJoin | Union | Minus | Filter | Extend | Values | Graph | Window | Service
    | Group | OrderBy | Project | Distinct | Reduced | Slice | Construct | Ask | Stream
)  # fmt: skip
