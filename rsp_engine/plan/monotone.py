"""Whether a scoring function does not fall, or does not rise, when one of its variables rises.

Topk+N scores a changed object outside its list with a lower bound of what it streamed; that is a
lower bound of the score only if the score does not fall when the streamed value rises. It is proved
from the parts: each rises, falls or does not change, and lies in an interval that follows from the
declared ranges of the variables. Sums of parts that rise do, products if the other factor is never
negative, and so on. The steps hold for float64 as they do for real numbers, since rounding keeps
the order, as long as nothing is infinite.

A registered function declares what it does by its attribute `monotone`, or in a mapping by its
name: one direction for all arguments, or one for each.

>>> from rsp_engine.operators.scoring.scoring_function import Add, Divide, Variable
>>> prove(Add(Divide(Variable("a"), 100), Variable("b")), "a").why
'?a / 100 + ?b rises with ?a, since no part of the sum falls'
"""

from __future__ import annotations

from inspect import unwrap
from math import inf
from typing import TYPE_CHECKING, Literal, assert_never

from rsp_engine.operators.scoring.monotonicity import Direction, Proof
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
    variables,
)
from rsp_engine.plan.intervals import value_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rsp_engine.plan.intervals import ValueRange

__all__ = ["DeclaredRanges", "prove", "scoring_text"]

DeclaredRanges = Direction | Literal["distance"] | tuple[Direction | None, ...]
"""What a function does when an argument rises: for all of them, or one by one.

A distance has two arguments, is the same both ways, and never falls as they move apart.
"""

_FLIPPED: dict[Direction, Direction] = {
    "rises": "falls", "falls": "rises", "constant": "constant",
}  # fmt: skip


def prove(
    expression: Scoring,
    variable: str | None,
    ranges: Mapping[str, ValueRange] | None = None,
    declared: Mapping[str, DeclaredRanges] | None = None,
) -> Proof:
    """Return what a score does when a variable rises; no variable changes nothing."""
    for name, (low, high) in (ranges or {}).items():
        if not low <= high or low == inf or high == -inf:
            raise ValueError(f"the range of ?{name} goes from {low} to {high}, which holds nothing")
    text = scoring_text(expression)
    if variable is None:
        return Proof("constant", f"{text} needs nothing that could rise")
    direction, why = _Prover(variable, ranges or {}, declared or {}).look(expression)
    if direction is None:
        return Proof(None, f"{text} may rise or fall with ?{variable}: {why}")
    does = "does not change" if direction == "constant" else direction
    return Proof(direction, f"{text} {does} with ?{variable}, since {why}")


_Found = tuple[Direction | None, str]
"""A direction and why it is so; or none, and which part is to blame."""


class _Prover:
    """Looks at an expression from the inside out."""

    def __init__(
        self,
        variable: str,
        ranges: Mapping[str, ValueRange],
        declared: Mapping[str, DeclaredRanges],
    ) -> None:
        self._variable = variable
        self._ranges = ranges
        self._declared = declared

    def look(self, expression: Scoring) -> _Found:
        """Return what an expression does when the variable rises."""
        if self._variable not in variables(expression):
            return "constant", f"?{self._variable} is not in it"
        match expression:
            case Number() | Variable():
                return "rises", "it is that"
            case Add(left, right):
                return self._sum(expression, (self.look(left), self.look(right)))
            case Subtract(left, right):
                return self._sum(expression, (self.look(left), _flipped(self.look(right))))
            case Multiply(left, right):
                return self._product(expression, (left, right), (right, left))
            case Divide(left, divisor):
                sign = "positive" if divisor > 0 else "negative"
                found = self._of(left, f"{_text(divisor)} is {sign}")
                return found if divisor > 0 else _flipped(found)
            case Quotient(left, right):
                if self._variable in variables(right):
                    return None, f"{scoring_text(right)} may be zero"
                return self._product(expression, (left, Quotient(Number(1), right)))
            case Negate(operand):
                return _flipped(self._of(operand, "the sign turns it"))
            case Absolute(operand):
                return self._absolute(operand)
            case ScoringCall():
                return self._call(expression)
            case _:
                assert_never(expression)

    def _of(self, part: Scoring, more: str) -> _Found:
        """Return what a part does, as a reason for the whole."""
        direction, why = self.look(part)
        if direction in (None, "constant"):
            return direction, why
        return direction, f"{scoring_text(part)} {direction} and {more}"

    def _sum(self, whole: Scoring, parts: Iterable[_Found]) -> _Found:
        parts = list(parts)
        for direction, why in parts:
            if direction is None:
                return None, why
        changing = {direction for direction, _ in parts} - {"constant"}
        match sorted(changing, key=str):
            case []:
                return "constant", "no part of it changes"
            case ["rises"]:
                return "rises", "no part of the sum falls"
            case ["falls"]:
                return "falls", "no part of the sum rises"
            case _:
                return None, f"in {scoring_text(whole)} one part rises and one falls"

    def _product(self, whole: Scoring, *factors: tuple[Scoring, Scoring]) -> _Found:
        """Each factor that changes moves the product by its direction and the other's sign."""
        moves: list[_Found] = []
        for factor, other in factors:
            direction, why = self.look(factor)
            low, high = value_interval(other, self._ranges)
            if direction is None:
                return None, why
            if direction == "constant":
                continue
            if low == inf or high == -inf:
                return None, f"{scoring_text(other)} is infinite"
            if low == high == 0:
                moves.append(("constant", "a factor is always 0"))
            elif low >= 0:
                moves.append((direction, f"{scoring_text(other)} is never negative"))
            elif high <= 0:
                moves.append((_FLIPPED[direction], f"{scoring_text(other)} is never positive"))
            else:
                return None, f"{scoring_text(other)} may be negative or positive"
        direction, why = self._sum(whole, moves)
        told = dict.fromkeys(why for move, why in moves if move == direction)
        return direction, " and ".join(told) if direction is not None else why

    def _absolute(self, operand: Scoring) -> _Found:
        low, high = value_interval(operand, self._ranges)
        if low >= 0:
            return self._of(operand, "is never negative")
        if high <= 0:
            return _flipped(self._of(operand, "is never positive"))
        direction, why = self.look(operand)
        if direction == "constant":
            return direction, why
        return None, f"{scoring_text(operand)} may be negative or positive"

    def _call(self, call: ScoringCall) -> _Found:
        told = _told(call, self._declared)
        if told is None:
            return None, f"the function {call.name} does not declare whether it rises"
        moves: list[_Found] = []
        for argument, does in zip(call.arguments, told, strict=True):
            found = self.look(argument)
            if found[0] == "constant" or does == "constant":
                moves.append(("constant", ""))
            elif does is None:
                return None, f"{call.name} declares nothing of {scoring_text(argument)}"
            else:
                moves.append(found if does == "rises" else _flipped(found))
        direction, why = self._sum(call, moves)
        return direction, why if direction is None else f"{call.name} declares it"


def _flipped(found: _Found) -> _Found:
    direction, why = found
    return (None if direction is None else _FLIPPED[direction]), why


def _told(
    call: ScoringCall, declared: Mapping[str, DeclaredRanges]
) -> tuple[Direction | None, ...] | None:
    """Return what a function declares for each argument."""
    function = unwrap(call.function)
    told = declared.get(call.name, getattr(function, "monotone", None))
    if told is None and function in (min, max):
        told = "rises"
    if told == "distance":
        return None  # it may rise or fall with either
    if isinstance(told, str):
        told = (told,) * len(call.arguments)
    if told is None:
        return None
    if len(told) != len(call.arguments):
        raise ValueError(
            f"{call.name} declares {len(told)} directions, and has {len(call.arguments)} arguments"
        )
    if wrong := [does for does in told if does not in (*_FLIPPED, None)]:
        raise ValueError(f"{call.name} declares {wrong[0]!r}: say rises, falls or constant")
    return tuple(told)


_COMPOUND = (Add, Subtract, Multiply, Divide, Quotient)


def scoring_text(expression: Scoring) -> str:
    """Return a scoring function as it is written in SPARQL.

    >>> scoring_text(Multiply(Add(Variable("a"), Number(1)), Variable("b")))
    '(?a + 1) * ?b'
    """
    match expression:
        case Number(value):
            return _text(value)
        case Variable(name):
            return f"?{name}"
        case Add(left, right):
            return f"{scoring_text(left)} + {_part(right, Subtract)}"
        case Subtract(left, right):
            return f"{scoring_text(left)} - {_part(right, Add, Subtract)}"
        case Multiply(left, Number(1.0, True)):  # a cast to xsd:double
            return scoring_text(left)
        case Multiply(left, right):
            return f"{_part(left, Add, Subtract)} * {_part(right, Add, Subtract, Divide, Quotient)}"
        case Divide(left, divisor):
            return f"{_part(left, Add, Subtract)} / {_text(divisor)}"
        case Quotient(left, right):
            return f"{_part(left, Add, Subtract)} / {_part(right, *_COMPOUND)}"
        case Negate(operand):
            return f"-{_part(operand, *_COMPOUND, Negate, Number)}"
        case Absolute(operand):
            return f"ABS({scoring_text(operand)})"
        case ScoringCall(name, _, arguments):
            return f"{name}({', '.join(map(scoring_text, arguments))})"
        case _:
            assert_never(expression)


def _part(expression: Scoring, *bracketed: type[Scoring]) -> str:
    text = scoring_text(expression)
    if isinstance(expression, Multiply) and expression.right == Number(1.0, is_double=True):
        return _part(expression.left, *bracketed)
    return f"({text})" if isinstance(expression, bracketed) else text


def _text(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else repr(value)
