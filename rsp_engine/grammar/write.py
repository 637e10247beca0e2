"""The serialiser: a syntax tree as RSP-QL text, or as plain SPARQL over the window content.

Expressions have no more brackets than needed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from rsp_engine.grammar.tree import (
    RDF_TYPE,
    Aggregate,
    And,
    AskForm,
    BareName,
    BaseDecl,
    Bind,
    BlankNode,
    BlankNodeProperties,
    BuiltInCall,
    Collection,
    Comparison,
    ConstructForm,
    CountWindow,
    DatasetClause,
    DescribeForm,
    Exists,
    Expression,
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
    Node,
    OptionalPattern,
    Or,
    OrderCondition,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
    Pattern,
    PrefixDecl,
    Product,
    Property,
    QueryForm,
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
    TriplesNode,
    Unary,
    UnionPattern,
    Var,
    WindowPattern,
    rewrite_tree,
)
from rsp_engine.model.quantities import format_duration
from rsp_engine.model.terms.rdf_text import (
    blank_node_text,
    iri_text,
    literal_text,
    string_text,
    variable_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["FUNCTIONS", "WritePatterns", "WriteQueries", "WriteTerms", "serialise", "to_sparql"]


# Local names that need no escapes.
_EASY_LOCAL = re.compile(r"([A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?)?")
_ALTERNATIVE, _SEQUENCE, _STEP, _ELEMENT, _PRIMARY = range(5)


class WriteTerms:
    """The writer of terms and paths; it shortens IRIs with the prefixes of the query."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        longest_first = sorted(prefixes.items(), key=lambda item: (-len(item[1]), item[0]))
        self._namespaces = [(iri, name) for name, iri in longest_first if iri]

    def term(self, term: Var | Iri | Literal | BlankNode) -> str:
        """Write a term or a variable."""
        match term:
            case Var(name):
                return variable_text(name)
            case Iri(value):
                return self.iri(value)
            case Literal(lexical, datatype, language):
                return self._literal(lexical, datatype, language)
            case BlankNode(label):
                return blank_node_text(label)
            case _ as unreachable:
                assert_never(unreachable)

    def iri(self, value: str) -> str:
        """Write an IRI, as a prefixed name if that needs no escapes."""
        for namespace, prefix in self._namespaces:
            if value.startswith(namespace) and _EASY_LOCAL.fullmatch(value, len(namespace)):
                return f"{prefix}:{value[len(namespace) :]}"
        return iri_text(value)

    def _literal(self, lexical: str, datatype: str, language: str | None) -> str:
        text = literal_text(lexical, datatype, language)
        quoted, marker, iri = text.rpartition('"^^')
        return (
            f"{quoted}{marker}{self.iri(datatype)}"
            if marker and iri == iri_text(datatype)
            else text
        )

    def verb(self, verb: Var | Path) -> str:
        """Write the verb of a triple pattern: a variable or a path."""
        return self.term(verb) if isinstance(verb, Var) else self.path(verb, _ALTERNATIVE)

    def path(self, path: Path, least: int) -> str:
        """Write a path, in brackets if its precedence is less than `least`."""
        binding, text = self._bound_path(path)
        return text if binding >= least else f"({text})"

    def _bound_path(self, path: Path) -> tuple[int, str]:
        match path:
            case Iri(value):
                return _PRIMARY, "a" if value == RDF_TYPE else self.iri(value)
            case PathAlternative(options):
                return _ALTERNATIVE, " | ".join(self.path(p, _SEQUENCE) for p in options)
            case PathSequence(steps):
                return _SEQUENCE, " / ".join(self.path(p, _STEP) for p in steps)
            case PathInverse(inner):
                return _STEP, f"^{self.path(inner, _ELEMENT)}"
            case PathRepeat(inner, modifier):
                return _ELEMENT, f"{self.path(inner, _PRIMARY)}{modifier}"
            case PathNegated(excluded):
                return _PRIMARY, f"!({' | '.join(self.path(p, _STEP) for p in excluded)})"
            case _ as unreachable:
                assert_never(unreachable)


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


class WritePatterns(WriteExpressions):
    """The writer of group graph patterns, one line per element."""

    def group(self, group: GroupPattern) -> str:
        """Write a group over several lines; an empty one as `{ }`."""
        if not group.elements:
            return "{ }"
        self.indent += 1
        lines = [line for element in group.elements for line in self._element(element)]
        self.indent -= 1
        return self._braces(lines)

    @abstractmethod
    def sub_select(self, query: SubSelect) -> str:
        """Write a sub-query."""

    def _braces(self, lines: Iterable[str]) -> str:
        inner, outer = "  " * (self.indent + 1), "  " * self.indent
        return "\n".join(["{", *(inner + line for line in lines), outer + "}"])

    def _element(self, element: Pattern | SubSelect) -> list[str]:
        if isinstance(element, TriplesBlock):
            return self.triples(element)
        return [self.element(element)]

    def element(self, element: Pattern | SubSelect) -> str:
        """Write one element of a group."""
        match element:
            case TriplesBlock():
                return "\n".join(self.triples(element))
            case GroupPattern():
                return self.group(element)
            case UnionPattern(groups):
                return " UNION ".join(map(self.group, groups))
            case OptionalPattern(group):
                return f"OPTIONAL {self.group(group)}"
            case MinusPattern(group):
                return f"MINUS {self.group(group)}"
            case GraphPattern(name, group):
                return f"GRAPH {self.term(name)} {self.group(group)}"
            case WindowPattern(name, group):
                return f"WINDOW {self.term(name)} {self.group(group)}"
            case ServicePattern(name, group, silent):
                word = "SERVICE SILENT" if silent else "SERVICE"
                return f"{word} {self.term(name)} {self.group(group)}"
            case FilterClause(condition):
                text = self.expression(condition)
                return f"FILTER {text if isinstance(condition, Exists) else f'({text})'}"
            case Bind(expression, variable):
                return f"BIND ({self.expression(expression)} AS {self.term(variable)})"
            case InlineData():
                return self.values(element)
            case SubSelect():
                return self.sub_select(element)
            case _ as unreachable:
                assert_never(unreachable)

    def triples(self, block: TriplesBlock) -> list[str]:
        """Write triples, one line per subject."""
        return [f"{self._subject(subject)} ." for subject in block.subjects]

    def template(self, template: TriplesBlock | None) -> str:
        """Write the template of a CONSTRUCT."""
        return "{ }" if template is None else self._braces(self.triples(template))

    def _subject(self, subject: SubjectTriples) -> str:
        properties = self._properties(subject.properties)
        return f"{self._node(subject.subject)} {properties}".rstrip()

    def _properties(self, properties: tuple[Property, ...]) -> str:
        return " ; ".join(
            f"{self.verb(p.verb)} {', '.join(map(self._node, p.objects))}" for p in properties
        )

    def _node(self, node: TriplesNode) -> str:
        match node:
            case Collection(items):
                return f"({' '.join(map(self._node, items))})"
            case BlankNodeProperties(properties):
                return f"[ {self._properties(properties)} ]" if properties else "[]"
            case _:
                return self.term(node)

    def values(self, data: InlineData) -> str:
        """Write inline data, with brackets unless there is a single variable."""
        rows = [["UNDEF" if v is None else self.term(v) for v in row] for row in data.rows]
        if len(data.variables) == 1:
            return f"VALUES {self.term(data.variables[0])} {{ {' '.join(v for (v,) in rows)} }}"
        variables = " ".join(map(self.term, data.variables))
        written = " ".join(f"({' '.join(row)})" for row in rows)
        return f"VALUES ({variables}) {{ {written} }}"


class WriteQueries(WritePatterns):
    """The writer of whole queries, one line per clause."""

    def query(self, query: QueryUnit) -> str:
        """Write a whole query."""
        return "".join(f"{line}\n" for line in self._lines(query))

    def _lines(self, query: QueryUnit) -> Iterator[str]:
        yield from map(self._declaration, query.prologue)
        if query.register is not None:
            yield self._register(query.register)
        yield from self._form(query.form)
        yield from self._modifiers(query.form.modifiers)
        if query.values is not None:
            yield self.values(query.values)

    def _declaration(self, declaration: BaseDecl | PrefixDecl) -> str:
        iri = iri_text(declaration.iri.value)
        if isinstance(declaration, BaseDecl):
            return f"BASE {iri}"
        return f"PREFIX {declaration.prefix}: {iri}"

    def _register(self, register: Register) -> str:
        name = (
            register.name.value if isinstance(register.name, BareName) else self.term(register.name)
        )
        return " ".join(["REGISTER", *filter(None, [register.kind]), name, "AS"])

    def _form(self, form: QueryForm) -> Iterator[str]:
        match form:
            case SelectForm(clause):
                yield self._select_clause(clause)
            case ConstructForm(template):
                yield f"CONSTRUCT {self.template(template)}"
            case AskForm():
                yield "ASK"
            case DescribeForm(targets):
                yield f"DESCRIBE {' '.join(map(self.term, targets)) or '*'}"
            case _ as unreachable:
                assert_never(unreachable)
        yield from map(self._dataset_clause, form.dataset)
        if form.where is not None:
            yield f"WHERE {self.group(form.where)}"

    def sub_select(self, query: SubSelect) -> str:
        """Write a sub-query, indented like its group."""
        lines = [
            self._select_clause(query.clause),
            f"WHERE {self.group(query.where)}",
            *self._modifiers(query.modifiers),
            *([] if query.values is None else [self.values(query.values)]),
        ]
        return f"\n{'  ' * self.indent}".join(lines)

    def _select_clause(self, clause: SelectClause) -> str:
        items = map(self._item, clause.items)
        return " ".join(
            ["SELECT", *filter(None, [clause.modifier]), *(items if clause.items else "*")]
        )

    def _item(self, item: Var | SelectAs) -> str:
        if isinstance(item, Var):
            return self.term(item)
        return f"({self.expression(item.expression)} AS {self.term(item.variable)})"

    def _dataset_clause(self, clause: DatasetClause) -> str:
        match clause:
            case From(graph):
                return f"FROM {self.term(graph)}"
            case FromNamed(graph):
                return f"FROM NAMED {self.term(graph)}"
            case FromWindow(window, stream, frame):
                names = f"{self.term(window)} ON STREAM {self.term(stream)}"
                return f"FROM NAMED WINDOW {names} [{self._frame(frame)}]"
            case _ as unreachable:
                assert_never(unreachable)

    def _frame(self, frame: TimeWindow | CountWindow) -> str:
        match frame:
            case TimeWindow(range_, step):
                size = f"RANGE {format_duration(range_.milliseconds)}"
                return size if step is None else f"{size} STEP {format_duration(step.milliseconds)}"
            case CountWindow(unit, size_, count):
                size = f"{unit} {size_.value}"
                return size if count is None else f"{size} STEP {count.value}"
            case _ as unreachable:
                assert_never(unreachable)

    def _modifiers(self, modifiers: Modifiers) -> Iterator[str]:
        if modifiers.group_by:
            yield f"GROUP BY {' '.join(map(self._group_key, modifiers.group_by))}"
        if modifiers.having:
            yield f"HAVING {' '.join(f'({self.expression(h)})' for h in modifiers.having)}"
        if modifiers.order_by:
            yield f"ORDER BY {' '.join(map(self._order_condition, modifiers.order_by))}"
        if modifiers.limit is not None:
            yield f"LIMIT {modifiers.limit.value}"
        if modifiers.offset is not None:
            yield f"OFFSET {modifiers.offset.value}"

    def _group_key(self, key: GroupKey) -> str:
        text = self.expression(key.expression)
        if key.variable is not None:
            return f"({text} AS {self.term(key.variable)})"
        return text if isinstance(key.expression, Var) else f"({text})"

    def _order_condition(self, condition: OrderCondition) -> str:
        text = self.expression(condition.expression)
        if condition.descending:
            return f"DESC({text})"
        return text if isinstance(condition.expression, Var) else f"ASC({text})"


FUNCTIONS = "urn:rsp-engine:function:"
"""The IRI namespace of functions that are registered by a bare name."""


def serialise(query: QueryUnit) -> str:
    """Write a query as RSP-QL text that parses to the same tree.

    >>> from rsp_engine.grammar import parse
    >>> print(serialise(parse("select ?s where{?s ?p 1}limit 2")), end="")
    SELECT ?s
    WHERE {
      ?s ?p 1 .
    }
    LIMIT 2
    """
    return WriteQueries(query.prefixes).query(query)


def to_sparql(query: QueryUnit) -> str:
    """Write a query as plain SPARQL, to be evaluated over the content of its windows.

    WINDOW becomes GRAPH, the bare name of a function becomes its IRI, and each variable is
    projected once. REGISTER and the dataset clauses are left out: the evaluator builds the dataset.

    >>> from rsp_engine.grammar import parse
    >>> print(to_sparql(parse('''
    ...     PREFIX : <http://example.org/>
    ...     REGISTER RSTREAM :out AS SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 9m STEP 3m]
    ...     WHERE { WINDOW :w { ?x a :Y } }''')), end="")
    PREFIX : <http://example.org/>
    SELECT ?x
    WHERE {
      GRAPH :w {
        ?x a :Y .
      }
    }
    """
    plain = rewrite_tree(query, _plain)
    assert isinstance(plain, QueryUnit), "rewriting keeps the kind of the root"  # noqa: S101
    return serialise(replace(plain, register=None, form=replace(plain.form, dataset=())))


def _plain(node: Node) -> Node:
    """Replace a construct of RSP-QL by the SPARQL for it."""
    match node:
        case WindowPattern(name, group):
            return GraphPattern(name, group, span=node.span)
        case NamedCall(name, arguments):
            return FunctionCall(Iri(FUNCTIONS + name), arguments, span=node.span)
        case SelectClause(items):
            return replace(node, items=_once_each(items))
        case _:
            return node


def _once_each(items: tuple[Var | SelectAs, ...]) -> tuple[Var | SelectAs, ...]:
    named = {(item.variable if isinstance(item, SelectAs) else item): item for item in items}
    return tuple(dict.fromkeys(named.values()))
