"""The builder of graph patterns from Lark's tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.grammar.parser.build_expressions import BuildExpressions
from rsp_engine.grammar.tree import (
    Bind,
    BlankNodeProperties,
    Collection,
    FilterClause,
    GraphPattern,
    GroupPattern,
    InlineData,
    MinusPattern,
    OptionalPattern,
    Property,
    ServicePattern,
    SubjectTriples,
    TriplesBlock,
    UnionPattern,
    Var,
    WindowPattern,
)

if TYPE_CHECKING:
    from rsp_engine.errors import Span
    from rsp_engine.grammar.parser.build_terms import Children

__all__ = ["BuildPatterns"]


class BuildPatterns(BuildExpressions):
    """The builder of triples and group graph patterns."""

    def nil(self, span: Span, _: Children) -> Collection:
        return Collection((), span=span)

    def collection(self, span: Span, c: Children) -> Collection:
        return Collection(tuple(c), span=span)

    def anon(self, span: Span, _: Children) -> BlankNodeProperties:
        return BlankNodeProperties((), span=span)

    def bnode_properties(self, span: Span, c: Children) -> BlankNodeProperties:
        return BlankNodeProperties(c[0], span=span)

    def properties(self, _: Span, c: Children) -> tuple[Property, ...]:
        return tuple(c)

    def property(self, span: Span, c: Children) -> Property:
        return Property(c[0], tuple(c[1:]), span=span)

    def subject(self, span: Span, c: Children) -> SubjectTriples:
        return SubjectTriples(c[0], c[1] if len(c) > 1 else (), span=span)

    def triples_block(self, span: Span, c: Children) -> TriplesBlock:
        return TriplesBlock(tuple(c), span=span)

    def group(self, span: Span, c: Children) -> GroupPattern:
        return GroupPattern(tuple(c), span=span)

    def group_or_union(self, span: Span, c: Children) -> GroupPattern | UnionPattern:
        only: GroupPattern = c[0]
        return only if len(c) == 1 else UnionPattern(tuple(c), span=span)

    def optional(self, span: Span, c: Children) -> OptionalPattern:
        return OptionalPattern(c[0], span=span)

    def minus(self, span: Span, c: Children) -> MinusPattern:
        return MinusPattern(c[0], span=span)

    def graph(self, span: Span, c: Children) -> GraphPattern:
        return GraphPattern(c[0], c[1], span=span)

    def window(self, span: Span, c: Children) -> WindowPattern:
        return WindowPattern(c[0], c[1], span=span)

    def silent(self, _span: Span, _: Children) -> str:
        return "SILENT"

    def service(self, span: Span, c: Children) -> ServicePattern:
        silent, name, group = c
        return ServicePattern(name, group, silent is not None, span=span)

    def filter(self, span: Span, c: Children) -> FilterClause:
        return FilterClause(c[0], span=span)

    def bind(self, span: Span, c: Children) -> Bind:
        return Bind(c[0], c[1], span=span)

    def undef(self, _span: Span, _: Children) -> None:
        return None

    def data_one_variable(self, span: Span, c: Children) -> InlineData:
        return InlineData((c[0],), tuple((value,) for value in c[1:]), span=span)

    def data_variables(self, _: Span, c: Children) -> tuple[Var, ...]:
        return tuple(c)

    def data_row(self, span: Span, c: Children) -> tuple[Span, Children]:
        return span, c

    def data_full(self, span: Span, c: Children) -> InlineData:
        variables, *rows = c
        for row_span, row in rows:
            if len(row) != len(variables):
                values = f"{len(row)} value{'s' * (len(row) != 1)}"
                expected = f"{len(variables)} variable{'s' * (len(variables) != 1)}"
                undef = "write UNDEF for a missing value"
                hint = undef if len(row) < len(variables) else None
                self.refuse(f"this row of VALUES has {values} for {expected}", row_span, hint)
        return InlineData(variables, tuple(tuple(row) for _, row in rows), span=span)

    def inline_values(self, span: Span, c: Children) -> InlineData:
        data: InlineData = c[0]
        return InlineData(data.variables, data.rows, span=span)

    values_clause = inline_values
