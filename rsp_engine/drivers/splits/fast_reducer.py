"""The reduction of plain lines: the pushdown runs on text, and only its result is parsed.

It serves pushdowns that need the triples, or those that patterns can match, and those of one
pattern, `?s <p> ?o`, that keep the k best solutions or the latest of each key, scored by arithmetic
over ?o. The result is that of reducing parsed elements, as `split_reducer` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from rsp_engine.drivers.splits.pushdown import (
    DescribedElements,
    KeepBest,
    KeepDistinct,
    KeepLatest,
    MatchedSolutions,
)
from rsp_engine.model.terms.columns import (
    DECIMAL_KIND,
    DOUBLE_KIND,
    INTEGER_KIND,
    MOST_DIGITS,
    ColumnRows,
    NumberColumn,
)
from rsp_engine.model.terms.lazy_text import WrittenRows, WrittenTriples
from rsp_engine.model.terms.numerals import SURE
from rsp_engine.operators.joins.triple_selection import TripleSelection, objects_pass
from rsp_engine.operators.scoring.exact_scores import Column, NumberKind, exact_scores
from rsp_engine.operators.scoring.scoring_function import Variable, evaluate, variables
from rsp_engine.operators.sparql.pane_matcher import PaneSolutions
from rsp_engine.operators.sparql.template import Hole

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.drivers.splits.pushdown import Wanted
    from rsp_engine.evaluators.step import PutContent
    from rsp_engine.io.sources.columns.quad_lines import QuadLines
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.terms.columns import TermsColumn
    from rsp_engine.operators.scoring.scoring_function import Scoring

    Pack = Callable[[Integers], PutContent]
    """Makes the content of a pane of the indices of lines or elements."""

__all__ = ["PlainPushdown", "plain_pushdown"]


class PlainPushdown(Protocol):
    """A pushdown that can run on plain lines."""

    def over(self, lines: QuadLines) -> Pack | None:
        """Return a function that makes pane contents of lines; None if the lines must be parsed."""


class _Triples:
    """A pushdown of all triples, each once."""

    def over(self, lines: QuadLines) -> Pack | None:
        return lambda indices: WrittenTriples("\n".join(dict.fromkeys(lines.triples(indices))))


class _Selected:
    """A pushdown of the triples that patterns can match."""

    def __init__(self, selection: TripleSelection) -> None:
        self._selection = selection

    def over(self, lines: QuadLines) -> Pack | None:
        return self._selection.over(lines).at


class _Solutions:
    """A pushdown of the solutions of one pattern that can reach an answer."""

    def __init__(self, wanted: MatchedSolutions, predicate: bytes, scoring: Scoring) -> None:
        self._predicate = predicate
        self._keep = wanted.keep
        self._scoring = scoring
        self._filters = wanted.matching.filters or ()
        self._is_ordered = wanted.matching.ordered
        self._value = wanted.matching.names[1]

    def over(self, lines: QuadLines) -> Pack | None:
        matching = self._passing(lines, lines.matching(self._predicate))
        values = lines.values[matching]
        has_value = self._value in variables(self._scoring)
        if has_value and np.isnan(values).any():
            return None
        kind = _kind(values, lines.kinds[matching]) if has_value else None
        scores = self._scores(values, kind)
        if scores is None:
            return None
        kind = kind if isinstance(self._scoring, Variable) else None
        numbers = np.empty(len(lines))
        numbers[matching] = scores
        is_matching = np.zeros(len(lines), dtype=np.bool_)
        is_matching[matching] = True
        rows = _Rows(lines, matching) if isinstance(self._keep, KeepDistinct) else None

        def pack(indices: Integers) -> PaneSolutions:
            chosen = indices[is_matching[indices]]
            if rows is None:
                return self._kept(lines, chosen, numbers, kind)
            columns, times = rows.at(chosen), lines.times[chosen]
            return PaneSolutions(columns, times, numbers[chosen], kind=kind)

        return pack

    def _passing(self, lines: QuadLines, matching: Integers) -> Integers:
        """Return the lines that pass all filters."""
        for condition in self._filters:
            if condition.variable == self._value:
                holds = objects_pass(condition, lines, matching)
            else:
                codes, texts = lines.subject_codes(matching)
                holds = condition.decide(texts)[codes]
            matching = matching[holds]
        return matching

    def _scores(self, values: Floats, kind: NumberKind | None) -> Floats | None:
        """Return the score of each value; None if float64 may not have SPARQL's order."""
        if not self._is_ordered:
            if self._value not in variables(self._scoring):
                return np.full(len(values), evaluate(self._scoring, {})[0])
            return evaluate(self._scoring, {self._value: values})
        if not len(values):
            return values
        if kind is None:
            return None
        return exact_scores(self._scoring, {self._value: Column(values, kind)}, len(values))

    def _kept(
        self, lines: QuadLines, indices: Integers, numbers: Floats, kind: NumberKind | None
    ) -> PaneSolutions:
        if isinstance(self._keep, KeepBest):
            kept = indices[self._best(lines, indices, numbers[indices])]
        else:
            kept = indices[self._latest(lines, indices)]
        rows = WrittenRows(2, lines.rows(kept))
        return PaneSolutions(rows, lines.times[kept], numbers[kept], kind=kind)

    def _best(self, lines: QuadLines, indices: Integers, numbers: Floats) -> Integers:
        """Return the k best, and all that are level with the last: the operator ranks by text."""
        assert isinstance(self._keep, KeepBest), "the caller checks it"  # noqa: S101
        scores = numbers if self._keep.descending else -numbers
        size, wanted = len(scores), 2 * self._keep.k + 16
        near = np.arange(size)
        if size > 2 * wanted:
            near = np.flatnonzero(scores >= np.partition(scores, size - wanted)[size - wanted])
        best_first = near[np.argsort(-scores[near])]
        seen: set[str] = set()
        for place, row in zip(best_first.tolist(), lines.rows(indices[best_first]), strict=True):
            seen.add(row)
            if len(seen) == self._keep.k:
                best: Integers = near[scores[near] >= scores[place]]
                return best
        return np.arange(size)  # repeats of a few rows hide the rest

    def _latest(self, lines: QuadLines, indices: Integers) -> Integers:
        """Return the latest line of each subject; a tie goes to the larger text."""
        times = lines.times[indices]
        subjects = lines.subjects(indices)
        order = np.arange(len(indices))
        if (times[1:] <= times[:-1]).any():
            objects = lines.objects(indices)
            ranked = sorted(order.tolist(), key=lambda n: (times[n], subjects[n], objects[n]))
            order = np.array(ranked, dtype=np.int64)
            subjects = [subjects[index] for index in ranked]
        latest = dict(zip(subjects, order.tolist(), strict=True))
        return np.sort(np.fromiter(latest.values(), dtype=np.int64, count=len(latest)))


class _Rows:
    """The subjects and objects of matching quads, as columns."""

    def __init__(self, lines: QuadLines, matching: Integers) -> None:
        self._places = np.empty(len(lines), dtype=np.int64)
        self._places[matching] = np.arange(len(matching))
        kinds = lines.kinds[matching]
        are_numbers = np.isin(kinds, (INTEGER_KIND, DECIMAL_KIND, DOUBLE_KIND)).all()
        objects: TermsColumn = (
            NumberColumn(lines.values[matching], kinds)
            if are_numbers
            else lines.object_codes(matching)
        )
        self._rows = ColumnRows((lines.subject_codes(matching), objects))

    def at(self, chosen: Integers) -> ColumnRows:
        """Return the rows of some of these quads."""
        return self._rows.at(self._places[chosen])


def _kind(values: Floats, kinds: Integers) -> NumberKind | None:
    """Return the kind of numbers; None if float64 may not have SPARQL's order."""
    if not len(values) or np.abs(values).max() >= 10.0**SURE:
        return None
    is_decimal = kinds == DECIMAL_KIND
    digits = _digits(values[is_decimal]) if is_decimal.any() else 0
    are_double = kinds == DOUBLE_KIND
    if not are_double.any():
        return NumberKind("exact", digits)
    return NumberKind("double" if are_double.all() else "mixed", digits)


def _digits(values: Floats) -> int:
    """Return the most digits that decimals have after the point, found from their float64."""
    return next(
        digits
        for digits in range(MOST_DIGITS + 1)
        if (np.rint(values * 10.0**digits) / 10.0**digits == values).all()
    )


def plain_pushdown(wanted: Wanted) -> PlainPushdown | None:
    """Return a pushdown that runs on plain lines; None if it needs parsed elements."""
    if wanted is None:
        return _Triples()
    if isinstance(wanted, TripleSelection):
        return _Selected(wanted)
    if isinstance(wanted, DescribedElements):
        return None
    scoring = wanted.matching.scoring
    if not wanted.matching.is_plain or scoring is None:
        return None
    pattern, keep = wanted.matching.pattern, wanted.keep
    subject, predicate, value = pattern.subject, pattern.predicate, pattern.object
    if not isinstance(subject, Hole) or not isinstance(value, Hole) or isinstance(predicate, Hole):
        return None
    names = (subject.name, value.name)
    if subject.name == value.name or wanted.matching.names != names:
        return None
    if set(variables(scoring)) - {value.name}:
        return None
    if isinstance(keep, KeepLatest) and keep.key != (0,):
        return None
    return _Solutions(wanted, str(predicate).encode(), scoring)
