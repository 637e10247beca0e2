"""From an expression of a query to a scoring function over columns of float64.

That is done where float64 has SPARQL's meaning: for variables, numbers, `+`, `-`, `*`, `/` by a
number other than zero, `ABS`, and calls of registered functions. With `quotients` it is also done
for `/` by anything, where who evaluates knows what a division by zero means. A score then differs
from SPARQL's by no more than rounding, save where an integer or a decimal of Oxigraph overflows,
which has no value then (`0.5 * (1 / 3)` does: it has too many digits). All other expressions are
left to Oxigraph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rsp_engine.grammar import tree
from rsp_engine.grammar.write import FUNCTIONS
from rsp_engine.model.terms.numerals import DECIMAL, DOUBLE, SURE
from rsp_engine.model.terms.term import XSD
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
    """Return an expression as a scoring function, if float64 has its meaning.

    >>> scoring_of(tree.Unary("-", tree.Var("a")), {})
    Negate(operand=Variable(name='a'))
    """
    found = _Reader(functions, quotients=quotients).read(expression)
    return found.left if isinstance(found, Multiply) and found.right == _AS_DOUBLE else found


class _Reader:
    """Reads an expression from the inside out."""

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
                found = self.read(operand)  # of a text it is an error
                return (
                    Add(found, Number(0.0)) if isinstance(found, Variable | ScoringCall) else found
                )
            case tree.Unary("-", operand):
                found = self.read(operand)
                return None if found is None else Negate(found)
            case tree.BuiltInCall("ABS", (operand,)):
                found = self.read(operand)
                return None if found is None else Absolute(found)
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
        found = self.read(first)
        for addend in rest:
            term = self.read(addend.term)
            if found is None or term is None:
                return None
            found = Add(found, term) if addend.sign == "+" else Subtract(found, term)
        return found

    def _product(self, first: tree.Expression, rest: tuple[tree.Factor, ...]) -> Scoring | None:
        found = self.read(first)
        for factor in rest:
            term = self.read(factor.term)
            if found is None or term is None:
                return None
            if factor.operator == "*":
                found = Multiply(found, term)
            elif divisor := _constant(term):
                found = Divide(found, divisor, is_double=_has_double(term))
            elif self._quotients:
                found = Quotient(found, term)
            else:
                return None
        return found

    def _cast(self, arguments: tuple[tree.Expression, ...]) -> Scoring | None:
        """Return what is cast to a double, if it is arithmetic: its result is a number or nothing.

        A variable or a function may give a text, of which the cast makes a number.
        """
        found = self.read(arguments[0]) if len(arguments) == 1 else None
        if found is None or isinstance(found, Variable | ScoringCall):
            return None
        return Multiply(found, _AS_DOUBLE)

    def _call(
        self,
        name: str,
        function: Callable[..., Any] | None,
        arguments: tuple[tree.Expression, ...],
    ) -> Scoring | None:
        found = tuple(map(self.read, arguments))
        if function is None or None in found:
            return None
        return ScoringCall(
            name, function, tuple(argument for argument in found if argument is not None)
        )


def _number(literal: tree.Literal) -> Number | None:
    """Return a number; an xsd:float is none, since it makes all arithmetic around it less exact.

    Nor is one with more digits than float64 has.
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
    """Return what is surely not zero: a number with its signs, or a difference that is clear.

    What is worked out from numbers may be zero in SPARQL and not here, or the other way round.

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
