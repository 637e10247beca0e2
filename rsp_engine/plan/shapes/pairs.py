"""The shape of rankings of pairs: two patterns over one window without a shared variable.

    WINDOW :w {  ?a :price ?x .    ?b :price ?y .    FILTER (STR(?a) < STR(?b))  }
                 first object      second object     each pair appears once, in one order
    ORDER BY ABS(?x - ?y) LIMIT 3

The patterns are equal up to the names of variables, and so are the filters on each object. One
filter orders the pair, by two corresponding variables or their texts; other filters compare
arithmetic over both objects. The score is over both objects: arithmetic and registered functions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.evaluators.pairs.config import PairsConfig
from rsp_engine.grammar import tree
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.operators.pairs.scoring import Condition, PairScoring, has_quotient
from rsp_engine.operators.pairs.shared_skyband import LEAST_LISTED, PairShape
from rsp_engine.operators.scoring.scoring_function import (
    Number,
    Scoring,
    Variable,
    over_parts,
    variables,
)
from rsp_engine.operators.sparql.pane_matcher import MatcherConfig
from rsp_engine.plan.arrivals import ties
from rsp_engine.plan.monotone import scoring_text
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.shapes.global_scoring import Global, NotGlobal, global_scoring
from rsp_engine.plan.shapes.pair_pattern import NotAlikeError, PairPattern, with_names
from rsp_engine.plan.shapes.ranking import (
    StreamSide,
    check_choice,
    check_ranking,
    counts_triples,
    cutoff,
    order_expression,
)
from rsp_engine.plan.shapes.shape import Choice, NoMatchError, Shape, select_of
from rsp_engine.plan.sparql.element_blocks import by_element
from rsp_engine.plan.sparql.general import sparql_path
from rsp_engine.plan.sparql.object_texts import batch_config, projection, select_config
from rsp_engine.plan.term_filters import term_filters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.options import QueryOptions

__all__ = ["PAIRS_SHAPE", "is_of_pairs", "pairs_config"]

_WINDOW = "urn:rsp-engine:window"  # one name, so that equivalent queries have equal shapes


def is_of_pairs(query: LogicalQuery) -> bool:
    """Return whether the window of a query has two patterns without a shared variable."""
    try:
        PairPattern.of(query)
    except NotAlikeError:
        return True
    except NoMatchError:
        return False
    return True


def _choose(query: LogicalQuery, options: QueryOptions) -> Choice:
    check_choice(query, options)
    if query.services:
        raise NoMatchError("pairs are not joined with SERVICE", query.services[0])
    why = "two patterns over one window that share no variable, ranked by one score over both"
    why += ": it keeps only pairs that can still reach an answer"
    return Choice(pairs_config(query, options), why)


def pairs_config(query: LogicalQuery, options: QueryOptions) -> PairsConfig:
    """Return the configuration of the evaluator of pairs; raise if there is none for the query."""
    pattern = PairPattern.of(query)
    select, unit = select_of(query), query.unit
    if select.grouping is not None and select.is_ranking:
        raise NoMatchError("groups change as the window slides", select.grouping)
    check_ranking(query)
    [clause] = query.windows
    _check_match(clause, pattern, options)
    conditions = _Conditions.of(pattern)
    score = _score(order_expression(select), pattern, options)
    k, offset = cutoff(select)
    compared = conditions.compared(options)
    columns = _columns([score, *(side for sides in compared for side in sides)], pattern)
    pair_scoring = PairScoring(
        _numbered(score, pattern, columns),
        1 + len(columns),
        select.order[0].descending,
        tuple(
            Condition(operator, *(_numbered(side, pattern, columns) for side in sides))
            for operator, sides in zip(conditions.operators, compared, strict=True)
        ),
        tuple(n for n, declared in sorted(options.monotone.items()) if declared == "distance"),
    )
    proof = global_scoring(pair_scoring, options.monotone)
    shape = PairShape(
        clause.stream.value,
        _matching(unit, pattern, conditions.of_each, options),
        pattern.first.index(conditions.key),
        conditions.is_text,
        columns,
        pair_scoring,
        None if isinstance(clause.frame, tree.TimeWindow) else clause.frame.unit,
        proof.kernels() if isinstance(proof, Global) else None,
    )
    rewritten = by_element(query, options, opens_nodes=True, is_timed=True)
    base = sparql_path(rewritten.query, options.functions, ties(query, rewritten.nodes))
    base = replace(base, sparql=sparql_path(unit, options.functions).sparql)
    names = (*pattern.first, *pattern.second)
    frame = clause.frame
    return PairsConfig(
        query=base,
        shape=shape,
        names=names,
        projected=projection(unit, names, base, options.functions),
        blocks=tuple(block for blocks in rewritten.blocks.values() for block in blocks),
        k=k,
        offset=offset,
        size=frame.range.milliseconds if isinstance(frame, tree.TimeWindow) else frame.size.value,
        why=_why(proof, score),
    )


def _why(proof: Global | NotGlobal, score: Scoring) -> str:
    text = scoring_text(score)
    if isinstance(proof, Global):
        count = len(proof.local)
        parts = "its only local score" if count == 1 else f"each of its {count} local scores"
        return (
            f"{text} is monotone in {parts}: the threshold algorithm reads windows of"
            f" {LEAST_LISTED:,} objects or more, unless they hold decimals; in smaller ones, each"
            " object is scored against the whole window"
        )
    return (
        f"{text} is not known to be global ({proof.reason}):"
        " each object is scored against the whole window"
    )


def _check_match(clause: tree.FromWindow, pattern: PairPattern, options: QueryOptions) -> None:
    """Raise if the solutions of a pattern may come from several elements."""
    if len(pattern.triples) == 1:
        return
    if counts_triples(clause):
        raise NoMatchError("the window may cut through the triples of an object", clause)
    if options.ranking.match == "window":
        reason = (
            "the triples of an object may arrive in several elements"
            " (--match element rules this out)"
        )
        raise NoMatchError(reason, pattern.window)


@dataclass(frozen=True, slots=True)
class _Conditions:
    """The filters on each object, the key of the filter that orders the pair, and those on both."""

    of_each: tuple[tree.Expression, ...]
    key: str
    is_text: bool
    on_both: tuple[tree.Comparison, ...]

    @classmethod
    def of(cls, pattern: PairPattern) -> _Conditions:
        sides: dict[str, list[tree.Node]] = {"a": [], "b": []}
        key: tuple[str, bool] | None = None
        on_both: list[tree.Comparison] = []
        for condition in _conjuncts(pattern):
            names = {variable.name for variable in tree.find(condition, tree.Var)}
            if not names <= {*pattern.first, *pattern.second} or not names:
                raise NoMatchError("a filter does not concern the objects of the pair", condition)
            if any(True for _ in tree.find(condition, tree.Exists)):
                raise NoMatchError("EXISTS in a filter reads more than the pair", condition)
            side = pattern.side(names)
            if side is not None:
                sides[side].append(pattern.first_of(condition))
            elif key is None and (order := _order(condition, pattern)) is not None:
                key = order
            elif isinstance(condition, tree.Comparison):
                on_both.append(condition)
            else:
                raise NoMatchError("a filter on both objects has more than comparisons", condition)
        if key is None:
            reason = (
                "no filter orders the pair, so it appears twice: add FILTER (STR(?a) < STR(?b))"
            )
            raise NoMatchError(reason, pattern.window)
        if len(sides["a"]) != len(sides["b"]) or any(c not in sides["b"] for c in sides["a"]):
            raise NoMatchError("a filter concerns only one of the two objects", pattern.window)
        of_each: Any = tuple(sides["a"])
        return cls(of_each, *key, tuple(on_both))

    @property
    def operators(self) -> tuple[Any, ...]:
        return tuple(condition.operator for condition in self.on_both)

    def compared(self, options: QueryOptions) -> list[tuple[Scoring, Scoring]]:
        """Return both sides of each comparison in the filters on both objects."""
        sides = []
        for condition in self.on_both:
            left, right = (
                scoring_of(e, options.functions) for e in (condition.left, condition.right)
            )
            if left is None or right is None:
                raise NoMatchError(
                    "a filter on both objects compares more than arithmetic", condition
                )
            sides.append((left, right))
        return sides


def _conjuncts(pattern: PairPattern) -> Iterator[tree.Expression]:
    for each in pattern.filters:
        match each:
            case tree.And(operands):
                yield from operands
            case _:
                yield each


def _order(condition: tree.Expression, pattern: PairPattern) -> tuple[str, bool] | None:
    """Return the variable by which a filter orders the pair, and whether by its text; or None."""
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
        if (one, other) not in zip(pattern.first, pattern.second, strict=True)
        else (one, is_text)
    )


def _score(expression: tree.Expression, pattern: PairPattern, options: QueryOptions) -> Scoring:
    score = scoring_of(expression, options.functions, quotients=True)
    if score is None:
        raise NoMatchError(
            "the score uses more than arithmetic and registered functions", expression
        )
    names = set(variables(score))
    if not names <= {*pattern.first, *pattern.second} or pattern.side(names) is not None:
        raise NoMatchError("the score does not depend on both objects", expression)
    doubles = (n for n in tree.find(expression, tree.Literal) if n.datatype == XSD + "double")
    if has_quotient(score) and any(True for _ in doubles):
        raise NoMatchError(
            "the result of a division by zero depends on the types of the values", expression
        )
    return score


def _columns(expressions: Sequence[Scoring], pattern: PairPattern) -> tuple[int, ...]:
    """Return the places of the variables that the expressions use."""
    names = {name for expression in expressions for name in variables(expression)}
    pairs = enumerate(zip(pattern.first, pattern.second, strict=True))
    return tuple(place for place, both in pairs if names & set(both))


def _numbered(expression: Scoring, pattern: PairPattern, columns: tuple[int, ...]) -> Scoring:
    """Return an expression over the columns of both objects, `a1` ... and `b1` ..."""
    if isinstance(expression, Variable):
        side = "a" if expression.name in pattern.first else "b"
        names = pattern.first if side == "a" else pattern.second
        return Variable(f"{side}{1 + columns.index(names.index(expression.name))}")
    return over_parts(expression, lambda part: _numbered(part, pattern, columns))


def _matching(
    query: tree.QueryUnit,
    pattern: PairPattern,
    filters: tuple[tree.Expression, ...],
    options: QueryOptions,
) -> MatcherConfig:
    """Return how to match objects, in names that are equal for equivalent queries."""
    names = {name: f"x{place}" for place, name in enumerate(pattern.first)}
    triples: Any = tuple(tuple(with_names(term, names) for term in t) for t in pattern.triples)
    kept: Any = tuple(with_names(condition, names) for condition in filters)
    side = StreamSide(tree.Iri(_WINDOW), triples, filters)
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
    return MatcherConfig(
        side.window.value,
        side.names,
        side.patterns,
        select_config(plain, items, where, functions),
        term_filters(filters, side.names),
        Number(1.0),
        None if len(triples) == 1 else batch_config(plain, items, where, functions),
    )


PAIRS_SHAPE = Shape("pairs", _choose)
