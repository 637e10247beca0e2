"""Asking each element of a stream by itself, so that no solution spans two elements.

Where a text holds nothing but triple patterns and conditions on their values, many elements are
asked together, each in a graph of its own; any other text is asked of one element after the other.
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
_TOGETHER = 256  # elements: with more of them, the joins of Oxigraph are slower
_GONE = 1000  # quads: what is gone from a store still makes it slower


@dataclass(frozen=True, slots=True)
class ElementText:
    """What is asked of each element.

    `alone` is asked of one element in the graph of the `window`, beside the static graphs.
    `together` means the same, and is asked of many elements in graphs of their own; its last column
    is the graph.
    """

    window: str
    alone: SparqlConfig
    together: SparqlConfig | None = None


class ElementQuery:
    """Asks elements. The store holds the static graphs, and is only read."""

    def __init__(self, config: ElementText, store: ox.Store) -> None:
        self._window = ox.NamedNode(config.window)
        self._alone = SparqlQuery(config.alone)
        self._together = None if config.together is None else SparqlQuery(config.together)
        self._static = store
        self._size = len(store)
        self._store = ox.Store()  # the first element makes room for itself
        self._gone = _GONE + self._size

    def rows(
        self, triples: Sequence[ox.Triple], sizes: Sequence[int], now: int
    ) -> Iterator[tuple[int, Row]]:
        """Yield solutions, each with the place of its element, in the order of the elements.

        The triples of an element stand side by side, and `sizes` says how many each has.
        """
        ends = [*accumulate(sizes, initial=0)]
        if self._together is None:
            for place, (start, end) in enumerate(pairwise(ends)):
                for row in self._of_one(triples[start:end], now):
                    yield place, row
            return
        for first in range(0, len(sizes), _TOGETHER):
            part = ends[first : first + _TOGETHER + 1]
            for place, row in self._of_many(self._together, triples, part, now):
                yield first + place, row

    def _of_one(self, triples: Sequence[ox.Triple], now: int) -> list[Row]:
        quads = [ox.Quad(t.subject, t.predicate, t.object, self._window) for t in triples]
        self._make_room(len(quads))
        self._store.extend(sorted(set(quads), key=str))
        found = _asked(self._alone, self._store, now)
        if self._size:
            for quad in quads:
                self._store.remove(quad)
        return found

    def _make_room(self, coming: int) -> None:
        """Take a new store if too much is gone from this one; a small one costs next to nothing."""
        self._gone += coming
        if self._size and self._gone < _GONE + self._size // 10:
            return
        self._store, self._gone = ox.Store(), coming
        self._store.extend(self._static.quads_for_pattern(None, None, None, None))
        self._store.add_graph(self._window)  # it is there also for an element without triples

    def _of_many(
        self, asking: SparqlQuery, triples: Sequence[ox.Triple], ends: Sequence[int], now: int
    ) -> list[tuple[int, Row]]:
        store = ox.Store()
        quads = []
        for place, (start, end) in enumerate(pairwise(ends)):
            graph = ox.NamedNode(f"{_ELEMENT}{place}")
            quads += [ox.Quad(t.subject, t.predicate, t.object, graph) for t in triples[start:end]]
        store.extend(quads)
        found = [(_place(row[-1]), row[:-1]) for row in _asked(asking, store, now)]
        found.sort(key=lambda each: each[0])
        return found


def _asked(asking: SparqlQuery, store: ox.Store, now: int) -> list[Row]:
    solutions = asking.ask(store, now)
    assert isinstance(solutions, ox.QuerySolutions), "only SELECT is asked"  # noqa: S101
    return [tuple(solution) for solution in solutions]


def _place(graph: Term | None) -> int:
    assert isinstance(graph, ox.NamedNode), "an element has a graph"  # noqa: S101
    return int(graph.value.removeprefix(_ELEMENT))
