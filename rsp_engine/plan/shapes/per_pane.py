"""The shape of queries that are evaluated pane by pane.

The query has one window over event time, with one triple pattern (no property path), and projects
all variables of the pattern. Filters use these variables only. There is no ORDER BY, no group and
no volatile function.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rsp_engine.evaluators.per_pane import PerPaneConfig
from rsp_engine.grammar import tree
from rsp_engine.operators.sparql.one_pattern import OnePattern
from rsp_engine.plan.logical.algebra import Window, find_expressions
from rsp_engine.plan.logical.query import GroupParts, Part
from rsp_engine.plan.shapes.shape import Choice, NoMatchError, Shape
from rsp_engine.plan.sparql.general import VOLATILE_FUNCTIONS, as_term, sparql_path

if TYPE_CHECKING:
    from rsp_engine.plan.logical.query import LogicalQuery, SelectPlan
    from rsp_engine.plan.options import QueryOptions

__all__ = ["PER_PANE_SHAPE", "per_pane_config"]


def _choose(query: LogicalQuery, options: QueryOptions) -> Choice:
    why = "one triple pattern over one window: each pane is evaluated once"
    return Choice(per_pane_config(query, options), why)


def per_pane_config(query: LogicalQuery, options: QueryOptions) -> PerPaneConfig:
    """Return the configuration of the per-pane evaluator; raise if the query does not fit."""
    select = query.select
    if select is None:
        raise NoMatchError("only the rows of a SELECT can be put together from panes", query)
    _check_modifiers(select)
    window, filters = _window(select)
    inside = GroupParts.of(window.input)
    triples = inside.plain_patterns
    if len(triples) != 1:
        raise NoMatchError("the window has more than one plain triple pattern and filters", window)
    _check_expressions(query)
    computed = {item.variable.name for item in select.computed}
    for term in triples[0]:
        if isinstance(term, tree.Var) and term.name not in set(select.project.variables) - computed:
            reason = f"several panes may give the same row: SELECT leaves out ?{term.name}"
            raise NoMatchError(reason, select.project)
    if len(query.windows) != 1:
        raise NoMatchError("the query declares more than one window", query)
    if not isinstance(query.windows[0].frame, tree.TimeWindow):
        raise NoMatchError("the panes of a window that counts are not known", query.windows[0])
    config = sparql_path(_over_default_graph(query.unit, window), options.functions)
    is_all = not filters and not inside.filters and not select.computed
    return PerPaneConfig(config, OnePattern(*map(as_term, triples[0])) if is_all else None)


def _check_modifiers(select: SelectPlan) -> None:
    """Raise if a solution modifier needs all solutions of a window."""
    if select.values is not None:
        raise NoMatchError(
            "VALUES after the query joins data that is not in the stream", select.values
        )
    if select.grouping is not None:
        raise NoMatchError("a group may have solutions of several panes", select.grouping)
    if select.having:
        raise NoMatchError("HAVING without groups leaves solutions out", select.having[0])
    if select.order:
        raise NoMatchError("ORDER BY puts the rows of several panes in order", select.order[0])
    if select.limit is not None or select.offset:
        raise NoMatchError("LIMIT and OFFSET cut the rows of the whole window", select.project)
    if select.modifier is not None:
        reason = f"{select.modifier} may make one row of those of several panes"
        raise NoMatchError(reason, select.project)


def _window(select: SelectPlan) -> tuple[Window, tuple[tree.Expression, ...]]:
    """Return the only WINDOW and the filters beside it; raise if WHERE has other parts."""
    match select.group:
        case GroupParts((Part("WINDOW", Window(tree.Iri()) as window),), filters):
            return window, filters
        case _:
            raise NoMatchError("WHERE has more than one WINDOW clause and filters", select.where)


def _check_expressions(query: LogicalQuery) -> None:
    """Raise if an expression depends on more than the variables of one solution."""
    for call in find_expressions(query.plan, tree.BuiltInCall):
        if call.name in VOLATILE_FUNCTIONS:
            reason = f"{call.name}() may return a different value in each window"
            raise NoMatchError(reason, call)
    for exists in find_expressions(query.plan, tree.Exists):
        raise NoMatchError("EXISTS reads the whole window", exists)
    for kind in (tree.NamedCall, tree.FunctionCall):
        for called in find_expressions(query.plan, kind):
            raise NoMatchError("a registered function may give another value each time", called)


def _over_default_graph(unit: tree.QueryUnit, window: Window) -> tree.QueryUnit:
    """Return the text of the query over the triples of one pane."""
    form, clause = unit.form, window.source
    assert isinstance(form, tree.SelectForm)  # noqa: S101
    assert isinstance(clause, tree.WindowPattern)  # noqa: S101
    filters = tuple(e for e in form.where.elements if isinstance(e, tree.FilterClause))
    where = tree.GroupPattern((*clause.group.elements, *filters))
    return replace(unit, form=replace(form, where=where))


PER_PANE_SHAPE = Shape("per_pane", _choose)
