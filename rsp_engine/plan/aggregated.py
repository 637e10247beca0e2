"""Which rankings of groups are run on pane partials, with SERVICE and without.

A ranked query as of `ranked`, or as of `joined` where it has a SERVICE; grouped by variables of the
pattern, and by remote ones if the join key is among the others; no HAVING. It has one aggregate:
COUNT, SUM, MIN, MAX or AVG, of a variable of the pattern. The score is arithmetic over the
aggregate and at most one remote variable.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.grammar import tree
from rsp_engine.grammar.expressions import aggregates
from rsp_engine.operators.aggregated import AggregatedConfig
from rsp_engine.operators.groups import Grouping
from rsp_engine.operators.scoring import variables
from rsp_engine.plan.general import general_path
from rsp_engine.plan.joined import Scored, joined_config, service_of, sides_of
from rsp_engine.plan.ranked import (
    StreamSide,
    WhyNot,
    asked_of,
    free_variable,
    matching_of,
    order_expression,
    projection,
    refusals,
    stream_side,
)
from rsp_engine.plan.remote import has_service
from rsp_engine.plan.scoring import scoring

if TYPE_CHECKING:
    from rsp_engine.operators.pane_partials import Function
    from rsp_engine.plan.joined import JoinedConfig, Sides
    from rsp_engine.plan.options import Options
    from rsp_engine.plan.services import ServicePlan

__all__ = ["aggregated_path"]

_FUNCTIONS: dict[str, Function] = {
    "COUNT": "count",
    "SUM": "sum",
    "MIN": "min",
    "MAX": "max",
    "AVG": "avg",
}


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The groups of a query, and their aggregate; `renamed` has a variable in its place.

    `keys` are the variables of the window by which solutions are grouped.
    """

    aggregate: tree.Aggregate
    keys: tuple[str, ...]
    value: str | None
    variable: str
    renamed: tree.Query

    @property
    def select(self) -> tree.Select:
        """The SELECT that has a variable in place of the aggregate."""
        assert isinstance(self.renamed.form, tree.Select), "only a SELECT ranks"  # noqa: S101
        return self.renamed.form


def aggregated_path(
    query: tree.Query, options: Options
) -> AggregatedConfig | tuple[JoinedConfig, ServicePlan] | WhyNot:
    """Return the configuration of an operator for pane partials, or why there is none."""
    if has_service(query):
        return _joined_path(query, options)
    select = query.form
    if not isinstance(select, tree.Select):
        return WhyNot("only a SELECT can rank")
    side = stream_side(query)
    if isinstance(side, WhyNot):
        return side
    if refusal := next(refusals(select), None):
        return refusal
    grouped = _grouped(query, select, side, ())
    if isinstance(grouped, WhyNot):
        return grouped
    score = _score(grouped, (), options)
    if isinstance(score, WhyNot):
        return score
    base = general_path(query, options.functions)
    modifiers = select.modifiers
    assert modifiers.limit is not None, "a ranking has a limit"  # noqa: S101
    offset = 0 if modifiers.offset is None else modifiers.offset.value
    unsure = (grouped.variable,)
    return AggregatedConfig(
        **{field.name: getattr(base, field.name) for field in fields(base)},
        matching=matching_of(query, side, _number(grouped.value), options.functions),
        grouping=_grouping(query, grouped, side, options),
        projected=projection(grouped.renamed, grouped.keys, base, options.functions, unsure),
        scoring=score.scoring,
        descending=modifiers.order_by[0].descending,
        k=offset + modifiers.limit.value,
        offset=offset,
    )


def _joined_path(query: tree.Query, options: Options) -> tuple[JoinedConfig, ServicePlan] | WhyNot:
    sides = sides_of(query)
    if isinstance(sides, WhyNot):
        return sides
    grouped = _grouped(query, sides.select, sides.stream, sides.remote)
    if isinstance(grouped, WhyNot):
        return grouped
    if not set(sides.keys) <= set(grouped.keys):
        return WhyNot("a group may join several remote solutions: GROUP BY lacks the join key")
    score = _score(grouped, sides.remote, options)
    if isinstance(score, WhyNot):
        return score
    one_of_key = set(grouped.keys) == set(sides.keys)
    service = service_of(sides, score, options, one_of_key=one_of_key)
    return _config(query, sides, grouped, score, options), service


def _config(
    query: tree.Query, sides: Sides, grouped: _Grouped, score: Scored, options: Options
) -> JoinedConfig:
    config = joined_config(query, sides, score, options, grouped.value)
    unsure = (grouped.variable, *sides.remote)
    return replace(
        config,
        projected=projection(grouped.renamed, grouped.keys, config, options.functions, unsure),
        grouping=_grouping(query, grouped, sides.stream, options),
    )


def _grouped(
    query: tree.Query, select: tree.Select, side: StreamSide, remote: tuple[str, ...]
) -> _Grouped | WhyNot:
    modifiers = select.modifiers
    if not modifiers.group_by:
        return WhyNot("without GROUP BY all solutions are one group")
    if modifiers.having:
        return WhyNot("HAVING leaves groups out")
    names = _keys(modifiers, side, remote)
    if isinstance(names, WhyNot):
        return names
    parts = (*select.clause.items, *modifiers.order_by)
    found = list(dict.fromkeys(a for part in parts for a in aggregates(part)))
    if len(found) != 1 or not isinstance(aggregate := found[0], tree.Aggregate):
        return WhyNot(f"groups are ranked by exactly one aggregate, and here are {len(found)}")
    value = _value(aggregate, side)
    if isinstance(value, WhyNot):
        return value
    keys = tuple(name for name in side.names if name in names)
    if aggregate.distinct and aggregate.function not in {"MIN", "MAX"} and value is not None:
        untold = set(side.names) - {*keys, value}
        if untold:
            return WhyNot(f"DISTINCT leaves solutions out that differ in ?{min(untold)} only")
    variable = free_variable(query, "aggregate")
    renamed = _renamed(query, select, aggregate, variable)
    return _Grouped(aggregate, keys, value, variable, renamed)


def _keys(
    modifiers: tree.Modifiers, side: StreamSide, remote: tuple[str, ...]
) -> set[str] | WhyNot:
    names = set()
    for key in modifiers.group_by:
        if not isinstance(key.expression, tree.Var) or key.variable is not None:
            return WhyNot("GROUP BY makes a key of an expression")
        names.add(key.expression.name)
    if others := sorted(names - {*side.names, *remote}):
        return WhyNot(f"the window does not have the key ?{others[0]}")
    if not names & set(side.names):
        return WhyNot("GROUP BY has no key of the window")
    return names


def _value(aggregate: tree.Aggregate, side: StreamSide) -> str | WhyNot | None:
    """Return the variable that is aggregated; none if solutions are counted."""
    if aggregate.function not in _FUNCTIONS:
        return WhyNot(f"{aggregate.function} is no number")
    match aggregate.argument:
        case None:
            return None
        case tree.Var(name) if name in side.names:
            return name
        case _:
            return WhyNot("the aggregate is of more than a variable of the window")


def _renamed(
    query: tree.Query, select: tree.Select, aggregate: tree.Aggregate, variable: str
) -> tree.Query:
    """Return the query with a variable in place of the aggregate."""

    def change(node: tree.Node) -> tree.Node:
        return tree.Var(variable) if node == aggregate else node

    clause: Any = tree.rewrite(select.clause, change)
    modifiers: Any = tree.rewrite(select.modifiers, change)
    return replace(query, form=replace(select, clause=clause, modifiers=modifiers))


def _score(grouped: _Grouped, remote: tuple[str, ...], options: Options) -> Scored | WhyNot:
    found = scoring(order_expression(grouped.select), options.functions)
    if found is None:
        return WhyNot("the score is more than arithmetic")
    names = variables(found)
    if grouped.variable not in names:
        return WhyNot("the score does not depend on the aggregate")
    others = [name for name in names if name != grouped.variable]
    if keys := [name for name in others if name not in remote]:
        return WhyNot(f"the score depends on the key ?{keys[0]}")
    if len(others) > 1:
        return WhyNot("the score needs more than one value of the remote side")
    return Scored(found, grouped.variable, *others or (None,))


def _number(value: str | None) -> tree.Expression:
    """Return what is aggregated, for each solution."""
    return tree.Literal("0", tree.XSD + "integer") if value is None else tree.Var(value)


def _grouping(query: tree.Query, grouped: _Grouped, side: StreamSide, options: Options) -> Grouping:
    function = _FUNCTIONS[grouped.aggregate.function]
    names = side.names
    keys = tuple(map(names.index, grouped.keys))
    value = None if grouped.value is None else names.index(grouped.value)
    if function == "count":
        return Grouping(function, keys, None, grouped.variable, None)
    plain = replace(grouped.aggregate, distinct=False)
    items: tuple[tree.Var | tree.SelectAs, ...] = (
        *map(tree.Var, grouped.keys),
        tree.SelectAs(plain, tree.Var(grouped.variable)),
    )
    subject, verb, term = side.terms
    triple = tree.SubjectTriples(subject, (tree.Property(verb, (term,)),))  # type: ignore[arg-type]
    pattern = tree.Group((tree.TriplesBlock((triple,)),))
    where = tree.Group((tree.Window(side.window, pattern),))
    by = tuple(tree.GroupKey(tree.Var(name)) for name in grouped.keys)
    asked = asked_of(query, items, where, options.functions, by)
    return Grouping(function, keys, value, grouped.variable, asked)
