"""The tree builder: syntax trees made of the parser's rules, from terms to whole queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

from rsp_engine.errors import Diagnostic, Span
from rsp_engine.grammar.builtins import BUILTINS, arity_text
from rsp_engine.grammar.parser.escapes import undo_string_escapes
from rsp_engine.grammar.tree import (
    RDF_LANG_STRING,
    RDF_TYPE,
    Addend,
    Aggregate,
    And,
    AskForm,
    BareName,
    Bind,
    BlankNode,
    BlankNodeProperties,
    BuiltInCall,
    Collection,
    Comparison,
    ConstructForm,
    Count,
    CountWindow,
    DatasetClause,
    DescribeForm,
    Duration,
    Exists,
    Expression,
    Factor,
    FilterClause,
    From,
    FromNamed,
    FromWindow,
    FunctionCall,
    GraphPattern,
    GroupKey,
    GroupPattern,
    In,
    InlineData,
    Iri,
    Literal,
    MinusPattern,
    Modifiers,
    NamedCall,
    OptionalPattern,
    Or,
    OrderCondition,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
    Product,
    Property,
    QueryUnit,
    Register,
    SelectAs,
    SelectClause,
    SelectForm,
    ServicePattern,
    SubjectTriples,
    SubSelect,
    Sum,
    TimeWindow,
    TriplesBlock,
    Unary,
    UnionPattern,
    Var,
    WindowPattern,
    walk,
)
from rsp_engine.model.quantities import has_unit, parse_duration
from rsp_engine.model.terms.xsd import XSD, XSD_STRING

if TYPE_CHECKING:
    from rsp_engine.grammar.parser.names import Names

__all__ = ["BuildQueries"]


Children = list[Any]


class BuildTerms:
    """The builder of terms, variables and property paths."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.diagnostics: list[Diagnostic] = []

    def refuse(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record an error that the grammar admits and SPARQL does not."""
        self.diagnostics.append(Diagnostic("syntax", message, span, hint))

    def var(self, span: Span, c: Children) -> Var:
        return Var(str(c[0][1:]), span=span)

    def iri(self, span: Span, c: Children) -> Iri:
        return self.names.iri(str(c[0]), span)

    def prefixed_name(self, span: Span, c: Children) -> Iri:
        return self.names.prefixed(str(c[0]), span)

    def a(self, span: Span, _: Children) -> Iri:
        return Iri(RDF_TYPE, span=span)

    def bnode(self, span: Span, c: Children) -> BlankNode:
        return BlankNode(str(c[0][2:]), span=span)

    def string(self, _: Span, c: Children) -> str:
        quote = 3 if c[0].type.startswith("STRING_LONG") else 1
        return undo_string_escapes(str(c[0][quote:-quote]))

    def language(self, _: Span, c: Children) -> str:
        return str(c[0][1:])

    def datatype(self, _: Span, c: Children) -> Iri:
        iri: Iri = c[0]
        return iri

    def rdf_literal(self, span: Span, c: Children) -> Literal:
        lexical, kind = c
        if isinstance(kind, str):
            return Literal(lexical, RDF_LANG_STRING, kind, span=span)
        return Literal(lexical, XSD_STRING if kind is None else kind.value, span=span)

    def number(self, span: Span, c: Children) -> Literal:
        kind = c[0].type.split("_")[0].lower()
        return Literal(str(c[0]), XSD + kind, span=span)

    signed_number = number

    def boolean(self, span: Span, c: Children) -> Literal:
        return Literal(str(c[0]).lower(), XSD + "boolean", span=span)

    def path_alternative(self, span: Span, c: Children) -> Path:
        return PathAlternative(tuple(c), span=span)

    def path_sequence(self, span: Span, c: Children) -> Path:
        return PathSequence(tuple(c), span=span)

    def path_inverse(self, span: Span, c: Children) -> PathInverse:
        return PathInverse(c[0], span=span)

    negated_inverse = path_inverse

    def path_modifier(self, _: Span, c: Children) -> str:
        return str(c[0])

    def path_repeat(self, span: Span, c: Children) -> PathRepeat:
        return PathRepeat(c[0], c[1], span=span)

    def path_negated(self, span: Span, c: Children) -> PathNegated:
        return PathNegated(tuple(c), span=span)


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
