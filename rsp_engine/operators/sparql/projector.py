"""SELECT over a few objects whose variables are known: the rows of an answer.

Where SELECT only names variables, the terms are taken as they are. Otherwise each object becomes a
node of a small graph, with a property for each of its variables, and the expressions are asked.
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
"""The IRI of an object is this and its number."""


def variable_iri(name: str) -> str:
    """Return the property that holds the value of a variable; that of no name marks a node."""
    return f"urn:rsp-engine:variable:{quote(name)}"


class Projector:
    """Makes rows. `asked` gives the object and then the columns of `answer`; nothing if plain."""

    def __init__(self, answer: SparqlConfig, asked: SparqlConfig | None) -> None:
        self._answer = answer
        self._asking = None if asked is None else SparqlQuery(asked)

    def rows(self, objects: Sequence[Mapping[str, Term]], now: int) -> list[Row]:
        """Return the rows of objects, in their order; they have neither rank nor age yet."""
        names = self._answer.variables
        if self._asking is None:
            return [as_row(self._answer, [known.get(name) for name in names]) for known in objects]
        found = ask_objects(self._asking, objects, now)
        return [as_row(self._answer, terms) for terms in found]


def ask_objects(
    asking: SparqlQuery, objects: Sequence[Mapping[str, Term]], now: int
) -> list[list[Term | None]]:
    """Ask for columns of objects, in their order."""
    if not objects:
        return []
    store = ox.Store()
    store.extend([quad for n, known in enumerate(objects) for quad in _quads(n, known)])
    solutions = asking.ask(store, now)
    assert isinstance(solutions, ox.QuerySolutions), "only SELECT is asked"  # noqa: S101
    found: dict[str, list[Term | None]] = {}
    for solution in solutions:
        node, *terms = solution
        found[node.value] = terms
    return [found[f"{OBJECT}{number}"] for number in range(len(objects))]


def holds_blank_nodes(rows: Iterable[Row]) -> bool:
    """Tell whether a term of some rows is a blank node."""
    return any(isinstance(t, ox.BlankNode) for row in rows for t in row.bindings.values())


def _quads(number: int, known: Mapping[str, Term]) -> list[ox.Quad]:
    node, graph = ox.NamedNode(f"{OBJECT}{number}"), ox.NamedNode(OBJECTS)
    here = ox.Quad(node, ox.NamedNode(variable_iri("")), node, graph)  # one may have no variable
    terms = ((ox.NamedNode(variable_iri(name)), term) for name, term in known.items())
    return [here, *(ox.Quad(node, verb, term, graph) for verb, term in terms)]
