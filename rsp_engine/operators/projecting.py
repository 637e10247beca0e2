"""SELECT over a few objects whose variables are known: the rows of an answer.

Where SELECT only names variables, the terms are taken as they are. Otherwise each object becomes a
node of a small graph, with a property for each of its variables, and the expressions are asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.operators.asking import Asking, GeneralConfig, as_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rsp_engine.model.answers import Row
    from rsp_engine.operators.asking import Term

__all__ = ["OBJECT", "OBJECTS", "VARIABLE", "Projector", "holds_blank_nodes"]

OBJECTS = "urn:rsp-engine:objects"
"""The graph of the objects."""
OBJECT = "urn:rsp-engine:object:"
"""The IRI of an object is this and its number."""
VARIABLE = "urn:rsp-engine:variable:"
"""The IRI of the property of a variable is this and its name."""


class Projector:
    """Makes rows. `asked` gives the object and then the columns of `answer`; nothing if plain."""

    def __init__(self, answer: GeneralConfig, asked: GeneralConfig | None) -> None:
        self._answer = answer
        self._asking = None if asked is None else Asking(asked)

    def rows(self, objects: Sequence[Mapping[str, Term]], now: int) -> list[Row]:
        """Return the rows of objects, in their order; they have neither rank nor age yet."""
        names = self._answer.variables
        if self._asking is None:
            return [as_row(self._answer, [known.get(name) for name in names]) for known in objects]
        store = ox.Store()
        store.extend([quad for n, known in enumerate(objects) for quad in _quads(n, known)])
        solutions = self._asking.ask(store, now)
        assert isinstance(solutions, ox.QuerySolutions), "only SELECT is asked"  # noqa: S101
        found = {}
        for solution in solutions:
            node, *terms = solution
            found[node.value] = as_row(self._answer, terms)
        return [found[f"{OBJECT}{number}"] for number in range(len(objects))]


def holds_blank_nodes(rows: Iterable[Row]) -> bool:
    """Tell whether a term of some rows is a blank node."""
    return any(isinstance(t, ox.BlankNode) for row in rows for t in row.bindings.values())


def _quads(number: int, known: Mapping[str, Term]) -> list[ox.Quad]:
    node, graph = ox.NamedNode(f"{OBJECT}{number}"), ox.NamedNode(OBJECTS)
    here = ox.Quad(node, ox.NamedNode(VARIABLE), node, graph)  # also one without any variable
    terms = known.items()
    return [here, *(ox.Quad(node, ox.NamedNode(VARIABLE + n), t, graph) for n, t in terms)]
