"""Queries over single elements of a stream, so that no solution spans two elements.

A query of triple patterns and conditions on their values is evaluated over many elements at once,
each in a graph of its own. Any other query is evaluated element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.operators.sparql.sparql_query import SparqlConfig, SparqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.model.terms.term import Term

    Row = tuple[Term | None, ...]

__all__ = ["ElementQuery", "ElementText"]

_ELEMENT = "urn:rsp-engine:element:"
_BATCH = 256  # elements at once; with more, Oxigraph's joins are slower
_MAX_REMOVED = 1000  # quads; removed quads still slow a store down


@dataclass(frozen=True, slots=True)
class ElementText:
    """The query over each element, in two forms.

    `alone` is evaluated over one element in the graph of the `window`, next to the static graphs.
    `together` is an equivalent query over many elements, each in a graph of its own; its last
    column is the graph.
    """

    window: str
    alone: SparqlConfig
    together: SparqlConfig | None = None


class ElementQuery:
    """A query over elements. The given store contains the static graphs, and is only read."""

    def __init__(self, config: ElementText, store: ox.Store) -> None:
        self._window = ox.NamedNode(config.window)
        self._alone = SparqlQuery(config.alone)
        self._together = None if config.together is None else SparqlQuery(config.together)
        self._static = store
        self._size = len(store)
        self._store = ox.Store()
        self._removed = _MAX_REMOVED + self._size  # so that the first element fills a store

    def rows(
        self, triples: Sequence[ox.Triple], sizes: Sequence[int], now: int
    ) -> Iterator[tuple[int, Row]]:
        """Yield solutions, each with the index of its element, in the order of the elements.

        The triples of an element are adjacent, and `sizes` is the number of triples of each.
        """
        ends = [*accumulate(sizes, initial=0)]
        if self._together is None:
            for place, (start, end) in enumerate(pairwise(ends)):
                for row in self._rows_alone(triples[start:end], now):
                    yield place, row
            return
        for first in range(0, len(sizes), _BATCH):
            part = ends[first : first + _BATCH + 1]
            for place, row in self._rows_together(self._together, triples, part, now):
                yield first + place, row

    def _rows_alone(self, triples: Sequence[ox.Triple], now: int) -> list[Row]:
        quads = [ox.Quad(t.subject, t.predicate, t.object, self._window) for t in triples]
        self._refill_store(len(quads))
        self._store.extend(sorted(set(quads), key=str))
        rows = _solutions(self._alone, self._store, now)
        if self._size:
            for quad in quads:
                self._store.remove(quad)
        return rows

    def _refill_store(self, coming: int) -> None:
        """Replace the store if too many quads were removed from it; without static graphs always.

        A store without static graphs costs next to nothing.
        """
        self._removed += coming
        if self._size and self._removed < _MAX_REMOVED + self._size // 10:
            return
        self._store, self._removed = ox.Store(), coming
        self._store.extend(self._static.quads_for_pattern(None, None, None, None))
        self._store.add_graph(self._window)  # exists even for an element without triples

    def _rows_together(
        self, query: SparqlQuery, triples: Sequence[ox.Triple], ends: Sequence[int], now: int
    ) -> list[tuple[int, Row]]:
        store = ox.Store()
        quads = []
        for place, (start, end) in enumerate(pairwise(ends)):
            graph = ox.NamedNode(f"{_ELEMENT}{place}")
            quads += [ox.Quad(t.subject, t.predicate, t.object, graph) for t in triples[start:end]]
        store.extend(quads)
        rows = [(_place(row[-1]), row[:-1]) for row in _solutions(query, store, now)]
        rows.sort(key=lambda each: each[0])
        return rows


def _solutions(query: SparqlQuery, store: ox.Store, now: int) -> list[Row]:
    solutions = query.ask(store, now)
    assert isinstance(solutions, ox.QuerySolutions), "the query is a SELECT"  # noqa: S101
    return [tuple(solution) for solution in solutions]


def _place(graph: Term | None) -> int:
    assert isinstance(graph, ox.NamedNode), "an element has a graph"  # noqa: S101
    return int(graph.value.removeprefix(_ELEMENT))
