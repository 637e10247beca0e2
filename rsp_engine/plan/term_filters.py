"""Conditions on one variable, taken out of FILTER: they are decided once for each term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from rsp_engine.grammar import tree
from rsp_engine.grammar.write import WriteQueries
from rsp_engine.model.terms.numerals import DECIMAL, DOUBLE, NUMERALS, SURE
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.operators.joins.term_filter import (
    TERM_PROPERTY,
    NumberComparison,
    NumberConnective,
    NumberNegation,
    TermFilter,
)
from rsp_engine.plan.sparql.general import VOLATILE_FUNCTIONS
from rsp_engine.plan.variables import named_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rsp_engine.operators.joins.term_filter import ComparisonSign, NumberCondition

__all__ = ["conjuncts", "term_filter", "term_filters"]

_TERM = tree.Var("term")
_MIRRORED: dict[str, ComparisonSign] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
}
# Relative IRIs depend on the base of the query, the other functions on the evaluation.
_DEPENDENT_FUNCTIONS = VOLATILE_FUNCTIONS | {"IRI", "URI"}


def term_filters(
    conditions: Iterable[tree.Expression], names: Iterable[str]
) -> tuple[TermFilter, ...] | None:
    """Return conditions on one of these variables each; None if one is on several, or others."""
    found = [term_filter(condition, set(names)) for condition in conjuncts(conditions)]
    filters = tuple(each for each in found if each is not None)
    return filters if len(filters) == len(found) else None


def conjuncts(conditions: Iterable[tree.Expression]) -> Iterator[tree.Expression]:
    """Yield conditions that hold together; `&&` is taken apart, since an error is no success."""
    for condition in conditions:
        if isinstance(condition, tree.And):
            yield from conjuncts(condition.operands)
        else:
            yield condition


def term_filter(condition: tree.Expression, names: set[str]) -> TermFilter | None:
    """Return a condition on one of these variables; None if it depends on anything else."""
    found = named_variables(condition)
    if len(found) != 1 or not found <= names or any(map(_depends_on_more, tree.walk(condition))):
        return None
    [name] = found
    variable = tree.Var(name)
    about_term = tree.rewrite_tree(condition, lambda node: _TERM if node == variable else node)
    text = WriteQueries({}).expression(cast("tree.Expression", about_term))
    sparql = f"SELECT ?node WHERE {{ ?node <{TERM_PROPERTY}> ?term FILTER ({text}) }}"
    return TermFilter(name, sparql, _number_condition(condition))


def _number_condition(condition: tree.Expression) -> NumberCondition | None:
    """Return comparisons with numbers, and their connectives; None if there is anything else."""
    match condition:
        case tree.Comparison():
            return _number_comparison(condition)
        case tree.And(operands) | tree.Or(operands):
            found = [_number_condition(operand) for operand in operands]
            known = tuple(each for each in found if each is not None)
            kind: Literal["all", "any"] = "all" if isinstance(condition, tree.And) else "any"
            return NumberConnective(kind, known) if len(known) == len(found) else None
        case tree.Unary("!", operand):
            negated = _number_condition(operand)
            return None if negated is None else NumberNegation(negated)
        case tree.In(tree.Var() as variable, choices, is_negated):
            equal = [_number_comparison(tree.Comparison("=", variable, each)) for each in choices]
            known_equal = tuple(each for each in equal if each is not None)
            if len(known_equal) < len(equal) or not equal:
                return None
            any_of = NumberConnective("any", known_equal)
            return NumberNegation(any_of) if is_negated else any_of
        case _:
            return None


def _number_comparison(condition: tree.Expression) -> NumberComparison | None:
    """Return a comparison of a variable with a short number; None if it is anything else."""
    match condition:
        case tree.Comparison(operator, tree.Var(), tree.Literal() as literal):
            pass
        case tree.Comparison(sign, tree.Literal() as literal, tree.Var()):
            operator = _MIRRORED[sign]
        case _:
            return None
    if literal.datatype not in {XSD + "integer", DECIMAL, DOUBLE} or len(literal.lexical) > SURE:
        return None
    try:
        return NumberComparison(operator, NUMERALS[literal.datatype](literal.lexical))
    except ValueError:
        return None


def _depends_on_more(node: tree.Node) -> bool:
    """Return whether an expression depends on more than its variables."""
    match node:
        case tree.NamedCall() | tree.FunctionCall() | tree.Exists() | tree.Aggregate():
            return True
        case tree.BuiltInCall(name):
            return name in _DEPENDENT_FUNCTIONS
        case _:
            return False
