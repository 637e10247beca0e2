"""Hypothesis strategies for valid syntax trees, in exactly the form that the parser returns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final, TypeVar

from hypothesis import strategies as st

from rsp_engine.grammar import tree
from rsp_engine.grammar.builtins import BUILTINS
from rsp_engine.model.terms.xsd import XSD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.grammar.tree.expressions import AggregateName

T = TypeVar("T")
Item = tree.Var | tree.SelectAs

# ── Words ───────────────────────────────────────────────────────────────────────────────────
VARIABLES = tuple(map(tree.Var, ("x", "y", "score", "é", "1st", "_", "a·b", "𝒳", "select", "a")))
LABEL_STEMS = ("b", "x.y", "1a", "é-", "_", "a..b")
PREFIXES = ("", "ex", "a.b", "é1", "a-", "select")
NAMESPACES = (
    "http://example.org/", "http://example.org/ns#", "http://example.org/ns#abc",
    "http://é.example?q=", "urn:a.b:", XSD,
)  # fmt: skip
LOCALS = (
    "abc", "a.b", "12", "A_1", "x-y", "é", "a:b", "𝒳", "%41", "a%C3%A9", "", "a.", ".a", "a..b",
    "..a", "a/b", "a#b", "a?b=c&d", "%", "%4", "%zz", "~", "it's", "-a", ":", "_", "·a", "(x)",
    "a,b;c", "a@b", "a=b+c*d!$", "a\u0300", "\u0300", "\xa0", "[1]", "/",
)  # fmt: skip
BASES = ("http://example.org/", "http://example.org/base/x?q#f", "http://other.example")
TEXTS = (
    "", "abc", 'say "hi"', "it's", '"', "'", '"""', "'''", "''\"\"", "\\", "\\\\", "a\\", "\\u0041",
    "\\\\u0041", "\\U0001F600", "\\n", "two\nlines", "\r", "\r\n", "\t", "\b\f", "\0", "\x85",
    "\u2028", "\ufeff", "𝒳😀", "# text", "?x", "<a>", "}", "^^",
)  # fmt: skip
COMPARISONS: Final = ("=", "!=", "<", ">", "<=", ">=")
AGGREGATES: Final = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
R2S: Final = (None, "RSTREAM", "ISTREAM", "DSTREAM", "STREAM", "QUERY")
LANGUAGES = ("en", "en-GB", "de-at-1996", "x")
WRITTEN = {  # without quotes
    "integer": ("1", "0", "+1", "-1", "007", "-0", "123456789012345678901234567890"),
    "decimal": ("1.5", ".5", "+.5", "-0.0", "-1.50"),
    "double": ("1e3", "1.e3", ".5E-2", "+1E0", "-1.5e+03"),
    "boolean": ("true", "false"),
}
ILL_TYPED = ("abc", "", " 1", "1\n", "1.", "+", "--1", "1_0", "٣", "1e3", "1.5", "1", "TRUE", "INF")
NAMES = ("F", "f", "_", "myScore", "AScore", "selectivity", "order_", "P", "PT", "P1", "pt9", "in1")

_GRAMMAR = resources.files("rsp_engine.grammar").joinpath("rspql.lark").read_text("utf-8")
KEYWORDS = {word.upper() for word in re.findall(r'"([A-Za-z_]+)"', _GRAMMAR)}
_NAME = re.compile(r"P|(?!P(\d+[A-Z])*(T(\d+[A-Z])+)?$)[A-Z_][A-Z0-9_]*")  # no xsd:duration
_DOT_SEGMENT = re.compile(r"[/:?#]\.\.?(?:[/?#]|$)")


def _is_name(word: str) -> bool:
    return word.upper() not in KEYWORDS and _NAME.fullmatch(word.upper()) is not None


# ── Terms ───────────────────────────────────────────────────────────────────────────────────
_IRI_CHARACTERS = st.characters(codec="utf-8", min_codepoint=0x21, exclude_characters='<>"{}|^`\\')
_LOCALS = st.sampled_from(LOCALS) | st.text(_IRI_CHARACTERS, max_size=6)
IRIS = (
    st.builds(str.__add__, st.sampled_from(NAMESPACES), _LOCALS)
    .filter(lambda iri: not _DOT_SEGMENT.search(iri))
    .map(tree.Iri)
) | st.just(tree.Iri(tree.RDF_TYPE))
_TEXTS = st.sampled_from(TEXTS) | st.text("\"'\\u0041nU\n\r\t😀", max_size=8) | st.text(max_size=6)
LITERALS: st.SearchStrategy[tree.Literal] = st.one_of(
    st.sampled_from([tree.Literal(x, XSD + kind) for kind in WRITTEN for x in WRITTEN[kind]]),
    st.sampled_from([tree.Literal(x, XSD + kind) for kind in WRITTEN for x in ILL_TYPED]),
    st.builds(tree.Literal, _TEXTS),
    st.builds(tree.Literal, _TEXTS, st.just(tree.RDF_LANG_STRING), st.sampled_from(LANGUAGES)),
    st.builds(tree.Literal, _TEXTS, IRIS.map(lambda iri: iri.value)),
)
_NAMES = (st.sampled_from(NAMES) | st.text("aAsPT19_", min_size=1, max_size=5)).filter(_is_name)
_CALL_NAMES = _NAMES.filter(lambda name: name.upper() not in BUILTINS)
_BARE_NAMES = (_NAMES | st.sampled_from(tuple(BUILTINS))).map(tree.BareName)

# ── Clauses ─────────────────────────────────────────────────────────────────────────────────
_TIME_UNITS = st.sampled_from((1, 1000, 60_000, 3_600_000, 86_400_000))
_ROUND_TIMES = st.builds(int.__mul__, st.integers(-10, 1000), _TIME_UNITS)
_TIMES = (_ROUND_TIMES | st.integers(-(10**6), 10**12)).map(tree.Duration)
_COUNTS = st.integers(-10, 10**6).map(tree.Count)
_LIMITS = st.none() | st.integers(0, 10**6).map(tree.Count)
_FRAMES = st.builds(tree.TimeWindow, _TIMES, st.none() | _TIMES) | st.builds(
    tree.CountWindow, st.sampled_from(("ELEMENTS", "TRIPLES", "ROWS")), _COUNTS, st.none() | _COUNTS
)
_DATASET_CLAUSES = st.one_of(
    st.builds(tree.FromWindow, IRIS, IRIS, _FRAMES),
    st.builds(tree.From, IRIS),
    st.builds(tree.FromNamed, IRIS),
)
_REGISTERS = st.builds(tree.Register, IRIS | _BARE_NAMES, st.sampled_from(R2S))


@dataclass(frozen=True)
class _Scope:
    """What an expression may contain at its place, and the GROUP BY that decides it."""

    variables: tuple[tree.Var, ...] = VARIABLES
    aggregates: bool = False
    keys: tuple[tree.GroupKey, ...] = ()


_ANYWHERE = _Scope()


class _Author:
    """The generator of one tree, choice by choice; each level has less depth left."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.variables_made = 0
        self.blocks_made = 0

    # Choices: the simplest first, so that examples shrink.
    def pick(self, options: Sequence[T]) -> T:
        return options[self.draw(st.integers(0, len(options) - 1))]

    def one_of(self, makers: Sequence[Callable[[], T]]) -> T:
        return self.pick(makers)()

    def some(self, make: Callable[[], T], least: int, most: int) -> tuple[T, ...]:
        return tuple(make() for _ in range(self.draw(st.integers(least, most))))

    def maybe(self, make: Callable[[], T]) -> T | None:
        return make() if self.flag() else None

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def one_in(self, number: int) -> bool:
        return self.draw(st.integers(1, number)) == number

    # Terms
    def iri(self) -> tree.Iri:
        return self.draw(IRIS)

    def literal(self) -> tree.Literal:
        return self.draw(LITERALS)

    def variable(self) -> tree.Var:
        return self.pick(VARIABLES)

    def fresh_variable(self) -> tree.Var:
        self.variables_made += 1
        return tree.Var(f"new{self.variables_made}")

    def variable_or_iri(self) -> tree.Var | tree.Iri:
        return self.variable() if self.flag() else self.iri()

    def blank_node(self) -> tree.BlankNode:
        return tree.BlankNode(f"{self.pick(LABEL_STEMS)}{self.blocks_made}")

    # Triples; a template has no paths
    def path(self, depth: int) -> tree.Path:
        def one() -> tree.Path:
            return self.path(depth - 1)

        def excluded() -> tree.Iri | tree.PathInverse:
            return tree.PathInverse(self.iri()) if self.flag() else self.iri()

        kinds: list[Callable[[], tree.Path]]
        kinds = [self.iri, lambda: tree.PathNegated(self.some(excluded, 0, 3))]
        if depth:
            kinds += [
                lambda: tree.PathSequence(self.some(one, 2, 3)),
                lambda: tree.PathAlternative(self.some(one, 2, 3)),
                lambda: tree.PathRepeat(one(), self.pick(("?", "*", "+"))),
                lambda: tree.PathInverse(one()),
            ]
        return self.one_of(kinds)

    def triples_block(self, *, template: bool = False) -> tree.TriplesBlock:
        self.blocks_made += 1
        return tree.TriplesBlock(self.some(lambda: self.subject_triples(template), 1, 2))

    def subject_triples(self, template: bool) -> tree.SubjectTriples:
        subject = self.node(2, template)
        least = 0 if any(tree.children(subject)) else 1
        return tree.SubjectTriples(subject, self.properties(1, template, least))

    def properties(self, depth: int, template: bool, least: int) -> tuple[tree.Property, ...]:
        def one() -> tree.Property:
            verb = self.variable_or_iri() if template or self.flag() else self.path(2)
            return tree.Property(verb, self.some(lambda: self.node(depth, template), 1, 2))

        return self.some(one, least, 2)

    def node(self, depth: int, template: bool) -> tree.TriplesNode:
        kinds: list[Callable[[], tree.TriplesNode]]
        kinds = [self.variable, self.iri, self.literal, self.blank_node] * 2
        kinds += [lambda: tree.Collection(()), lambda: tree.BlankNodeProperties(())]
        if depth:
            kinds += [
                lambda: tree.Collection(self.some(lambda: self.node(depth - 1, template), 1, 2)),
                lambda: tree.BlankNodeProperties(self.properties(depth - 1, template, 1)),
            ]
        return self.one_of(kinds)

    # Expressions
    def expression(self, depth: int, scope: _Scope = _ANYWHERE) -> tree.Expression:
        def one() -> tree.Expression:
            return self.expression(depth - 1, scope)

        def addend() -> tree.Addend:
            return tree.Addend(self.pick(("+", "-")), one())

        def factor() -> tree.Factor:
            return tree.Factor(self.pick(("*", "/")), one())

        kinds: list[Callable[[], tree.Expression]] = [self.literal, self.literal, self.iri]
        if scope.variables:
            kinds += [lambda: self.pick(scope.variables)] * 3
        if depth:
            kinds += [
                lambda: tree.Or(self.some(one, 2, 3)),
                lambda: tree.And(self.some(one, 2, 3)),
                lambda: tree.Comparison(self.pick(COMPARISONS), one(), one()),
                lambda: tree.In(one(), self.some(one, 0, 2), self.flag()),
                lambda: tree.Sum(one(), self.some(addend, 1, 2)),
                lambda: tree.Product(one(), self.some(factor, 1, 2)),
                lambda: tree.Unary(self.pick(("!", "+", "-")), one()),
                lambda: self.built_in_call(depth, scope),
                lambda: self.built_in_call(depth, scope),
                lambda: tree.FunctionCall(self.iri(), self.some(one, 0, 2)),
                lambda: tree.NamedCall(self.draw(_CALL_NAMES), self.some(one, 0, 2)),
                lambda: tree.Exists(self.group(depth - 1), self.flag()),
            ]
        if scope.aggregates:
            kinds += [lambda: self.aggregate(depth)] * 3
        return self.one_of(kinds)

    def built_in_call(self, depth: int, scope: _Scope) -> tree.BuiltInCall:
        if scope.variables and self.one_in(10):
            return tree.BuiltInCall("BOUND", (self.pick(scope.variables),))
        name = self.pick([name for name in BUILTINS if name != "BOUND"])
        least, most = BUILTINS[name]
        arguments = self.some(lambda: self.expression(depth - 1, scope), least, int(min(most, 4)))
        return tree.BuiltInCall(name, arguments)

    def aggregate(self, depth: int) -> tree.Aggregate | tree.FunctionCall:
        def argument() -> tree.Expression:
            return self.expression(max(depth - 1, 0))

        if self.one_in(5):
            return tree.FunctionCall(self.iri(), self.some(argument, 1, 2), distinct=True)
        function: AggregateName = self.pick(AGGREGATES)
        counted = None if function == "COUNT" and self.flag() else argument()
        separator = self.draw(st.none() | _TEXTS) if function == "GROUP_CONCAT" else None
        return tree.Aggregate(function, counted, self.flag(), separator)

    # Graph patterns
    def group(self, depth: int) -> tree.GroupPattern:
        if depth and self.one_in(8):
            return tree.GroupPattern((self.sub_select(depth - 1),))
        elements: list[tree.Pattern] = []
        for element in self.some(lambda: self.pattern(depth), 0, 3):
            if not (elements and type(element) is type(elements[-1]) is tree.TriplesBlock):
                elements.append(element)
        return tree.GroupPattern(tuple(elements))

    def pattern(self, depth: int) -> tree.Pattern:
        def group() -> tree.GroupPattern:
            return self.group(depth - 1)

        kinds: list[Callable[[], tree.Pattern]] = [self.triples_block] * 3
        kinds += [
            self.inline_data,
            lambda: tree.FilterClause(self.expression(depth)),
            lambda: tree.Bind(self.expression(depth), self.fresh_variable()),
        ]
        if depth:
            kinds += [
                group,
                lambda: tree.UnionPattern(self.some(group, 2, 3)),
                lambda: tree.OptionalPattern(group()),
                lambda: tree.MinusPattern(group()),
                lambda: tree.GraphPattern(self.variable_or_iri(), group()),
                lambda: tree.WindowPattern(self.variable_or_iri(), group()),
                lambda: tree.ServicePattern(self.variable_or_iri(), group(), self.flag()),
            ]
        return self.one_of(kinds)

    def inline_data(self) -> tree.InlineData:
        values: list[Callable[[], tree.Iri | tree.Literal | None]]
        values = [self.iri, self.literal, lambda: None]
        variables = tuple(dict.fromkeys(self.some(self.variable, 0, 3)))
        rows = self.some(lambda: tuple(self.one_of(values) for _ in variables), 0, 3)
        return tree.InlineData(variables, rows)

    # SELECT and the modifiers
    def sub_select(self, depth: int) -> tree.SubSelect:
        clause, modifiers = self.selection(depth)
        return tree.SubSelect(clause, self.group(depth), modifiers, self.maybe(self.inline_data))

    def selection(self, depth: int) -> tuple[tree.SelectClause, tree.Modifiers]:
        scope = self.scope(depth)
        items = self.grouped_items(depth, scope) if scope.aggregates else self.items(depth)
        clause = tree.SelectClause(items, self.pick((None, "DISTINCT", "REDUCED")))
        return clause, self.modifiers(depth, scope)

    def items(self, depth: int) -> tuple[Item, ...]:
        def one() -> Item:
            return self.variable() if self.flag() else self.select_as(self.expression(depth))

        return tuple(dict.fromkeys(self.some(one, 0, 3)))

    def grouped_items(self, depth: int, scope: _Scope) -> tuple[Item, ...]:
        items: list[Item] = [key for key in scope.variables if self.flag()]
        if not items or self.flag():
            items.append(self.select_as(self.aggregate(depth)))
        if self.flag():
            items.append(self.select_as(self.expression(depth, scope)))
        return tuple(items)

    def select_as(self, expression: tree.Expression) -> tree.SelectAs:
        return tree.SelectAs(expression, self.fresh_variable())

    def scope(self, depth: int) -> _Scope:
        """Group the solutions, or leave them as they are."""

        def key() -> tree.GroupKey:
            if self.flag():
                return tree.GroupKey(self.variable())
            return tree.GroupKey(self.expression(depth), self.maybe(self.fresh_variable))

        if not self.one_in(3):
            return _ANYWHERE
        keys = self.some(key, 0, 2)
        named = (key.variable or key.expression for key in keys)
        variables = dict.fromkeys(name for name in named if isinstance(name, tree.Var))
        return _Scope(tuple(variables), True, keys)

    def modifiers(self, depth: int, scope: _Scope) -> tree.Modifiers:
        def one() -> tree.Expression:
            return self.expression(depth, scope)

        having = self.some(one, 0, 2) if scope.aggregates else ()
        order_by = self.some(lambda: tree.OrderCondition(one(), self.flag()), 0, 2)
        limit, offset = self.draw(_LIMITS), self.draw(_LIMITS)
        return tree.Modifiers(scope.keys, having, order_by, limit, offset)

    # Queries
    def query(self, depth: int) -> tree.QueryUnit:
        prologue, register = self.prologue(), self.draw(st.none() | _REGISTERS)
        return tree.QueryUnit(prologue, register, self.form(depth), self.maybe(self.inline_data))

    def prologue(self) -> tuple[tree.BaseDecl | tree.PrefixDecl, ...]:
        prefixes = dict.fromkeys(self.some(lambda: self.pick(PREFIXES), 0, 3))
        lines: list[tree.BaseDecl | tree.PrefixDecl]
        lines = [tree.PrefixDecl(p, tree.Iri(self.pick(NAMESPACES))) for p in prefixes]
        if self.one_in(3):
            base = tree.BaseDecl(tree.Iri(self.pick(BASES)))
            lines.insert(self.draw(st.integers(0, len(lines))), base)
        return tuple(lines)

    def form(self, depth: int) -> tree.QueryForm:
        kind = self.pick((tree.SelectForm, tree.AskForm, tree.ConstructForm, tree.DescribeForm))
        where, dataset = self.group(depth), self.some(lambda: self.draw(_DATASET_CLAUSES), 0, 2)
        if kind is tree.SelectForm:
            clause, modifiers = self.selection(depth)
            return tree.SelectForm(clause, dataset, where, modifiers)
        if kind is tree.DescribeForm:
            targets, pattern = self.some(self.variable_or_iri, 0, 2), where if self.flag() else None
            return tree.DescribeForm(targets, dataset, pattern, self.modifiers(depth, _ANYWHERE))
        modifiers = self.modifiers(depth, self.scope(depth))
        if kind is tree.AskForm:
            return tree.AskForm(dataset, where, modifiers)
        template = self.maybe(lambda: self.triples_block(template=True))
        if self.one_in(4):  # what CONSTRUCT WHERE { ... } stands for
            where = tree.GroupPattern((template,) if template else ())
        return tree.ConstructForm(template, dataset, where, modifiers)


# ── Strategies ──────────────────────────────────────────────────────────────────────────────
@st.composite
def expressions(draw: st.DrawFn) -> tree.Expression:
    """Expressions without aggregates."""
    return _Author(draw).expression(3)


@st.composite
def groups(draw: st.DrawFn) -> tree.GroupPattern:
    """Graph patterns in their braces."""
    return _Author(draw).group(2)


@st.composite
def queries(draw: st.DrawFn) -> tree.QueryUnit:
    """Whole queries."""
    return _Author(draw).query(3)
