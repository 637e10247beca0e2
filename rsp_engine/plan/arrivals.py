"""What a ranked query needs to know of when its solutions came.

Solutions of one triple pattern, or groups of them, that are equal by ORDER BY are in the order of
their event times, the latest first, and then of their texts, the largest first; pairs of two such
solutions are in the order of the later one, and then of the other one. And where a query joins its
window with one SERVICE by a key, several arrivals of a key are one object: the latest counts,
unless the user wants `all`. This is so on the general path as well, where functions of the engine
tell it:

    ORDER BY DESC(?v)    ORDER BY DESC(?v) DESC(CAME(?s, :p, ?v)) DESC(ROW(?s, ?v))
    ... of pairs         ... DESC(PAIR(CAME and ROW of one object, CAME and ROW of the other))
    WINDOW :w { P }      WINDOW :w { P } FILTER (LATEST(the variables of P))

Where solutions are matched by element, those of several triple patterns have a time as well: that
of the last element that gives the solution, whose node knows it (see `elements`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rsp_engine.errors import Diagnostic
from rsp_engine.grammar import tree
from rsp_engine.operators.sparql.latest_solutions import LatestConfig
from rsp_engine.operators.sparql.sparql_query import (
    BUILTIN_NAMESPACE,
    CAME,
    LATEST,
    PAIR,
    ROW,
)
from rsp_engine.plan.shapes.pair_pattern import NotPairsError, PairPattern, with_names
from rsp_engine.plan.shapes.topk import (
    StreamSide,
    asked_of,
    is_ranking,
    is_ranking_of_groups,
    stream_side,
)
from rsp_engine.plan.variables import certain_variables, named_variables, visible_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.evaluators.acquatop.config import ArrivalRule
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.plan.sparql.element_blocks import ByElement

__all__ = [
    "arrivals_of",
    "has_time",
    "latest_of",
    "refused_arrivals",
    "ties",
    "with_latest",
]


def arrivals_of(query: tree.QueryUnit, options: QueryOptions) -> ArrivalRule:
    """Return which arrivals of a join key count: the latest, unless all do."""
    return options.arrivals or ("latest" if _join_key(query) else "all")


def refused_arrivals(query: tree.QueryUnit, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield why `latest` means nothing here, if the user asks for it."""
    if options.arrivals == "latest" and not _join_key(query):
        message = (
            "arrivals `latest` is for ranked queries whose window has plain triple patterns and is"
            " joined with one SERVICE by a key"
        )
        hint = "leave it out: every solution of the window counts here"
        yield Diagnostic("semantic", message, query.form.span, hint)


def has_time(query: tree.QueryUnit) -> bool:
    """Tell whether a solution of one element, or each object of a pair, has a time that counts."""
    if is_ranking_of_groups(query):
        return False
    return _stream(query) is not None or _halves(query) is not None


def ties(query: tree.QueryUnit, nodes: tuple[str, ...] = ()) -> tuple[tree.OrderCondition, ...]:
    """Return the conditions that tell apart what ORDER BY finds equal, by the time of arrival.

    `nodes` are the variables of the solutions of elements, or of both objects of pairs.
    """
    if not is_ranking(query) or (select := _select(query)).clause.modifier is not None:
        return ()
    side = _stream(query)
    if side is None:
        return _ties_of_pairs(query, nodes)
    came = _came(side.triples, nodes)
    if came is None:
        return ()
    names = side.names
    if is_ranking_of_groups(query):
        keys = {
            name for key in select.modifiers.group_by for name in named_variables(key.expression)
        }
        came = tree.Aggregate("MAX", came)
        names = tuple(name for name in names if name in keys)
    conditions = [came, _call(ROW, *map(tree.Var, names))] if names else [came]
    return tuple(tree.OrderCondition(each, descending=True) for each in conditions)


def _came(
    triples: Sequence[tuple[tree.Node, ...]], nodes: tuple[str, ...]
) -> tree.Expression | None:
    """Return when a solution came: by its node, or by its only triple; nothing if that is open."""
    if nodes:
        [node] = nodes
        return _call(CAME, tree.Var(node))
    return _call(CAME, *triples[0]) if len(triples) == 1 else None


def _halves(query: tree.QueryUnit) -> PairPattern | None:
    try:
        return PairPattern.of(query)
    except NotPairsError:
        return None


def _ties_of_pairs(
    query: tree.QueryUnit, nodes: tuple[str, ...] = ()
) -> tuple[tree.OrderCondition, ...]:
    """Return the condition for two objects that are alike, without a variable in common."""
    halves = _halves(query)
    if halves is None or is_ranking_of_groups(query):
        return ()
    other = dict(zip(halves.first, halves.second, strict=True))
    came = [
        _came(
            [tuple(with_names(term, names) for term in triple) for triple in halves.triples], node
        )
        for names, node in (({}, nodes[:1]), (other, nodes[1:]))
    ]
    rows = [_call(ROW, *map(tree.Var, names)) for names in (halves.first, halves.second)]
    marks = [part for mark in zip(came, rows, strict=True) for part in mark if part is not None]
    if len(marks) < 4:
        return ()
    return (tree.OrderCondition(_call(PAIR, *marks), descending=True),)


def latest_of(
    query: tree.QueryUnit, options: QueryOptions, meant: ByElement
) -> LatestConfig | None:
    """Return how the latest arrivals of join keys are found, if only these count.

    `meant` is the query over what its windows hold.
    """
    side, keys = _stream(query), _join_key(query)
    if side is None or not keys or arrivals_of(query, options) == "all":
        return None
    stream = set(side.names)
    both = zip(_select(query).where.elements, _select(meant.query).where.elements, strict=True)
    where = tree.GroupPattern(
        tuple(
            asked
            for element, asked in both
            if isinstance(element, tree.WindowPattern)
            or (isinstance(element, tree.FilterClause) and named_variables(element) <= stream)
        )
    )
    items = tuple(map(tree.Var, (*side.names, *meant.nodes)))
    asked = asked_of(meant.query, items, where, options.functions)
    scan = [window.window for window in query.windows].index(side.window)
    places = tuple(map(side.names.index, keys))
    patterns = () if meant.nodes else side.patterns
    return LatestConfig(asked, side.names, patterns, places, scan)


def with_latest(query: tree.QueryUnit, latest: LatestConfig) -> tree.QueryUnit:
    """Return a query that leaves out solutions that are not the latest of their key."""
    call = tree.FilterClause(_call(LATEST, *map(tree.Var, latest.names)))
    select = _select(query)
    where = tree.GroupPattern((*select.where.elements, call))
    return replace(query, form=replace(select, where=where))


def _select(query: tree.QueryUnit) -> tree.SelectForm:
    assert isinstance(query.form, tree.SelectForm), "only a SELECT ranks"  # noqa: S101
    return query.form


def _stream(query: tree.QueryUnit) -> StreamSide | None:
    """Return the window of a ranked query, if it has plain triple patterns, filters and SERVICE."""
    if not is_ranking(query):
        return None
    select = _select(query)
    others = (e for e in select.where.elements if not isinstance(e, tree.ServicePattern))
    where = tree.GroupPattern(tuple(others))
    alone = replace(query, form=replace(select, where=where, dataset=tuple(_read(select))))
    side = stream_side(alone, "element")
    return side if isinstance(side, StreamSide) else None


def _read(select: tree.SelectForm) -> Iterator[tree.DatasetClause]:
    """Yield the graphs and the windows of a query, but for windows that no pattern reads."""
    named = {clause.name for clause in tree.find(select.where, tree.WindowPattern)}
    is_any = any(isinstance(name, tree.Var) for name in named)
    for clause in select.dataset:
        if not isinstance(clause, tree.FromWindow) or is_any or clause.window in named:
            yield clause


def _join_key(query: tree.QueryUnit) -> tuple[str, ...]:
    """Return the variables by which the window of a ranked query is joined with its SERVICE."""
    side = _stream(query)
    services = list(tree.find(query, tree.ServicePattern))
    if side is None or len(services) != 1 or is_ranking_of_groups(query):
        return ()
    [service] = services
    is_beside = any(element is service for element in _select(query).where.elements)
    if not is_beside or not isinstance(service.name, tree.Iri):
        return ()
    sure = certain_variables(service.group)
    keys = tuple(name for name in side.names if name in sure)
    return keys if visible_variables(service.group) & set(side.names) == set(keys) else ()


def _call(name: str, *arguments: tree.Node) -> tree.Expression:
    return tree.FunctionCall(tree.Iri(BUILTIN_NAMESPACE + name), arguments)  # type: ignore[arg-type]
