"""The named graph of a window in a store, updated incrementally from window to window."""

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
    """Return triples as quads of a graph, sorted by text if `in_order`."""
    if isinstance(triples, WrittenTriples):
        return triples.quads(name, in_order=in_order)
    quads = (Quad(t.subject, t.predicate, t.object, name) for t in triples)
    return sorted(quads, key=str) if in_order else quads


class WindowGraph:
    """The named graph of a window in a store. Time of a move: the triples that enter and leave.

    If the answer depends on the order of triples, they are kept `in_order`: part by part, and in
    term order within a part. This costs a sort, and a new store whenever triples that re-enter are
    out of order.
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
        """Replace the content of the graph; only parts that enter or leave are touched."""
        parts, name, current = dict(content), self._name, self._content
        going = current.going(parts)
        for key in current.coming(parts):
            quads = _quads(parts[key], name, in_order=self._inserted is not None)
            if self._inserted is not None:
                self._inserted.add(dict.fromkeys(quads))
            self._store.extend(current.add(key, quads))
        for key in going:
            for quad in current.remove(key):
                self._store.remove(quad)
                self.gone += 1

    def is_in_order(self) -> bool:
        """Return whether the store has the triples in the order of a newly filled store."""
        inserted = self._inserted
        return (
            inserted is None
            or not inserted.has_repeats  # parts enter in time order
            or inserted.are_in_order(self._content)
        )

    def move_to(self, store: Store) -> None:
        """Move to a new store, with the triples in order."""
        self._store, self.gone = store, 0
        store.add_graph(self._name)
        if self._inserted is not None:
            self._inserted = InsertionOrder()
            self._inserted.add(self._content)
        store.extend(dict.fromkeys(self._content))
