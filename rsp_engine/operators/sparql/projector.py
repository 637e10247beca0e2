"""Projection: the SELECT clause over a few objects whose variables are bound.

Where SELECT only names variables, the terms are copied. Otherwise each object becomes a node of a
small graph, with a property for each of its variables, and Oxigraph evaluates the expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pyoxigraph as ox

from rsp_engine.operators.sparql.sparql_query import SparqlConfig, SparqlQuery, as_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rsp_engine.model.answers import Row
    from rsp_engine.model.terms.term import Term

__all__ = ["OBJECT", "OBJECTS", "Projector", "ask_objects", "holds_blank_nodes", "variable_iri"]

OBJECTS = "urn:rsp-engine:objects"
"""The graph of the objects."""
OBJECT = "urn:rsp-engine:object:"
"""The prefix of the IRI of an object; its number follows."""


def variable_iri(name: str) -> str:
    """Return the property for the value of a variable; the empty name marks a node as object."""
    return f"urn:rsp-engine:variable:{quote(name)}"


class Projector:
    """The projection of objects to rows.

    `store_query` returns the object, followed by the columns of `answer`. It is None if SELECT
    only names variables.
    """

    def __init__(self, answer: SparqlConfig, store_query: SparqlConfig | None) -> None:
        self._answer = answer
        self._query = None if store_query is None else SparqlQuery(store_query)

    def rows(self, objects: Sequence[Mapping[str, Term]], now: int) -> list[Row]:
        """Return the rows of objects, in the same order, without rank and age."""
        names = self._answer.variables
        if self._query is None:
            return [as_row(self._answer, [terms.get(name) for name in names]) for terms in objects]
        rows = ask_objects(self._query, objects, now)
        return [as_row(self._answer, terms) for terms in rows]


def ask_objects(
    query: SparqlQuery, objects: Sequence[Mapping[str, Term]], now: int
) -> list[list[Term | None]]:
    """Return the columns of a query over objects, in the order of the objects."""
    if not objects:
        return []
    store = ox.Store()
    store.extend([quad for n, terms in enumerate(objects) for quad in _quads(n, terms)])
    solutions = query.ask(store, now)
    assert isinstance(solutions, ox.QuerySolutions), "the query is a SELECT"  # noqa: S101
    by_node: dict[str, list[Term | None]] = {}
    for solution in solutions:
        node, *columns = solution
        by_node[node.value] = columns
    return [by_node[f"{OBJECT}{number}"] for number in range(len(objects))]


def holds_blank_nodes(rows: Iterable[Row]) -> bool:
    """Return whether any term of some rows is a blank node."""
    return any(isinstance(t, ox.BlankNode) for row in rows for t in row.bindings.values())


def _quads(number: int, terms: Mapping[str, Term]) -> list[ox.Quad]:
    node, graph = ox.NamedNode(f"{OBJECT}{number}"), ox.NamedNode(OBJECTS)
    mark = ox.Quad(node, ox.NamedNode(variable_iri("")), node, graph)  # it may have no variables
    values = ((ox.NamedNode(variable_iri(name)), term) for name, term in terms.items())
    return [mark, *(ox.Quad(node, verb, term, graph) for verb, term in values)]
