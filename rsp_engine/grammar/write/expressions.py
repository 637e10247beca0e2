"""Expressions as RSP-QL text, with no more brackets than needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, assert_never

from rsp_engine.grammar.tree import (
    Aggregate,
    And,
    BuiltInCall,
    Comparison,
    Exists,
    Expression,
    FunctionCall,
    GroupPattern,
    In,
    Iri,
    Literal,
    NamedCall,
    Or,
    Product,
    Sum,
    Unary,
    Var,
)
from rsp_engine.grammar.write.terms import WriteTerms
from rsp_engine.model.terms.rdf_text import string_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["WriteExpressions"]

_OR, _AND, _RELATION, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(7)


class WriteExpressions(WriteTerms, ABC):
    """The writer of expressions. A subclass writes the patterns of EXISTS."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        super().__init__(prefixes)
        self.indent = 0

    @abstractmethod
    def group(self, group: GroupPattern) -> str:
        """Write a group graph pattern."""

    def expression(self, expression: Expression, least: int = _OR) -> str:
        """Write an expression, in brackets if its precedence is less than `least`."""
        binding, text = self._bound(expression)
        return text if binding >= least else f"({text})"

    def _bound(self, expression: Expression) -> tuple[int, str]:
        match expression:
            case Or(operands):
                return _OR, " || ".join(self.expression(x, _AND) for x in operands)
            case And(operands):
                return _AND, " && ".join(self.expression(x, _RELATION) for x in operands)
            case Comparison(operator, left, right):
                sides = self.expression(left, _SUM), self.expression(right, _SUM)
                return _RELATION, f" {operator} ".join(sides)
            case In(operand, choices, negated):
                word = "NOT IN" if negated else "IN"
                return _RELATION, f"{self.expression(operand, _SUM)} {word} ({self._list(choices)})"
            case Sum(first, rest):
                addends = "".join(f" {a.sign} {self.expression(a.term, _PRODUCT)}" for a in rest)
                return _SUM, self.expression(first, _PRODUCT) + addends
            case Product(first, rest):
                factors = "".join(f" {f.operator} {self.expression(f.term, _UNARY)}" for f in rest)
                return _PRODUCT, self.expression(first, _UNARY) + factors
            case Unary(operator, operand):
                # A blank keeps `- 1`, a negated number, apart from the number `-1`.
                blank = " " if isinstance(operand, Literal) else ""
                return _UNARY, f"{operator}{blank}{self.expression(operand, _PRIMARY)}"
            case _:
                return _PRIMARY, self._primary(expression)

    def _primary(
        self,
        expression: Var
        | Iri
        | Literal
        | BuiltInCall
        | FunctionCall
        | NamedCall
        | Aggregate
        | Exists,
    ) -> str:
        match expression:
            case Var() | Iri() | Literal():
                return self.term(expression)
            case BuiltInCall(name, arguments) | NamedCall(name, arguments):
                return f"{name}({self._list(arguments)})"
            case FunctionCall(function, arguments, distinct):
                word = "DISTINCT " if distinct else ""
                return f"{self.term(function)}({word}{self._list(arguments)})"
            case Aggregate():
                return self._aggregate(expression)
            case Exists(group, negated):
                return f"{'NOT ' if negated else ''}EXISTS {self.group(group)}"
            case _ as unreachable:
                assert_never(unreachable)

    def _aggregate(self, aggregate: Aggregate) -> str:
        word = "DISTINCT " if aggregate.distinct else ""
        argument = "*" if aggregate.argument is None else self.expression(aggregate.argument)
        text = aggregate.separator
        separator = "" if text is None else f" ; SEPARATOR = {string_text(text)}"
        return f"{aggregate.function}({word}{argument}{separator})"

    def _list(self, expressions: tuple[Expression, ...]) -> str:
        return ", ".join(map(self.expression, expressions))
