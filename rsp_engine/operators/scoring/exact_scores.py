"""Scores that float64 orders just as SPARQL orders its own numbers, or none at all.

SPARQL calculates with integers and decimals exactly, and with doubles as float64 does. So a column
of integers and decimals is calculated with as integers, with so many digits behind the point:

    0.1 + 0.2    1 + 2 = 3, one digit    0.3, the float64 that the decimal 0.3 is read as

As long as no number has more than 15 digits, float64 has one number for each of them, in the same
order. Where that is not so (a large product, a third), where a column is of mixed types, or an
operand is no number, there is no score here: Oxigraph has to be asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
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
    "magnitude",
    "most_digits",
    "ordered_scores",
    "read_column",
    "rounded_scores",
]

_MOST = 10.0**SURE
_SMALL = 2.0**26
"""Two quotients of integers below this are the same in float64 only if they are equal.

Else they are 1/(bd) apart, which is more than 2**-53 of each. It is more than 10**-18, too: what
Oxigraph cuts off.
"""
_EXACT = {*INTEGERS, DECIMAL}
_DIGITS = re.compile(r"[0-9.+-]*")


class NumberKind(NamedTuple):
    """What numbers are: integers and decimals (exact), or doubles, or both.

    The exact ones have at most so many `digits` behind the point.
    """

    name: Literal["exact", "double", "mixed"]
    digits: int = 0

    def joined(self, other: NumberKind) -> NumberKind:
        """Return the kind of these numbers and of others.

        >>> NumberKind("exact", 2).joined(NumberKind("double"))
        NumberKind(name='mixed', digits=2)
        """
        name = self.name if self.name == other.name else "mixed"
        return NumberKind(name, max(self.digits, other.digits))


@dataclass(frozen=True, slots=True)
class Column:
    """Numbers of one variable, as float64 that has their order."""

    values: Floats
    kind: NumberKind


class _InexactError(Exception):
    """float64 might order the scores otherwise."""


def read_column(terms: Sequence[object]) -> Column | None:
    """Return terms as a column; nothing if float64 may not have their order.

    >>> read_column([ox.Literal(5), ox.Literal(7)])
    Column(values=array([5., 7.]), kind=NumberKind(name='exact', digits=0))
    >>> read_column([ox.Literal(5), ox.Literal("7")]) is None
    True
    """
    try:
        kinds = {term.datatype.value for term in terms}  # type: ignore[attr-defined]
        texts = [term.value for term in terms]  # type: ignore[attr-defined]
    except AttributeError:  # unbound, or no literal
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
    digits = max(map(_digits, texts))
    return Column(np.array([*map(float, texts)], dtype=np.float64), NumberKind("exact", digits))


def _digits(text: str) -> int:
    """Return how many digits are behind the point."""
    return len(text.partition(".")[2])


def _mixed_column(terms: Sequence[object]) -> Column | None:
    """Return numbers of several types: in order, but not to be calculated with."""
    values, digits = [], 0
    for term in terms:
        assert isinstance(term, ox.Literal), "all have a datatype"  # noqa: S101
        datatype = term.datatype.value
        if datatype != DOUBLE:
            if len(term.value) > SURE:
                return None
            digits = max(digits, _digits(term.value))
        values.append(NUMERALS[datatype](term.value))
    return _as_column(values, NumberKind("mixed", digits))


def exact_scores(expression: Scoring, columns: Mapping[str, Column], length: int) -> Floats | None:
    """Return the score of each of so many rows; nothing if float64 may not have SPARQL's order.

    >>> columns = {"a": read_column([ox.Literal(3), ox.Literal(10)])}
    >>> exact_scores(Multiply(Variable("a"), Number(0.1)), columns, 2)
    array([0.3, 1. ])
    """
    if isinstance(expression, Variable):
        return columns[expression.name].values
    try:
        with np.errstate(all="ignore"):
            found = _doubles(_evaluate(expression, columns, length))
    except _InexactError:
        return None
    return np.array(np.broadcast_to(found, (length,)), dtype=np.float64)


def most_digits(expression: Scoring, digits: int) -> int | None:
    """Return how many digits a score has behind the point if its variables have so many.

    Nothing if that is not known: a quotient may have no end, and a function may give anything.

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
            known = most_digits(operand, digits)
            if reciprocal is None or known is None:
                return None
            return known + (_constant(reciprocal).digits or 0)
        case Quotient() | ScoringCall():
            return None
        case _:
            assert_never(expression)


def magnitude(expression: Scoring, most: float) -> float:
    """Return a number that no part of a score exceeds if its variables do not exceed another.

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
    """Return the float64 of decimals of so many digits that scores stand for, but for rounding.

    >>> rounded_scores(np.array([0.3 - 0.1]), 1)
    array([0.2])
    """
    return np.rint(scores * 10.0**digits) / 10.0**digits if digits else np.rint(scores)


def ordered_scores(
    expression: Scoring, columns: Mapping[str, Column], length: int
) -> Floats | None:
    """Return scores as `exact_scores` does, and quotients of small numbers as well.

    A quotient of integers or decimals may have no end, and so no float64 of its own. But no other
    quotient of small ones has the same, so float64 has their order.

    >>> columns = {"a": read_column([ox.Literal(2), ox.Literal(10)])}
    >>> ordered_scores(Divide(Variable("a"), 3.0), columns, 2)
    array([0.66666667, 3.33333333])
    """
    try:
        with np.errstate(all="ignore"):
            match expression:
                case Quotient(left, right):
                    over, under = (_evaluate(e, columns, length) for e in (left, right))
                case Divide(left, divisor, is_double) if (
                    not is_double and _reciprocal(divisor) is None
                ):
                    over, under = _evaluate(left, columns, length), _constant(divisor)
                case _:
                    return exact_scores(expression, columns, length)
            found = _ratio(over, under)
    except _InexactError:
        return None
    return np.array(np.broadcast_to(found, (length,)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Value:
    """Doubles, or integers that stand for numbers with `digits` behind the point."""

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
            found = value(operand)
            return _Value(-found.array, found.digits)
        case Absolute(operand):
            found = value(operand)
            return _Value(np.abs(found.array), found.digits)
        case ScoringCall():
            return _called(
                expression, [value(argument) for argument in expression.arguments], length
            )
        case _:
            assert_never(expression)


def _constant(constant: float) -> _Value:
    """Return a decimal: a constant has at most 15 digits, so its float64 tells which it was."""
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
    """Return integers that are small enough to be exact."""
    if np.size(array) and np.abs(array).max() >= _MOST:
        raise _InexactError
    if digits > SURE:
        raise _InexactError
    return _Value(array, digits)


def _doubles(value: _Value) -> Floats | np.float64:
    """Return float64: for an integer and its digits the nearest one, since both are exact."""
    return value.array if not value.digits else value.array / 10.0**value.digits


def _sum(left: _Value, right: _Value, sign: float) -> _Value:
    if left.digits is None or right.digits is None:
        return _Value(_doubles(left) + sign * _doubles(right), None)
    digits = max(left.digits, right.digits)
    shifted = _integers(left.array * 10.0 ** (digits - left.digits), digits)
    added = _integers(right.array * 10.0 ** (digits - right.digits), digits)
    return _integers(shifted.array + sign * added.array, digits)


def _product(left: _Value, right: _Value) -> _Value:
    if left.digits is None or right.digits is None:
        return _Value(_doubles(left) * _doubles(right), None)
    return _integers(left.array * right.array, left.digits + right.digits)


def _quotient(left: _Value, right: _Value) -> _Value:
    """Return a quotient that more is calculated with: of doubles only."""
    if left.digits is not None and right.digits is not None:
        raise _InexactError
    return _Value(_ratio(left, right), None)


def _ratio(left: _Value, right: _Value) -> Floats | np.float64:
    """Return quotients of doubles, or of integers and decimals that are small."""
    if left.digits is None or right.digits is None:
        return _doubles(left) / _doubles(right)
    digits = max(left.digits, right.digits)
    over, under = (v.array * 10.0 ** (digits - (v.digits or 0)) for v in (left, right))
    if not np.all(np.abs(over) < _SMALL) or not np.all((np.abs(under) < _SMALL) & (under != 0)):
        raise _InexactError
    return over / under


def _divided(value: _Value, divisor: float, *, is_double: bool) -> _Value:
    """Return a quotient; of decimals only if it has an end, as a half has and a third has not."""
    if is_double or value.digits is None:
        return _Value(_doubles(value) / divisor, None)
    reciprocal = _reciprocal(divisor)
    if reciprocal is None:
        raise _InexactError
    return _product(value, _constant(reciprocal))


def _reciprocal(divisor: float) -> float | None:
    """Return what to multiply with in place of a division, if that has an end.

    >>> _reciprocal(8), _reciprocal(3)
    (0.125, None)
    """
    decimal = Decimal(repr(float(divisor)))
    found = 1 / decimal
    has_end = found * decimal == 1 and len(found.as_tuple().digits) <= SURE
    return float(found) if has_end else None


def _called(call: ScoringCall, arguments: list[_Value], length: int) -> _Value:
    """Return what a function gives, if all of it is numbers of one kind."""
    columns = [np.broadcast_to(_doubles(value), (length,)).tolist() for value in arguments]
    for number, value in enumerate(arguments):
        if value.digits == 0:
            columns[number] = [*map(int, columns[number])]
    rows = zip(*columns, strict=True) if columns else chain([()] * length)
    found = []
    for row in rows:
        try:
            result = call.function(*row)
            found.append(result if isinstance(result, ox.Literal) else ox.Literal(result))
        except Exception:  # an error, or a value that is no literal
            raise _InexactError from None
    column = read_column(found)
    if column is None:
        raise _InexactError
    return _column_value(column)
