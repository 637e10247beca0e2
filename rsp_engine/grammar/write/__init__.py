"""The serialiser: a syntax tree as RSP-QL text, or as plain SPARQL over the window content.

Its modules mirror those of `tree`: each writes the nodes of its namesake, `terms` also the paths.
"""

from __future__ import annotations

from dataclasses import replace

from rsp_engine.grammar.tree import (
    FunctionCall,
    GraphPattern,
    Iri,
    NamedCall,
    Node,
    QueryUnit,
    SelectAs,
    SelectClause,
    Var,
    WindowPattern,
    rewrite_tree,
)
from rsp_engine.grammar.write.queries import WriteQueries

__all__ = ["FUNCTIONS", "serialise", "to_sparql"]

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
