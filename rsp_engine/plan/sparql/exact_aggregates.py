"""Aggregates whose result does not depend on the order of the values.

Aggregates of the engine replace those of Oxigraph:

    SUM(?v)              <urn:rsp-engine:builtin:SUM>(?v)
    AVG(DISTINCT ?v)     <urn:rsp-engine:builtin:AVG_DISTINCT>(?v)

COUNT needs no replacement, and SAMPLE and GROUP_CONCAT depend on the order by definition. Requests
to a SERVICE are not affected: no text for Oxigraph has a SERVICE clause.
"""

from __future__ import annotations

from rsp_engine.grammar import tree
from rsp_engine.operators.sparql.sparql_query import BUILTIN_NAMESPACE

__all__ = ["exactly_aggregated"]

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


def _call(name: str, argument: tree.Expression) -> tree.FunctionCall:
    return tree.FunctionCall(tree.Iri(BUILTIN_NAMESPACE + name), (argument,))
