"""The dataset of a query: a graph for each window, moved from one content to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyoxigraph import NamedNode, Quad, Store

from rsp_engine.operators.content import Content

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from pyoxigraph import Triple

__all__ = ["WindowGraph"]


class WindowGraph:
    """The named graph of a window in a store. Cost of a move: what comes and what goes.

    Oxigraph's own order can depend on the order of insertion. Where an answer depends on it (that
    of SAMPLE does, or of SUM over doubles), triples are to come `in_order`, which costs a sort.
    """

    def __init__(self, store: Store, name: str, *, in_order: bool = True) -> None:
        self._store = store
        self._name = NamedNode(name)
        self._in_order = in_order
        self._content = Content[Quad]()
        store.add_graph(self._name)

    def __len__(self) -> int:
        return len(self._content)

    def move(self, content: Iterable[tuple[Hashable, Sequence[Triple]]]) -> None:
        """Give the graph this content, told by its parts."""
        wanted, name, held = dict(content), self._name, self._content
        going = held.going(wanted)
        for key in held.coming(wanted):
            quads = (Quad(t.subject, t.predicate, t.object, name) for t in wanted[key])
            new = held.add(key, quads)
            self._store.extend(sorted(new, key=str) if self._in_order else new)
        for key in going:
            for quad in held.remove(key):
                self._store.remove(quad)
