"""The named graph of a window in a store, updated incrementally from window to window.

The triples are kept as lines of N-Triples text, which Oxigraph parses faster than it converts terms
of Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.model.terms.lazy_text import triple_lines
from rsp_engine.operators.windows.insertion_order import InsertionOrder
from rsp_engine.operators.windows.window_content import WindowContent

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

__all__ = ["WindowGraph"]


class WindowGraph:
    """The named graph of a window in a store. Time of a move: the triples that enter and leave.

    A move takes effect in the store with `update_store`, or with `move_to` in a new store.

    If the answer depends on the order of triples, they are kept `in_order`: part by part, and in
    term order within a part. This costs a sort, and a new store whenever triples that re-enter are
    out of order.
    """

    def __init__(self, store: ox.Store, name: str, *, in_order: bool = True) -> None:
        self._store = store
        self._name = ox.NamedNode(name)
        self._content = WindowContent[str]()
        self._inserted = InsertionOrder() if in_order else None
        self._removed = 0
        self._entering: list[str] = []
        self._leaving: list[str] = []
        store.add_graph(self._name)

    def __len__(self) -> int:
        return len(self._content)

    @property
    def gone(self) -> int:
        """The number of triples that left since the store was new."""
        return self._removed + len(self._leaving)

    @property
    def entering(self) -> int:
        """The number of triples that have yet to enter the store."""
        return len(self._entering)

    @property
    def leaving(self) -> int:
        """The number of triples that have yet to leave the store."""
        return len(self._leaving)

    def move(self, content: Iterable[tuple[Hashable, Sequence[ox.Triple]]]) -> None:
        """Replace the content of the graph; only parts that enter or leave are touched."""
        self.update_store()
        parts, current = dict(content), self._content
        going = current.going(parts)
        for key in current.coming(parts):
            lines = triple_lines(parts[key])
            if self._inserted is not None:
                lines = sorted(lines)
                self._inserted.add(dict.fromkeys(lines))
            self._entering += current.add(key, lines)
        for key in going:
            self._leaving += current.remove(key)

    def update_store(self) -> None:
        """Let the triples of the last move enter and leave the store."""
        self._load(self._entering)
        if self._leaving:
            for quad in self._quads(self._leaving):
                self._store.remove(quad)
        self._removed = self.gone
        self._entering, self._leaving = [], []

    def is_in_order(self) -> bool:
        """Return whether the store has the triples in the order of a newly filled store."""
        inserted = self._inserted
        return (
            inserted is None
            or not inserted.has_repeats  # parts enter in time order
            or inserted.are_in_order(self._content)
        )

    def move_to(self, store: ox.Store) -> None:
        """Move to a new store, with the triples in order."""
        self._store, self._removed = store, 0
        self._entering, self._leaving = [], []
        store.add_graph(self._name)
        if self._inserted is not None:
            self._inserted = InsertionOrder()
            self._inserted.add(self._content)
        self._load(list(dict.fromkeys(self._content)))

    def _load(self, lines: list[str]) -> None:
        """Insert triples. Oxigraph gives new labels to the blank nodes of a text that it loads."""
        text = " .\n".join(lines)
        if "_:" in text:
            self._store.extend(self._quads(lines))
        elif lines:
            nt = ox.RdfFormat.N_TRIPLES
            self._store.load(f"{text} .\n", format=nt, to_graph=self._name, lenient=True)

    def _quads(self, lines: list[str]) -> Iterator[ox.Quad]:
        """Return triples as quads of the graph. To parse text is the fastest way to make them."""
        end = f" {self._name} .\n"
        text = end.join([*lines, ""])
        return ox.parse(text, format=ox.RdfFormat.N_QUADS, lenient=True)
