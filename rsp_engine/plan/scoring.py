"""From an expression of a query to a scoring function over columns of float64.

That is done where float64 has SPARQL's meaning: for variables, numbers, `+`, `-`, `*`, `/` by a
number other than zero, `ABS`, and calls of registered functions. A score then differs from
SPARQL's by no more than rounding, save where an integer or a decimal of Oxigraph overflows, which
has no value then (`0.5 * (1 / 3)` does: it has too many digits). All other expressions are left to
Oxigraph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rsp_engine.grammar import tree
from rsp_engine.grammar.write import FUNCTIONS
from rsp_engine.operators.scores import number
from rsp_engine.operators.scoring import (
    Absolute,
    Add,
    Call,
    Divide,
    Multiply,
    Negate,
    Number,
    Scoring,
    Subtract,
    Variable,
)
from rsp_engine.plan.general import as_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["scoring"]

_NUMBERS = {tree.XSD + kind for kind in ("integer", "decimal", "double")}


def scoring(
    expression: tree.Expression, functions: Mapping[str, Callable[..., Any]]
) -> Scoring | None:
    """Return an expression as a scoring function, if float64 has its meaning.

    >>> scoring(tree.Unary("-", tree.Var("a")), {})
    Negate(operand=Variable(name='a'))
    """
    match expression:
        case tree.Var(name):
            return Variable(name)
        case tree.Literal():
            return _number(expression)
        case tree.Sum(first, rest):
            return _sum(first, rest, functions)
        case tree.Product(first, rest):
            return _product(first, rest, functions)
        case tree.Unary("+", operand):
            return scoring(operand, functions)
        case tree.Unary("-", operand):
            found = scoring(operand, functions)
            return None if found is None else Negate(found)
        case tree.BuiltInCall("ABS", (operand,)):
            found = scoring(operand, functions)
            return None if found is None else Absolute(found)
        case tree.NamedCall(name, arguments):
            return _call(name, functions.get(name), arguments, functions)
        case tree.FunctionCall(tree.Iri(iri), arguments, False):
            name = iri.removeprefix(FUNCTIONS)
            function = functions.get(iri, functions.get(name))
            if function is None and iri == tree.XSD + "double":
                return _cast(arguments, functions)
            return _call(name, function, arguments, functions)
        case _:
            return None


def _number(literal: tree.Literal) -> Number | None:
    """Return a number; an xsd:float is none, since it makes all arithmetic around it less exact."""
    if literal.datatype not in _NUMBERS:
        return None
    value = number(as_term(literal))
    return None if value is None else Number(value)


def _sum(
    first: tree.Expression,
    rest: tuple[tree.Addend, ...],
    functions: Mapping[str, Callable[..., Any]],
) -> Scoring | None:
    found = scoring(first, functions)
    for addend in rest:
        term = scoring(addend.term, functions)
        if found is None or term is None:
            return None
        found = Add(found, term) if addend.sign == "+" else Subtract(found, term)
    return found


def _product(
    first: tree.Expression,
    rest: tuple[tree.Factor, ...],
    functions: Mapping[str, Callable[..., Any]],
) -> Scoring | None:
    found = scoring(first, functions)
    for factor in rest:
        term = scoring(factor.term, functions)
        if found is None or term is None:
            return None
        if factor.operator == "*":
            found = Multiply(found, term)
        else:
            divisor = _constant(term)
            if not divisor:
                return None
            found = Divide(found, divisor)
    return found


def _constant(term: Scoring) -> float | None:
    """Return a number with its signs. What is worked out from numbers may be zero in SPARQL."""
    match term:
        case Number(value):
            return value
        case Negate(operand):
            constant = _constant(operand)
            return None if constant is None else -constant
        case _:
            return None


def _cast(
    arguments: tuple[tree.Expression, ...], functions: Mapping[str, Callable[..., Any]]
) -> Scoring | None:
    """Return what is cast to a double, if it is arithmetic, whose result is a number or nothing.

    A variable or a function may give a text, of which the cast makes a number.
    """
    found = scoring(arguments[0], functions) if len(arguments) == 1 else None
    return None if isinstance(found, Variable | Call) else found


def _call(
    name: str,
    function: Callable[..., Any] | None,
    arguments: tuple[tree.Expression, ...],
    functions: Mapping[str, Callable[..., Any]],
) -> Scoring | None:
    found = tuple(scoring(argument, functions) for argument in arguments)
    if function is None or None in found:
        return None
    return Call(name, function, tuple(argument for argument in found if argument is not None))
