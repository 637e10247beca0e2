"""The objects that make pairs, from the stream to the K-skyband that several queries share.

An object is a solution of the pattern that both sides of a pair have; it lives as long as a window
holds it, and an identical one that arrives again only makes it live longer. Objects are in the
order of their marks: their time, or the number of their element in windows that count; those of one
mark are in term order. One that comes late takes its place among the others.

Scores are float64. Where these would not mean what SPARQL means (a date, an xsd:float, a large
product, decimals beside doubles), nothing is answered, and the window must be asked as a whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.model.terms.numerals import DECIMAL, DOUBLE, SURE
from rsp_engine.operators.pairs.continuous import snapshot
from rsp_engine.operators.pairs.labels import PairLabels
from rsp_engine.operators.pairs.scoring import has_quotient
from rsp_engine.operators.pairs.skyband import PairSkyband, SkybandConfig
from rsp_engine.operators.pairs.threshold_algorithm import GlobalScoring, SortedLists
from rsp_engine.operators.scoring.exact_scores import magnitude, most_digits
from rsp_engine.operators.scoring.scoring_function import (
    Absolute,
    Negate,
    Quotient,
    Scoring,
    ScoringCall,
    over_parts,
)
from rsp_engine.operators.scoring.term_scores import are_numbers, number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.pairs.continuous import ContinuousAnswer
    from rsp_engine.operators.pairs.pairs import Pairs
    from rsp_engine.operators.pairs.scoring import PairScoring
    from rsp_engine.operators.sparql.pane_matcher import Matching, SolutionTuple

__all__ = ["PairShape", "SharedSkyband"]

Kind = Literal["exact", "double"]
_XSD = "http://www.w3.org/2001/XMLSchema#"
_MANY = 150_000  # objects: with fewer, reading lists costs more than scoring all
_MOST = 10.0**SURE
_NO_ARITHMETIC = {_XSD + "string", _XSD + "boolean", ox.Literal("", language="en").datatype.value}


@dataclass(frozen=True, slots=True)
class PairShape:
    """What queries have in common that share a skyband.

    `key` and `columns` are places in a solution of `matching`: of what orders the pair, by its text
    or as a number, and of the values `a1` ... and `b1` ... of the score. `counted` is the unit of
    windows that count.
    """

    stream: str
    matching: Matching
    key: int
    is_text: bool
    columns: tuple[int, ...]
    scoring: PairScoring
    counted: str | None = None
    by_lists: GlobalScoring | None = field(default=None, compare=False)


@dataclass(slots=True)
class _Object:
    mark: int
    solution: SolutionTuple
    row: Floats
    kind: Kind
    digits: int
    is_alive: bool = True
    text: str | None = None

    def order(self) -> tuple[int, str]:
        """Return what tells which of two objects came first."""
        if self.text is None:
            self.text = row_text(self.solution)
        return self.mark, self.text


class SharedSkyband:
    """Time for an object: that of the skyband. Memory: the objects of the largest window."""

    def __init__(self, shape: PairShape) -> None:
        self.shape = shape
        self.k = self.size = 0
        self.latest: float = -inf
        """The last mark that a window asked for."""
        self._divides = has_quotient(shape.scoring.score)
        self._calls = _has_call(shape.scoring.score)
        used = {int(name[1:]) for name in shape.scoring.compared}
        self._compared = {shape.columns[number - 1] for number in used}
        if not shape.is_text:
            self._compared.add(shape.key)
        self._labels = PairLabels()
        self._held: list[_Object] = []
        self._first = 0
        self._where: dict[SolutionTuple, int] = {}
        self._odd: dict[SolutionTuple, int] = {}
        self._kinds: Counter[Kind] = Counter()
        self._known_kinds: frozenset[Kind] = frozenset()  # those that the skyband was made for
        self._digits = 0  # of the values of objects, behind the point
        parts = [shape.scoring.score, *(e for c in shape.scoring.conditions for e in c.sides)]
        self._expressions = tuple(parts)
        self._skyband: PairSkyband | None = None
        self._epoch = 0

    def want(self, k: int, size: int) -> None:
        """Learn, before anything arrives, that a query asks for k pairs of a window of a size."""
        self.k, self.size = max(self.k, k), max(self.size, size)

    def take(self, found: Iterable[tuple[int, SolutionTuple]], latest: int) -> None:
        """Take the objects of a window up to a mark, known ones among them, in any order."""
        marks: dict[SolutionTuple, int] = {}
        for mark, solution in found:
            marks[solution] = max(mark, marks.get(solution, mark))
        seen = Counter(marks.values())
        for solution, mark in sorted(
            marks.items(),
            key=lambda item: (item[1], row_text(item[0]) if seen[item[1]] > 1 else ""),
        ):
            self._arrive(mark, solution)
        self.latest = max(self.latest, latest)
        self._expire(latest - self.size + 1)

    def _arrive(self, mark: int, solution: SolutionTuple) -> None:
        position = self._where.get(solution)
        if position is not None:
            known = self._held[position - self._first]
            if known.mark < mark:
                known.is_alive = False
                again = _Object(mark, solution, known.row, known.kind, known.digits)
                self._put(again, position)
            return
        if solution not in self._odd:
            kind = self._kind(solution)
            if kind is None:
                return
            if kind != "odd":
                self._kinds[kind] += 1
                digits = self._digits_of(solution)
                if digits > self._digits:
                    self._digits, self._skyband = digits, None  # it rounds to fewer
                self._put(_Object(mark, solution, self._row(solution), kind, digits), None)
                return
        self._odd[solution] = max(mark, self._odd.get(solution, mark))

    def _put(self, new: _Object, before: int | None) -> None:
        """Put an object into its place; it may have had another one before."""
        place = len(self._held)
        if place and self._held[-1].mark >= new.mark:
            place = bisect_left(self._held, new.order(), key=_Object.order)
        position = self._first + place
        if new.kind not in self._known_kinds:
            self._skyband = None  # it would round as the other kind does
        if self._skyband is not None:
            if before is None:
                self._skyband.insert(position, new.row)
            else:
                self._skyband.renew(before, position)
        self._held.insert(place, new)
        self._where[new.solution] = position
        for moved in range(place + 1, len(self._held)):
            if self._held[moved].is_alive:
                self._where[self._held[moved].solution] = self._first + moved

    def _expire(self, low: int) -> None:
        """Forget the objects before a mark."""
        place = bisect_left(self._held, low, key=lambda held: held.mark)
        for gone in self._held[:place]:
            if gone.is_alive:
                del self._where[gone.solution]
                self._kinds[gone.kind] -= 1
        self._kinds += Counter()  # forgets those that are zero
        del self._held[:place]
        self._first += place
        if not self._held:
            self._skyband, self._digits = None, 0  # the next object may be of another kind
        if self._skyband is not None:
            self._skyband.expire(self._first)
        if self._odd:
            self._odd = {solution: mark for solution, mark in self._odd.items() if mark >= low}

    def best(self, answer: ContinuousAnswer, low: int, high: int) -> list[SolutionTuple] | None:
        """Return the best pairs of a window, each as one solution; nothing if that is unsure."""
        skyband = self._sure(low, high)
        return None if skyband is None else self._pairs(answer.update(skyband, self._since(low)))

    def snapshot(self, k: int, low: int) -> list[SolutionTuple] | None:
        """Return the k best pairs of all objects from a mark on, if that is sure."""
        skyband = self._sure(low, self.latest)
        return None if skyband is None else self._pairs(snapshot(skyband, k, self._since(low)))

    def _since(self, low: int) -> int:
        return self._first + bisect_left(self._held, low, key=lambda held: held.mark)

    def _sure(self, low: int, high: float) -> PairSkyband | None:
        """Return the skyband, if it can tell of a window what SPARQL means."""
        is_odd = any(mark >= low for mark in self._odd.values())
        is_mixed = len(self._kinds) > 1 and (self._divides or self._digits > 0)
        if is_odd or self.latest > high or is_mixed:
            return None
        if self._skyband is None:
            self._skyband = self._made()
        return self._skyband

    def _made(self) -> PairSkyband:
        """Make the skyband of the objects that are held."""
        self._held = [held for held in self._held if held.is_alive]
        self._first = 0
        self._where = {held.solution: place for place, held in enumerate(self._held)}
        scoring, by_lists = self.shape.scoring, self.shape.by_lists
        # Lists know scores before they are rounded, which is not enough where they have digits.
        lists = None if by_lists is None or self._digits else SortedLists(by_lists, _MANY)
        self._known_kinds = frozenset(self._kinds)
        digits = None if "double" in self._kinds else self._digits
        kernel = scoring.kernel(exact="exact" in self._kinds, digits=digits)
        made = PairSkyband(SkybandConfig(self.k), scoring.width, kernel, lists)
        self._epoch += 1_000_000  # positions mean something else from now on
        made.epoch = self._epoch
        for held in self._held:
            made.arrive(held.row)
        return made

    def _pairs(self, pairs: Pairs) -> list[SolutionTuple]:
        """Return pairs as solutions: the terms of the first object, and then of the second."""
        found = []
        for older, newer in zip(pairs.older.tolist(), pairs.newer.tolist(), strict=True):
            one, other = self._held[older - self._first], self._held[newer - self._first]
            first, second = (one, other) if one.row[0] < other.row[0] else (other, one)
            found.append((*first.solution, *second.solution))
        return found

    def _kind(self, solution: SolutionTuple) -> Kind | Literal["odd"] | None:
        """Return what kind of numbers an object has; nothing if it is in no pair at all."""
        key = solution[self.shape.key]
        if self.shape.is_text and not isinstance(key, ox.NamedNode | ox.Literal):
            return None  # a blank node has no text
        places = {*self.shape.columns, *self._compared}
        kinds: set[Kind] = set()
        for place in places:
            term = solution[place]
            if are_numbers([term]) and isinstance(term, ox.Literal):
                value = number(term)
                if value is None or not np.isfinite(value):
                    return "odd"
                is_double = term.datatype.value == DOUBLE
                if not is_double and not self._is_small(term.value, value):
                    return "odd"
                kinds.add("double" if is_double else "exact")
            elif self._calls or place in self._compared or not self._is_unscored(term):
                return "odd"
        if len(kinds) > 1 and (self._divides or self._digits_of(solution)):
            return "odd"
        return "double" if "double" in kinds else "exact"

    def _is_small(self, text: str, value: float) -> bool:
        """Tell whether scores with a value are decimals that float64 has one number for each of."""
        digits = len(text.partition(".")[2])
        return len(text) <= SURE and all(
            _is_exact(expression, digits, abs(value)) for expression in self._expressions
        )

    def _digits_of(self, solution: SolutionTuple) -> int:
        """Return the most digits that a value of an object has behind the point."""
        terms = (solution[place] for place in {*self.shape.columns, *self._compared})
        texts = (
            t.value for t in terms if isinstance(t, ox.Literal) and t.datatype.value == DECIMAL
        )
        return max((len(text.partition(".")[2]) for text in texts), default=0)

    def _is_unscored(self, term: object) -> bool:
        """Tell whether arithmetic with a term is an error, and that comes last."""
        return self.shape.scoring.descending and _is_no_number(term)

    def _row(self, solution: SolutionTuple) -> Floats:
        """Return the key and the values of an object; NaN where arithmetic has an error."""
        found = [number(solution[place]) for place in self.shape.columns]
        values = [np.nan if value is None else value for value in found]
        if not self.shape.is_text:
            key = number(solution[self.shape.key])
            assert key is not None, "other keys are odd"  # noqa: S101
            return np.array([key, *values])
        return np.array([self._label(_text(solution[self.shape.key])), *values])

    def _label(self, text: str) -> float:
        label = self._labels.of(text)
        if label is None or len(self._labels) > 2 * len(self._held) + 1024:
            texts = {_text(held.solution[self.shape.key]) for held in self._held}
            self._labels.restart([*texts, text])
            for held in self._held:
                held.row[0] = self._labels[_text(held.solution[self.shape.key])]
            if self._skyband is not None:
                self._skyband.rewrite(0, np.array([held.row[0] for held in self._held]))
        return self._labels[text]


def _text(term: object) -> str:
    assert isinstance(term, ox.NamedNode | ox.Literal), "a key has a text"  # noqa: S101
    return term.value


def _is_exact(expression: Scoring, digits: int, most: float) -> bool:
    """Tell whether float64 has a number for each result, in SPARQL's order, but for rounding.

    That is so for a quotient of integers too, as long as nothing is calculated with it.
    """
    match expression:
        case Negate(operand) | Absolute(operand):
            return _is_exact(operand, digits, most)
        case Quotient(left, right):
            return digits == 0 and all(_is_exact(part, 0, most) for part in (left, right))
        case ScoringCall():
            return digits == 0
        case _:
            known = most_digits(expression, digits)
            return known is not None and magnitude(expression, most) * 10.0**known < _MOST


def _is_no_number(term: object) -> bool:
    """Tell whether arithmetic with a term is surely an error."""
    return not isinstance(term, ox.Literal) or term.datatype.value in _NO_ARITHMETIC


def _has_call(expression: Scoring) -> bool:
    found = isinstance(expression, ScoringCall)

    def look(part: Scoring) -> Scoring:
        nonlocal found
        found = found or _has_call(part)
        return part

    over_parts(expression, look)
    return found
