"""The dataset of a query: a graph for each window, moved from one content to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyoxigraph import NamedNode, Quad, Store

from rsp_engine.model.terms.lazy_text import WrittenTriples
from rsp_engine.operators.windows.insertion_order import InsertionOrder
from rsp_engine.operators.windows.window_content import WindowContent

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from pyoxigraph import Triple

__all__ = ["WindowGraph"]


def _quads(triples: Sequence[Triple], name: NamedNode, *, in_order: bool) -> Iterable[Quad]:
    """Return triples in a graph, in the order of their text if that matters."""
    if isinstance(triples, WrittenTriples):
        return triples.quads(name, in_order=in_order)
    quads = (Quad(t.subject, t.predicate, t.object, name) for t in triples)
    return sorted(quads, key=str) if in_order else quads


class WindowGraph:
    """The named graph of a window in a store. Cost of a move: what comes and what goes.

    Where an answer depends on the order of triples, they are to be `in_order`: part by part, in
    term order. This costs a sort, and a new store whenever triples that came again are not so.
    """

    def __init__(self, store: Store, name: str, *, in_order: bool = True) -> None:
        self._store = store
        self._name = NamedNode(name)
        self._content = WindowContent[Quad]()
        self._inserted = InsertionOrder() if in_order else None
        self.gone = 0
        store.add_graph(self._name)

    def __len__(self) -> int:
        return len(self._content)

    def move(self, content: Iterable[tuple[Hashable, Sequence[Triple]]]) -> None:
        """Give the graph this content, told by its parts."""
        wanted, name, held = dict(content), self._name, self._content
        going = held.going(wanted)
        for key in held.coming(wanted):
            quads = _quads(wanted[key], name, in_order=self._inserted is not None)
            if self._inserted is not None:
                self._inserted.add(dict.fromkeys(quads))
            self._store.extend(held.add(key, quads))
        for key in going:
            for quad in held.remove(key):
                self._store.remove(quad)
                self.gone += 1

    def is_in_order(self) -> bool:
        """Tell whether the store has the triples in the order that a new one would have."""
        inserted = self._inserted
        return (
            inserted is None
            or not inserted.has_repeats  # parts come in the order of time
            or inserted.are_in_order(self._content)
        )

    def move_to(self, store: Store) -> None:
        """Stand in a new store from now on, in order."""
        self._store, self.gone = store, 0
        store.add_graph(self._name)
        if self._inserted is not None:
            self._inserted = InsertionOrder()
            self._inserted.add(self._content)
        store.extend(dict.fromkeys(self._content))
