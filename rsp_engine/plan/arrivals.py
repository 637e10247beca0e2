"""Arrival times in ranked queries: how ties are broken, and which arrivals of a join key count.

Ties in ORDER BY are broken by arrival. Solutions of one triple pattern, or groups of them, are
ordered by event time, the latest first, then by their texts, the largest first. Pairs of two such
solutions are ordered by the later solution, then by the earlier one. Where a query joins its window
with one SERVICE by a key, several arrivals of a key are one object: the latest arrival counts,
unless the user sets `all`. The general path has the same semantics, by functions of the engine:

    ORDER BY DESC(?v)    ORDER BY DESC(?v) DESC(CAME(?s, :p, ?v)) DESC(ROW(?s, ?v))
    ... of pairs         ... DESC(PAIR(CAME and ROW of one object, CAME and ROW of the other))
    WINDOW :w { P }      WINDOW :w { P } FILTER (LATEST(the variables of P))

With `--match element`, a solution of several triple patterns has an arrival time too: that of the
last element with the solution. CAME then takes the node of the solution (see `element_blocks`).
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
from rsp_engine.plan.logical.algebra import Service, Window, find_expressions, find_nodes
from rsp_engine.plan.shapes.pair_pattern import PairPattern, with_names
from rsp_engine.plan.shapes.ranking import stream_side
from rsp_engine.plan.shapes.shape import NoMatchError, select_of
from rsp_engine.plan.sparql.object_texts import select_config
from rsp_engine.plan.variables import certain_variables, named_variables, visible_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.options import ArrivalRule
    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.plan.shapes.ranking import StreamSide
    from rsp_engine.plan.sparql.element_blocks import ByElement

__all__ = [
    "arrivals_of",
    "has_time",
    "latest_of",
    "refused_arrivals",
    "ties",
    "with_latest",
]


def arrivals_of(query: LogicalQuery, options: QueryOptions) -> ArrivalRule:
    """Return which arrivals of a join key count: `latest` where the query has a key, else `all`."""
    return options.ranking.arrivals or ("latest" if _join_key(query) else "all")


def refused_arrivals(query: LogicalQuery, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield why `latest` does not apply to the query, if the user sets it."""
    if options.ranking.arrivals == "latest" and not _join_key(query):
        message = (
            "arrivals `latest` is for ranked queries whose window has plain triple patterns and is"
            " joined with one SERVICE by a key"
        )
        hint = "leave it out: every solution of the window counts here"
        yield Diagnostic("semantic", message, query.span, hint)


def has_time(query: LogicalQuery) -> bool:
    """Return whether solutions, or the objects of pairs, have an arrival time that breaks ties."""
    if query.is_ranking_of_groups:
        return False
    return _stream(query) is not None or _pair_pattern(query) is not None


def ties(query: LogicalQuery, nodes: tuple[str, ...] = ()) -> tuple[tree.OrderCondition, ...]:
    """Return the conditions that break ties of ORDER BY by arrival time.

    `nodes` are the variables that hold the nodes of element solutions: one, or one for each object
    of a pair.
    """
    if not query.is_ranking or (select := select_of(query)).modifier is not None:
        return ()
    side = _stream(query)
    if side is None:
        return _ties_of_pairs(query, nodes)
    arrival = _arrival(side.triples, nodes)
    if arrival is None:
        return ()
    names = side.names
    if select.grouping is not None:
        keys = {name for key in select.keys for name in named_variables(key.expression)}
        arrival = tree.Aggregate("MAX", arrival)
        names = tuple(name for name in names if name in keys)
    conditions = [arrival, _call(ROW, *map(tree.Var, names))] if names else [arrival]
    return tuple(tree.OrderCondition(each, descending=True) for each in conditions)


def _arrival(
    triples: Sequence[tuple[tree.Node, ...]], nodes: tuple[str, ...]
) -> tree.Expression | None:
    """Return the arrival time of a solution, by its node or its only triple; None if unknown."""
    if nodes:
        [node] = nodes
        return _call(CAME, tree.Var(node))
    return _call(CAME, *triples[0]) if len(triples) == 1 else None


def _pair_pattern(query: LogicalQuery) -> PairPattern | None:
    try:
        return PairPattern.of(query)
    except NoMatchError:
        return None


def _ties_of_pairs(
    query: LogicalQuery, nodes: tuple[str, ...] = ()
) -> tuple[tree.OrderCondition, ...]:
    """Return the condition that breaks ties of pairs."""
    pattern = _pair_pattern(query)
    if pattern is None or query.is_ranking_of_groups:
        return ()
    other = dict(zip(pattern.first, pattern.second, strict=True))
    arrivals = [
        _arrival(
            [tuple(with_names(term, names) for term in triple) for triple in pattern.triples], node
        )
        for names, node in (({}, nodes[:1]), (other, nodes[1:]))
    ]
    rows = [_call(ROW, *map(tree.Var, names)) for names in (pattern.first, pattern.second)]
    marks = [part for mark in zip(arrivals, rows, strict=True) for part in mark if part is not None]
    if len(marks) < 4:  # an object without an arrival time
        return ()
    return (tree.OrderCondition(_call(PAIR, *marks), descending=True),)


def latest_of(
    query: LogicalQuery, options: QueryOptions, rewritten: ByElement
) -> LatestConfig | None:
    """Return how to find the latest arrival of each join key; None if all arrivals count.

    `rewritten` is the query over the content of its windows: triples, or solutions of elements.
    """
    side, keys = _stream(query), _join_key(query)
    if side is None or not keys or arrivals_of(query, options) == "all":
        return None
    stream = set(side.names)
    units = (query.unit, rewritten.query)
    both = zip(*(_select(unit).where.elements for unit in units), strict=True)
    where = tree.GroupPattern(
        tuple(
            changed
            for element, changed in both
            if isinstance(element, tree.WindowPattern)
            or (isinstance(element, tree.FilterClause) and named_variables(element) <= stream)
        )
    )
    items = tuple(map(tree.Var, (*side.names, *rewritten.nodes)))
    config = select_config(rewritten.query, items, where, options.functions)
    scan = [window.window for window in query.windows].index(side.window)
    places = tuple(map(side.names.index, keys))
    patterns = () if rewritten.nodes else side.patterns
    return LatestConfig(config, side.names, patterns, places, scan)


def with_latest(query: tree.QueryUnit, latest: LatestConfig) -> tree.QueryUnit:
    """Return a query that filters out solutions that are not the latest of their key."""
    call = tree.FilterClause(_call(LATEST, *map(tree.Var, latest.names)))
    select = _select(query)
    where = tree.GroupPattern((*select.where.elements, call))
    return replace(query, form=replace(select, where=where))


def _select(query: tree.QueryUnit) -> tree.SelectForm:
    assert isinstance(query.form, tree.SelectForm), "only a SELECT ranks"  # noqa: S101
    return query.form


def _stream(query: LogicalQuery) -> StreamSide | None:
    """Return the window of a ranked query of plain triple patterns, filters and SERVICE, if any.

    Windows that no pattern reads do not count.
    """
    if not query.is_ranking:
        return None
    where = select_of(query).where
    in_exists = find_expressions(where, tree.WindowPattern)
    named = {node.name for nodes in (find_nodes(where, Window), in_exists) for node in nodes}
    is_any = any(isinstance(name, tree.Var) for name in named)
    windows = tuple(clause for clause in query.windows if is_any or clause.window in named)
    try:
        return stream_side(query, "element", windows=windows, has_services=True)
    except NoMatchError:
        return None


def _join_key(query: LogicalQuery) -> tuple[str, ...]:
    """Return the variables by which the window of a ranked query is joined with its SERVICE."""
    side = _stream(query)
    if side is None or len(query.services) != 1 or query.is_ranking_of_groups:
        return ()
    match select_of(query).group.services:
        case (Service(tree.Iri(), remote),):
            sure = certain_variables(remote)
            keys = tuple(name for name in side.names if name in sure)
            return keys if visible_variables(remote) & set(side.names) == set(keys) else ()
        case _:
            return ()


def _call(name: str, *arguments: tree.Node) -> tree.Expression:
    return tree.FunctionCall(tree.Iri(BUILTIN_NAMESPACE + name), arguments)  # type: ignore[arg-type]
