"""The serialiser: any syntax tree as RSP-QL, and a query's pattern as plain SPARQL."""

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
"""Where functions that are registered by a bare name have their IRI."""


def serialise(query: QueryUnit) -> str:
    """Write a query as RSP-QL; parsed again, it gives the same tree.

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
    """Write a query as the SPARQL that is asked of the content of its windows.

    WINDOW becomes GRAPH, a function's bare name its IRI, and a variable is projected once however
    often it is named. REGISTER and the dataset are left out, since whoever evaluates the query
    lays out the dataset.

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
