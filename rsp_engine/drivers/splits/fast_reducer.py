"""Reducing plain lines: what counts is found in the text, and only that is ever parsed.

This is for readings that want the triples, and for those of one pattern, `?s <p> ?o`, that keep the
best solutions or the latest of each key, by a number that arithmetic makes of ?o. It gives what
reducing elements gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from rsp_engine.drivers.splits.pushdown import (
    DescribedElements,
    KeepBest,
    KeepLatest,
    MatchedSolutions,
)
from rsp_engine.drivers.splits.segments import PaneContent
from rsp_engine.io.sources.fast_nquads.plain_lines import DECIMAL, DOUBLE
from rsp_engine.io.sources.fast_nquads.plain_numbers import MOST_DIGITS
from rsp_engine.model.terms.lazy_text import WrittenRows, WrittenTriples
from rsp_engine.model.terms.numerals import SURE
from rsp_engine.operators.scoring.exact_scores import Column, NumberKind, exact_scores
from rsp_engine.operators.scoring.scoring_function import Variable, evaluate, variables
from rsp_engine.operators.sparql.pane_matcher import Matched
from rsp_engine.operators.sparql.template import Hole

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.drivers.splits.pushdown import Pushdown
    from rsp_engine.io.sources.fast_nquads.plain_lines import PlainLines
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.windows import Pane

    Pack = Callable[[Pane, Integers], PaneContent]

__all__ = ["PlainPushdown", "plain_pushdown"]


class PlainPushdown(Protocol):
    """A reading that plain lines are enough for."""

    reading: Pushdown

    def over(self, lines: PlainLines) -> Pack | None:
        """Return what makes parcels of lines; nothing if these lines are not enough for it."""


class _Triples:
    """All triples, each once."""

    def __init__(self, reading: Pushdown) -> None:
        self.reading = reading

    def over(self, lines: PlainLines) -> Pack | None:
        def pack(pane: Pane, places: Integers) -> PaneContent:
            text = "\n".join(dict.fromkeys(lines.triples(places)))
            return PaneContent(self.reading.step, self.reading.scan, pane, WrittenTriples(text))

        return pack


class _Solutions:
    """The solutions of one pattern that count."""

    def __init__(self, reading: Pushdown, predicate: bytes, keep: KeepBest | KeepLatest) -> None:
        assert isinstance(reading.wanted, MatchedSolutions), "it wants solutions"  # noqa: S101
        self.reading = reading
        self._predicate = predicate
        self._keep = keep
        scoring = reading.wanted.matching.scoring
        assert scoring is not None, "it is plain"  # noqa: S101
        self._scoring = scoring
        self._is_ordered = reading.wanted.matching.ordered
        self._value = reading.wanted.matching.names[1]

    def over(self, lines: PlainLines) -> Pack | None:
        places = lines.matching(self._predicate)
        values = lines.values[places]
        if np.isnan(values).any():
            return None
        kind = _kind(values, lines.kinds[places])
        found = self._scores(values, kind)
        if found is None:
            return None
        kind = kind if isinstance(self._scoring, Variable) else None
        numbers = np.empty(len(lines))
        numbers[places] = found
        is_matching = np.zeros(len(lines), dtype=np.bool_)
        is_matching[places] = True

        def pack(pane: Pane, places: Integers) -> PaneContent:
            return self._parcel(lines, pane, places[is_matching[places]], numbers, kind)

        return pack

    def _scores(self, values: Floats, kind: NumberKind | None) -> Floats | None:
        """Return the number of each value; nothing if float64 may not have SPARQL's order."""
        has_value = self._value in variables(self._scoring)
        if not self._is_ordered:
            return evaluate(self._scoring, {self._value: values} if has_value else {})
        if not len(values):
            return values
        if kind is None:
            return None
        return exact_scores(self._scoring, {self._value: Column(values, kind)}, len(values))

    def _parcel(
        self,
        lines: PlainLines,
        pane: Pane,
        places: Integers,
        numbers: Floats,
        kind: NumberKind | None,
    ) -> PaneContent:
        if isinstance(self._keep, KeepBest):
            kept = places[self._best(lines, places, numbers[places])]
        else:
            kept = places[self._latest(lines, places)]
        rows = WrittenRows(2, lines.rows(kept))
        found = Matched(rows, lines.times[kept], numbers[kept], kind=kind)
        return PaneContent(self.reading.step, self.reading.scan, pane, found)

    def _best(self, lines: PlainLines, places: Integers, numbers: Floats) -> Integers:
        """Return the k best; and others as good, which are left to those who know their texts."""
        assert isinstance(self._keep, KeepBest), "it was asked for"  # noqa: S101
        scores = numbers if self._keep.descending else -numbers
        size, wanted = len(scores), 2 * self._keep.k + 16
        if size <= 2 * wanted:
            return np.arange(size)
        near = np.flatnonzero(scores >= np.partition(scores, size - wanted)[size - wanted])
        known = set(lines.rows(places[near]))
        return near if len(known) >= self._keep.k else np.arange(size)

    def _latest(self, lines: PlainLines, places: Integers) -> Integers:
        """Return the latest line of each subject; of two at once the one with the larger text."""
        times = lines.times[places]
        subjects = lines.subjects(places)
        order = np.arange(len(places))
        if (times[1:] <= times[:-1]).any():
            objects = lines.objects(places)
            ranked = sorted(order.tolist(), key=lambda n: (times[n], subjects[n], objects[n]))
            order = np.array(ranked, dtype=np.int64)
            subjects = [subjects[place] for place in ranked]
        latest = dict(zip(subjects, order.tolist(), strict=True))
        return np.sort(np.fromiter(latest.values(), dtype=np.int64, count=len(latest)))


def _kind(values: Floats, kinds: Integers) -> NumberKind | None:
    """Return the kind of numbers; nothing if float64 may not have SPARQL's order."""
    if not len(values) or np.abs(values).max() >= 10.0**SURE:
        return None
    is_decimal = kinds == DECIMAL
    digits = _digits(values[is_decimal]) if is_decimal.any() else 0
    are_double = kinds == DOUBLE
    if not are_double.any():
        return NumberKind("exact", digits)
    return NumberKind("double" if are_double.all() else "mixed", digits)


def _digits(values: Floats) -> int:
    """Return how many digits decimals have behind the point: their float64 tells that."""
    return next(
        digits
        for digits in range(MOST_DIGITS + 1)
        if (np.rint(values * 10.0**digits) / 10.0**digits == values).all()
    )


def plain_pushdown(reading: Pushdown) -> PlainPushdown | None:
    """Return a reading for plain lines, if they are enough for it."""
    wanted = reading.wanted
    if wanted is None:
        return _Triples(reading)
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
    if isinstance(keep, KeepBest) or (isinstance(keep, KeepLatest) and keep.key == (0,)):
        return _Solutions(reading, str(predicate).encode(), keep)
    return None
