"""Scoring functions as data: arithmetic over columns of float64.

A score is a number for each row: NaN if an operand has no value, or a function returns none.
Results beyond the range of SPARQL's integers and decimals, which are errors there, have a value
here. Dates and durations are milliseconds, so that `?end - ?start` is the difference of SPARQL.

>>> half = Divide(Add(Variable("a"), Variable("b")), 2.0)
>>> evaluate(half, {"a": np.array([1.0, 2.0]), "b": np.array([4.0, np.nan])})
array([2.5, nan])
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import nan
from numbers import Real
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
import pyoxigraph as ox

from rsp_engine.operators.scoring.term_scores import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rsp_engine.model.arrays import Floats

__all__ = [
    "Absolute",
    "Add",
    "Divide",
    "Multiply",
    "Negate",
    "Number",
    "Quotient",
    "Scoring",
    "ScoringCall",
    "Subtract",
    "Variable",
    "evaluate",
    "over_parts",
    "variables",
]


@dataclass(frozen=True, slots=True)
class Number:
    """A constant: a double, or an integer or decimal."""

    value: float
    is_double: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A column, by the name of its variable, without `?`."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """`x + y`."""

    left: Scoring
    right: Scoring


@dataclass(frozen=True, slots=True)
class Subtract:
    """`x - y`."""

    left: Scoring
    right: Scoring


@dataclass(frozen=True, slots=True)
class Multiply:
    """`x * y`."""

    left: Scoring
    right: Scoring


@dataclass(frozen=True, slots=True)
class Divide:
    """`x / c`, by a constant other than zero, where SPARQL's result depends on the types.

    >>> Divide(Variable("a"), 0.0)
    Traceback (most recent call last):
    ...
    ValueError: a score cannot be divided by 0.0
    """

    left: Scoring
    divisor: float
    is_double: bool = False

    def __post_init__(self) -> None:
        if not abs(self.divisor) > 0:
            raise ValueError(f"a score cannot be divided by {self.divisor}")


@dataclass(frozen=True, slots=True)
class Quotient:
    """`x / y` of doubles: a division by zero is infinite, or NaN.

    For integers and decimals it is an error in SPARQL. Callers must handle that case themselves.
    """

    left: Scoring
    right: Scoring


@dataclass(frozen=True, slots=True)
class Negate:
    """`-x`."""

    operand: Scoring


@dataclass(frozen=True, slots=True)
class Absolute:
    """`ABS(x)`."""

    operand: Scoring


@dataclass(frozen=True, slots=True)
class ScoringCall:
    """A registered function, called row by row with floats, unless an argument has no value.

    It returns a number or a literal. Any other result, or an exception, means no value.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Scoring, ...]


Scoring = (
    Number
    | Variable
    | Add
    | Subtract
    | Multiply
    | Divide
    | Quotient
    | Negate
    | Absolute
    | ScoringCall
)


def variables(expression: Scoring) -> tuple[str, ...]:
    """Return the variables of a scoring function, each once, in the order of their occurrence.

    >>> variables(Add(Variable("b"), Multiply(Variable("a"), Variable("b"))))
    ('b', 'a')
    """
    return tuple(dict.fromkeys(_names(expression)))


def _names(expression: Scoring) -> Iterator[str]:
    match expression:
        case Number():
            return
        case Variable(name):
            yield name
        case (
            Add(left, right) | Subtract(left, right) | Multiply(left, right) | Quotient(left, right)
        ):
            yield from _names(left)
            yield from _names(right)
        case Divide(operand) | Negate(operand) | Absolute(operand):
            yield from _names(operand)
        case ScoringCall(_, _, arguments):
            for argument in arguments:
                yield from _names(argument)
        case _:
            assert_never(expression)


def over_parts(expression: Scoring, change: Callable[[Scoring], Scoring]) -> Scoring:
    """Return an expression with `change` applied to its operands.

    >>> over_parts(Add(Variable("a"), Variable("b")), Negate)
    Add(left=Negate(operand=Variable(name='a')), right=Negate(operand=Variable(name='b')))
    """
    match expression:
        case Number() | Variable():
            return expression
        case Add(left, right):
            return Add(change(left), change(right))
        case Subtract(left, right):
            return Subtract(change(left), change(right))
        case Multiply(left, right):
            return Multiply(change(left), change(right))
        case Quotient(left, right):
            return Quotient(change(left), change(right))
        case Divide(left, divisor, is_double):
            return Divide(change(left), divisor, is_double)
        case Negate(operand):
            return Negate(change(operand))
        case Absolute(operand):
            return Absolute(change(operand))
        case ScoringCall(name, function, arguments):
            return ScoringCall(name, function, tuple(map(change, arguments)))
        case _:
            assert_never(expression)


def evaluate(
    expression: Scoring,
    columns: Mapping[str, Floats],
    constants: Mapping[str, np.float64] | None = None,
) -> Floats:
    """Return the score of each row; without columns there is one row.

    `constants` are variables with one value for all rows. Time: O(rows) for each operation.
    """
    lengths = {len(values) for values in columns.values()} or {1}
    if len(lengths) > 1:
        raise ValueError("columns must be of equal length")
    length = lengths.pop()
    with np.errstate(all="ignore"):
        scores = _evaluate(expression, {**columns, **(constants or {})}, length)
    if isinstance(scores, np.ndarray) and not isinstance(expression, Variable):
        return scores
    return np.array(np.broadcast_to(scores, (length,)), dtype=np.float64)


def _evaluate(
    expression: Scoring, columns: Mapping[str, Floats | np.float64], length: int
) -> Floats | np.float64:
    def value(part: Scoring) -> Floats | np.float64:
        return _evaluate(part, columns, length)

    match expression:
        case Number(constant):
            return np.float64(constant)
        case Variable(name):
            if name not in columns:
                raise ValueError(f"there is no column for ?{name}")
            return columns[name]
        case Add(left, right):
            return value(left) + value(right)
        case Subtract(left, right):
            return value(left) - value(right)
        case Multiply(left, right):
            return value(left) * value(right)
        case Divide(left, divisor):
            return value(left) / np.float64(divisor)
        case Quotient(left, right):
            return value(left) / value(right)
        case Negate(operand):
            return -value(operand)
        case Absolute(operand):
            return np.abs(value(operand))
        case ScoringCall(_, function, arguments):
            rows = np.empty((length, len(arguments)))
            for place, argument in enumerate(arguments):
                rows[:, place] = value(argument)
            return _call(function, rows)
        case _:
            assert_never(expression)


def _call(function: Callable[..., Any], rows: Floats) -> Floats:
    scores = np.full(len(rows), np.nan)
    is_complete = ~np.isnan(rows).any(axis=1)
    scores[is_complete] = [_result(function, row) for row in rows[is_complete].tolist()]
    return scores


def _result(function: Callable[..., Any], arguments: list[float]) -> float:
    try:
        result = function(*arguments)
        if isinstance(result, ox.Literal):
            score = number(result)
            return nan if score is None else score
        is_number = isinstance(result, Real | Decimal) and not isinstance(result, bool)
        return float(result) if is_number else nan
    except Exception:
        return nan  # no value, as for any error in SPARQL
