"""In which order a store has its quads.

Oxigraph's own order is that of insertion, and it never forgets: a quad that was removed and comes
again stands where it stood at first, and keeps its memory in between. So where an answer depends on
the order (that of SAMPLE does, or of GROUP_CONCAT), it would depend on all that ever was in the
store; a store that is out of order, or keeps too much that is gone, is to be filled anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyoxigraph import Quad, Store

__all__ = ["InsertionOrder", "OrderedGraph"]


class OrderedGraph(Protocol):
    """A graph of a store that comes and goes, and can move to another store."""

    gone: int
    """How many of its quads were removed from the store since it was new."""

    def __len__(self) -> int: ...

    def is_in_order(self) -> bool:
        """Tell whether the store has its quads in the order that a new one would have."""

    def move_to(self, store: Store) -> None:
        """Stand in a new store from now on, in order."""


class InsertionOrder:
    """The places of the quads of a graph in a store. Memory: all that came since it was new.

    >>> from pyoxigraph import NamedNode, Quad
    >>> a, b = (Quad(node, node, node) for node in map(NamedNode, ("urn:a", "urn:b")))
    >>> inserted = InsertionOrder()
    >>> inserted.add([a, b]), inserted.are_in_order([a, b])
    (None, True)
    >>> inserted.add([a]), inserted.are_in_order([b, a])
    (None, False)
    """

    def __init__(self) -> None:
        self._places: dict[Quad, int] = {}
        self.has_repeats = False
        """Whether one came twice: as long as none does, what comes is the last."""

    def add(self, quads: Iterable[Quad]) -> None:
        """Note quads that come in this order."""
        places = self._places
        for quad in quads:
            place = len(places)
            if places.setdefault(quad, place) != place:
                self.has_repeats = True

    def are_in_order(self, quads: Iterable[Quad]) -> bool:
        """Tell whether quads that are there stand in this order; each counts where it is first."""
        places = [self._places[quad] for quad in dict.fromkeys(quads)]
        return all(map(int.__lt__, places, places[1:]))
