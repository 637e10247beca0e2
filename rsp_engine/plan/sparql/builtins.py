"""The order and the aggregates of the engine, in place of Oxigraph's.

ORDER BY uses the order of `rsp_engine.model.terms.term_order`.
Where SPARQL leaves the order of two terms undefined, Oxigraph compares their texts. So 20 comes
before 100, 100 before "15 kg", and "15 kg" before 20. This is no order, and Oxigraph aborts the
process when its sort detects that. So a condition sorts by the keys of its terms, which are texts:

    ORDER BY DESC(?v)    ORDER BY DESC(<urn:rsp-engine:builtin:ORDER>(?v))

An unbound variable has no key and comes first, as SPARQL requires.

The result of an aggregate does not depend on the order of the values:

    SUM(?v)              <urn:rsp-engine:builtin:SUM>(?v)
    AVG(DISTINCT ?v)     <urn:rsp-engine:builtin:AVG_DISTINCT>(?v)

COUNT needs no replacement, and SAMPLE and GROUP_CONCAT depend on the order by definition. Requests
to a SERVICE are not affected: no text for Oxigraph has a SERVICE clause.
"""

from __future__ import annotations

from dataclasses import replace

from rsp_engine.grammar import tree
from rsp_engine.operators.sparql.sparql_query import BUILTIN_NAMESPACE, FULL_KEY, ORDER_KEY

__all__ = ["by_terms", "exactly_aggregated", "totally_ordered"]


_TOTAL = {"STR", "LANG", "STRLEN", "YEAR", "BOUND"}  # their results have a total order already


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


_SUMS = {"SUM", "AVG"}
_EXTREMES = {"MIN", "MAX"}


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
