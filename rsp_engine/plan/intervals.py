"""Interval arithmetic: bounds on the values of a scoring function.

Bounds are computed in float64, as the values are. Rounding is monotone, so no computed value lies
outside its interval. An infinite bound means that there is none, as the values are finite.
"""

from __future__ import annotations

from inspect import unwrap
from itertools import product
from math import inf, isinf, isnan
from typing import TYPE_CHECKING, assert_never

from rsp_engine.operators.scoring.scoring_function import (
    Absolute,
    Add,
    Divide,
    Multiply,
    Negate,
    Number,
    Quotient,
    Scoring,
    ScoringCall,
    Subtract,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ValueRange", "value_interval"]

ValueRange = tuple[float, float]
_ANY: ValueRange = (-inf, inf)


def value_interval(expression: Scoring, ranges: Mapping[str, ValueRange]) -> ValueRange:
    """Return an interval that contains all values of an expression.

    >>> value_interval(Add(Variable("a"), Number(1)), {"a": (0, 5)})
    (1.0, 6.0)
    """
    match expression:
        case Number(value):
            return _hull((value,))
        case Variable(name):
            return ranges.get(name, _ANY)
        case Add(left, right):
            (a, b), (c, d) = value_interval(left, ranges), value_interval(right, ranges)
            return _hull((a + c, b + d))
        case Subtract(left, right):
            (a, b), (c, d) = value_interval(left, ranges), value_interval(right, ranges)
            return _hull((a - d, b - c))
        case Multiply(left, right):
            ends = product(value_interval(left, ranges), value_interval(right, ranges))
            return _hull(x * y if x and y else 0.0 for x, y in ends)  # no value is infinite
        case Divide(left, divisor):
            return _hull(end / divisor for end in value_interval(left, ranges))
        case Quotient(left, right):
            (a, b), (c, d) = value_interval(left, ranges), value_interval(right, ranges)
            if c <= 0 <= d or isinf(c) or isinf(d):
                return _ANY
            return _hull(x / y for x, y in product((a, b), (c, d)))
        case Negate(operand):
            return _hull(-end for end in value_interval(operand, ranges))
        case Absolute(operand):
            low, high = value_interval(operand, ranges)
            least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
            return _hull((least, max(abs(low), abs(high))))
        case ScoringCall(_, function, arguments):
            choose = unwrap(function)
            if choose not in (min, max) or not arguments:
                return _ANY
            lows, highs = zip(*(value_interval(a, ranges) for a in arguments), strict=True)
            return choose(lows), choose(highs)
        case _:
            assert_never(expression)


def _hull(ends: Iterable[float]) -> ValueRange:
    ends = [float(end) for end in ends]
    return _ANY if any(map(isnan, ends)) else (min(ends), max(ends))
