"""Orders of a query that are those of `rsp_engine.model.terms.term_order`, asked of Oxigraph.

Oxigraph compares terms of which SPARQL leaves the order open by their texts. So 20 comes before
100, 100 before "15 kg", and that before 20: no order that could be sorted by, and Oxigraph ends the
process if it finds out. So a condition becomes one over the keys of its terms, which are texts:

    ORDER BY DESC(?v)    ORDER BY DESC(<urn:rsp-engine:builtin:ORDER>(?v))

What has no value has no key, and comes first, as SPARQL says.
"""

from __future__ import annotations

from dataclasses import replace

from rsp_engine.grammar import tree
from rsp_engine.operators.sparql.sparql_query import BUILTIN_NAMESPACE, FULL_KEY, ORDER_KEY

__all__ = ["by_terms", "totally_ordered"]

_TEXTS = {"STR", "LANG", "STRLEN", "YEAR", "BOUND"}  # Oxigraph orders what these give


def totally_ordered(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query whose orders are total, those of its sub-queries too.

    >>> from rsp_engine.grammar import parse
    >>> from rsp_engine.grammar.write import serialise
    >>> made = totally_ordered(parse("SELECT ?v WHERE { ?s ?p ?v } ORDER BY DESC(?v) STR(?v)"))
    >>> print(serialise(made).splitlines()[-1])
    ORDER BY DESC(<urn:rsp-engine:builtin:ORDER>(?v)) ASC(STR(?v))
    """
    found = tree.rewrite_tree(query, _with_total_order)
    assert isinstance(found, tree.QueryUnit), "rewriting keeps the kind of the root"  # noqa: S101
    return found


def by_terms(*names: str) -> tuple[tree.OrderCondition, ...]:
    """Return conditions that tell any two rows of some variables apart, in the order of terms."""
    return tuple(tree.OrderCondition(_call(FULL_KEY, tree.Var(name))) for name in names)


def _with_total_order(node: tree.Node) -> tree.Node:
    if not isinstance(node, tree.Modifiers):
        return node
    return replace(node, order_by=tuple(map(_total, node.order_by)))


def _total(condition: tree.OrderCondition) -> tree.OrderCondition:
    match condition.expression:
        case tree.BuiltInCall(name) if name in _TEXTS:
            return condition
        case tree.Aggregate("COUNT"):
            return condition
        case tree.FunctionCall(tree.Iri(iri)) if iri.startswith(BUILTIN_NAMESPACE):
            return condition
        case expression:
            return replace(condition, expression=_call(ORDER_KEY, expression))


def _call(name: str, expression: tree.Expression) -> tree.Expression:
    return tree.FunctionCall(tree.Iri(BUILTIN_NAMESPACE + name), (expression,))
