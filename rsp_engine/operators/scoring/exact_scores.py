"""Vectorised scores whose float64 order is SPARQL's order of the exact numbers.

SPARQL's arithmetic is exact for integers and decimals, and float64 for doubles. So a column of
integers and decimals is computed in integers, scaled by its number of fractional digits:

    0.1 + 0.2    1 + 2 = 3, one digit    0.3, the float64 nearest to the decimal 0.3

As long as no number has more than 15 digits, different decimals are different float64 numbers, in
the same order. Where that may fail (a large product, a third), where a column has mixed types, or
an operand is not a number, there is no score, and Oxigraph has to evaluate the expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.numerals import DECIMAL, DOUBLE, INTEGERS, NUMERALS, SURE
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
    from collections.abc import Mapping, Sequence

    from rsp_engine.model.arrays import Floats

__all__ = [
    "Column",
    "NumberKind",
    "exact_scores",
    "fractional_digits",
    "magnitude",
    "most_digits",
    "ordered_scores",
    "read_column",
    "rounded_scores",
]

_MOST = 10.0**SURE
_SMALL = 2.0**26
"""Quotients of integers below this bound are equal in float64 only if they are equal.

Two different quotients a/b and c/d are at least 1/(bd) apart. That is more than 2**-53 of each, and
more than 10**-18, where Oxigraph truncates.
"""
_EXACT = {*INTEGERS, DECIMAL}
_DIGITS = re.compile(r"[0-9.+-]*")


class NumberKind(NamedTuple):
    """The kind of numbers: integers and decimals (`exact`), doubles, or both (`mixed`).

    `digits` is the largest number of fractional digits of the exact ones.
    """

    name: Literal["exact", "double", "mixed"]
    digits: int = 0

    def joined(self, other: NumberKind) -> NumberKind:
        """Return the kind of the union of these numbers and others.

        >>> NumberKind("exact", 2).joined(NumberKind("double"))
        NumberKind(name='mixed', digits=2)
        """
        name = self.name if self.name == other.name else "mixed"
        return NumberKind(name, max(self.digits, other.digits))


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one variable, as float64 numbers in the same order."""

    values: Floats
    kind: NumberKind


class _InexactError(Exception):
    """float64 may order the scores differently from SPARQL."""


def read_column(terms: Sequence[object]) -> Column | None:
    """Return terms as a column; None if float64 may not order them as SPARQL does.

    >>> read_column([ox.Literal(5), ox.Literal(7)])
    Column(values=array([5., 7.]), kind=NumberKind(name='exact', digits=0))
    >>> read_column([ox.Literal(5), ox.Literal("7")]) is None
    True
    """
    try:
        kinds = {datatype.value for datatype in {term.datatype for term in terms}}  # type: ignore[attr-defined]
        texts = [term.value for term in terms]  # type: ignore[attr-defined]
    except AttributeError:  # unbound, or not a literal
        return None
    try:
        if kinds <= _EXACT:
            return _exact_column(texts, has_points=DECIMAL in kinds)
        if kinds == {DOUBLE}:
            return _as_column([*map(NUMERALS[DOUBLE], texts)], NumberKind("double"))
        if kinds <= NUMERALS.keys() and kinds <= {*_EXACT, DOUBLE}:
            return _mixed_column(terms)
    except ValueError:
        return None
    return None


def _as_column(values: list[float], kind: NumberKind) -> Column | None:
    column = np.array(values, dtype=np.float64)
    return None if np.isnan(column).any() else Column(column, kind)


def _exact_column(texts: list[str], *, has_points: bool) -> Column | None:
    if max(map(len, texts), default=0) > SURE or not _DIGITS.fullmatch("".join(texts)):
        return None
    if not has_points:
        return Column(np.array([*map(int, texts)], dtype=np.float64), NumberKind("exact"))
    digits = max(map(fractional_digits, texts))
    return Column(np.array([*map(float, texts)], dtype=np.float64), NumberKind("exact", digits))


def fractional_digits(text: str) -> int:
    """Return the number of fractional digits of an integer or a decimal.

    >>> fractional_digits("-2.50"), fractional_digits("7")
    (2, 0)
    """
    return len(text.partition(".")[2])


def _mixed_column(terms: Sequence[object]) -> Column | None:
    """Return numbers of several types: comparable, but not usable in arithmetic."""
    values, digits = [], 0
    for term in terms:
        assert isinstance(term, ox.Literal), "every term has a datatype"  # noqa: S101
        datatype = term.datatype.value
        if datatype != DOUBLE:
            if len(term.value) > SURE:
                return None
            digits = max(digits, fractional_digits(term.value))
        values.append(NUMERALS[datatype](term.value))
    return _as_column(values, NumberKind("mixed", digits))


def exact_scores(expression: Scoring, columns: Mapping[str, Column], length: int) -> Floats | None:
    """Return the scores of `length` rows; None if float64 may not order them as SPARQL does.

    >>> columns = {"a": read_column([ox.Literal(3), ox.Literal(10)])}
    >>> exact_scores(Multiply(Variable("a"), Number(0.1)), columns, 2)
    array([0.3, 1. ])
    """
    if isinstance(expression, Variable):
        return columns[expression.name].values
    try:
        with np.errstate(all="ignore"):
            scores = _doubles(_evaluate(expression, columns, length))
    except _InexactError:
        return None
    return np.array(np.broadcast_to(scores, (length,)), dtype=np.float64)


def most_digits(expression: Scoring, digits: int) -> int | None:
    """Return the fractional digits of a score whose variables have at most `digits`.

    It is None if unknown: a quotient may not be a finite decimal, and a function may return
    anything.

    >>> most_digits(Multiply(Variable("a"), Add(Variable("b"), Number(0.25))), 1)
    3
    """
    match expression:
        case Number(value, is_double):
            return None if is_double else _constant(value).digits
        case Variable():
            return digits
        case Add(left, right) | Subtract(left, right):
            both = most_digits(left, digits), most_digits(right, digits)
            return None if both[0] is None or both[1] is None else max(both[0], both[1])
        case Multiply(left, right):
            both = most_digits(left, digits), most_digits(right, digits)
            return None if both[0] is None or both[1] is None else both[0] + both[1]
        case Negate(operand) | Absolute(operand):
            return most_digits(operand, digits)
        case Divide(operand, divisor, is_double):
            reciprocal = None if is_double else _reciprocal(divisor)
            dividend = most_digits(operand, digits)
            if reciprocal is None or dividend is None:
                return None
            return dividend + (_constant(reciprocal).digits or 0)
        case Quotient() | ScoringCall():
            return None
        case _:
            assert_never(expression)


def magnitude(expression: Scoring, most: float) -> float:
    """Return an upper bound of all parts of a score whose variables do not exceed `most`.

    >>> magnitude(Subtract(Multiply(Variable("a"), Variable("b")), Number(2)), 10)
    102.0
    """
    match expression:
        case Number(value):
            return abs(float(value))
        case Variable():
            return most
        case Add(left, right) | Subtract(left, right):
            return magnitude(left, most) + magnitude(right, most)
        case Multiply(left, right):
            return max(1.0, magnitude(left, most)) * max(1.0, magnitude(right, most))
        case Negate(operand) | Absolute(operand):
            return magnitude(operand, most)
        case Divide(operand, divisor):
            return magnitude(operand, most) * max(1.0, 1 / abs(divisor))
        case Quotient() | ScoringCall():
            return np.inf
        case _:
            assert_never(expression)


def rounded_scores(scores: Floats, digits: int) -> Floats:
    """Return scores rounded to decimals with `digits` fractional digits.

    >>> rounded_scores(np.array([0.3 - 0.1]), 1)
    array([0.2])
    """
    return np.rint(scores * 10.0**digits) / 10.0**digits if digits else np.rint(scores)


def ordered_scores(
    expression: Scoring, columns: Mapping[str, Column], length: int
) -> Floats | None:
    """Return scores as `exact_scores` does, and also quotients of small numbers.

    A quotient of integers or decimals may not be a finite decimal, so its float64 is not exact. But
    different quotients of small numbers are different in float64, so their order is right.

    >>> columns = {"a": read_column([ox.Literal(2), ox.Literal(10)])}
    >>> ordered_scores(Divide(Variable("a"), 3.0), columns, 2)
    array([0.66666667, 3.33333333])
    """
    try:
        with np.errstate(all="ignore"):
            match expression:
                case Quotient(left, right):
                    numerator, denominator = (
                        _evaluate(part, columns, length) for part in (left, right)
                    )
                case Divide(left, divisor, is_double) if (
                    not is_double and _reciprocal(divisor) is None
                ):
                    numerator, denominator = _evaluate(left, columns, length), _constant(divisor)
                case _:
                    return exact_scores(expression, columns, length)
            scores = _ratio(numerator, denominator)
    except _InexactError:
        return None
    return np.array(np.broadcast_to(scores, (length,)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Value:
    """Doubles if `digits` is None; otherwise integers in units of 10**-digits."""

    array: Floats | np.float64
    digits: int | None


def _evaluate(expression: Scoring, columns: Mapping[str, Column], length: int) -> _Value:
    def value(part: Scoring) -> _Value:
        return _evaluate(part, columns, length)

    match expression:
        case Number(constant, is_double):
            return _Value(np.float64(constant), None) if is_double else _constant(constant)
        case Variable(name):
            return _column_value(columns[name])
        case Add(left, right):
            return _sum(value(left), value(right), 1.0)
        case Subtract(left, right):
            return _sum(value(left), value(right), -1.0)
        case Multiply(left, right):
            return _product(value(left), value(right))
        case Divide(left, divisor, is_double):
            return _divided(value(left), divisor, is_double=is_double)
        case Quotient(left, right):
            return _quotient(value(left), value(right))
        case Negate(operand):
            positive = value(operand)
            return _Value(-positive.array, positive.digits)
        case Absolute(operand):
            signed = value(operand)
            return _Value(np.abs(signed.array), signed.digits)
        case ScoringCall():
            return _call(expression, [value(argument) for argument in expression.arguments], length)
        case _:
            assert_never(expression)


@lru_cache(maxsize=1024)
def _constant(constant: float) -> _Value:
    """Return a constant as a decimal; it has at most 15 digits, so its float64 identifies it."""
    exponent = Decimal(repr(float(constant))).normalize().as_tuple().exponent
    digits = max(0, -int(exponent))
    return _integers(np.rint(np.float64(constant) * 10.0**digits), digits)


def _column_value(column: Column) -> _Value:
    name, digits = column.kind
    if name == "mixed":
        raise _InexactError
    if name == "double":
        return _Value(column.values, None)
    if not digits:
        return _integers(column.values, 0)
    return _integers(np.rint(column.values * 10.0**digits), digits)


def _integers(array: Floats | np.float64, digits: int) -> _Value:
    """Return integers in units of 10**-digits, or raise if they are too large to be exact."""
    if np.size(array) and np.abs(array).max() >= _MOST:
        raise _InexactError
    if digits > SURE:
        raise _InexactError
    return _Value(array, digits)


def _doubles(value: _Value) -> Floats | np.float64:
    """Return a value as float64; a scaled integer is divided by an exact power, so rounded once."""
    return value.array if not value.digits else value.array / 10.0**value.digits


def _sum(left: _Value, right: _Value, sign: float) -> _Value:
    if left.digits is None or right.digits is None:
        return _Value(_doubles(left) + sign * _doubles(right), None)
    digits = max(left.digits, right.digits)
    augend, addend = _scaled(left, digits), _scaled(right, digits)
    return _integers(augend.array + sign * addend.array, digits)


def _scaled(value: _Value, digits: int) -> _Value:
    """Return an exact value in smaller units, of 10**-digits."""
    if value.digits is None or value.digits == digits:
        return value
    return _integers(value.array * 10.0 ** (digits - value.digits), digits)


def _product(left: _Value, right: _Value) -> _Value:
    if left.digits is None or right.digits is None:
        return _Value(_doubles(left) * _doubles(right), None)
    return _integers(left.array * right.array, left.digits + right.digits)


def _quotient(left: _Value, right: _Value) -> _Value:
    """Return a quotient for further arithmetic; one operand must be of doubles."""
    if left.digits is not None and right.digits is not None:
        raise _InexactError
    return _Value(_ratio(left, right), None)


def _ratio(left: _Value, right: _Value) -> Floats | np.float64:
    """Return quotients of doubles, or of small integers and decimals."""
    if left.digits is None or right.digits is None:
        return _doubles(left) / _doubles(right)
    digits = max(left.digits, right.digits)
    numerator, denominator = (v.array * 10.0 ** (digits - (v.digits or 0)) for v in (left, right))
    is_small = np.all(np.abs(numerator) < _SMALL) and np.all(np.abs(denominator) < _SMALL)
    if not is_small or np.any(denominator == 0):
        raise _InexactError
    return numerator / denominator


def _divided(value: _Value, divisor: float, *, is_double: bool) -> _Value:
    """Return a quotient; of decimals only if it is a finite decimal, as x/2 is and x/3 is not."""
    if is_double or value.digits is None:
        return _Value(_doubles(value) / divisor, None)
    reciprocal = _reciprocal(divisor)
    if reciprocal is None:
        raise _InexactError
    return _product(value, _constant(reciprocal))


@lru_cache(maxsize=1024)
def _reciprocal(divisor: float) -> float | None:
    """Return the factor that replaces a division, if it is a finite decimal.

    >>> _reciprocal(8), _reciprocal(3)
    (0.125, None)
    """
    decimal = Decimal(repr(float(divisor)))
    factor = 1 / decimal
    is_finite = factor * decimal == 1 and len(factor.as_tuple().digits) <= SURE
    return float(factor) if is_finite else None


def _call(call: ScoringCall, arguments: list[_Value], length: int) -> _Value:
    """Return the results of a function, or raise if they are not numbers of one kind."""
    columns = [np.broadcast_to(_doubles(value), (length,)).tolist() for value in arguments]
    for number, value in enumerate(arguments):
        if value.digits == 0:
            columns[number] = [*map(int, columns[number])]
    rows = zip(*columns, strict=True) if columns else chain([()] * length)
    results = []
    for row in rows:
        try:
            result = call.function(*row)
            results.append(result if isinstance(result, ox.Literal) else ox.Literal(result))
        except Exception:  # an error, or a result that is not a literal
            raise _InexactError from None
    column = read_column(results)
    if column is None:
        raise _InexactError
    return _column_value(column)
