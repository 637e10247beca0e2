"""The translation of an expression to a scoring function over columns of float64.

An expression is translated where float64 has SPARQL's semantics: variables, numbers, `+`, `-`, `*`,
`/` by a number other than zero, `ABS`, and calls of registered functions. With `quotients`, `/` by
any expression is translated too; the evaluator then has to handle division by zero. A score differs
from SPARQL's by rounding only, except where an integer or a decimal of Oxigraph overflows and has
no value (`0.5 * (1 / 3)` does: it has too many digits). Oxigraph evaluates all other expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rsp_engine.grammar import tree
from rsp_engine.grammar.write import FUNCTIONS
from rsp_engine.model.terms.numerals import DECIMAL, DOUBLE, SURE
from rsp_engine.model.terms.xsd import XSD
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
from rsp_engine.operators.scoring.term_scores import number
from rsp_engine.plan.sparql.general import as_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["scoring_of"]

_AS_DOUBLE = Number(1.0, is_double=True)
_NUMBERS = {XSD + "integer", DECIMAL, DOUBLE}


def scoring_of(
    expression: tree.Expression,
    functions: Mapping[str, Callable[..., Any]],
    *,
    quotients: bool = False,
) -> Scoring | None:
    """Return an expression as a scoring function; None if float64 does not have its semantics.

    >>> scoring_of(tree.Unary("-", tree.Var("a")), {})
    Negate(operand=Variable(name='a'))
    """
    score = _Reader(functions, quotients=quotients).read(expression)
    return score.left if isinstance(score, Multiply) and score.right == _AS_DOUBLE else score


class _Reader:
    """Translates an expression, its operands first."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]], *, quotients: bool) -> None:
        self._functions = functions
        self._quotients = quotients

    def read(self, expression: tree.Expression) -> Scoring | None:
        match expression:
            case tree.Var(name):
                return Variable(name)
            case tree.Literal():
                return _number(expression)
            case tree.Sum(first, rest):
                return self._sum(first, rest)
            case tree.Product(first, rest):
                return self._product(first, rest)
            case tree.Unary("+", operand):
                part = self.read(operand)
                if isinstance(part, Variable | ScoringCall):  # `+` of a text is an error
                    return Add(part, Number(0.0))
                return part
            case tree.Unary("-", operand):
                part = self.read(operand)
                return None if part is None else Negate(part)
            case tree.BuiltInCall("ABS", (operand,)):
                part = self.read(operand)
                return None if part is None else Absolute(part)
            case tree.NamedCall(name, arguments):
                return self._call(name, self._functions.get(name), arguments)
            case tree.FunctionCall(tree.Iri(iri), arguments, False):
                name = iri.removeprefix(FUNCTIONS)
                function = self._functions.get(iri, self._functions.get(name))
                if function is None and iri == DOUBLE:
                    return self._cast(arguments)
                return self._call(name, function, arguments)
            case _:
                return None

    def _sum(self, first: tree.Expression, rest: tuple[tree.Addend, ...]) -> Scoring | None:
        total = self.read(first)
        for addend in rest:
            term = self.read(addend.term)
            if total is None or term is None:
                return None
            total = Add(total, term) if addend.sign == "+" else Subtract(total, term)
        return total

    def _product(self, first: tree.Expression, rest: tuple[tree.Factor, ...]) -> Scoring | None:
        total = self.read(first)
        for factor in rest:
            term = self.read(factor.term)
            if total is None or term is None:
                return None
            if factor.operator == "*":
                total = Multiply(total, term)
            elif divisor := _constant(term):
                total = Divide(total, divisor, is_double=_has_double(term))
            elif self._quotients:
                total = Quotient(total, term)
            else:
                return None
        return total

    def _cast(self, arguments: tuple[tree.Expression, ...]) -> Scoring | None:
        """Return the operand of a cast to xsd:double, if it is arithmetic.

        Arithmetic gives a number or an error. A variable or a function may give a text, which the
        cast would parse as a number.
        """
        operand = self.read(arguments[0]) if len(arguments) == 1 else None
        if operand is None or isinstance(operand, Variable | ScoringCall):
            return None
        return Multiply(operand, _AS_DOUBLE)

    def _call(
        self,
        name: str,
        function: Callable[..., Any] | None,
        arguments: tuple[tree.Expression, ...],
    ) -> Scoring | None:
        parts = tuple(map(self.read, arguments))
        if function is None or None in parts:
            return None
        return ScoringCall(name, function, tuple(part for part in parts if part is not None))


def _number(literal: tree.Literal) -> Number | None:
    """Return the number of a literal, or None.

    An xsd:float has none, since its arithmetic is less precise; nor has a literal with more digits
    than float64 can represent.
    """
    is_double = literal.datatype == DOUBLE
    if literal.datatype not in _NUMBERS or (not is_double and len(literal.lexical) > SURE):
        return None
    value = number(as_term(literal))
    return None if value is None else Number(value, is_double)


def _has_double(constant: Scoring) -> bool:
    match constant:
        case Number(_, is_double):
            return is_double
        case Negate(operand):
            return _has_double(operand)
        case Subtract(left, right) | Multiply(left, right):
            return _has_double(left) or _has_double(right)
        case _:
            return False


def _constant(term: Scoring) -> float | None:
    """Return the value of a constant: a number with its signs, or the difference of two numbers.

    A difference near zero may be zero in SPARQL and not in float64, or the reverse: it has no
    value here.

    >>> _constant(Subtract(Number(50), Number(1))), _constant(Subtract(Number(0.3), Number(0.3)))
    (49, None)
    """
    match term:
        case Number(value):
            return value
        case Multiply(operand, right) if right == _AS_DOUBLE:
            return _constant(operand)
        case Negate(operand):
            constant = _constant(operand)
            return None if constant is None else -constant
        case Subtract(Number(left), Number(right)):
            is_clear = abs(left - right) > 1e-9 * max(abs(left), abs(right))
            return left - right if is_clear else None
        case _:
            return None
