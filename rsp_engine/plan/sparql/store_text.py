"""The query text for Oxigraph: with the order and the aggregates of the engine, in syntax it reads.

ORDER BY uses the order of `rsp_engine.model.terms.term_order`. Where SPARQL leaves the order of two
terms undefined, Oxigraph compares their texts. So 20 comes before 100, 100 before "15 kg", and
"15 kg" before 20. This is no order, and Oxigraph aborts the process when its sort detects that. So
a condition sorts by the keys of its terms, which are texts:

    ORDER BY DESC(?v)    ORDER BY DESC(<urn:rsp-engine:builtin:ORDER>(?v))

An unbound variable has no key and comes first, as SPARQL requires.

The result of an aggregate does not depend on the order of the values:

    SUM(?v)              <urn:rsp-engine:builtin:SUM>(?v)
    AVG(DISTINCT ?v)     <urn:rsp-engine:builtin:AVG_DISTINCT>(?v)

COUNT needs no replacement, and SAMPLE and GROUP_CONCAT depend on the order by definition. Requests
to a SERVICE are not affected: no text for Oxigraph has a SERVICE clause.

A later expression of SELECT, HAVING and ORDER BY may use the name of an earlier one. Oxigraph
rejects this where solutions are grouped, and its HAVING does not see the names. So a sub-query
computes the groups and their aggregates, and the outer query computes the rest: SELECT extends,
then HAVING filters (SPARQL 1.1, section 18.2.4).

    SELECT ?s (COUNT(?v) AS ?m) (?m * 2 AS ?k) WHERE { P } GROUP BY ?s HAVING (?m > 1)

    SELECT ?s ?m ?k WHERE {
      { SELECT ?s (COUNT(?v) AS ?rsp_aggregate) WHERE { P } GROUP BY ?s }
      BIND (?rsp_aggregate AS ?m) BIND (?m * 2 AS ?k) FILTER (?m > 1)
    }

The parser of Oxigraph rejects names with characters beyond the Basic Multilingual Plane, which
SPARQL allows in variables, blank nodes and prefixes, and the empty negated property set `!()`,
which any property matches. Patterns that the planner repeats get new blank node labels, as a label
belongs to one basic graph pattern (SPARQL 1.1, section 5.1.1).
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, cast

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import aggregates, group_keys, is_aggregate, is_grouped
from rsp_engine.grammar.write import serialise
from rsp_engine.operators.sparql.sparql_query import BUILTIN_NAMESPACE, FULL_KEY, ORDER_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "by_terms",
    "exactly_aggregated",
    "store_text",
    "totally_ordered",
    "with_separate_groups",
]

_TOTAL = {"STR", "LANG", "STRLEN", "YEAR", "BOUND"}  # their results have a total order already
_SUMS = {"SUM", "AVG"}
_EXTREMES = {"MIN", "MAX"}
_NO_PROPERTY = tree.Iri("urn:rsp-engine:no-property")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")


def totally_ordered(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query whose orders are total, including those of its sub-queries.

    >>> from rsp_engine.grammar import parse
    >>> from rsp_engine.grammar.write import serialise
    >>> query = totally_ordered(parse("SELECT ?v WHERE { ?s ?p ?v } ORDER BY DESC(?v) STR(?v)"))
    >>> print(serialise(query).splitlines()[-1])
    ORDER BY DESC(<urn:rsp-engine:builtin:ORDER>(?v)) ASC(STR(?v))
    """
    ordered = tree.rewrite_tree(query, _with_total_order)
    assert isinstance(ordered, tree.QueryUnit), "rewriting keeps the kind of the root"  # noqa: S101
    return ordered


def by_terms(*names: str) -> tuple[tree.OrderCondition, ...]:
    """Return conditions that order rows by the terms of some variables, without ties."""
    return tuple(tree.OrderCondition(_call(FULL_KEY, tree.Var(name))) for name in names)


def _with_total_order(node: tree.Node) -> tree.Node:
    if not isinstance(node, tree.Modifiers):
        return node
    return replace(node, order_by=tuple(map(_total, node.order_by)))


def _total(condition: tree.OrderCondition) -> tree.OrderCondition:
    match condition.expression:
        case tree.BuiltInCall(name) if name in _TOTAL:
            return condition
        case tree.Aggregate("COUNT"):
            return condition
        case tree.FunctionCall(tree.Iri(iri)) if iri.startswith(BUILTIN_NAMESPACE):
            return condition
        case expression:
            return replace(condition, expression=_call(ORDER_KEY, expression))


def _call(name: str, expression: tree.Expression) -> tree.FunctionCall:
    return tree.FunctionCall(tree.Iri(BUILTIN_NAMESPACE + name), (expression,))


def exactly_aggregated(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query that uses the aggregates of the engine.

    >>> from rsp_engine.grammar import parse
    >>> from rsp_engine.grammar.write import serialise
    >>> text = "SELECT (AVG(DISTINCT ?v) AS ?n) WHERE { ?s ?p ?v }"
    >>> print(serialise(exactly_aggregated(parse(text))).splitlines()[0])
    SELECT (<urn:rsp-engine:builtin:AVG_DISTINCT>(?v) AS ?n)
    """
    exact = tree.rewrite_tree(query, _exact)
    assert isinstance(exact, tree.QueryUnit), "rewriting keeps the kind of the root"  # noqa: S101
    return exact


def _exact(node: tree.Node) -> tree.Node:
    match node:
        case tree.Aggregate(function, argument, distinct) if argument is not None:
            if function in _SUMS:
                return _call(f"{function}_DISTINCT" if distinct else function, argument)
            return _call(function, argument) if function in _EXTREMES else node
        case _:
            return node


def with_separate_groups(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query in which no expression over groups uses the name of another expression."""
    taken = {variable.name for variable in tree.find(query, tree.Var)}
    names = (f"rsp_aggregate{n or ''}" for n in count())
    fresh = (name for name in names if name not in taken)

    def change(node: tree.Node) -> tree.Node:
        if isinstance(node, tree.SubSelect):
            return _separated(node, fresh)
        if isinstance(node, tree.QueryUnit) and isinstance(form := node.form, tree.SelectForm):
            whole = tree.SubSelect(form.clause, form.where, form.modifiers, node.values)
            split = _separated(whole, fresh)
            select = tree.SelectForm(split.clause, form.dataset, split.where, split.modifiers)
            return replace(node, form=replace(select, span=form.span), values=split.values)
        return node

    return cast("tree.QueryUnit", tree.rewrite_tree(query, change))


def _separated(select: tree.SubSelect, fresh: Iterator[str]) -> tree.SubSelect:
    """Return a SELECT whose groups are in a sub-query; the SELECT itself if Oxigraph accepts it."""
    modifiers = select.modifiers
    grouped = is_grouped(select.clause, modifiers)
    named = [item for item in select.clause.items if isinstance(item, tree.SelectAs)]
    moves_having = bool(_free_variables(modifiers.having) & _names(named))
    if not moves_having and not (grouped and _uses_names(named, modifiers)):
        return select
    conditions = modifiers.having if moves_having else ()
    outer_parts = (*named, *conditions, *modifiers.order_by)
    distinct = dict.fromkeys(a for part in outer_parts for a in aggregates(part))
    variables = {aggregate: tree.Var(next(fresh)) for aggregate in distinct}

    def renamed(node: tree.Node) -> tree.Node | None:
        return node if isinstance(node, tree.Exists) else variables.get(node)

    def outer(expression: tree.Expression) -> tree.Expression:
        return cast("tree.Expression", tree.rewrite_outermost(expression, renamed))

    inner = replace(modifiers, having=() if moves_having else modifiers.having)
    groups = tree.GroupPattern((_groups(select.where, inner, variables, tree.Var(next(fresh))),))
    values = () if select.values is None else (select.values,)
    binds = (tree.Bind(outer(item.expression), item.variable) for item in named)
    filters = (tree.FilterClause(outer(condition)) for condition in conditions)
    order = (replace(c, expression=outer(c.expression)) for c in modifiers.order_by)
    items = (i.variable if isinstance(i, tree.SelectAs) else i for i in select.clause.items)
    return tree.SubSelect(
        replace(select.clause, items=tuple(items)),
        tree.GroupPattern((groups if grouped else select.where, *values, *binds, *filters)),
        replace(modifiers, group_by=(), having=(), order_by=tuple(order)),
    )


def _groups(
    where: tree.GroupPattern,
    modifiers: tree.Modifiers,
    variables: Mapping[tree.Node, tree.Var],
    unused: tree.Var,
) -> tree.SubSelect:
    """Return a sub-query with the keys and the aggregates of each group."""
    keys = map(tree.Var, sorted(group_keys(modifiers)))
    values = (tree.SelectAs(cast("tree.Expression", a), v) for a, v in variables.items())
    items: tuple[tree.Var | tree.SelectAs, ...] = (*keys, *values)
    clause = tree.SelectClause(items or (tree.SelectAs(tree.ONE, unused),))
    return tree.SubSelect(clause, where, tree.Modifiers(modifiers.group_by, modifiers.having))


def _uses_names(named: list[tree.SelectAs], modifiers: tree.Modifiers) -> bool:
    """Return whether an expression uses a variable that is neither a key nor aggregated.

    A condition of ORDER BY that is the name of an expression does not count: Oxigraph supports it.
    """
    if any(_free_variables([item]) & _names(named[:n]) for n, item in enumerate(named)):
        return True
    order = [condition.expression for condition in modifiers.order_by]
    alone = [e for e in order if isinstance(e, tree.Var) and e.name in _names(named)]
    return bool(_free_variables(e for e in order if e not in alone) - group_keys(modifiers))


def _names(items: Iterable[tree.SelectAs]) -> set[str]:
    return {item.variable.name for item in items}


def _free_variables(expressions: Iterable[tree.Node]) -> set[str]:
    """Return the variables outside aggregates, including those in the patterns of EXISTS."""
    names, waiting = set[str](), list(expressions)
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Var):
            names.add(node.name)
        elif not is_aggregate(node):
            waiting.extend(tree.children(node))
    return names


def store_text(query: tree.QueryUnit) -> str:
    r"""Return the text of a query in plain SPARQL, with its columns in the same order.

    >>> from rsp_engine.grammar import parse
    >>> print(store_text(parse("ASK { ?s !() ?\U0001d4b3 }")), end="")
    ASK
    WHERE {
      ?s !(<urn:rsp-engine:no-property>) ?u1d4b3 .
    }
    """
    plain = cast("tree.QueryUnit", tree.rewrite_tree(query, _Readable(query).change))
    return serialise(replace(plain, prologue=tuple(filter(_is_readable, plain.prologue))))


def _is_readable(declaration: tree.BaseDecl | tree.PrefixDecl) -> bool:
    return isinstance(declaration, tree.BaseDecl) or not _BEYOND.search(declaration.prefix)


class _Readable:
    """Rewrites what Oxigraph's parser rejects, inner nodes first."""

    def __init__(self, query: tree.QueryUnit) -> None:
        taken = {variable.name for variable in tree.find(query, tree.Var)}
        self._names = {name: _plain_name(name, taken) for name in sorted(filter(_is_beyond, taken))}
        labels = {node.label for node in tree.find(query, tree.BlankNode)}
        fresh = (f"rsp{n}" for n in count())
        self._fresh = (label for label in fresh if label not in labels)
        self._used: set[str] = set()

    def change(self, node: tree.Node) -> tree.Node:
        match node:
            case tree.Var(name) if name in self._names:
                return tree.Var(self._names[name])
            case tree.PathNegated(()):
                return tree.PathNegated((_NO_PROPERTY,))
            case tree.GroupPattern(elements):
                return self._group(elements)
            case _:
                return node

    def _group(self, elements: tuple[tree.Pattern | tree.SubSelect, ...]) -> tree.GroupPattern:
        changed: list[tree.Pattern | tree.SubSelect] = []
        labels: dict[str, str] = {}
        for element in elements:
            if isinstance(element, tree.TriplesBlock):
                changed.append(self._relabelled(element, labels))
                continue
            if not isinstance(element, tree.FilterClause):  # it ends the basic graph pattern
                labels = {}
            changed.append(element)
        return tree.GroupPattern(tuple(changed))

    def _relabelled(self, block: tree.TriplesBlock, labels: dict[str, str]) -> tree.TriplesBlock:
        """Give blank nodes new labels where another basic graph pattern uses theirs."""

        def change(node: tree.Node) -> tree.Node:
            if not isinstance(node, tree.BlankNode):
                return node
            label = node.label
            if label not in labels:
                is_new = label not in self._used and not _is_beyond(label)
                labels[label] = label if is_new else next(self._fresh)
                self._used.add(label)
            return tree.BlankNode(labels[label])

        return cast("tree.TriplesBlock", tree.rewrite_tree(block, change))


def _is_beyond(name: str) -> bool:
    return _BEYOND.search(name) is not None


def _plain_name(name: str, taken: set[str]) -> str:
    """Return a name that is not in the query, and add it to those taken."""
    plain = _BEYOND.sub(lambda found: f"u{ord(found[0]):x}", name)
    while plain in taken:
        plain += "_"
    taken.add(plain)
    return plain
