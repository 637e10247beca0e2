"""The shape of rankings of groups that are evaluated by pane partials, with or without SERVICE.

The query is ranked as in `topk`, or as in `acquatop` if it has a SERVICE clause. It groups by
variables of the pattern, and by remote variables if the join key is among the keys; no HAVING. It
has one aggregate of a variable of the pattern: COUNT, SUM, MIN, MAX or AVG. The score is arithmetic
over the aggregate and at most one remote variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import aggregates
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.operators.aggregates.groups import Grouping
from rsp_engine.operators.scoring.scoring_function import variables
from rsp_engine.plan.logical.algebra import LeftJoin
from rsp_engine.plan.logical.query import GroupParts
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.shapes.acquatop import (
    ScoredSides,
    joined_config,
    score_config,
    service_of,
    sides_of,
)
from rsp_engine.plan.shapes.ranking import (
    check_choice,
    check_ranking,
    cutoff,
    order_expression,
    stream_side,
)
from rsp_engine.plan.shapes.shape import Choice, NoMatchError, Shape, select_of
from rsp_engine.plan.sparql.general import sparql_path
from rsp_engine.plan.sparql.object_texts import free_variable, matching_of, projection
from rsp_engine.plan.variables import certain_variables, visible_variables

if TYPE_CHECKING:
    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.operators.aggregates.pane_partials import Function
    from rsp_engine.plan.logical.algebra import Logical
    from rsp_engine.plan.logical.query import LogicalQuery, SelectPlan
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.plan.shapes.acquatop import Sides
    from rsp_engine.plan.shapes.ranking import StreamSide

__all__ = ["GROUP_TOPK_SHAPE", "group_topk_plan"]

_FUNCTIONS: dict[str, Function] = {
    "COUNT": "count",
    "SUM": "sum",
    "MIN": "min",
    "MAX": "max",
    "AVG": "avg",
}


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The groups of a query, and their aggregate; `variable` is in place of it in `expression`.

    `keys` are the group keys that are variables of the window, `value` is the aggregated variable.
    `variable` is the name that SELECT gives to the aggregate, if it does, so that rows need no
    query.
    """

    query: LogicalQuery
    select: SelectPlan
    side: StreamSide
    aggregate: tree.Aggregate
    keys: tuple[str, ...]
    value: str | None
    variable: str

    @property
    def renamed(self) -> tree.QueryUnit:
        """The text of the query with a variable in place of the aggregate."""
        form: Any = self.query.unit.form
        clause, modifiers = map(self._changed, (form.clause, form.modifiers))
        return replace(self.query.unit, form=replace(form, clause=clause, modifiers=modifiers))

    @property
    def expression(self) -> tree.Expression:
        """The score, with a variable in place of the aggregate."""
        changed: Any = self._changed(order_expression(self.select))
        return changed  # type: ignore[no-any-return]

    def _changed(self, node: tree.Node) -> tree.Node:
        variable = tree.Var(self.variable)

        def change(inner: tree.Node) -> tree.Node:
            is_it = inner in (self.aggregate, tree.SelectAs(variable, variable))
            return variable if is_it else inner

        return tree.rewrite_tree(node, change)

    @property
    def number(self) -> tree.Expression:
        """What is aggregated; a constant for COUNT(*)."""
        return tree.Literal("0", XSD + "integer") if self.value is None else tree.Var(self.value)

    @property
    def grouping(self) -> Grouping:
        """How the evaluator groups solutions."""
        function, names = _FUNCTIONS[self.aggregate.function], self.side.names
        value = None
        if self.value is not None and function != "count":
            value = names.index(self.value)
        return Grouping(function, tuple(map(names.index, self.keys)), value, self.variable)


def _choose(query: LogicalQuery, options: QueryOptions) -> Choice:
    check_choice(query, options)
    if not query.is_ranking_of_groups:
        raise NoMatchError(
            "no groups are ranked: there is neither GROUP BY nor an aggregate", query
        )
    why = "groups of solutions of one triple pattern, ranked by one aggregate"
    config, services = group_topk_plan(query, options)
    if services:
        return Choice(config, f"{why} and by one SERVICE", services)
    return Choice(config, f"{why}: each pane is aggregated once")


def group_topk_plan(
    query: LogicalQuery, options: QueryOptions
) -> tuple[GroupTopkConfig | AcquaTopConfig, tuple[ServicePlan, ...]]:
    """Return the configuration of an evaluator by pane partials, and the plan of its SERVICE.

    Raise if there is none for the query.
    """
    if query.services:
        config, service = _joined_plan(query, options)
        return config, (service,)
    select, unit, functions = select_of(query), query.unit, options.functions
    side = stream_side(query, options.ranking.match)
    _check_one_pattern(query, side)
    check_ranking(query)
    grouped = _grouped(query, side, ())
    score = _score(grouped, (), options)
    base = sparql_path(unit, functions)
    k, offset = cutoff(select)
    renamed = grouped.renamed
    return GroupTopkConfig(
        query=base,
        matching=matching_of(unit, side, grouped.number, functions),
        grouping=grouped.grouping,
        projected=projection(renamed, grouped.keys, base, functions, (grouped.variable,)),
        scoring=score.scoring,
        scored=score_config(renamed, grouped.expression, score, functions),
        descending=select.order[0].descending,
        k=k,
        offset=offset,
    ), ()


def _check_one_pattern(query: LogicalQuery, side: StreamSide) -> None:
    if len(side.triples) > 1:
        reason = "groups of solutions of several triple patterns have no pane partials"
        raise NoMatchError(reason, query)


def _joined_plan(query: LogicalQuery, options: QueryOptions) -> tuple[AcquaTopConfig, ServicePlan]:
    sides = sides_of(query, options)
    _check_one_pattern(query, sides.stream)
    grouped = _grouped(query, sides.stream, sides.remote)
    _check_join(grouped, sides)
    score = _score(grouped, sides.remote, options)
    one_of_key = set(grouped.keys) == set(sides.keys)
    service = service_of(sides, score, options, one_of_key=one_of_key)
    config = joined_config(sides, score, options, grouped.value)
    renamed, functions = grouped.renamed, options.functions
    unsure = (grouped.variable, *sides.remote)
    config = replace(
        config,
        projected=projection(renamed, grouped.keys, config.query, functions, unsure),
        grouping=grouped.grouping,
        scored=score_config(renamed, grouped.expression, score, functions),
    )
    return config, service


def _check_join(grouped: _Grouped, sides: Sides) -> None:
    """Raise if a group may join several remote solutions."""
    several = "a group may join several remote solutions: GROUP BY lacks"
    if not set(sides.keys) <= set(grouped.keys):
        raise NoMatchError(f"{several} the join key", sides.service)
    keys = (key.expression for key in sides.select.keys)
    names = {key.name for key in keys if isinstance(key, tree.Var)}
    if missing := sorted(set(sides.remote) - names):
        raise NoMatchError(f"{several} ?{missing[0]}", sides.service)
    if not _gives_a_set(sides.service.input):
        reason = "a group may join a remote solution that SERVICE returns several times"
        raise NoMatchError(reason, sides.service)


def _gives_a_set(node: Logical) -> bool:
    """Return whether a group provably has no duplicate solutions.

    It has plain triple patterns, filters, and OPTIONAL groups of the same kind that share no
    variable which may be unbound.
    """
    group = GroupParts.of(node)
    optional = [node.right for _, node in group.parts if isinstance(node, LeftJoin)]
    others = GroupParts(tuple(part for part in group.parts if part.kind != "OPTIONAL"), ())
    sure = set[str]().union(*(certain_variables(node) for _, node in others.parts))
    unsure = [name for each in optional for name in visible_variables(each) - sure]
    is_apart = len(set(unsure)) == len(unsure)
    return bool(others.plain_patterns) and is_apart and all(map(_gives_a_set, optional))


def _grouped(query: LogicalQuery, side: StreamSide, remote: tuple[str, ...]) -> _Grouped:
    select = select_of(query)
    if not select.keys:
        raise NoMatchError("without GROUP BY all solutions are one group", query)
    if select.having:
        raise NoMatchError("HAVING removes groups", select.having[0])
    names = _keys(select, side, remote)
    parts = (*select.computed, *select.order)
    distinct = list(dict.fromkeys(a for part in parts for a in aggregates(part)))
    if len(distinct) != 1 or not isinstance(aggregate := distinct[0], tree.Aggregate):
        reason = f"a ranking of groups needs exactly one aggregate, not {len(distinct)}"
        raise NoMatchError(reason, query)
    value = _value(aggregate, side)
    keys = tuple(name for name in side.names if name in names)
    if aggregate.distinct and aggregate.function not in {"MIN", "MAX"} and value is not None:
        others = set(side.names) - {*keys, value}
        if others:
            reason = f"DISTINCT drops solutions that differ only in ?{min(others)} only"
            raise NoMatchError(reason, aggregate)
    aliases = (item.variable.name for item in select.computed if item.expression == aggregate)
    variable = next(aliases, None) or free_variable(query.unit, "aggregate")
    return _Grouped(query, select, side, aggregate, keys, value, variable)


def _keys(select: SelectPlan, side: StreamSide, remote: tuple[str, ...]) -> set[str]:
    names = set()
    for key in select.keys:
        if not isinstance(key.expression, tree.Var) or key.variable is not None:
            raise NoMatchError("a key of GROUP BY is an expression", key)
        names.add(key.expression.name)
    if others := sorted(names - {*side.names, *remote}):
        raise NoMatchError(f"the window does not bind the key ?{others[0]}", select.keys[0])
    if not names & set(side.names):
        raise NoMatchError("GROUP BY has no key from the window", select.keys[0])
    return names


def _value(aggregate: tree.Aggregate, side: StreamSide) -> str | None:
    """Return the aggregated variable; None for COUNT(*)."""
    if aggregate.function not in _FUNCTIONS:
        raise NoMatchError(f"{aggregate.function} does not return a number", aggregate)
    match aggregate.argument:
        case None:
            return None
        case tree.Var(name) if name in side.names:
            return name
        case _:
            reason = "the argument of the aggregate is not a variable of the window"
            raise NoMatchError(reason, aggregate)


def _score(grouped: _Grouped, remote: tuple[str, ...], options: QueryOptions) -> ScoredSides:
    condition = grouped.select.order[0]
    scoring = scoring_of(grouped.expression, options.functions, quotients=True)
    if scoring is None:
        raise NoMatchError("the score uses more than arithmetic", condition)
    names = variables(scoring)
    if grouped.variable not in names:
        raise NoMatchError("the score does not depend on the aggregate", condition)
    others = [name for name in names if name != grouped.variable]
    if keys := [name for name in others if name not in remote]:
        raise NoMatchError(f"the score depends on the key ?{keys[0]}", condition)
    if len(others) > 1:
        raise NoMatchError("the score uses more than one value of SERVICE", condition)
    return ScoredSides(scoring, grouped.variable, *others or (None,))


GROUP_TOPK_SHAPE = Shape("group_topk", _choose)
