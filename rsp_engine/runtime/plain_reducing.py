"""Reducing plain lines: what counts is found in the text, and only that is ever parsed.

This is for readings of one pattern, `?s <p> ?o`, that keep the best solutions or the latest of each
key, by a number that arithmetic makes of ?o. It gives what reducing elements gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.scoring import evaluate, variables
from rsp_engine.operators.template import Hole
from rsp_engine.runtime.readings import Best, Latest
from rsp_engine.runtime.segments import Parcel, WrittenSolutions

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.windows import Pane
    from rsp_engine.runtime.readings import Reading
    from rsp_engine.runtime.sources.plain_lines import PlainLines

__all__ = ["PlainReading", "plain_reading"]


class PlainReading:
    """A reading that plain lines are enough for."""

    def __init__(self, reading: Reading, predicate: bytes, keep: Best | Latest) -> None:
        assert reading.wanted is not None, "it wants solutions"  # noqa: S101
        self.reading = reading
        self._predicate = predicate
        self._keep = keep
        scoring = reading.wanted.matching.scoring
        assert scoring is not None, "it is plain"  # noqa: S101
        self._scoring = scoring
        self._value = reading.wanted.matching.names[1]

    def numbers(self, lines: PlainLines) -> tuple[Integers, Floats] | None:
        """Return the places of lines that match, and their numbers; nothing if it cannot tell."""
        if lines.predicates.count(self._predicate) == len(lines):
            places = range(len(lines))
            matching = np.arange(len(lines))
        else:
            found = [n for n, text in enumerate(lines.predicates) if text == self._predicate]
            places, matching = found, np.array(found, dtype=np.int64)  # type: ignore[assignment]
        values = lines.numbers(places)
        if values is None:
            return None
        if self._value not in variables(self._scoring):
            return matching, np.full(len(matching), evaluate(self._scoring, {})[0])
        return matching, evaluate(self._scoring, {self._value: values})

    def parcel(self, lines: PlainLines, pane: Pane, places: Integers, numbers: Floats) -> Parcel:
        """Return what is kept of some lines in a pane."""
        kept = self._best(lines, places, numbers) if isinstance(self._keep, Best) else None
        kept = self._latest(lines, places) if kept is None else kept
        chosen = places[kept]
        texts = [
            b"\t".join((lines.subjects[place], lines.objects[place])).decode()
            for place in chosen.tolist()
        ]
        content = WrittenSolutions(2, texts, lines.times[chosen], numbers[kept])
        return Parcel(self.reading.step, self.reading.scan, pane, content)

    def _best(self, lines: PlainLines, places: Integers, numbers: Floats) -> Integers:
        """Return the k best; and others as good, which are left to those who know their texts."""
        assert isinstance(self._keep, Best), "it was asked for"  # noqa: S101
        scores = numbers if self._keep.descending else -numbers
        scores = np.where(np.isnan(scores), -np.inf, scores)
        size, wanted = len(scores), 2 * self._keep.k + 16
        if size <= 2 * wanted:
            return np.arange(size)
        near = np.flatnonzero(scores >= np.partition(scores, size - wanted)[size - wanted])
        known = {(lines.subjects[p], lines.objects[p]) for p in places[near].tolist()}
        return near if len(known) >= self._keep.k else np.arange(size)

    def _latest(self, lines: PlainLines, places: Integers) -> Integers:
        """Return the latest line of each subject; of two at once the one with the larger text."""
        times = lines.times[places]
        subjects = [lines.subjects[place] for place in places.tolist()]
        order = np.arange(len(places))
        if (times[1:] <= times[:-1]).any():
            objects = [lines.objects[place] for place in places.tolist()]
            ranked = sorted(order.tolist(), key=lambda n: (times[n], subjects[n], objects[n]))
            order = np.array(ranked, dtype=np.int64)
            subjects = [subjects[place] for place in ranked]
        latest = dict(zip(subjects, order.tolist(), strict=True))
        return np.array(list(latest.values()), dtype=np.int64)


def plain_reading(reading: Reading) -> PlainReading | None:
    """Return a reading for plain lines, if they are enough for it."""
    wanted = reading.wanted
    if wanted is None or not wanted.matching.is_plain or wanted.matching.scoring is None:
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
    if isinstance(keep, Best) or (isinstance(keep, Latest) and keep.key == (0,)):
        return PlainReading(reading, str(predicate).encode(), keep)
    return None
