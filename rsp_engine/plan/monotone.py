"""Proofs that a scoring function is monotone in one of its variables.

Topk+N scores a changed object outside its list with a lower bound of the streamed value. This is a
lower bound of the score only if the score does not fall when the streamed value rises. The proof is
by structure: each part rises, falls or is constant, and lies in an interval that follows from the
declared ranges of the variables. A sum of parts that rise rises; a product rises if one factor
rises and the other is never negative; and so on. Each step holds for float64 as for real numbers,
since rounding is monotone, as long as all values are finite.

A registered function declares its directions by the attribute `monotone`, or in a mapping by its
name: one direction for all arguments, or one for each.

>>> from rsp_engine.operators.scoring.scoring_function import Add, Divide, Variable
>>> prove(Add(Divide(Variable("a"), 100), Variable("b")), "a").why
'?a / 100 + ?b rises with ?a, since no part of the sum falls'
"""

from __future__ import annotations

from inspect import unwrap
from math import inf
from typing import TYPE_CHECKING, Literal, assert_never

from rsp_engine.model.quantities import quantity
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

__all__ = ["DeclaredDirections", "prove", "scoring_text"]

DeclaredDirections = Direction | Literal["distance"] | tuple[Direction | None, ...]
"""The direction of a function when an argument rises: for all arguments, or one for each.

A distance has two arguments, is symmetric, and does not fall as they move apart.
"""

_FLIPPED: dict[Direction, Direction] = {
    "rises": "falls", "falls": "rises", "constant": "constant",
}  # fmt: skip


def prove(
    expression: Scoring,
    variable: str | None,
    ranges: Mapping[str, ValueRange] | None = None,
    declared: Mapping[str, DeclaredDirections] | None = None,
) -> Proof:
    """Return the direction of a score when a variable rises, with the reason.

    Without a variable the score is constant. Raise `ValueError` if a range is empty or a function
    declares what is no direction.
    """
    for name, (low, high) in (ranges or {}).items():
        if not low <= high or low == inf or high == -inf:
            raise ValueError(f"the range of ?{name} from {low} to {high} is empty")
    text = scoring_text(expression)
    if variable is None:
        return Proof("constant", f"{text} uses no value that could rise")
    direction, why = _Prover(variable, ranges or {}, declared or {}).prove(expression)
    if direction is None:
        return Proof(None, f"{text} may rise or fall with ?{variable}: {why}")
    does = "does not change" if direction == "constant" else direction
    return Proof(direction, f"{text} {does} with ?{variable}, since {why}")


_Reasoned = tuple[Direction | None, str]
"""A direction and the reason; or None, and the part that prevents a proof."""


class _Prover:
    """Derives the direction of an expression from those of its parts."""

    def __init__(
        self,
        variable: str,
        ranges: Mapping[str, ValueRange],
        declared: Mapping[str, DeclaredDirections],
    ) -> None:
        self._variable = variable
        self._ranges = ranges
        self._declared = declared

    def prove(self, expression: Scoring) -> _Reasoned:
        """Return the direction of an expression when the variable rises."""
        if self._variable not in variables(expression):
            return "constant", f"it does not contain ?{self._variable}"
        match expression:
            case Number() | Variable():
                return "rises", "it is the variable itself"
            case Add(left, right):
                return self._sum(expression, (self.prove(left), self.prove(right)))
            case Subtract(left, right):
                return self._sum(expression, (self.prove(left), _flipped(self.prove(right))))
            case Multiply(left, right):
                return self._product(expression, (left, right), (right, left))
            case Divide(left, divisor):
                sign = "positive" if divisor > 0 else "negative"
                step = self._of(left, f"{_text(divisor)} is {sign}")
                return step if divisor > 0 else _flipped(step)
            case Quotient(left, right):
                if self._variable in variables(right):
                    return None, f"{scoring_text(right)} may be zero"
                return self._product(expression, (left, Quotient(Number(1), right)))
            case Negate(operand):
                return _flipped(self._of(operand, "the minus sign reverses it"))
            case Absolute(operand):
                return self._absolute(operand)
            case ScoringCall():
                return self._call(expression)
            case _:
                assert_never(expression)

    def _of(self, part: Scoring, condition: str) -> _Reasoned:
        """Return the direction of a part, which the whole has too under the condition."""
        direction, why = self.prove(part)
        if direction in (None, "constant"):
            return direction, why
        return direction, f"{scoring_text(part)} {direction} and {condition}"

    def _sum(self, whole: Scoring, parts: Iterable[_Reasoned]) -> _Reasoned:
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

    def _product(self, whole: Scoring, *factors: tuple[Scoring, Scoring]) -> _Reasoned:
        """Return the direction of a product, from each factor's direction and the other's sign."""
        moves: list[_Reasoned] = []
        for factor, other in factors:
            direction, why = self.prove(factor)
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
        reasons = dict.fromkeys(why for move, why in moves if move == direction)
        return direction, " and ".join(reasons) if direction is not None else why

    def _absolute(self, operand: Scoring) -> _Reasoned:
        low, high = value_interval(operand, self._ranges)
        if low >= 0:
            return self._of(operand, "is never negative")
        if high <= 0:
            return _flipped(self._of(operand, "is never positive"))
        direction, why = self.prove(operand)
        if direction == "constant":
            return direction, why
        return None, f"{scoring_text(operand)} may be negative or positive"

    def _call(self, call: ScoringCall) -> _Reasoned:
        directions = _declared_directions(call, self._declared)
        if directions is None:
            return None, f"the function {call.name} does not declare whether it rises"
        moves: list[_Reasoned] = []
        for argument, declared in zip(call.arguments, directions, strict=True):
            step = self.prove(argument)
            if step[0] == "constant" or declared == "constant":
                moves.append(("constant", ""))
            elif declared is None:
                return None, f"{call.name} declares no direction for {scoring_text(argument)}"
            else:
                moves.append(step if declared == "rises" else _flipped(step))
        direction, why = self._sum(call, moves)
        return direction, why if direction is None else f"{call.name} declares it"


def _flipped(reasoned: _Reasoned) -> _Reasoned:
    direction, why = reasoned
    return (None if direction is None else _FLIPPED[direction]), why


def _declared_directions(
    call: ScoringCall, declared: Mapping[str, DeclaredDirections]
) -> tuple[Direction | None, ...] | None:
    """Return the direction that a function declares for each argument, or None."""
    function = unwrap(call.function)
    directions = declared.get(call.name, getattr(function, "monotone", None))
    if directions is None and function in (min, max):
        directions = "rises"
    if directions == "distance":
        return None  # it may rise or fall with either argument
    if isinstance(directions, str):
        directions = (directions,) * len(call.arguments)
    if directions is None:
        return None
    count, arity = len(directions), len(call.arguments)
    if count != arity:
        stated, arguments = quantity(count, "direction"), quantity(arity, "argument")
        raise ValueError(f"{call.name} declares {stated} for {arguments}")
    if wrong := [each for each in directions if each not in (*_FLIPPED, None)]:
        raise ValueError(f"{call.name} declares {wrong[0]!r}: use rises, falls or constant")
    return tuple(directions)


_COMPOUND = (Add, Subtract, Multiply, Divide, Quotient)


def scoring_text(expression: Scoring) -> str:
    """Return the SPARQL text of a scoring function.

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
