"""The dataset of a query: a graph for each window, moved from one content to the next.

Windows overlap, so a graph is not built anew: what both contents have stays. A triple is in the
graph as long as one part of the content holds it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode, Quad, Store

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from pyoxigraph import Triple

__all__ = ["WindowGraph"]


class WindowGraph:
    """The named graph of a window in a store. Cost of a move: what comes and what goes."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = NamedNode(name)
        self._parts: dict[Hashable, set[Triple]] = {}
        self._holders: Counter[Triple] = Counter()
        store.add_graph(self._name)

    def __len__(self) -> int:
        return len(self._holders)

    def move(self, content: Iterable[tuple[Hashable, Sequence[Triple]]]) -> None:
        """Give the graph this content, told by its parts."""
        wanted = dict(content)
        coming = {key: set(wanted[key]) for key in wanted.keys() - self._parts.keys()}
        going = [self._parts.pop(key) for key in self._parts.keys() - wanted.keys()]
        self._parts |= coming
        self._add(coming.values())
        self._remove(going)

    def _add(self, parts: Iterable[set[Triple]]) -> None:
        new = []
        for part in parts:
            for triple in part:
                if not self._holders[triple]:
                    new.append(self._quad(triple))
                self._holders[triple] += 1
        self._store.extend(new)

    def _remove(self, parts: Iterable[set[Triple]]) -> None:
        for part in parts:
            for triple in part:
                if self._holders[triple] == 1:
                    del self._holders[triple]
                    self._store.remove(self._quad(triple))
                else:
                    self._holders[triple] -= 1

    def _quad(self, triple: Triple) -> Quad:
        return Quad(triple.subject, triple.predicate, triple.object, self._name)
