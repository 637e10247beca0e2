"""Total orders: ORDER BY with the order of `rsp_engine.model.terms.term_order`.

Where SPARQL leaves the order of two terms undefined, Oxigraph compares their texts. So 20 comes
before 100, 100 before "15 kg", and "15 kg" before 20. This is no order, and Oxigraph aborts the
process when its sort detects that. So a condition sorts by the keys of its terms, which are texts:

    ORDER BY DESC(?v)    ORDER BY DESC(<urn:rsp-engine:builtin:ORDER>(?v))

An unbound variable has no key and comes first, as SPARQL requires.
"""

from __future__ import annotations

from dataclasses import replace

from rsp_engine.grammar import tree
from rsp_engine.operators.sparql.sparql_query import BUILTIN_NAMESPACE, FULL_KEY, ORDER_KEY

__all__ = ["by_terms", "totally_ordered"]

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


def _call(name: str, expression: tree.Expression) -> tree.Expression:
    return tree.FunctionCall(tree.Iri(BUILTIN_NAMESPACE + name), (expression,))
