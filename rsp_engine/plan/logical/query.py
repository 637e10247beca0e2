"""A query to plan: the tuple (E, DS, QF) of SPARQL 1.1 (section 18.2), as recognisers read it.

E is the logical plan as translated, without rewrite rules: these drop the braces of nested groups,
which decide how ties are broken. A SELECT is read level by level: its pattern, then the solution
modifiers over it. A pattern is read group by group: its filters, and the parts that it joins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from rsp_engine.grammar import tree
from rsp_engine.plan.logical import algebra as logical
from rsp_engine.plan.logical.algebra import find_expressions, find_nodes
from rsp_engine.plan.logical.translate import translate

if TYPE_CHECKING:
    from rsp_engine.errors import Span
    from rsp_engine.grammar.triples import PlainTerms
    from rsp_engine.plan.logical.algebra import Logical

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
        if isinstance(node, logical.Filter):
            filters, node = node.conditions, node.input
        parts: list[Part] = []
        left: Logical
        while node != logical.Bgp():
            match node:
                case logical.Join(left, right):
                    parts.append(Part(_kind(right), right))
                case logical.LeftJoin(left):
                    parts.append(Part("OPTIONAL", replace(node, left=logical.Bgp())))
                case logical.Minus(left):
                    parts.append(Part("MINUS", replace(node, left=logical.Bgp())))
                case logical.Extend(left):
                    parts.append(Part("BIND", replace(node, input=logical.Bgp())))
                case _:
                    raise ValueError(f"{type(node).__name__} is not the translation of a group")
            node = left
        return cls(tuple(reversed(parts)), filters)

    @property
    def windows(self) -> tuple[logical.Window, ...]:
        """The WINDOW clauses among the parts."""
        return tuple(node for _, node in self.parts if isinstance(node, logical.Window))

    @property
    def services(self) -> tuple[logical.Service, ...]:
        """The SERVICE clauses among the parts."""
        return tuple(node for _, node in self.parts if isinstance(node, logical.Service))

    @property
    def plain_patterns(self) -> tuple[PlainTerms, ...]:
        """The triple patterns of the group; empty if it has other parts, blank nodes or paths."""
        patterns = [node for _, node in self.parts if isinstance(node, logical.Bgp)]
        triples = tuple(triple for node in patterns for triple in node.triples)
        terms = (term for triple in triples for term in triple)
        is_plain = all(isinstance(term, tree.Var | tree.Iri | tree.Literal) for term in terms)
        is_all = all(kind == "pattern over static data" for kind, _ in self.parts)
        return triples if is_plain and is_all else ()


_KINDS: dict[type[logical.LogicalNode], PartKind] = {
    logical.Window: "WINDOW",
    logical.Service: "SERVICE",
    logical.Graph: "GRAPH",
    logical.Union: "UNION",
    logical.Values: "VALUES",
    **dict.fromkeys((logical.Project, logical.Distinct, logical.Reduced, logical.Slice), "SELECT"),
}


def _kind(node: Logical) -> PartKind:
    """Return the kind of what a group joins; a node of another class is a group in braces."""
    if isinstance(node, logical.Bgp) and node.triples:
        return "pattern over static data"
    return _KINDS.get(type(node), "group")


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """The levels of a SELECT: the pattern of WHERE, and the solution modifiers.

    `grouping` is None if solutions are not grouped; `project` has the columns.
    """

    where: Logical
    grouping: logical.Group | None
    having: tuple[tree.Expression, ...]
    values: logical.Values | None
    order: tuple[tree.OrderCondition, ...]
    project: logical.Project
    modifier: Literal["DISTINCT", "REDUCED"] | None
    offset: int
    limit: int | None

    @property
    def keys(self) -> tuple[tree.GroupKey, ...]:
        """The keys of GROUP BY."""
        return () if self.grouping is None else self.grouping.keys

    @property
    def computed(self) -> tuple[tree.SelectAs, ...]:
        """The columns that SELECT computes."""
        return self.project.computed

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
    if isinstance(node, logical.Slice):
        offset, limit, node = node.offset, node.limit, node.input
    modifier: Literal["DISTINCT", "REDUCED"] | None = None
    if isinstance(node, logical.Distinct | logical.Reduced):
        modifier = "DISTINCT" if isinstance(node, logical.Distinct) else "REDUCED"
        node = node.input
    if not isinstance(node, logical.Project):
        return None
    project, node = node, node.input
    order: tuple[tree.OrderCondition, ...] = ()
    if isinstance(node, logical.OrderBy):
        order, node = node.conditions, node.input
    for _ in project.computed:
        assert isinstance(node, logical.Extend), "each computed column is an Extend"  # noqa: S101
        node = node.input
    values: logical.Values | None = None
    if isinstance(node, logical.Join) and isinstance(last := node.right, logical.Values):
        values, node = (last, node.left) if last.trailing else (None, node)
    having: tuple[tree.Expression, ...] = ()
    if isinstance(node, logical.Filter) and node.is_having:
        having, node = node.conditions, node.input
    grouping = node if isinstance(node, logical.Group) else None
    where = node if grouping is None else grouping.input
    return SelectPlan(where, grouping, having, values, order, project, modifier, offset, limit)


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
    def services(self) -> tuple[logical.Service | tree.ServicePattern, ...]:
        """The SERVICE clauses, those in other clauses and in EXISTS included."""
        in_exists = find_expressions(self.plan, tree.ServicePattern)
        return *find_nodes(self.plan, logical.Service), *in_exists


def logical_query(unit: tree.QueryUnit) -> LogicalQuery:
    """Translate a query for the planner."""
    plan = translate(unit)
    assert isinstance(plan, logical.Stream), "a query has an output stream"  # noqa: S101
    return LogicalQuery(unit, plan, select_plan(plan.input))
