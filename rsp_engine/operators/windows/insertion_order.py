"""The order of quads in an Oxigraph store.

Oxigraph iterates in insertion order, and keeps it for removed quads: a quad that is inserted again
returns to its first position, and its memory is never freed. So an answer that depends on the order
(SAMPLE, GROUP_CONCAT) would depend on everything the store ever contained. A store that is out of
order, or keeps too many removed quads, must be replaced by a newly filled one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pyoxigraph import Store

__all__ = ["InsertionOrder", "OrderedGraph"]


class OrderedGraph(Protocol):
    """A graph of a store whose content changes, and which can move to another store."""

    @property
    def gone(self) -> int:
        """The number of quads removed since the store was new."""

    def __len__(self) -> int: ...

    def is_in_order(self) -> bool:
        """Return whether the store has its quads in the order of a newly filled store."""

    def move_to(self, store: Store) -> None:
        """Move to a new store, with the quads in order."""


class InsertionOrder:
    """The positions of the quads of a graph in a store. Memory: all quads ever inserted.

    A quad may be given as its text.

    >>> inserted = InsertionOrder()
    >>> inserted.add(["a", "b"]), inserted.are_in_order(["a", "b"])
    (None, True)
    >>> inserted.add(["a"]), inserted.are_in_order(["b", "a"])
    (None, False)
    """

    def __init__(self) -> None:
        self._places: dict[Hashable, int] = {}
        self.has_repeats = False
        """Whether a quad was inserted twice; otherwise insertion order is arrival order."""

    def add(self, quads: Iterable[Hashable]) -> None:
        """Record quads that are inserted in this order."""
        places = self._places
        for quad in quads:
            place = len(places)
            if places.setdefault(quad, place) != place:
                self.has_repeats = True

    def are_in_order(self, quads: Iterable[Hashable]) -> bool:
        """Return whether the store has these quads in this order, ignoring repetitions."""
        places = [self._places[quad] for quad in dict.fromkeys(quads)]
        return all(map(int.__lt__, places, places[1:]))
