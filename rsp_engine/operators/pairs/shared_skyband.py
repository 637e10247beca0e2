"""The K-skyband that several queries share, with the objects of the stream that form its pairs.

An object is a solution of the pattern that both sides of a pair have. It lives as long as a window
holds it; an identical solution that arrives again extends its life. Objects are ordered by their
marks, which are event times, or element numbers in count windows; equal marks are in term order. A
late object is inserted at its place.

Scores are float64. Where float64 may differ from SPARQL (dates, xsd:float, large products, decimals
beside doubles), there is no answer, and Oxigraph must evaluate the whole window.
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
from rsp_engine.model.terms.xsd import XSD, XSD_STRING
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
    from rsp_engine.operators.pairs.pairs import Pairs
    from rsp_engine.operators.pairs.scoring import PairScoring
    from rsp_engine.operators.sparql.pane_matcher import MatcherConfig, SolutionTuple

__all__ = ["LEAST_LISTED", "PairShape", "SharedSkyband"]

LEAST_LISTED = 150_000
"""The least window, in objects, in which reading sorted lists is cheaper than scoring all pairs.

`benchmarks/bench_pairs.py` measures it."""

Kind = Literal["exact", "double"]
_MOST = 10.0**SURE
_NO_ARITHMETIC = {XSD_STRING, XSD + "boolean", ox.Literal("", language="en").datatype.value}


@dataclass(frozen=True, slots=True)
class PairShape:
    """The common part of queries that share a skyband.

    `key` and `columns` are indices into a solution of `matching`: that of the key, which orders the
    two objects of a pair by its text or as a number, and those of the values `a1` ... and `b1` ...
    of the score. `counted` is the unit of count windows.
    """

    stream: str
    matching: MatcherConfig
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
        """Return the sort key of an object."""
        if self.text is None:
            self.text = row_text(self.solution)
        return self.mark, self.text


class SharedSkyband:
    """The shared skyband. Time per object: that of `PairSkyband`. Memory: the largest window."""

    def __init__(self, shape: PairShape) -> None:
        self.shape = shape
        self.k = self.size = 0
        self.latest: float = -inf
        """The last mark of the windows taken so far."""
        self._divides = has_quotient(shape.scoring.score)
        self._calls = _has_call(shape.scoring.score)
        used = {int(name[1:]) for name in shape.scoring.compared}
        self._compared = {shape.columns[number - 1] for number in used}
        if not shape.is_text:
            self._compared.add(shape.key)
        self._labels = _TextLabels()
        self._objects: list[_Object] = []
        self._first = 0  # the position of the first object
        self._positions: dict[SolutionTuple, int] = {}
        self._odd: dict[SolutionTuple, int] = {}  # marks of solutions that float64 cannot score
        self._kinds: Counter[Kind] = Counter()
        self._skyband_kinds: frozenset[Kind] = frozenset()  # those that the skyband was built for
        self._digits = 0  # the most fractional digits of a value
        parts = [shape.scoring.score, *(e for c in shape.scoring.conditions for e in c.sides)]
        self._expressions = tuple(parts)
        self._skyband: PairSkyband | None = None
        self._scored: float = -inf  # the mark of the object that is being scored
        self._ambiguous: float = -inf
        """The last mark of an object that float64 cannot score with another one."""

    def want(self, k: int, size: int) -> None:
        """Register, before anything arrives, a query for k pairs of a window of this size."""
        self.k, self.size = max(self.k, k), max(self.size, size)

    def take(self, solutions: Iterable[tuple[int, SolutionTuple]], latest: int) -> None:
        """Take the objects of a window up to a mark, in any order; some may be known already."""
        marks: dict[SolutionTuple, int] = {}
        for mark, solution in solutions:
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
        position = self._positions.get(solution)
        if position is not None:
            known = self._objects[position - self._first]
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
                    self._digits, self._skyband = digits, None  # the old one rounds to fewer digits
                self._put(_Object(mark, solution, self._row(solution), kind, digits), None)
                return
        self._odd[solution] = max(mark, self._odd.get(solution, mark))

    def _put(self, new: _Object, previous: int | None) -> None:
        """Insert an object in order; `previous` is its position if it arrives again."""
        place = len(self._objects)
        if place and self._objects[-1].mark >= new.mark:
            place = bisect_left(self._objects, new.order(), key=_Object.order)
        position = self._first + place
        if new.kind not in self._skyband_kinds:
            self._skyband = None  # its kernel handles the other kind only
        if self._skyband is not None:
            self._scored = new.mark
            if previous is None:
                self._skyband.insert(position, new.row)
            else:
                self._skyband.renew(previous, position)
        self._objects.insert(place, new)
        self._positions[new.solution] = position
        for moved in range(place + 1, len(self._objects)):
            if self._objects[moved].is_alive:
                self._positions[self._objects[moved].solution] = self._first + moved

    def _expire(self, low: int) -> None:
        """Remove the objects before a mark."""
        place = bisect_left(self._objects, low, key=lambda each: each.mark)
        for expired in self._objects[:place]:
            if expired.is_alive:
                del self._positions[expired.solution]
                self._kinds[expired.kind] -= 1
        self._kinds += Counter()  # removes zero counts
        del self._objects[:place]
        self._first += place
        if not self._objects:
            self._skyband, self._digits = None, 0  # the next object may be of another kind
        if self._skyband is not None:
            self._skyband.expire(self._first)
        if self._odd:
            self._odd = {solution: mark for solution, mark in self._odd.items() if mark >= low}

    def best(self, k: int, low: int, high: float) -> list[SolutionTuple] | None:
        """Return the k best pairs of a window as solutions; None if they may be inexact."""
        skyband = self._exact_skyband(low, high)
        if skyband is None:
            return None
        since = self._first + bisect_left(self._objects, low, key=lambda each: each.mark)
        return self._pairs(skyband.best(k, since))

    def _exact_skyband(self, low: int, high: float) -> PairSkyband | None:
        """Return the skyband; None if it may differ from SPARQL, or has later objects."""
        is_odd = any(mark >= low for mark in self._odd.values())
        is_mixed = len(self._kinds) > 1 and (self._divides or self._digits > 0)
        if is_odd or self.latest > high or is_mixed:
            return None
        if self._skyband is None:
            self._skyband = self._build()
        return None if self._ambiguous >= low else self._skyband

    def _build(self) -> PairSkyband:
        """Build the skyband of the current objects."""
        self._objects = [each for each in self._objects if each.is_alive]
        self._first = 0
        self._positions = {each.solution: place for place, each in enumerate(self._objects)}
        scoring, by_lists = self.shape.scoring, self.shape.by_lists
        # Sorted lists compare unrounded scores, so they cannot be used where scores are rounded.
        lists = None if by_lists is None or self._digits else SortedLists(by_lists, LEAST_LISTED)
        self._skyband_kinds = frozenset(self._kinds)
        digits = None if "double" in self._kinds else self._digits
        kernel = scoring.kernel(
            exact="exact" in self._kinds, digits=digits, on_ambiguous=self._note_ambiguous
        )
        self._ambiguous = -inf
        skyband = PairSkyband(SkybandConfig(self.k), scoring.width, kernel, lists)
        for each in self._objects:
            self._scored = each.mark
            skyband.arrive(each.row)
        return skyband

    def _note_ambiguous(self) -> None:
        """Note that the object being scored has such a pair; the pair expires with it at latest."""
        self._ambiguous = max(self._ambiguous, self._scored)

    def _pairs(self, pairs: Pairs) -> list[SolutionTuple]:
        """Return pairs as solutions: the terms of the first object, followed by the second's."""
        solutions = []
        for older, newer in zip(pairs.older.tolist(), pairs.newer.tolist(), strict=True):
            one, other = self._objects[older - self._first], self._objects[newer - self._first]
            first, second = (one, other) if one.row[0] < other.row[0] else (other, one)
            solutions.append((*first.solution, *second.solution))
        return solutions

    def _kind(self, solution: SolutionTuple) -> Kind | Literal["odd"] | None:
        """Return the kind of an object's numbers, "odd" if float64 may differ from SPARQL.

        It is None if the object is in no pair at all.
        """
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
        """Return whether all scores with this value are exact in float64."""
        digits = len(text.partition(".")[2])
        return len(text) <= SURE and all(
            _is_exact(expression, digits, abs(value)) for expression in self._expressions
        )

    def _digits_of(self, solution: SolutionTuple) -> int:
        """Return the largest number of fractional digits of an object's values."""
        terms = (solution[place] for place in {*self.shape.columns, *self._compared})
        texts = (
            t.value for t in terms if isinstance(t, ox.Literal) and t.datatype.value == DECIMAL
        )
        return max((len(text.partition(".")[2]) for text in texts), default=0)

    def _is_unscored(self, term: object) -> bool:
        """Return whether arithmetic with a term is an error, and pairs without score rank last."""
        return self.shape.scoring.descending and _is_no_number(term)

    def _row(self, solution: SolutionTuple) -> Floats:
        """Return the key and the values of an object; NaN where arithmetic is an error."""
        numbers = [number(solution[place]) for place in self.shape.columns]
        values = [np.nan if value is None else value for value in numbers]
        if not self.shape.is_text:
            key = number(solution[self.shape.key])
            assert key is not None, "a key that is not a number is odd"  # noqa: S101
            return np.array([key, *values])
        return np.array([self._label(_text(solution[self.shape.key])), *values])

    def _label(self, text: str) -> float:
        label = self._labels.of(text)
        if label is None or len(self._labels) > 2 * len(self._objects) + 1024:
            texts = {_text(each.solution[self.shape.key]) for each in self._objects}
            self._labels.restart([*texts, text])
            for each in self._objects:
                each.row[0] = self._labels[_text(each.solution[self.shape.key])]
            if self._skyband is not None:
                self._skyband.rewrite(0, np.array([each.row[0] for each in self._objects]))
        return self._labels[text]


class _TextLabels:
    """Numeric labels in the order of texts, so that text keys can be compared as columns.

    A text between two others gets the label halfway, as long as float64 has one.

    >>> labels = _TextLabels()
    >>> [labels.of(text) for text in ("b", "d", "a", "c")]
    [0.0, 1.0, -1.0, 0.5]
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._labels: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, text: str) -> float:
        return self._labels[text]

    def of(self, text: str) -> float | None:
        """Return the label of a text; None if there is no room for a new one."""
        if text in self._labels:
            return self._labels[text]
        place = bisect_left(self._texts, text)
        below = self._labels[self._texts[place - 1]] if place else None
        above = self._labels[self._texts[place]] if place < len(self._texts) else None
        label = _between(below, above)
        if label in (below, above):
            return None
        self._texts.insert(place, text)
        self._labels[text] = label
        return label

    def restart(self, texts: Iterable[str]) -> None:
        """Replace all labels by new ones for these texts."""
        self._texts = sorted(set(texts))
        self._labels = {text: float(label) for label, text in enumerate(self._texts)}


def _between(below: float | None, above: float | None) -> float:
    if below is None:
        return 0.0 if above is None else above - 1
    return below + 1 if above is None else (below + above) / 2


def _text(term: object) -> str:
    assert isinstance(term, ox.NamedNode | ox.Literal), "a key has a text"  # noqa: S101
    return term.value


def _is_exact(expression: Scoring, digits: int, most: float) -> bool:
    """Return whether float64 orders the results as SPARQL does, once they are rounded.

    It does for a quotient of integers too, as long as it is not an operand.
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
    """Return whether arithmetic with a term is known to be an error."""
    return not isinstance(term, ox.Literal) or term.datatype.value in _NO_ARITHMETIC


def _has_call(expression: Scoring) -> bool:
    has_call = isinstance(expression, ScoringCall)

    def visit(part: Scoring) -> Scoring:
        nonlocal has_call
        has_call = has_call or _has_call(part)
        return part

    over_parts(expression, visit)
    return has_call
