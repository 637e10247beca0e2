"""The shape of queries whose triple patterns are joined on columns.

The query reads one window over event time, in one WINDOW clause, and nothing else. The clause has
triple patterns with constant predicates, each connected with the others by a variable; OPTIONAL
with such patterns; and FILTER, BIND and VALUES. What is done with its solutions does not matter. If
they are only projected, or grouped with aggregates of variables, Oxigraph is not needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyoxigraph as ox

from rsp_engine.evaluators.column_join import ColumnJoinConfig
from rsp_engine.grammar import tree
from rsp_engine.operators.joins.column_join import JoinConfig
from rsp_engine.operators.joins.grouped_columns import GroupConfig, JoinAggregate
from rsp_engine.operators.sparql.one_pattern import OnePattern
from rsp_engine.operators.sparql.template import Hole
from rsp_engine.plan.logical import algebra as logical
from rsp_engine.plan.logical.algebra import find_expressions, find_nodes
from rsp_engine.plan.logical.query import GroupParts
from rsp_engine.plan.shapes.shape import Choice, NoMatchError, Shape
from rsp_engine.plan.shapes.sparql import general_path, general_query
from rsp_engine.plan.sparql.general import as_term
from rsp_engine.plan.term_filters import conjuncts, term_filter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.grammar.triples import PlainTriple
    from rsp_engine.operators.joins.term_filter import TermFilter
    from rsp_engine.operators.sparql.template import TemplateTerm
    from rsp_engine.plan.logical.query import LogicalQuery, SelectPlan
    from rsp_engine.plan.options import QueryOptions

__all__ = ["COLUMN_JOIN_SHAPE"]

_WHY = "triple patterns with constant predicates: they are joined on columns"
_FINISHED = "; Oxigraph evaluates the query over the triples that contribute"


def _choose(query: LogicalQuery, options: QueryOptions) -> Choice:
    if options.ranking.operator == "general":
        raise NoMatchError("the options select the general path", query)
    if options.ranking.match == "element":
        raise NoMatchError("each WINDOW block is matched within one element", query)
    window = _only_window(query)
    rewritten, why = general_path(query, options)
    config = general_query(query, options, rewritten)
    if config.is_timed:
        raise NoMatchError("ties are broken by arrival times, which columns do not have", query)
    if config.needs_order or config.makes_nodes:
        reason = "a function depends on the order of triples, or gives another value each time"
        raise NoMatchError(reason, query)
    join = _join_config(window, query)
    _, _, not_ranked = why.partition("; ")
    reason = _WHY + _FINISHED * (not join.is_complete)
    why = "; ".join(filter(None, (reason, not_ranked)))
    return Choice(ColumnJoinConfig(config, join), why, selection=join.selection)


def _only_window(query: LogicalQuery) -> logical.Window:
    """Return the only WINDOW clause; raise if the query reads anything else."""
    windows = list(find_nodes(query.plan, logical.Window))
    if len(query.windows) != 1 or len(windows) != 1:
        raise NoMatchError("the query does not have exactly one WINDOW clause", query)
    [window] = windows
    if isinstance(window.name, tree.Var):
        raise NoMatchError("WINDOW has a variable, which the window binds", window)
    if not isinstance(query.windows[0].frame, tree.TimeWindow):
        raise NoMatchError("the panes of a window that counts are not known", query.windows[0])
    for kind in (logical.Graph, logical.Service):
        for other in find_nodes(query.plan, kind):
            raise NoMatchError("a clause reads other data than the window", other)
    inside = set(map(id, find_nodes(window, logical.Bgp)))
    for pattern in find_nodes(query.plan, logical.Bgp):
        if pattern.triples and id(pattern) not in inside:
            raise NoMatchError("a pattern reads static data", pattern)
    for exists in find_expressions(query.plan, tree.Exists):
        raise NoMatchError("EXISTS reads the whole window", exists)
    if any(find_nodes(query.plan, logical.Reduced)):
        raise NoMatchError("REDUCED may drop any duplicates", query)
    return window


class _Optional(NamedTuple):
    """An OPTIONAL with its patterns, and the variables that patterns before it bind."""

    node: logical.LeftJoin
    patterns: list[OnePattern]
    before: set[str]

    @property
    def own(self) -> set[str]:
        """The variables that no pattern before it has."""
        return _names(self.patterns) - self.before

    def check(self, required: set[str]) -> None:
        """Raise if its matches cannot be found by the solutions of the required patterns."""
        if not all(_names([each]) & self.before for each in self.patterns):
            raise NoMatchError(
                "a pattern of OPTIONAL shares no variable with one before", self.node
            )
        for name in sorted(self.own & required):
            raise NoMatchError(f"a pattern after OPTIONAL may bind ?{name} as well", self.node)

    def filters(self) -> list[TermFilter] | None:
        """Return its conditions, each on its own variable; None if it is not one plain pattern."""
        conditions = [term_filter(each, self.own) for each in conjuncts(self.node.conditions)]
        filters = [each for each in conditions if each is not None]
        is_plain = len(self.patterns) == len(self.own) == 1 and len(filters) == len(conditions)
        return filters if is_plain else None


def _join_config(window: logical.Window, query: LogicalQuery) -> JoinConfig:
    """Return the join of a window; raise if it has other parts, or they are not connected."""
    inside = GroupParts.of(window.input)
    required: list[OnePattern] = []
    optionals: list[_Optional] = []
    has_more = False
    for kind, node in inside.parts:
        match node:
            case logical.Bgp(triples):
                required += _patterns(triples, node)
            case logical.LeftJoin(_, logical.Join(logical.Bgp(()), logical.Bgp(triples))):
                optionals.append(_Optional(node, _patterns(triples, node), _names(required)))
            case logical.Extend() | logical.Values():
                has_more = True
            case _:
                raise NoMatchError(f"{kind} inside the window is not joined on columns", node)
    if len(required) + len(optionals) < 2:
        raise NoMatchError("the window has no two triple patterns to join", window)
    _check_connected(required, window)
    names = _names(required)
    for optional in optionals:
        optional.check(names)
    patterns = tuple(pattern for optional in optionals for pattern in optional.patterns)
    beside = _filters_beside(query)
    conditions = [term_filter(e, names) for e in conjuncts((*inside.filters, *(beside or ())))]
    filters = tuple(each for each in conditions if each is not None)
    of_optionals = [optional.filters() for optional in optionals]
    join = JoinConfig(tuple(required), patterns, filters)
    is_all = (
        not has_more
        and beside is not None
        and None not in (*conditions, *of_optionals)
        and len(_names(patterns) - names) == len(patterns)  # no two have the same variable
    )
    if not is_all or query.select is None or not _is_projection(query.select):
        return join
    grouping = None
    if query.select.grouping is not None:
        grouping = _grouping(query.select, names)
        if grouping is None:
            return join
    own = tuple(each for filters in of_optionals for each in filters or ())
    return replace(
        join,
        filters=(*filters, *own),
        is_complete=True,
        is_distinct=query.select.modifier == "DISTINCT",
        grouping=grouping,
    )


def _patterns(triples: tuple[PlainTriple, ...], at: logical.Logical) -> list[OnePattern]:
    """Return triple patterns; raise if a predicate is not constant. Blank nodes are variables."""
    patterns = []
    for subject, verb, value in triples:
        if not isinstance(verb, tree.Iri):
            raise NoMatchError("a predicate is a variable or a property path", at)
        ends = [_variable_or_constant(node) for node in (subject, value)]
        patterns.append(OnePattern(ends[0], ox.NamedNode(verb.value), ends[1]))
        if not _names(patterns[-1:]):
            raise NoMatchError("a triple pattern has no variable", at)
    return patterns


def _variable_or_constant(node: tree.Node) -> TemplateTerm:
    return Hole(f"_:{node.label}") if isinstance(node, tree.BlankNode) else as_term(node)


def _names(patterns: Iterable[OnePattern]) -> set[str]:
    """Return the variables of patterns."""
    ends = (end for each in patterns for end in (each.subject, each.object))
    return {end.name for end in ends if isinstance(end, Hole)}


def _check_connected(patterns: list[OnePattern], at: logical.Window) -> None:
    waiting = [_names([pattern]) for pattern in patterns]
    reached = waiting[0] if waiting else set()
    while waiting:
        connected = [names for names in waiting if names & reached]
        if not connected:
            raise NoMatchError("two triple patterns are not connected by variables", at)
        waiting = [names for names in waiting if names not in connected]
        reached = reached.union(*connected)


def _filters_beside(query: LogicalQuery) -> tuple[tree.Expression, ...] | None:
    """Return the filters beside the window; None if it is not the only other part of WHERE."""
    if query.select is None:
        return None
    group = query.select.group
    return group.filters if len(group.parts) == len(group.windows) == 1 else None


def _is_projection(select: SelectPlan) -> bool:
    """Return whether a SELECT only projects solutions or groups, and perhaps cuts the rows."""
    if select.having or select.order or select.values is not None:
        return False
    return bool(select.project.variables) and (select.grouping is not None or not select.computed)


def _grouping(select: SelectPlan, names: set[str]) -> GroupConfig | None:
    """Return keys and aggregates over variables; None if there are others.

    Only COUNT takes a variable that may be unbound.
    """
    keys = [key.expression for key in select.keys if key.variable is None]
    aggregates = []
    for item in select.computed:
        match item.expression:
            case tree.Aggregate("COUNT", None, False):
                aggregates.append(JoinAggregate(item.variable.name, "COUNT", None))
            case tree.Aggregate(function, tree.Var(name), distinct):
                if function not in {"COUNT", "SUM", "AVG", "MIN", "MAX"}:
                    return None
                if function != "COUNT" and name not in names:
                    return None
                aggregates.append(JoinAggregate(item.variable.name, function, name, distinct))
            case _:
                return None
    plain = tuple(key.name for key in keys if isinstance(key, tree.Var))
    return (
        GroupConfig(plain, tuple(aggregates)) if plain and len(plain) == len(select.keys) else None
    )


COLUMN_JOIN_SHAPE = Shape("column_join", _choose)
