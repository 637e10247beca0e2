"""Aggregates of a group of values, whatever their order.

SUM and AVG are exact: of integers and decimals to the last digit; with a float or a double among
the values, the sum of the exact values is rounded once. MIN and MAX are the first and the last by
the order of terms, of ties by datatype and then by text.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tests.differential import numeric
from tests.differential.order import full_place
from tests.differential.terms import Term, literal_of, number_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def aggregated(function: str, values: Sequence[Term | None], *, distinct: bool) -> Term | None:
    """Return an aggregate; nothing if it is an error. A value that is an error is `None`."""
    if distinct:
        values = list(dict.fromkeys(values))
    bound = [value for value in values if value is not None]
    if function == "COUNT":
        return literal_of(numeric.Number("integer", len(bound)))
    if len(bound) < len(values):
        return None
    if function in {"MIN", "MAX"}:
        chosen = min if function == "MIN" else max
        return chosen(bound, key=full_place, default=None)
    numbers = [number for number in map(number_of, bound) if number is not None]
    if len(numbers) < len(bound):
        return None
    found = _sum(numbers) if function == "SUM" else _mean(numbers)
    return None if found is None else literal_of(found)


def _sum(numbers: Sequence[numeric.Number]) -> numeric.Number | None:
    if not numbers:
        return numeric.Number("integer", 0)
    kind = numeric.widest(*numbers)
    if kind in {"float", "double"}:
        return numeric.Number(kind, _rounded(numbers, kind))
    total = sum((Fraction(number.value) for number in numbers), Fraction(0))
    return numeric.integer(int(total)) if kind == "integer" else numeric.decimal(total)


def _mean(numbers: Sequence[numeric.Number]) -> numeric.Number | None:
    """Return the sum divided by the count: of integers it is a decimal, cut after 18 digits."""
    if not numbers:
        return numeric.Number("integer", 0)
    kind = numeric.widest(*numbers)
    if kind in {"float", "double"}:
        rounded = numeric.Number(kind, _rounded(numbers, kind))
        return numeric.calculated("/", rounded, numeric.Number("integer", len(numbers)))
    total = sum((Fraction(number.value) for number in numbers), Fraction(0))
    scaled = abs(total) * numeric.UNIT / len(numbers)
    cut = Fraction(scaled.numerator // scaled.denominator, numeric.UNIT)
    return numeric.decimal(cut if total >= 0 else -cut)


def _rounded(numbers: Sequence[numeric.Number], kind: numeric.Kind) -> float:
    """Return the number nearest to the sum of the exact values."""
    special = [
        n.value for n in numbers if isinstance(n.value, float) and not math.isfinite(n.value)
    ]
    if special:
        return math.fsum(special) if len(set(map(str, special))) == 1 else math.nan
    total = sum((Fraction(number.value) for number in numbers), Fraction(0))
    try:
        return _short(total) if kind == "float" else float(total)
    except OverflowError:
        return math.copysign(math.inf, total)


def _short(total: Fraction) -> float:
    """Return the nearest number of 32 bits, rounded once: half to even."""
    exponent = max(math.frexp(float(total))[1] - 24, -149)
    unit = Fraction(2) ** exponent
    return numeric.short(float(round(total / unit) * unit))
