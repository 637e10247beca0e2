"""The builder of queries from Lark's tree; it also checks the sizes of windows and LIMIT."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Literal as OneOf

from rsp_engine.grammar.parser.build_patterns import BuildPatterns
from rsp_engine.grammar.tree import (
    AskForm,
    BareName,
    ConstructForm,
    Count,
    CountWindow,
    DatasetClause,
    DescribeForm,
    Duration,
    Expression,
    From,
    FromNamed,
    FromWindow,
    GroupKey,
    GroupPattern,
    Iri,
    Modifiers,
    OrderCondition,
    Property,
    QueryUnit,
    Register,
    SelectAs,
    SelectClause,
    SelectForm,
    SubSelect,
    TimeWindow,
    TriplesBlock,
    Var,
    walk,
)
from rsp_engine.model.durations import has_unit, parse_duration

if TYPE_CHECKING:
    from rsp_engine.errors import Span
    from rsp_engine.grammar.parser.build_terms import Children

__all__ = ["BuildQueries"]

_MOST_DIGITS = 18  # any number of 18 digits fits a signed 64-bit integer


class BuildQueries(BuildPatterns):
    """The builder of query forms, dataset clauses and solution modifiers."""

    def unit(self, span: Span, c: Children) -> QueryUnit:
        _, register, (form, values) = c
        return QueryUnit(tuple(self.names.declarations), register, form, values, span=span)

    def query(self, _: Span, c: Children) -> Children:
        return c

    # The parser reads the prologue before it builds anything: see `Names`.
    def prologue(self, _span: Span, _: Children) -> None:
        return None

    base_decl = prefix_decl = prologue

    def register(self, span: Span, c: Children) -> Register:
        kind, name, _ = c
        return Register(name, kind, span=span)

    def r2s(self, _: Span, c: Children) -> str:
        return str(c[0]).upper()

    def bare_name(self, span: Span, c: Children) -> BareName:
        return BareName(str(c[0]), span=span)

    def select_query(self, span: Span, c: Children) -> SelectForm:
        return SelectForm(*c, span=span)

    def sub_select(self, span: Span, c: Children) -> SubSelect:
        return SubSelect(*c, span=span)

    def construct_query(self, span: Span, c: Children) -> ConstructForm:
        template, dataset, where, modifiers = c
        self._refuse_paths(template)
        return ConstructForm(template, dataset, where, modifiers, span=span)

    def construct_where(self, span: Span, c: Children) -> ConstructForm:
        dataset, template, modifiers = c
        self._refuse_paths(template)
        where = GroupPattern(() if template is None else (template,), span=span)
        return ConstructForm(template, dataset, where, modifiers, span=span)

    def _refuse_paths(self, template: TriplesBlock | None) -> None:
        for node in walk(template) if template else ():
            if isinstance(node, Property) and not isinstance(node.verb, Var | Iri):
                self.refuse("a CONSTRUCT template cannot contain a property path", node.verb.span)

    def describe_query(self, span: Span, c: Children) -> DescribeForm:
        return DescribeForm(*c, span=span)

    def describe_targets(self, _: Span, c: Children) -> tuple[Var | Iri, ...]:
        return () if c[0] == "*" else tuple(c)

    def ask_query(self, span: Span, c: Children) -> AskForm:
        return AskForm(*c, span=span)

    def where(self, _: Span, c: Children) -> GroupPattern:
        group: GroupPattern = c[0]
        return group

    def template(self, _: Span, c: Children) -> TriplesBlock | None:
        block: TriplesBlock | None = c[0]
        return block

    def select_clause(self, span: Span, c: Children) -> SelectClause:
        modifier, items = c
        return SelectClause(items, modifier, span=span)

    def reduced(self, _span: Span, _: Children) -> str:
        return "REDUCED"

    def projection(self, _: Span, c: Children) -> tuple[Var | SelectAs, ...]:
        return () if c[0] == "*" else tuple(c)

    def select_expression(self, span: Span, c: Children) -> SelectAs:
        return SelectAs(c[0], c[1], span=span)

    scoring_call = select_expression

    def dataset(self, _: Span, c: Children) -> tuple[DatasetClause, ...]:
        return tuple(c)

    def from_clause(self, span: Span, c: Children) -> From:
        return From(c[0], span=span)

    def from_named(self, span: Span, c: Children) -> FromNamed:
        return FromNamed(c[0], span=span)

    def from_window(self, span: Span, c: Children) -> FromWindow:
        return FromWindow(*c, span=span)

    def time_window(self, span: Span, c: Children) -> TimeWindow:
        return TimeWindow(*c, span=span)

    def count_window(self, span: Span, c: Children) -> CountWindow:
        return CountWindow(*c, span=span)

    def count_unit(self, _: Span, c: Children) -> str:
        return str(c[0]).upper()

    def duration(self, span: Span, c: Children) -> Duration:
        written = "".join(c)
        try:
            if len(written) > _MOST_DIGITS:
                raise ValueError("it is too large")
            milliseconds = parse_duration(written)
        except ValueError as reason:
            hint = "write a duration such as PT9M, 9m, 500ms or 2h"
            self.refuse(f"`{written}` cannot be the length of a window: {reason}", span, hint)
            milliseconds = 1
        return Duration(milliseconds, bare=not has_unit(written), span=span)

    def count(self, span: Span, c: Children) -> Count:
        if len(c[0]) > _MOST_DIGITS:
            self.refuse("this number is too large", span)
            return Count(1, span=span)
        return Count(int(c[0]), span=span)

    def modifiers(self, span: Span, c: Children) -> Modifiers:
        group_by, having, order_by, slice_ = c
        return Modifiers(group_by or (), having or (), order_by or (), **slice_ or {}, span=span)

    def group_by(self, _: Span, c: Children) -> tuple[GroupKey, ...]:
        return tuple(c)

    def group_condition(self, span: Span, c: Children) -> GroupKey:
        return GroupKey(c[0], c[1] if len(c) > 1 else None, span=span)

    def having(self, _: Span, c: Children) -> tuple[Expression, ...]:
        return tuple(c)

    def order_by(self, _: Span, c: Children) -> tuple[OrderCondition, ...]:
        return tuple(c)

    def order_direction(self, _: Span, c: Children) -> str:
        return str(c[0]).upper()

    def order_condition(self, span: Span, c: Children) -> OrderCondition:
        return OrderCondition(c[-1], c[0] == "DESC", span=span)

    def limit(self, span: Span, c: Children) -> tuple[OneOf["limit", "offset"], Count]:
        return "limit", self.count(span, c)

    def offset(self, span: Span, c: Children) -> tuple[OneOf["limit", "offset"], Count]:
        return "offset", self.count(span, c)

    def limit_offset(self, _: Span, c: Children) -> dict[str, Count]:
        return dict(part for part in c if part is not None)
