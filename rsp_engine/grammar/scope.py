"""Scopes of variables, aggregates and blank nodes: the notes of SPARQL's grammar (section 19.8).

A context-free grammar cannot express these. Note 12 and section 18.2.1: the variable of
`(... AS ?v)` and BIND must be new. Section 11.4: with grouping, only keys and aggregates can be
projected. Note 14: aggregates are allowed in SELECT, HAVING and ORDER BY only. Section 5.1.1: a
blank node label belongs to one basic graph pattern.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, assert_never

from rsp_engine.errors import Diagnostic
from rsp_engine.grammar.tree import (
    Aggregate,
    AskForm,
    Bind,
    BlankNode,
    ConstructForm,
    DescribeForm,
    Exists,
    Expression,
    FilterClause,
    FunctionCall,
    GraphPattern,
    GroupPattern,
    InlineData,
    MinusPattern,
    Modifiers,
    Node,
    OptionalPattern,
    Pattern,
    QueryUnit,
    SelectAs,
    SelectClause,
    SelectForm,
    ServicePattern,
    SubSelect,
    TriplesBlock,
    UnionPattern,
    Var,
    WindowPattern,
    children,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Scopes",
    "aggregates",
    "group_keys",
    "is_aggregate",
    "is_grouped",
    "parts",
    "projected_variables",
    "ungrouped_variables",
]


class Scopes:
    """The scopes of one query, and a diagnostic for each place that breaks a note."""

    def __init__(self, query: QueryUnit) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._labels: dict[str, object] = {}
        self.visible: set[str] = self._form(query)
        """The variables that WHERE, GROUP BY and VALUES bring into scope."""

    def _refuse(self, message: str, node: Node, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic("syntax", message, node.span, hint))

    def _form(self, query: QueryUnit) -> set[str]:
        match query.form:
            case SelectForm(clause, _, where, modifiers):
                return self._select(clause, where, modifiers, query.values)
            case ConstructForm(_, _, where, modifiers) | AskForm(_, where, modifiers):
                return self._solutions(where, modifiers, query.values)
            case DescribeForm(_, _, where, modifiers):
                return self._solutions(where or GroupPattern(()), modifiers, query.values)
            case _ as unreachable:
                assert_never(unreachable)

    def _select(
        self,
        clause: SelectClause,
        where: GroupPattern,
        modifiers: Modifiers,
        values: InlineData | None,
    ) -> set[str]:
        """Check a SELECT, and return the variables that its projection can see."""
        visible = self._solutions(where, modifiers, values)
        named: set[str] = set()
        grouped = is_grouped(clause, modifiers)
        if grouped and not clause.items:
            self._refuse(
                "SELECT * cannot be used with GROUP BY or an aggregate",
                clause,
                "name the variables and aggregates that you want",
            )
        for item in clause.items:
            expression = item.expression if isinstance(item, SelectAs) else item
            if grouped:
                self._check_grouped(expression, group_keys(modifiers) | named, visible)
            if isinstance(item, SelectAs):
                self._check_projected(item, visible | named)
                named.add(item.variable.name)
            elif not grouped:
                named.add(item.name)
        return visible

    def _check_projected(self, item: SelectAs, taken: set[str]) -> None:
        self._check_new(item.variable, taken)
        self._patterns_of(item.expression)
        self._check_nesting(item.expression)

    def _check_grouped(self, expression: Expression, keys: set[str], visible: set[str]) -> None:
        for variable in ungrouped_variables(expression):
            if variable.name not in keys:
                known = variable.name in visible
                close = [] if known else get_close_matches(variable.name, sorted(visible), n=1)
                add = f"add ?{variable.name} to GROUP BY, or write SAMPLE(?{variable.name})"
                self._refuse(
                    f"?{variable.name} is neither in GROUP BY nor inside an aggregate"
                    + ("" if known else ", and nothing binds it"),
                    variable,
                    f"did you mean ?{close[0]}?" if close else add if known else None,
                )

    def _check_new(self, variable: Var, taken: set[str]) -> None:
        if variable.name in taken:
            self._refuse(
                f"?{variable.name} already has a value here: AS must name a new variable",
                variable,
                "choose another name",
            )

    def _solutions(
        self, where: GroupPattern, modifiers: Modifiers, values: InlineData | None
    ) -> set[str]:
        """Check a pattern and its modifiers, and return the variables in scope after them."""
        visible = self._group(where)
        for key in modifiers.group_by:
            self._forbid_aggregates(key.expression, "GROUP BY")
            self._patterns_of(key.expression)
            if key.variable is not None:
                self._check_new(key.variable, visible)
                visible.add(key.variable.name)
        for expression in (*modifiers.having, *(o.expression for o in modifiers.order_by)):
            self._patterns_of(expression)
            self._check_nesting(expression)
        if values is not None:
            visible |= {variable.name for variable in values.variables}
        return visible

    def _group(self, group: GroupPattern) -> set[str]:
        """Check a group, and return the variables in scope at its end."""
        visible: set[str] = set()
        basic_pattern = object()
        for element in group.elements:
            if isinstance(element, TriplesBlock):
                self._check_labels(element, basic_pattern)
            elif not isinstance(element, FilterClause):
                basic_pattern = object()
            if isinstance(element, Bind):
                self._check_new(element.variable, visible)
            visible |= self._element(element)
        return visible

    def _element(self, element: Pattern | SubSelect) -> set[str]:
        """Check one element of a group, and return the variables that it brings into scope."""
        match element:
            case TriplesBlock():
                return {node.name for node in walk(element) if isinstance(node, Var)}
            case GroupPattern():
                return self._group(element)
            case UnionPattern(groups):
                return set().union(*map(self._group, groups))
            case OptionalPattern(group):
                return self._group(group)
            case MinusPattern(group):
                self._group(group)
                return set()
            case (
                GraphPattern(name, group) | WindowPattern(name, group) | ServicePattern(name, group)
            ):
                return self._group(group) | ({name.name} if isinstance(name, Var) else set())
            case FilterClause(condition):
                self._patterns_of(condition)
                self._forbid_aggregates(condition, "FILTER")
                return set()
            case Bind(expression, variable):
                self._patterns_of(expression)
                self._forbid_aggregates(expression, "BIND")
                return {variable.name}
            case InlineData(variables, _):
                return {variable.name for variable in variables}
            case SubSelect(clause, where, modifiers, values):
                visible = self._select(clause, where, modifiers, values)
                return _projected(clause) or visible
            case _ as unreachable:
                assert_never(unreachable)

    def _patterns_of(self, expression: Expression) -> None:
        """Check the patterns of EXISTS inside an expression."""
        for part in parts(expression):
            if isinstance(part, Exists):
                self._group(part.group)

    def _check_nesting(self, expression: Expression) -> None:
        for aggregate in aggregates(expression):
            for below in children(aggregate):
                if inner := next(aggregates(below), None):
                    hint = "compute the inner one in a sub-query"
                    self._refuse("an aggregate is not allowed inside another", inner, hint)

    def _forbid_aggregates(self, expression: Expression, clause: str) -> None:
        for part in parts(expression):
            if is_aggregate(part):
                self._refuse(
                    f"an aggregate is not allowed in {clause}",
                    part,
                    "use aggregates in SELECT, HAVING or ORDER BY, or in a sub-query",
                )

    def _check_labels(self, block: TriplesBlock, basic_pattern: object) -> None:
        for node in walk(block):
            if not isinstance(node, BlankNode):
                continue
            if self._labels.setdefault(node.label, basic_pattern) is not basic_pattern:
                self._refuse(
                    f"the blank node _:{node.label} is already used in another part of the pattern",
                    node,
                    "write a variable if both are the same, another label if not",
                )


def projected_variables(
    clause: SelectClause,
    where: GroupPattern,
    modifiers: Modifiers,
    values: InlineData | None = None,
) -> tuple[str, ...]:
    """Return the distinct variables of an answer; those of `SELECT *` sorted by name."""
    if clause.items:
        named = ((i.variable if isinstance(i, SelectAs) else i).name for i in clause.items)
        return tuple(dict.fromkeys(named))
    query = QueryUnit((), None, SelectForm(clause, (), where, modifiers), values)
    return tuple(sorted(Scopes(query).visible))


def is_grouped(clause: SelectClause, modifiers: Modifiers) -> bool:
    """Return whether a SELECT groups its solutions, by GROUP BY or by an aggregate alone."""
    expressions = (
        *(item for item in clause.items if isinstance(item, SelectAs)),
        *modifiers.having,
        *modifiers.order_by,
    )
    return bool(modifiers.group_by) or any(any(aggregates(e)) for e in expressions)


def group_keys(modifiers: Modifiers) -> set[str]:
    """Return the variables that have one value per group."""
    named = {key.variable.name for key in modifiers.group_by if key.variable is not None}
    plain = (key.expression for key in modifiers.group_by)
    return named | {variable.name for variable in plain if isinstance(variable, Var)}


def _projected(clause: SelectClause) -> set[str]:
    return {(i.variable if isinstance(i, SelectAs) else i).name for i in clause.items}


def parts(expression: Node) -> Iterator[Node]:
    """Yield an expression and its sub-expressions; the patterns of EXISTS are not entered."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        yield current
        if not isinstance(current, Exists):
            waiting.extend(reversed(children(current)))


def is_aggregate(node: Node) -> bool:
    """Return whether a node is an aggregate; a call of an IRI with DISTINCT is one as well."""
    return isinstance(node, Aggregate) or (isinstance(node, FunctionCall) and node.distinct)


def aggregates(expression: Node) -> Iterator[Node]:
    """Yield the aggregates of an expression, nested ones included."""
    return (part for part in parts(expression) if is_aggregate(part))


def ungrouped_variables(expression: Node) -> Iterator[Var]:
    """Yield the variables of an expression that are outside all aggregates."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Var):
            yield current
        elif not isinstance(current, Exists) and not is_aggregate(current):
            waiting.extend(reversed(children(current)))
