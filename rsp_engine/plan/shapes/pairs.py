"""Which ranked queries are of pairs: two patterns over one window that have nothing in common.

    WINDOW :w {  ?a :price ?x .    ?b :price ?y .    FILTER (STR(?a) < STR(?b))  }
                 first object      second object     a pair is shown once, not both ways
    ORDER BY ABS(?x - ?y) LIMIT 3

The patterns are the same but for the names of their variables, and so are the filters on each. One
filter orders the pair, by two variables that correspond or by their texts; others compare
arithmetic over both objects. The score is arithmetic over both, or calls registered functions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.evaluators.pairs import PairsConfig
from rsp_engine.grammar import tree
from rsp_engine.model.terms.term import XSD
from rsp_engine.operators.pairs.scoring import Condition, PairScoring, has_quotient
from rsp_engine.operators.pairs.shared_skyband import PairShape
from rsp_engine.operators.scoring.scoring_function import (
    Number,
    Scoring,
    Variable,
    over_parts,
    variables,
)
from rsp_engine.operators.sparql.pane_matcher import Matching
from rsp_engine.plan.arrivals import ties
from rsp_engine.plan.monotone import scoring_text
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.shapes.global_scoring import Global, global_scoring
from rsp_engine.plan.shapes.pair_pattern import (
    NotAlikeError,
    NotPairsError,
    PairPattern,
    with_names,
)
from rsp_engine.plan.shapes.topk import (
    StreamSide,
    WhyNot,
    asked_of,
    is_ranking_of_groups,
    order_expression,
    projection,
    together_of,
    topk_refusals,
)
from rsp_engine.plan.sparql.element_blocks import by_element
from rsp_engine.plan.sparql.general import sparql_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.plan.options import QueryOptions

__all__ = ["is_of_pairs", "pairs_path"]

_WINDOW = "urn:rsp-engine:window"  # the same for all queries that mean the same


def is_of_pairs(query: tree.QueryUnit) -> bool:
    """Tell whether the window of a query has two patterns without a variable in common."""
    try:
        PairPattern.of(query)
    except NotAlikeError:
        return True
    except NotPairsError:
        return False
    return True


def pairs_path(query: tree.QueryUnit, options: QueryOptions) -> PairsConfig | WhyNot:
    """Return the configuration of the operator for pairs, or why the query does not allow it."""
    try:
        return _config(query, options)
    except NotPairsError as error:
        return WhyNot(str(error))


def _config(query: tree.QueryUnit, options: QueryOptions) -> PairsConfig:
    select = query.form
    halves = PairPattern.of(query)
    assert isinstance(select, tree.SelectForm), "halves are of a SELECT"  # noqa: S101
    if is_ranking_of_groups(query):
        raise NotPairsError("groups change as the window slides")
    if refusal := next(topk_refusals(select), None):
        raise NotPairsError(refusal.reason)
    [clause] = query.windows
    _check_match(clause, halves, options)
    conditions = _Conditions.of(select, halves)
    score = _score(order_expression(select), halves, options)
    modifiers = select.modifiers
    assert modifiers.limit is not None, "a ranking has a limit"  # noqa: S101
    descending = modifiers.order_by[0].descending
    columns = _columns([score, *(each for c in conditions.compared(options) for each in c)], halves)
    pair_scoring = PairScoring(
        _numbered(score, halves, columns),
        1 + len(columns),
        descending,
        tuple(
            Condition(operator, *(_numbered(each, halves, columns) for each in both))
            for operator, both in zip(
                conditions.operators, conditions.compared(options), strict=True
            )
        ),
        tuple(n for n, declared in sorted(options.monotone.items()) if declared == "distance"),
    )
    found = global_scoring(pair_scoring, options.monotone)
    shape = PairShape(
        clause.stream.value,
        _matching(query, halves, conditions.of_each, options),
        halves.first.index(conditions.key),
        conditions.is_text,
        columns,
        pair_scoring,
        None if isinstance(clause.frame, tree.TimeWindow) else clause.frame.unit,
        found.made() if isinstance(found, Global) else None,
    )
    meant = by_element(query, options, opens_nodes=True, is_timed=True)
    base = sparql_path(meant.query, options.functions, ties(query, meant.nodes))
    base = replace(base, sparql=sparql_path(query, options.functions).sparql)
    names = (*halves.first, *halves.second)
    offset = 0 if modifiers.offset is None else modifiers.offset.value
    frame = clause.frame
    return PairsConfig(
        **{field.name: getattr(base, field.name) for field in fields(base)},
        shape=shape,
        names=names,
        projected=projection(query, names, base, options.functions),
        blocks=tuple(block for found in meant.blocks.values() for block in found),
        k=offset + modifiers.limit.value,
        offset=offset,
        size=frame.range.milliseconds if isinstance(frame, tree.TimeWindow) else frame.size.value,
        why=_why(found, score),
    )


def _why(found: object, score: Scoring) -> str:
    text = scoring_text(score)
    if isinstance(found, Global):
        count = len(found.local)
        parts = "its only local score" if count == 1 else f"each of its {count} local scores"
        return (
            f"{text} goes one way with {parts}: large windows are read by the threshold algorithm"
        )
    reason = getattr(found, "reason", "")
    return f"{text} is not known to be one ({reason}): each object is scored with the whole window"


def _check_match(clause: tree.FromWindow, halves: PairPattern, options: QueryOptions) -> None:
    """Raise why the solutions of a pattern may come from several elements."""
    if len(halves.triples) == 1:
        return
    frame = clause.frame
    if isinstance(frame, tree.CountWindow) and frame.unit == "TRIPLES":
        raise NotPairsError("the window may cut through the triples of an object")
    if options.match == "window":
        raise NotPairsError(
            "the triples of an object may come in several elements (--match element says that they"
            " do not)"
        )


@dataclass(frozen=True, slots=True)
class _Conditions:
    """The filters: on each object, the one that orders the pair, and on both."""

    of_each: tuple[tree.Expression, ...]
    key: str
    is_text: bool
    on_both: tuple[tree.Comparison, ...]

    @classmethod
    def of(cls, select: tree.SelectForm, halves: PairPattern) -> _Conditions:
        sides: dict[str, list[tree.Node]] = {"a": [], "b": []}
        key: tuple[str, bool] | None = None
        on_both: list[tree.Comparison] = []
        for condition in _conjuncts(select, halves):
            names = {variable.name for variable in tree.find(condition, tree.Var)}
            if not names <= {*halves.first, *halves.second} or not names:
                raise NotPairsError("a filter is not about the objects of the pair")
            if any(True for _ in tree.find(condition, tree.Exists)):
                raise NotPairsError("EXISTS in a filter looks beyond the pair")
            side = halves.side(names)
            if side is not None:
                sides[side].append(halves.first_of(condition))
            elif key is None and (found := _order(condition, halves)) is not None:
                key = found
            elif isinstance(condition, tree.Comparison):
                on_both.append(condition)
            else:
                raise NotPairsError("a filter on both objects is more than comparisons")
        if key is None:
            raise NotPairsError(
                "no filter orders the pair, so that it appears once: FILTER (STR(?a) < STR(?b))"
            )
        if len(sides["a"]) != len(sides["b"]) or any(c not in sides["b"] for c in sides["a"]):
            raise NotPairsError("a filter is on one of the two objects only")
        of_each: Any = tuple(sides["a"])
        return cls(of_each, *key, tuple(on_both))

    @property
    def operators(self) -> tuple[Any, ...]:
        return tuple(condition.operator for condition in self.on_both)

    def compared(self, options: QueryOptions) -> list[tuple[Scoring, Scoring]]:
        """Return what the filters on both objects compare."""
        found = []
        for condition in self.on_both:
            left, right = (
                scoring_of(e, options.functions) for e in (condition.left, condition.right)
            )
            if left is None or right is None:
                raise NotPairsError("a filter on both objects compares more than arithmetic")
            found.append((left, right))
        return found


def _conjuncts(select: tree.SelectForm, halves: PairPattern) -> Iterator[tree.Expression]:
    filters = [
        element
        for element in (*select.where.elements, *halves.window.group.elements)
        if isinstance(element, tree.FilterClause)
    ]
    for element in filters:
        match element.condition:
            case tree.And(operands):
                yield from operands
            case condition:
                yield condition


def _order(condition: tree.Expression, halves: PairPattern) -> tuple[str, bool] | None:
    """Return the variable by which a filter orders the pair, and whether by its text."""
    match condition:
        case tree.Comparison("<", left, right) | tree.Comparison(">", right, left):
            pass
        case _:
            return None
    match left, right:
        case tree.Var(one), tree.Var(other):
            is_text = False
        case (
            tree.BuiltInCall("STR", (tree.Var(one),)),
            tree.BuiltInCall("STR", (tree.Var(other),)),
        ):
            is_text = True
        case _:
            return None
    return (
        None
        if (one, other) not in zip(halves.first, halves.second, strict=True)
        else (one, is_text)
    )


def _score(expression: tree.Expression, halves: PairPattern, options: QueryOptions) -> Scoring:
    found = scoring_of(expression, options.functions, quotients=True)
    if found is None:
        raise NotPairsError("the score is more than arithmetic and registered functions")
    names = set(variables(found))
    if not names <= {*halves.first, *halves.second} or halves.side(names) is not None:
        raise NotPairsError("the score is not over both objects")
    doubles = (n for n in tree.find(expression, tree.Literal) if n.datatype == XSD + "double")
    if has_quotient(found) and any(True for _ in doubles):
        raise NotPairsError("what it means to divide by zero depends on the types of the values")
    return found


def _columns(expressions: Sequence[Scoring], halves: PairPattern) -> tuple[int, ...]:
    """Return the places of the variables that are calculated with."""
    names = {name for expression in expressions for name in variables(expression)}
    pairs = enumerate(zip(halves.first, halves.second, strict=True))
    return tuple(place for place, both in pairs if names & set(both))


def _numbered(expression: Scoring, halves: PairPattern, columns: tuple[int, ...]) -> Scoring:
    """Return an expression over `a1` ... and `b1` ..., the columns of both objects."""
    if isinstance(expression, Variable):
        side = "a" if expression.name in halves.first else "b"
        names = halves.first if side == "a" else halves.second
        return Variable(f"{side}{1 + columns.index(names.index(expression.name))}")
    return over_parts(expression, lambda part: _numbered(part, halves, columns))


def _matching(
    query: tree.QueryUnit,
    halves: PairPattern,
    filters: tuple[tree.Expression, ...],
    options: QueryOptions,
) -> Matching:
    """Return how objects are found, the same for all queries that mean the same."""
    names = {name: f"x{place}" for place, name in enumerate(halves.first)}
    triples: Any = tuple(tuple(with_names(term, names) for term in t) for t in halves.triples)
    kept: Any = tuple(with_names(condition, names) for condition in filters)
    side = StreamSide(tree.Iri(_WINDOW), triples, bool(filters))
    blocks = tuple(
        tree.TriplesBlock((tree.SubjectTriples(s, (tree.Property(p, (o,)),)),))
        for s, p, o in triples
    )
    group = tree.GroupPattern((*blocks, *map(tree.FilterClause, kept)))
    where = tree.GroupPattern((tree.WindowPattern(side.window, group),))
    number = tree.SelectAs(tree.ONE, tree.Var("number"))
    plain = replace(query, prologue=(), register=None)
    functions = options.functions if filters else {}
    items: tuple[tree.Var | tree.SelectAs, ...] = (*map(tree.Var, side.names), number)
    return Matching(
        side.window.value,
        side.names,
        side.patterns,
        asked_of(plain, items, where, functions),
        side.is_filtered,
        Number(1.0),
        None if len(triples) == 1 else together_of(plain, items, where, functions),
    )
