"""Groups of joined solutions, and their aggregates, on arrays of term codes.

Sums of integers and short decimals are sums of 64-bit integers, in units of 10**-6; sums of doubles
are those of `exact_sums`. Any other values are added term by term. The results are those of
`term_aggregates`, which the general path uses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.ntriples import read_terms
from rsp_engine.operators.scoring.exact_sums import pieces, rounded_sum
from rsp_engine.operators.sparql.term_aggregates import ExactSum, largest, least

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.terms.term import Term

__all__ = ["GroupConfig", "GroupedColumns", "JoinAggregate"]

Result = TypeVar("Result")
_INTEGER, _DECIMAL, _DOUBLE, _OTHER = range(4)
_UNKNOWN = -1
_DIGITS = 6
_UNITS = 10 ** (18 - _DIGITS)  # of `ExactSum`, in one unit of these columns
_MOST = 1 << 62
_XSD = r'"\^\^<http://www\.w3\.org/2001/XMLSchema#'
_NUMBER = re.compile(
    rf'"(?:(?P<integer>-?[0-9]{{1,12}}){_XSD}integer>'
    rf"|(?P<whole>-?[0-9]{{1,12}})(?:\.(?P<rest>[0-9]{{1,{_DIGITS}}}))?{_XSD}decimal>"
    rf"|(?P<double>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{{1,3}})?){_XSD}double>)"
)


@dataclass(frozen=True, slots=True)
class JoinAggregate:
    """An aggregate of a variable, or COUNT of solutions, and the variable of its result."""

    name: str
    function: Literal["COUNT", "SUM", "AVG", "MIN", "MAX"]
    argument: str | None
    is_distinct: bool = False


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The keys of groups, at least one, and the aggregates."""

    keys: tuple[str, ...]
    aggregates: tuple[JoinAggregate, ...]


class GroupedColumns:
    """Groups of solutions; it knows the numbers that the codes of a dictionary stand for."""

    def __init__(self, config: GroupConfig) -> None:
        self._config = config
        self._kinds = np.empty(0, dtype=np.int64)
        self._units = np.empty(0, dtype=np.int64)
        self._doubles = np.empty(0)

    def columns(
        self, joined: dict[str, Integers], size: int, texts: Sequence[str]
    ) -> dict[str, list[str]]:
        """Return the texts of keys and results for each group of `size` solutions.

        `texts` are those of all codes. A variable without a value has an empty text.
        """
        if not size:
            names = (*self._config.keys, *(each.name for each in self._config.aggregates))
            return {name: [] for name in names}
        keys = [joined.get(key, np.full(size, -1, dtype=np.int64)) for key in self._config.keys]
        order = np.lexsort(keys)
        is_first = np.ones(size, dtype=np.bool_)
        is_first[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
        starts = np.flatnonzero(is_first)
        groups = np.cumsum(is_first) - 1
        firsts = order[starts]
        columns = {
            name: ["" if code < 0 else texts[code] for code in key[firsts].tolist()]
            for name, key in zip(self._config.keys, keys, strict=True)
        }
        for aggregate in self._config.aggregates:
            values = None
            if aggregate.argument is not None:
                values = joined.get(aggregate.argument, np.full(size, -1, dtype=np.int64))[order]
            column = _GroupedValues.of(groups, values, len(starts))
            if aggregate.is_distinct:
                column = column.distinct()
            columns[aggregate.name] = self._results(aggregate.function, column, texts)
        return columns

    def _results(self, function: str, column: _GroupedValues, texts: Sequence[str]) -> list[str]:
        if function == "COUNT":
            counts = np.bincount(column.groups, minlength=column.size)
            return [str(ox.Literal(count)) for count in counts.tolist()]
        self._learn(column.codes, texts)
        kinds = self._kinds[column.codes]
        if function in {"MIN", "MAX"}:
            return self._extremes(column, kinds, texts, is_max=function == "MAX")
        sums = self._sums(column, kinds, texts)
        return [_text(each.sum() if function == "SUM" else each.average()) for each in sums]

    def _learn(self, codes: Integers, texts: Sequence[str]) -> None:
        """Parse the numbers of codes that are seen for the first time."""
        room = 2 * len(texts) - len(self._kinds)
        if len(texts) > len(self._kinds):
            self._kinds = np.concatenate((self._kinds, np.full(room, _UNKNOWN, dtype=np.int64)))
            self._units = np.concatenate((self._units, np.zeros(room, dtype=np.int64)))
            self._doubles = np.concatenate((self._doubles, np.zeros(room)))
        for code in np.unique(codes[self._kinds[codes] == _UNKNOWN]).tolist():
            kind, units, double = _number(texts[code])
            self._kinds[code], self._units[code], self._doubles[code] = kind, units, double

    def _sums(
        self, column: _GroupedValues, kinds: Integers, texts: Sequence[str]
    ) -> Iterable[ExactSum]:
        """Return the sum of each group. All groups have values, and rows are sorted by group."""
        if (kinds <= _DECIMAL).all():
            units = self._units[column.codes]
            if int(np.abs(units).max()) * len(units) < _MOST:
                totals = np.add.reduceat(units, column.starts).tolist()
                decimals = np.add.reduceat((kinds == _DECIMAL).astype(np.int64), column.starts)
                counts = zip(column.counts.tolist(), decimals.tolist(), strict=True)
                return [
                    ExactSum([count - some, some, 0, 0, 0, 0, 0, 0], total * _UNITS)
                    for total, (count, some) in zip(totals, counts, strict=True)
                ]
        if (kinds == _DOUBLE).all():
            sums = _sums_of_doubles(column.groups, self._doubles[column.codes])
            if np.isfinite(sums).all():
                pairs = zip(sums.tolist(), column.counts.tolist(), strict=True)
                return [_sum_of_doubles(total, count) for total, count in pairs]
        return column.per_group(texts, _sum_of_terms)

    def _extremes(
        self, column: _GroupedValues, kinds: Integers, texts: Sequence[str], *, is_max: bool
    ) -> list[str]:
        """Return the first or the last term of each group; terms of one type are compared fast."""
        values: Integers | Floats = self._units[column.codes]
        if (kinds == _DOUBLE).all():
            values = self._doubles[column.codes]
        is_fast = len(set(kinds.tolist())) == 1 and kinds[0] != _OTHER and (values != 0).all()
        if not is_fast:
            choose = largest if is_max else least
            return [_text(term) for term in column.distinct().per_group(texts, choose)]
        order = np.lexsort((values, column.groups))
        ends = np.append(column.starts[1:], len(order)) - 1
        chosen = order[ends if is_max else column.starts]
        return [texts[code] for code in column.codes[chosen].tolist()]


@dataclass(frozen=True, slots=True)
class _GroupedValues:
    """The codes of a variable in groups, sorted by group, without unbound ones."""

    groups: Integers
    codes: Integers
    size: int
    """The number of groups."""

    @classmethod
    def of(cls, groups: Integers, codes: Integers | None, size: int) -> _GroupedValues:
        """Take the values of sorted groups; None stands for the solutions themselves."""
        if codes is None:
            return cls(groups, np.arange(len(groups)), size)
        is_bound = codes >= 0
        return cls(groups[is_bound], codes[is_bound], size)

    @property
    def starts(self) -> Integers:
        """The row at which each group begins, if none is empty."""
        return np.searchsorted(self.groups, np.arange(self.size))

    @property
    def counts(self) -> Integers:
        """The number of values of each group."""
        return np.bincount(self.groups, minlength=self.size)

    def distinct(self) -> _GroupedValues:
        """Return each value of a group once."""
        pairs = np.unique(self.groups << 32 | self.codes)
        return _GroupedValues(pairs >> 32, pairs & (1 << 32) - 1, self.size)

    def per_group(
        self, texts: Sequence[str], function: Callable[[list[Term]], Result]
    ) -> list[Result]:
        """Return the result of a function over the terms of each group."""
        names, places = np.unique(self.codes, return_inverse=True)
        terms = read_terms([texts[code] for code in names.tolist()])
        values = [terms[place] for place in places.tolist()]
        edges = [*self.starts.tolist(), len(values)]
        return [function(values[start:end]) for start, end in pairwise(edges)]


def _number(text: str) -> tuple[int, int, float]:
    """Return the kind of a term, and its value: in units of 10**-6, or as a double."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return _OTHER, 0, 0.0
    if match["integer"] is not None:
        return _INTEGER, int(match["integer"]) * 10**_DIGITS, 0.0
    if match["whole"] is not None:
        return _DECIMAL, int(match["whole"] + (match["rest"] or "").ljust(_DIGITS, "0")), 0.0
    return _DOUBLE, 0, float(match["double"])


def _sums_of_doubles(groups: Integers, values: Floats) -> Floats:
    """Return the double nearest to the sum of each group, whose rows are together."""
    place, *parts = pieces(values)
    runs, rows = np.unique(groups << 8 | place, return_inverse=True)  # a place has 7 bits
    order = np.argsort(rows, kind="stable")
    firsts = np.searchsorted(rows[order], np.arange(len(runs)))
    merged = [np.add.reduceat(part[order], firsts) for part in parts]
    starts = np.searchsorted(runs >> 8, np.unique(groups))
    return rounded_sum(runs & 0xFF, starts, merged)


def _sum_of_terms(terms: list[Term]) -> ExactSum:
    total = ExactSum()
    for term in terms:
        total.add(term)
    return total


def _sum_of_doubles(total: float, count: int) -> ExactSum:
    """Return the sum of so many doubles, given rounded."""
    exact = ExactSum()
    exact.add(ox.Literal(total))
    exact.counts[_DOUBLE + 1] = count  # after the type float
    return exact


def _text(term: Term | None) -> str:
    return "" if term is None else str(term)
