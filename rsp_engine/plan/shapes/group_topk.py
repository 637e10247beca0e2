"""The shape of rankings of groups that are evaluated by pane partials, with or without SERVICE.

The query is ranked as in `topk`, or as in `acquatop` if it has a SERVICE clause. It groups by
variables of the pattern, and by remote variables if the join key is among the keys; no HAVING. It
has one aggregate of a variable of the pattern: COUNT, SUM, MIN, MAX or AVG. The score is arithmetic
over the aggregate and at most one remote variable.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.grammar import tree
from rsp_engine.grammar.expressions import aggregates
from rsp_engine.grammar.triples import plain_terms
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.operators.aggregates.groups import Grouping
from rsp_engine.operators.scoring.scoring_function import variables
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.shapes.acquatop import (
    ScoredSides,
    acquatop_config,
    score_config,
    service_of,
    sides_of,
)
from rsp_engine.plan.shapes.service_rewrite import has_service
from rsp_engine.plan.shapes.topk import (
    StreamSide,
    WhyNot,
    cutoff,
    free_variable,
    matching_of,
    order_expression,
    projection,
    stream_side,
    topk_refusals,
)
from rsp_engine.plan.sparql.general import sparql_path
from rsp_engine.plan.variables import certain_variables, visible_variables

if TYPE_CHECKING:
    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.operators.aggregates.pane_partials import Function
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.plan.shapes.acquatop import Sides

__all__ = ["group_topk_path"]

_SEVERAL = WhyNot("groups of solutions of several triple patterns have no pane partials")
_FUNCTIONS: dict[str, Function] = {
    "COUNT": "count",
    "SUM": "sum",
    "MIN": "min",
    "MAX": "max",
    "AVG": "avg",
}


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The groups of a query, and their aggregate; `renamed` has `variable` in place of it.

    `keys` are the group keys that are variables of the window, `value` is the aggregated variable.
    """

    aggregate: tree.Aggregate
    keys: tuple[str, ...]
    value: str | None
    variable: str
    renamed: tree.QueryUnit

    @property
    def select(self) -> tree.SelectForm:
        """The SELECT that has a variable in place of the aggregate."""
        assert isinstance(self.renamed.form, tree.SelectForm), "only a SELECT ranks"  # noqa: S101
        return self.renamed.form


def group_topk_path(
    query: tree.QueryUnit, options: QueryOptions
) -> GroupTopkConfig | tuple[AcquaTopConfig, ServicePlan] | WhyNot:
    """Return the configuration of an evaluator by pane partials, or why there is none."""
    if has_service(query):
        return _joined_path(query, options)
    select = query.form
    if not isinstance(select, tree.SelectForm):
        return WhyNot("only a SELECT can rank")
    side = stream_side(query, options.match)
    if isinstance(side, WhyNot):
        return side
    if len(side.triples) > 1:
        return _SEVERAL
    if refusal := next(topk_refusals(select), None):
        return refusal
    grouped = _grouped(query, select, side, ())
    if isinstance(grouped, WhyNot):
        return grouped
    score = _score(grouped, (), options)
    if isinstance(score, WhyNot):
        return score
    base = sparql_path(query, options.functions)
    k, offset = cutoff(select)
    unsure = (grouped.variable,)
    return GroupTopkConfig(
        **{field.name: getattr(base, field.name) for field in fields(base)},
        matching=matching_of(query, side, _number(grouped.value), options.functions),
        grouping=_grouping(grouped, side),
        projected=projection(grouped.renamed, grouped.keys, base, options.functions, unsure),
        scoring=score.scoring,
        scored=score_config(grouped.renamed, grouped.select, score, options.functions),
        descending=select.modifiers.order_by[0].descending,
        k=k,
        offset=offset,
    )


def _joined_path(
    query: tree.QueryUnit, options: QueryOptions
) -> tuple[AcquaTopConfig, ServicePlan] | WhyNot:
    sides = sides_of(query, options.match)
    if isinstance(sides, WhyNot):
        return sides
    if len(sides.stream.triples) > 1:
        return _SEVERAL
    grouped = _grouped(query, sides.select, sides.stream, sides.remote)
    if isinstance(grouped, WhyNot):
        return grouped
    if not set(sides.keys) <= set(grouped.keys):
        return WhyNot("a group may join several remote solutions: GROUP BY lacks the join key")
    if missing := sorted(set(sides.remote) - _group_keys(sides.select)):
        return WhyNot(f"a group may join several remote solutions: GROUP BY lacks ?{missing[0]}")
    if not _gives_a_set(sides.service.group):
        return WhyNot("a group may join a remote solution that SERVICE returns several times")
    score = _score(grouped, sides.remote, options)
    if isinstance(score, WhyNot):
        return score
    one_of_key = set(grouped.keys) == set(sides.keys)
    service = service_of(sides, score, options, one_of_key=one_of_key)
    return _config(query, sides, grouped, score, options), service


def _group_keys(select: tree.SelectForm) -> set[str]:
    keys = (key.expression for key in select.modifiers.group_by)
    return {key.name for key in keys if isinstance(key, tree.Var)}


def _gives_a_set(group: tree.GroupPattern) -> bool:
    """Return whether a group provably has no duplicate solutions.

    It has plain triple patterns, filters, and OPTIONAL groups of the same kind that share no
    variable which may be unbound.
    """
    optional = [e.group for e in group.elements if isinstance(e, tree.OptionalPattern)]
    others = [
        e for e in group.elements if not isinstance(e, tree.FilterClause | tree.OptionalPattern)
    ]
    sure = certain_variables(tree.GroupPattern(tuple(others)))
    unsure = [name for each in optional for name in visible_variables(each) - sure]
    is_apart = len(set(unsure)) == len(unsure)
    return bool(plain_terms(others)) and is_apart and all(map(_gives_a_set, optional))


def _config(
    query: tree.QueryUnit,
    sides: Sides,
    grouped: _Grouped,
    score: ScoredSides,
    options: QueryOptions,
) -> AcquaTopConfig:
    config = acquatop_config(query, sides, score, options, grouped.value)
    unsure = (grouped.variable, *sides.remote)
    return replace(
        config,
        projected=projection(grouped.renamed, grouped.keys, config, options.functions, unsure),
        grouping=_grouping(grouped, sides.stream),
        scored=score_config(grouped.renamed, grouped.select, score, options.functions),
    )


def _grouped(
    query: tree.QueryUnit, select: tree.SelectForm, side: StreamSide, remote: tuple[str, ...]
) -> _Grouped | WhyNot:
    modifiers = select.modifiers
    if not modifiers.group_by:
        return WhyNot("without GROUP BY all solutions are one group")
    if modifiers.having:
        return WhyNot("HAVING removes groups")
    names = _keys(modifiers, side, remote)
    if isinstance(names, WhyNot):
        return names
    parts = (*select.clause.items, *modifiers.order_by)
    distinct = list(dict.fromkeys(a for part in parts for a in aggregates(part)))
    if len(distinct) != 1 or not isinstance(aggregate := distinct[0], tree.Aggregate):
        return WhyNot(f"a ranking of groups needs exactly one aggregate, not {len(distinct)}")
    value = _value(aggregate, side)
    if isinstance(value, WhyNot):
        return value
    keys = tuple(name for name in side.names if name in names)
    if aggregate.distinct and aggregate.function not in {"MIN", "MAX"} and value is not None:
        others = set(side.names) - {*keys, value}
        if others:
            return WhyNot(f"DISTINCT drops solutions that differ only in ?{min(others)}")
    variable = free_variable(query, "aggregate")
    renamed = _renamed(query, select, aggregate, variable)
    return _Grouped(aggregate, keys, value, variable, renamed)


def _keys(
    modifiers: tree.Modifiers, side: StreamSide, remote: tuple[str, ...]
) -> set[str] | WhyNot:
    names = set()
    for key in modifiers.group_by:
        if not isinstance(key.expression, tree.Var) or key.variable is not None:
            return WhyNot("a key of GROUP BY is an expression")
        names.add(key.expression.name)
    if others := sorted(names - {*side.names, *remote}):
        return WhyNot(f"the window does not bind the key ?{others[0]}")
    if not names & set(side.names):
        return WhyNot("GROUP BY has no key from the window")
    return names


def _value(aggregate: tree.Aggregate, side: StreamSide) -> str | WhyNot | None:
    """Return the aggregated variable; None for COUNT(*)."""
    if aggregate.function not in _FUNCTIONS:
        return WhyNot(f"{aggregate.function} does not return a number")
    match aggregate.argument:
        case None:
            return None
        case tree.Var(name) if name in side.names:
            return name
        case _:
            return WhyNot("the argument of the aggregate is not a variable of the window")


def _renamed(
    query: tree.QueryUnit, select: tree.SelectForm, aggregate: tree.Aggregate, variable: str
) -> tree.QueryUnit:
    """Return the query with a variable in place of the aggregate."""

    def change(node: tree.Node) -> tree.Node:
        return tree.Var(variable) if node == aggregate else node

    clause: Any = tree.rewrite_tree(select.clause, change)
    modifiers: Any = tree.rewrite_tree(select.modifiers, change)
    return replace(query, form=replace(select, clause=clause, modifiers=modifiers))


def _score(
    grouped: _Grouped, remote: tuple[str, ...], options: QueryOptions
) -> ScoredSides | WhyNot:
    scoring = scoring_of(order_expression(grouped.select), options.functions, quotients=True)
    if scoring is None:
        return WhyNot("the score uses more than arithmetic")
    names = variables(scoring)
    if grouped.variable not in names:
        return WhyNot("the score does not depend on the aggregate")
    others = [name for name in names if name != grouped.variable]
    if keys := [name for name in others if name not in remote]:
        return WhyNot(f"the score depends on the key ?{keys[0]}")
    if len(others) > 1:
        return WhyNot("the score uses more than one value of SERVICE")
    return ScoredSides(scoring, grouped.variable, *others or (None,))


def _number(value: str | None) -> tree.Expression:
    """Return the expression that is aggregated; a constant for COUNT(*)."""
    return tree.Literal("0", XSD + "integer") if value is None else tree.Var(value)


def _grouping(grouped: _Grouped, side: StreamSide) -> Grouping:
    function, names = _FUNCTIONS[grouped.aggregate.function], side.names
    value = None
    if grouped.value is not None and function != "count":
        value = names.index(grouped.value)
    return Grouping(function, tuple(map(names.index, grouped.keys)), value, grouped.variable)
