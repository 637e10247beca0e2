"""The builder of expressions from Lark's tree; it also checks the calls of built-in functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.errors import Span
from rsp_engine.grammar.builtins import BUILTINS, arity_text
from rsp_engine.grammar.parser.build_terms import BuildTerms, Children
from rsp_engine.grammar.tree import (
    Addend,
    Aggregate,
    And,
    BuiltInCall,
    Comparison,
    Exists,
    Expression,
    Factor,
    FunctionCall,
    In,
    Literal,
    NamedCall,
    Or,
    Product,
    Sum,
    Unary,
    Var,
)

if TYPE_CHECKING:
    from typing import Literal as OneOf

__all__ = ["BuildExpressions"]


class BuildExpressions(BuildTerms):
    """The builder of expressions; brackets show only in the shape of the tree."""

    def or_expression(self, span: Span, c: Children) -> Or:
        return Or(tuple(c), span=span)

    def and_expression(self, span: Span, c: Children) -> And:
        return And(tuple(c), span=span)

    def compare_operator(self, _: Span, c: Children) -> str:
        return str(c[0])

    def comparison(self, span: Span, c: Children) -> Comparison:
        left, operator, right = c
        return Comparison(operator, left, right, span=span)

    def expression_list(self, _: Span, c: Children) -> tuple[Expression, ...]:
        return tuple(c)

    def in_list(self, span: Span, c: Children) -> In:
        return In(c[0], c[1], span=span)

    def not_in_list(self, span: Span, c: Children) -> In:
        return In(c[0], c[1], negated=True, span=span)

    def sum(self, span: Span, c: Children) -> Sum:
        return Sum(c[0], tuple(c[1:]), span=span)

    def plus_term(self, span: Span, c: Children) -> Addend:
        return Addend("+", c[0], span=span)

    def minus_term(self, span: Span, c: Children) -> Addend:
        return Addend("-", c[0], span=span)

    def signed_term(self, span: Span, c: Children) -> Addend:
        """Build `?x -1 * 2` as `?x - 1 * 2`: the sign of the number is the operator."""
        number, *factors = c
        sign: OneOf["+", "-"] = "-" if number.lexical[0] == "-" else "+"
        inner = Span(span.start + 1, number.span.end)
        term: Expression = Literal(number.lexical[1:], number.datatype, span=inner)
        if factors:
            term = Product(term, tuple(factors), span=Span(inner.start, span.end))
        return Addend(sign, term, span=span)

    def product(self, span: Span, c: Children) -> Product:
        return Product(c[0], tuple(c[1:]), span=span)

    def factor_times(self, span: Span, c: Children) -> Factor:
        return Factor("*", c[0], span=span)

    def factor_divide(self, span: Span, c: Children) -> Factor:
        return Factor("/", c[0], span=span)

    def not_factor(self, span: Span, c: Children) -> Unary:
        return Unary("!", c[0], span=span)

    def plus_factor(self, span: Span, c: Children) -> Unary:
        return Unary("+", c[0], span=span)

    def minus_factor(self, span: Span, c: Children) -> Unary:
        return Unary("-", c[0], span=span)

    def distinct(self, _span: Span, _: Children) -> str:
        return "DISTINCT"

    def arguments(self, _: Span, c: Children) -> tuple[bool, tuple[Expression, ...]]:
        return bool(c) and c[0] is not None, tuple(c[1:])

    def function_call(self, span: Span, c: Children) -> FunctionCall:
        function, (distinct, arguments) = c
        return FunctionCall(function, arguments, distinct, span=span)

    def name_call(self, span: Span, c: Children) -> BuiltInCall | NamedCall:
        written, (distinct, arguments) = str(c[0]), c[1]
        name = written.upper()
        if distinct:
            self.refuse(
                f"`{written}` is not an aggregate: it cannot take DISTINCT",
                span,
                "call a custom aggregate by its IRI",
            )
        if name not in BUILTINS:
            return NamedCall(written, arguments, span=span)
        self._check_builtin(name, arguments, span)
        return BuiltInCall(name, arguments, span=span)

    def _check_builtin(self, name: str, arguments: tuple[Expression, ...], span: Span) -> None:
        least, most = BUILTINS[name]
        if not least <= len(arguments) <= most:
            self.refuse(f"{name} takes {arity_text(name)}, not {len(arguments)}", span)
        elif name == "BOUND" and not isinstance(arguments[0], Var):
            self.refuse("BOUND takes a variable", span, "write BOUND(?x)")

    def aggregate_name(self, _: Span, c: Children) -> str:
        return str(c[0]).upper()

    def star(self, _span: Span, _: Children) -> str:
        return "*"

    def separator(self, _: Span, c: Children) -> str:
        return str(c[0])

    def builtin_aggregate(self, span: Span, c: Children) -> Aggregate:
        name, distinct, argument, separator = c
        if argument == "*" and name != "COUNT":
            self.refuse(f"{name} cannot take `*`", span, "only COUNT counts whole solutions")
        if separator is not None and name != "GROUP_CONCAT":
            self.refuse(f"{name} has no SEPARATOR", span, "only GROUP_CONCAT has one")
        return Aggregate(
            name, None if argument == "*" else argument, distinct is not None, separator, span=span
        )

    def exists(self, span: Span, c: Children) -> Exists:
        return Exists(c[0], span=span)

    def not_exists(self, span: Span, c: Children) -> Exists:
        return Exists(c[0], negated=True, span=span)
