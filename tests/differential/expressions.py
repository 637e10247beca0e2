"""Expressions of SPARQL: their text, and their value for a solution.

An error is an exception. Comparisons by `<` of booleans and of NaN are errors here, as in Oxigraph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.differential import moments, numeric
from tests.differential.aggregates import aggregated
from tests.differential.terms import (
    FALSE,
    TRUE,
    XSD,
    Iri,
    Literal,
    Term,
    is_text,
    literal_of,
    number_of,
    value_of,
    written,
)

Solution = Mapping[str, Term]


class EvaluationError(Exception):
    """An error in the sense of SPARQL: it has no value."""


@dataclass(frozen=True, slots=True)
class Var:
    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    term: Term


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Minus:
    operand: Expression


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logic:
    """`&&` or `||`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """COUNT, SUM, AVG, MIN or MAX; without an argument, COUNT(*)."""

    function: str
    argument: Expression | None = None
    distinct: bool = False


Expression = Var | Constant | Arithmetic | Minus | Comparison | Logic | Not | Call | Aggregate


def text(expression: Expression) -> str:
    """Return an expression as SPARQL."""
    match expression:
        case Var(name):
            return f"?{name}"
        case Constant(term):
            return constant_text(term)
        case Arithmetic(operator, left, right) | Comparison(operator, left, right):
            return f"({text(left)} {operator} {text(right)})"
        case Logic(operator, left, right):
            return f"({text(left)} {operator} {text(right)})"
        case Minus(operand):
            return f"(-{text(operand)})"
        case Not(operand):
            return f"(!{text(operand)})"
        case Call(name, arguments):
            return f"{name}({', '.join(map(text, arguments))})"
        case Aggregate(function, argument, distinct):
            inner = "*" if argument is None else text(argument)
            return f"{function}({'DISTINCT ' if distinct else ''}{inner})"


def constant_text(term: Term) -> str:
    """Return a term as people write it in a query."""
    if isinstance(term, Literal):
        kind = term.datatype.removeprefix(XSD)
        if kind == "boolean" or (kind == "integer" and term.text.removeprefix("-").isdigit()):
            return term.text
        if kind == "decimal" and "." in term.text:
            return term.text
        if kind == "double" and term.text not in {"NaN", "INF", "-INF"}:
            return f"{term.text}e0"
    return written(term)


def variables(expression: Expression) -> set[str]:
    """Return the variables of an expression, those under aggregates too."""
    match expression:
        case Var(name):
            return {name}
        case Constant():
            return set()
        case Arithmetic(_, left, right) | Comparison(_, left, right) | Logic(_, left, right):
            return variables(left) | variables(right)
        case Minus(operand) | Not(operand):
            return variables(operand)
        case Call(_, arguments):
            return {name for each in arguments for name in variables(each)}
        case Aggregate(_, argument):
            return set() if argument is None else variables(argument)


def has_aggregate(expression: Expression) -> bool:
    match expression:
        case Aggregate():
            return True
        case Var() | Constant():
            return False
        case Arithmetic(_, left, right) | Comparison(_, left, right) | Logic(_, left, right):
            return has_aggregate(left) or has_aggregate(right)
        case Minus(operand) | Not(operand):
            return has_aggregate(operand)
        case Call(_, arguments):
            return any(map(has_aggregate, arguments))


def value(
    expression: Expression, solution: Solution, group: Sequence[Solution] | None = None
) -> Term | None:
    """Return the value of an expression, nothing if it is an error."""
    try:
        return evaluate(expression, solution, group)
    except EvaluationError:
        return None


def holds(
    expression: Expression, solution: Solution, group: Sequence[Solution] | None = None
) -> bool:
    """Tell whether a condition holds; one with an error does not."""
    try:
        return truth(evaluate(expression, solution, group))
    except EvaluationError:
        return False


def evaluate(
    expression: Expression, solution: Solution, group: Sequence[Solution] | None = None
) -> Term:
    """Return the value of an expression, or raise an error.

    Aggregates are of the solutions of the group.
    """

    def of(operand: Expression) -> Term:
        return evaluate(operand, solution, group)

    match expression:
        case Var(name):
            return _bound(solution.get(name))
        case Constant(term):
            return term
        case Arithmetic(operator, left, right):
            return _calculated(operator, of(left), of(right))
        case Minus(operand):
            return _literal(numeric.negated(_number(of(operand))))
        case Comparison(operator, left, right):
            return _boolean(compare(operator, of(left), of(right)))
        case Logic(operator, left, right):
            return _boolean(_logic(operator, lambda: truth(of(left)), lambda: truth(of(right))))
        case Not(operand):
            return _boolean(not truth(of(operand)))
        case Call(name, arguments):
            return _called(name, arguments, solution, of)
        case Aggregate(function, argument, distinct):
            assert group is not None, "aggregates are of groups"
            if argument is None:
                rows = {frozenset(s.items()) for s in group} if distinct else group
                return literal_of(numeric.Number("integer", len(rows)))
            values = [value(argument, each) for each in group]
            return _bound(aggregated(function, values, distinct=distinct))


def _bound(term: Term | None) -> Term:
    if term is None:
        raise EvaluationError
    return term


def _literal(found: numeric.Number | moments.Duration | None) -> Literal:
    if found is None:
        raise EvaluationError
    return literal_of(found)


def _boolean(found: bool | None) -> Literal:
    if found is None:
        raise EvaluationError
    return TRUE if found else FALSE


def _number(term: Term) -> numeric.Number:
    number = number_of(term)
    if number is None:
        raise EvaluationError
    return number


def _calculated(operator: str, left: Term, right: Term) -> Literal:
    if operator == "-" and isinstance(left, Literal) and isinstance(right, Literal):
        one, other = value_of(left), value_of(right)
        if isinstance(one, moments.Moment) and isinstance(other, moments.Moment):
            return _literal(moments.difference(one, other))
    return _literal(numeric.calculated(operator, _number(left), _number(right)))


def truth(term: Term) -> bool:
    """Return the effective boolean value of a term."""
    if isinstance(term, Literal):
        if is_text(term):
            return term.text != ""
        match value_of(term):
            case bool() as found:
                return found
            case numeric.Number() as number:
                return not number.is_nan and number.value != 0
            case _:
                pass
    raise EvaluationError


def _logic(operator: str, left: Callable[[], bool], right: Callable[[], bool]) -> bool | None:
    """Return what `&&` and `||` give: an error only where the other side does not decide."""
    deciding = operator == "||"
    found: list[bool | None] = []
    for side in (left, right):
        try:
            found.append(side())
        except EvaluationError:
            found.append(None)
    if deciding in found:
        return deciding
    return None if None in found else not deciding


def compare(operator: str, left: Term, right: Term) -> bool | None:
    """Tell how two terms compare; nothing if SPARQL does not say."""
    match operator:
        case "!=":
            found = compare("=", left, right)
            return None if found is None else not found
        case ">" | ">=":
            return compare("<" if operator == ">" else "<=", right, left)
        case "=":
            return _are_equal(left, right)
        case _:
            return _is_less(operator, left, right)


def _are_equal(left: Term, right: Term) -> bool | None:
    if left == right:
        number = number_of(left)
        return number is None or not number.is_nan
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return False
    one, other = value_of(left), value_of(right)
    if isinstance(one, numeric.Number) and isinstance(other, numeric.Number):
        return numeric.compared("=", one, other)
    if isinstance(one, moments.Moment) and isinstance(other, moments.Moment):
        return one.kind == other.kind and moments.compared("=", one, other)
    if isinstance(one, moments.Duration) and isinstance(other, moments.Duration):
        return (one.months, one.seconds) == (other.months, other.seconds)
    # Values of kinds that are known differ; of others, equal terms only are known to be equal.
    return False if _is_known(left) and _is_known(right) else None


def _is_known(literal: Literal) -> bool:
    return is_text(literal) or value_of(literal) is not None or literal.datatype == XSD + "gYear"


def _is_less(operator: str, left: Term, right: Term) -> bool | None:
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    if is_text(left) and is_text(right):
        if left.language != right.language:
            return None
        return left.text < right.text or (operator == "<=" and left.text == right.text)
    one, other = value_of(left), value_of(right)
    if isinstance(one, numeric.Number) and isinstance(other, numeric.Number):
        return None if one.is_nan or other.is_nan else numeric.compared(operator, one, other)
    if isinstance(one, moments.Moment) and isinstance(other, moments.Moment):
        return moments.compared(operator, one, other) if one.kind == other.kind else None
    return None


def _called(
    name: str,
    arguments: tuple[Expression, ...],
    solution: Solution,
    of: Callable[[Expression], Term],
) -> Term:
    match name:
        case "BOUND":
            [variable] = arguments
            assert isinstance(variable, Var)
            return _boolean(variable.name in solution)
        case "IF":
            condition, then, otherwise = arguments
            return of(then) if truth(of(condition)) else of(otherwise)
        case "COALESCE":
            for argument in arguments:
                try:
                    return of(argument)
                except EvaluationError:
                    continue
            raise EvaluationError
        case _:
            return _FUNCTIONS[name](*map(of, arguments))


def _abs(term: Term) -> Term:
    number = _number(term)
    is_negative = number.value < 0 or str(number.value).startswith("-")
    return _literal(numeric.negated(number) if is_negative else number)


def _str(term: Term) -> Term:
    match term:
        case Iri(value):
            return Literal(value)
        case Literal(shown):
            return Literal(shown)
        case _:
            raise EvaluationError


def _text(term: Term) -> Literal:
    if not isinstance(term, Literal) or not is_text(term):
        raise EvaluationError
    return term


def _upper(term: Term) -> Term:
    found = _text(term)
    return Literal(found.text.upper(), found.datatype, found.language)


def _lower(term: Term) -> Term:
    found = _text(term)
    return Literal(found.text.lower(), found.datatype, found.language)


def _length(term: Term) -> Term:
    return literal_of(numeric.Number("integer", len(_text(term).text)))


def _lang(term: Term) -> Term:
    if not isinstance(term, Literal):
        raise EvaluationError
    return Literal(term.language)


def _datatype(term: Term) -> Term:
    if not isinstance(term, Literal):
        raise EvaluationError
    return Iri(term.datatype)


_FUNCTIONS: dict[str, Callable[..., Term]] = {
    "ABS": _abs,
    "STR": _str,
    "UCASE": _upper,
    "LCASE": _lower,
    "STRLEN": _length,
    "LANG": _lang,
    "DATATYPE": _datatype,
    "isNumeric": lambda term: _boolean(number_of(term) is not None),
    "isLiteral": lambda term: _boolean(isinstance(term, Literal)),
    "isIRI": lambda term: _boolean(isinstance(term, Iri)),
}
