"""Number kinds of the values of groups, and SPARQL's aggregates recovered from float64 partials.

Partials are float64 sums, minima and maxima. They determine SPARQL's aggregates if all values are
short integers and decimals, or all are doubles:

    0.1 + 0.2    is 0.30000000000000004 in float64; with one fractional digit it means 0.3

They do not if a value is not a number, if the sum has 15 digits or more, or if the values are so
many that their rounding errors could add up to half of the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.terms.numerals import SURE
from rsp_engine.operators.scoring.exact_scores import Column, NumberKind, read_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.aggregates.pane_partials import Function, Totals

__all__ = ["ValueKind", "column_of"]

_MOST = 10.0**SURE


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The kind of some values, None if float64 may not order them, and their largest magnitude."""

    kind: NumberKind | None
    largest: float

    @classmethod
    def of(cls, kind: NumberKind | None, numbers: Floats) -> ValueKind:
        """Return the kind of values that are given as numbers of a kind."""
        return cls(kind, float(np.abs(numbers).max(initial=0)))

    @classmethod
    def read(cls, terms: Sequence[object]) -> ValueKind:
        """Return the kind of terms."""
        column = read_column(terms)
        return cls(None, 0.0) if column is None else cls.of(column.kind, column.values)

    @classmethod
    def joined(cls, kinds: Iterable[ValueKind]) -> ValueKind:
        """Return the kind of the union of several sets of values.

        >>> one, other = NumberKind("exact", 1), NumberKind("exact")
        >>> ValueKind.joined([ValueKind(one, 7.5), ValueKind(other, 9)])
        ValueKind(kind=NumberKind(name='exact', digits=1), largest=9)
        """
        union: NumberKind | None = None
        largest = 0.0
        for each in kinds:
            if each.kind is None:
                return cls(None, 0.0)
            union = each.kind if union is None else union.joined(each.kind)
            largest = max(largest, each.largest)
        return cls(union, largest)


def column_of(function: Function, values: ValueKind, totals: Totals) -> Column | None:
    """Return aggregates over values of a kind as a column; None if float64 may not order them.

    A column of averages is `mixed`: an average may not be a finite decimal, so no further
    arithmetic with it is exact.
    """
    if function == "count":
        return Column(totals.values, NumberKind("exact"))
    kind = values.kind
    if kind is None or np.isnan(totals.values).any():
        return None
    if function in {"min", "max"} or kind.name == "double":
        return Column(totals.values, kind)
    if kind.name == "mixed" or not _are_sure(kind, values.largest, totals.counts):
        return None
    return _sums(kind, totals) if function == "sum" else _means(kind, totals)


def _are_sure(kind: NumberKind, largest: float, counts: Integers) -> bool:
    """Return whether the error of reading decimals as float64 is small against the last digit."""
    error = float(counts.max(initial=0)) * largest * 2.0**-53
    return not kind.digits or error * 10.0**kind.digits < 0.25


def _sums(kind: NumberKind, totals: Totals) -> Column | None:
    scale = 10.0**kind.digits
    units = np.rint(totals.values * scale)
    return None if np.abs(units).max(initial=0) >= _MOST else Column(units / scale, kind)


def _means(kind: NumberKind, totals: Totals) -> Column | None:
    """Return averages as quotients of integers; None if float64 may not distinguish them.

    Two different quotients a/b and c/d are at least 1/(bd) apart. The limits make that more than
    2**-51 of each, and more than 10**-17, so truncation after 18 digits keeps them different.
    """
    scale, most = 10.0**kind.digits, float(totals.counts.max(initial=0))
    units = np.rint(totals.values * totals.counts * scale)
    largest = float(np.abs(units).max(initial=0))
    if largest >= _MOST / 10 or largest * most >= 2.0**51 or most * most * scale >= 10.0**17:
        return None
    return Column(units / (totals.counts * scale), NumberKind("mixed", kind.digits))
