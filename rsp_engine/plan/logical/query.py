"""A query to plan: the tuple (E, DS, QF) of SPARQL 1.1 (section 18.2), as recognisers read it.

E is the logical plan as translated, without rewrite rules: these drop the braces of nested groups,
which decide how ties are broken. A SELECT is read level by level: its pattern, then the solution
modifiers over it. A pattern is read group by group: its filters, and the parts that it joins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from rsp_engine.grammar import tree
from rsp_engine.plan.logical.algebra import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Logical,
    Minus,
    OrderBy,
    Project,
    Reduced,
    Service,
    Slice,
    Stream,
    Union,
    Values,
    Window,
    find_expressions,
    find_nodes,
)
from rsp_engine.plan.logical.translate import translate

if TYPE_CHECKING:
    from rsp_engine.errors import Span
    from rsp_engine.grammar.triples import PlainTerms

__all__ = ["GroupParts", "LogicalQuery", "Part", "SelectPlan", "logical_query"]

PartKind = Literal[
    "pattern over static data", "group", "BIND", "GRAPH", "MINUS", "OPTIONAL", "SELECT", "SERVICE",
    "UNION", "VALUES", "WINDOW",
]  # fmt: skip


class Part(NamedTuple):
    """A part of a group. OPTIONAL, MINUS and BIND are without what stands before them."""

    kind: PartKind
    node: Logical


class GroupParts(NamedTuple):
    """The parts of a group in their order, and the conditions of its filters."""

    parts: tuple[Part, ...]
    filters: tuple[tree.Expression, ...]

    @classmethod
    def of(cls, node: Logical) -> GroupParts:
        """Take the translation of a group apart."""
        filters: tuple[tree.Expression, ...] = ()
        if isinstance(node, Filter):
            filters, node = node.conditions, node.input
        parts: list[Part] = []
        left: Logical
        while node != Bgp():
            match node:
                case Join(left, right):
                    parts.append(Part(_kind(right), right))
                case LeftJoin(left):
                    parts.append(Part("OPTIONAL", replace(node, left=Bgp())))
                case Minus(left):
                    parts.append(Part("MINUS", replace(node, left=Bgp())))
                case Extend(left):
                    parts.append(Part("BIND", replace(node, input=Bgp())))
                case _:
                    raise ValueError(f"{type(node).__name__} is not the translation of a group")
            node = left
        return cls(tuple(reversed(parts)), filters)

    def of_kind(self, *kinds: PartKind) -> tuple[Logical, ...]:
        """Return the nodes of the parts of some kinds."""
        return tuple(part.node for part in self.parts if part.kind in kinds)

    @property
    def plain_patterns(self) -> tuple[PlainTerms, ...]:
        """The triple patterns of the group; empty if it has other parts, blank nodes or paths."""
        patterns = [node for kind, node in self.parts if kind == "pattern over static data"]
        triples = tuple(t for node in patterns if isinstance(node, Bgp) for t in node.triples)
        terms = (term for triple in triples for term in triple)
        is_plain = all(isinstance(term, tree.Var | tree.Iri | tree.Literal) for term in terms)
        return triples if is_plain and len(patterns) == len(self.parts) else ()


def _kind(node: Logical) -> PartKind:
    match node:
        case Bgp((_, *_)):
            return "pattern over static data"
        case Window():
            return "WINDOW"
        case Service():
            return "SERVICE"
        case Graph():
            return "GRAPH"
        case Union():
            return "UNION"
        case Values():
            return "VALUES"
        case Project() | Distinct() | Reduced() | Slice():
            return "SELECT"
        case _:
            return "group"


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """The levels of a SELECT: the pattern of WHERE, and the solution modifiers.

    `computed` are the expressions of SELECT, `projected` the names of all columns. `grouping` is
    None if solutions are not grouped.
    """

    where: Logical
    grouping: Group | None
    having: tuple[tree.Expression, ...]
    values: Values | None
    computed: tuple[tree.SelectAs, ...]
    order: tuple[tree.OrderCondition, ...]
    projected: tuple[str, ...]
    modifier: Literal["DISTINCT", "REDUCED"] | None
    offset: int
    limit: int | None
    project: Project

    @property
    def keys(self) -> tuple[tree.GroupKey, ...]:
        """The keys of GROUP BY."""
        return () if self.grouping is None else self.grouping.keys

    @property
    def group(self) -> GroupParts:
        """The parts of WHERE."""
        return GroupParts.of(self.where)

    @property
    def is_ranking(self) -> bool:
        """Whether there is ORDER BY with LIMIT."""
        return bool(self.order) and self.limit is not None


def select_plan(node: Logical) -> SelectPlan | None:
    """Return the levels of a SELECT; None if the node is not one."""
    offset, limit = 0, None
    if isinstance(node, Slice):
        offset, limit, node = node.offset, node.limit, node.input
    modifier: Literal["DISTINCT", "REDUCED"] | None = None
    if isinstance(node, Distinct | Reduced):
        modifier = "DISTINCT" if isinstance(node, Distinct) else "REDUCED"
        node = node.input
    if not isinstance(node, Project):
        return None
    project, node = node, node.input
    order: tuple[tree.OrderCondition, ...] = ()
    if isinstance(node, OrderBy):
        order, node = node.conditions, node.input
    for _ in project.computed:
        assert isinstance(node, Extend), "each computed column is an Extend"  # noqa: S101
        node = node.input
    values: Values | None = None
    if isinstance(node, Join) and isinstance(node.right, Values) and node.right.trailing:
        values, node = node.right, node.left
    having: tuple[tree.Expression, ...] = ()
    if isinstance(node, Filter) and node.is_having:
        having, node = node.conditions, node.input
    grouping = node if isinstance(node, Group) else None
    where = node if grouping is None else grouping.input
    return SelectPlan(
        where,
        grouping,
        having,
        values,
        project.computed,
        order,
        project.variables,
        modifier,
        offset,
        limit,
        project,
    )


@dataclass(frozen=True, slots=True)
class LogicalQuery:
    """A query to plan.

    `unit` is its syntax tree: only what writes SPARQL text reads it. `select` is None for CONSTRUCT
    and ASK.
    """

    unit: tree.QueryUnit
    plan: Logical
    select: SelectPlan | None

    @property
    def windows(self) -> tuple[tree.FromWindow, ...]:
        """The windows of the dataset."""
        return self.unit.windows

    @property
    def span(self) -> Span:
        """The place of the query after its prologue."""
        return self.plan.span

    @property
    def is_ranking(self) -> bool:
        """Whether the query is a SELECT with ORDER BY and LIMIT."""
        return self.select is not None and self.select.is_ranking

    @property
    def is_ranking_of_groups(self) -> bool:
        """Whether the query ranks groups of solutions."""
        return self.is_ranking and self.select is not None and self.select.grouping is not None

    @property
    def services(self) -> tuple[Service | tree.ServicePattern, ...]:
        """The SERVICE clauses, those in other clauses and in EXISTS included."""
        in_exists = find_expressions(self.plan, tree.ServicePattern)
        return *find_nodes(self.plan, Service), *in_exists


def logical_query(unit: tree.QueryUnit) -> LogicalQuery:
    """Translate a query for the planner."""
    plan = translate(unit)
    assert isinstance(plan, Stream), "a query has an output stream"  # noqa: S101
    return LogicalQuery(unit, plan, select_plan(plan.input))
