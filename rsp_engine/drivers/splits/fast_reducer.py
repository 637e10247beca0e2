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
from rsp_engine.drivers.splits.segments import PaneContent
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

    from rsp_engine.drivers.splits.pushdown import Pushdown
    from rsp_engine.io.sources.columns.quad_lines import QuadLines
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.terms.columns import TermsColumn
    from rsp_engine.model.windows import Pane

    Pack = Callable[[Pane, Integers], PaneContent]

__all__ = ["PlainPushdown", "plain_pushdown"]


class PlainPushdown(Protocol):
    """A pushdown that can run on plain lines."""

    pushdown: Pushdown

    def over(self, lines: QuadLines) -> Pack | None:
        """Return a function that makes pane contents of lines; None if the lines must be parsed."""


class _Triples:
    """A pushdown of all triples, each once."""

    def __init__(self, pushdown: Pushdown) -> None:
        self.pushdown = pushdown

    def over(self, lines: QuadLines) -> Pack | None:
        def pack(pane: Pane, indices: Integers) -> PaneContent:
            text = "\n".join(dict.fromkeys(lines.triples(indices)))
            return PaneContent(self.pushdown.step, self.pushdown.scan, pane, WrittenTriples(text))

        return pack


class _Selected:
    """A pushdown of the triples that patterns can match."""

    def __init__(self, pushdown: Pushdown, selection: TripleSelection) -> None:
        self.pushdown = pushdown
        self._selection = selection

    def over(self, lines: QuadLines) -> Pack | None:
        selected = self._selection.over(lines)

        def pack(pane: Pane, indices: Integers) -> PaneContent:
            return PaneContent(self.pushdown.step, self.pushdown.scan, pane, selected.at(indices))

        return pack


class _Solutions:
    """A pushdown of the solutions of one pattern that can reach an answer."""

    def __init__(
        self, pushdown: Pushdown, predicate: bytes, keep: KeepBest | KeepLatest | KeepDistinct
    ) -> None:
        assert isinstance(pushdown.wanted, MatchedSolutions), "only these are matched"  # noqa: S101
        self.pushdown = pushdown
        self._predicate = predicate
        self._keep = keep
        scoring = pushdown.wanted.matching.scoring
        assert scoring is not None, "a plain matching has a score"  # noqa: S101
        self._scoring = scoring
        self._filters = pushdown.wanted.matching.filters or ()
        self._is_ordered = pushdown.wanted.matching.ordered
        self._value = pushdown.wanted.matching.names[1]

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

        def pack(pane: Pane, indices: Integers) -> PaneContent:
            chosen = indices[is_matching[indices]]
            if rows is None:
                return self._pane_content(lines, pane, chosen, numbers, kind)
            columns, times = rows.at(chosen), lines.times[chosen]
            matched = PaneSolutions(columns, times, numbers[chosen], kind=kind)
            return PaneContent(self.pushdown.step, self.pushdown.scan, pane, matched)

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

    def _pane_content(
        self,
        lines: QuadLines,
        pane: Pane,
        indices: Integers,
        numbers: Floats,
        kind: NumberKind | None,
    ) -> PaneContent:
        if isinstance(self._keep, KeepBest):
            kept = indices[self._best(lines, indices, numbers[indices])]
        else:
            kept = indices[self._latest(lines, indices)]
        rows = WrittenRows(2, lines.rows(kept))
        matched = PaneSolutions(rows, lines.times[kept], numbers[kept], kind=kind)
        return PaneContent(self.pushdown.step, self.pushdown.scan, pane, matched)

    def _best(self, lines: QuadLines, indices: Integers, numbers: Floats) -> Integers:
        """Return a superset of the k best: the operator breaks ties by text."""
        assert isinstance(self._keep, KeepBest), "the caller checks it"  # noqa: S101
        scores = numbers if self._keep.descending else -numbers
        size, wanted = len(scores), 2 * self._keep.k + 16
        if size <= 2 * wanted:
            return np.arange(size)
        near = np.flatnonzero(scores >= np.partition(scores, size - wanted)[size - wanted])
        distinct = set(lines.rows(indices[near]))
        return near if len(distinct) >= self._keep.k else np.arange(size)

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


def plain_pushdown(pushdown: Pushdown) -> PlainPushdown | None:
    """Return a pushdown that runs on plain lines; None if it needs parsed elements."""
    wanted = pushdown.wanted
    if wanted is None:
        return _Triples(pushdown)
    if isinstance(wanted, TripleSelection):
        return _Selected(pushdown, wanted)
    if isinstance(wanted, DescribedElements):
        return None
    if not wanted.matching.is_plain or wanted.matching.scoring is None:
        return None
    pattern, keep = wanted.matching.pattern, wanted.keep
    subject, predicate, value = pattern.subject, pattern.predicate, pattern.object
    if not isinstance(subject, Hole) or not isinstance(value, Hole) or isinstance(predicate, Hole):
        return None
    names = (subject.name, value.name)
    if subject.name == value.name or wanted.matching.names != names:
        return None
    if set(variables(wanted.matching.scoring)) - {value.name}:
        return None
    if isinstance(keep, KeepLatest) and keep.key != (0,):
        return None
    return _Solutions(pushdown, str(predicate).encode(), keep)
