"""The logical plan: the SPARQL 1.1 algebra (section 18.2) with the windows and streams of RSP-QL.

Each node has the name of its operator in the specification, and the construct of the query that it
comes from, which gives its span. Expressions and terms are nodes of the syntax tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, TypeVar

from rsp_engine.grammar.tree import Node, find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.errors import Span
    from rsp_engine.grammar.tree import (
        Expression,
        GroupKey,
        InlineData,
        Iri,
        OrderCondition,
        Register,
        SelectAs,
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
    "expressions_of",
    "find_expressions",
    "find_nodes",
    "inputs_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalNode:
    """A node of a logical plan. Its source does not count in comparisons."""

    source: Node = field(default=Node(), compare=False, repr=False)

    @property
    def span(self) -> Span:
        """The place of the node in the text of the query."""
        return self.source.span


@dataclass(frozen=True, slots=True)
class Bgp(LogicalNode):
    """A basic graph pattern with property paths; the empty pattern has one empty solution."""

    triples: tuple[PlainTriple, ...] = ()


@dataclass(frozen=True, slots=True)
class Join(LogicalNode):
    """Compatible solutions of both sides, merged."""

    left: Logical
    right: Logical


@dataclass(frozen=True, slots=True)
class LeftJoin(LogicalNode):
    """Solutions of the left, extended by compatible ones of the right if the conditions hold."""

    left: Logical
    right: Logical
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Union(LogicalNode):
    """Solutions of both sides, as one bag."""

    left: Logical
    right: Logical


@dataclass(frozen=True, slots=True)
class Minus(LogicalNode):
    """Solutions of the left that are compatible with none of the right that shares a variable."""

    left: Logical
    right: Logical


@dataclass(frozen=True, slots=True)
class Filter(LogicalNode):
    """Solutions for which all conditions hold, those of FILTER or of HAVING."""

    conditions: tuple[Expression, ...]
    input: Logical
    is_having: bool = False


@dataclass(frozen=True, slots=True)
class Extend(LogicalNode):
    """Solutions with one more variable, bound to the value of an expression."""

    input: Logical
    variable: Var
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values(LogicalNode):
    """Inline data: solutions that the query text lists; `trailing` after its solution modifiers."""

    data: InlineData
    trailing: bool = False


@dataclass(frozen=True, slots=True)
class Graph(LogicalNode):
    """A pattern over static named graphs."""

    name: Var | Iri
    input: Logical


@dataclass(frozen=True, slots=True)
class Window(LogicalNode):
    """A pattern over the content of a window."""

    name: Var | Iri
    input: Logical


@dataclass(frozen=True, slots=True)
class Service(LogicalNode):
    """A pattern over a remote dataset."""

    name: Var | Iri
    input: Logical
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Group(LogicalNode):
    """Solutions grouped by keys; without a key, all solutions are one group."""

    keys: tuple[GroupKey, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class OrderBy(LogicalNode):
    """Solutions in order."""

    conditions: tuple[OrderCondition, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Project(LogicalNode):
    """Solutions restricted to some variables; SELECT computes those of `computed`, by `Extend`."""

    variables: tuple[str, ...]
    input: Logical
    computed: tuple[SelectAs, ...] = ()


@dataclass(frozen=True, slots=True)
class Distinct(LogicalNode):
    """Each solution once."""

    input: Logical


@dataclass(frozen=True, slots=True)
class Reduced(LogicalNode):
    """Solutions of which duplicates may be dropped; the engine keeps them all."""

    input: Logical


@dataclass(frozen=True, slots=True)
class Slice(LogicalNode):
    """Solutions after an offset, at most `limit` of them."""

    input: Logical
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Construct(LogicalNode):
    """A graph, built from a template for each solution."""

    template: tuple[PlainTriple, ...]
    input: Logical


@dataclass(frozen=True, slots=True)
class Ask(LogicalNode):
    """A boolean: whether there is a solution."""

    input: Logical


@dataclass(frozen=True, slots=True)
class Stream(LogicalNode):
    """The output stream of the query: RSTREAM, ISTREAM or DSTREAM."""

    register: Register | None
    input: Logical


Logical = (
    Bgp | Join | LeftJoin | Union | Minus | Filter | Extend | Values | Graph | Window | Service
    | Group | OrderBy | Project | Distinct | Reduced | Slice | Construct | Ask | Stream
)  # fmt: skip

L = TypeVar("L", bound=LogicalNode)
N = TypeVar("N", bound=Node)


def inputs_of(node: Logical) -> list[Logical]:
    """Return the input nodes of a node."""
    values = (getattr(node, f.name) for f in fields(node))
    return [value for value in values if isinstance(value, Logical)]


def _walk(node: Logical) -> Iterator[Logical]:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(inputs_of(current)))


def find_nodes(node: Logical, kind: type[L]) -> Iterator[L]:
    """Yield the nodes of a class in a plan, from the root to the leaves."""
    return (below for below in _walk(node) if isinstance(below, kind))


def expressions_of(node: Logical) -> tuple[Expression, ...]:
    """Return the expressions of a node, without those of its inputs."""
    match node:
        case Filter(conditions) | LeftJoin(_, _, conditions):
            return conditions
        case Extend(_, _, expression):
            return (expression,)
        case Group(keys) | OrderBy(keys):
            return tuple(key.expression for key in keys)
        case _:
            return ()


def find_expressions(node: Logical, kind: type[N]) -> Iterator[N]:
    """Yield the nodes of a class in the expressions of a plan; patterns of EXISTS are entered."""
    return (
        found
        for below in _walk(node)
        for expression in expressions_of(below)
        for found in find(expression, kind)
    )
