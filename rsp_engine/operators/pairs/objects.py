"""The last objects of a stream, as columns of float64: what the paper's stream manager keeps.

Objects are appended, and the oldest leave. They lie side by side in memory, so that a new object is
scored against all others by a few operations on arrays.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section III.B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["LastObjects"]


class LastObjects:
    """Rows of values by position, from `first` up to, and without, `end`.

    There may be more columns than values: they are infinite at first.

    >>> objects = LastObjects(1)
    >>> for value in (5.0, 6.0, 7.0):
    ...     objects.append([value])
    >>> objects.expire(1)
    >>> objects.columns, objects.first, objects.end
    (array([[6., 7.]]), 1, 3)
    """

    def __init__(self, width: int, more: int = 0) -> None:
        self.first = self.end = 0
        self._start = 0  # where the first object lies
        self._width = width
        self._held = np.empty((width + more, 16))

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def columns(self) -> Floats:
        """The values of all objects, column by column, to be read or overwritten."""
        return self._held[:, self._start : self._start + len(self)]

    def append(self, row: Floats | list[float]) -> None:
        """Take a new object. Time: O(width), amortised."""
        place = self._start + self.end - self.first
        if place == self._held.shape[1]:
            self._make_room()
            place = self._start + self.end - self.first
        self._held[: self._width, place] = row
        self._held[self._width :, place] = np.inf
        self.end += 1

    def insert(self, position: int, row: Floats | list[float]) -> None:
        """Take an object in between; those from this position on move by one. Time: O(objects)."""
        if self._start + len(self) == self._held.shape[1]:
            self._make_room()
        place = self._start + position - self.first
        last = self._start + len(self)
        self._held[:, place + 1 : last + 1] = self._held[:, place:last].copy()
        self._held[: self._width, place] = row
        self._held[self._width :, place] = np.inf
        self.end += 1

    def expire(self, first: int) -> None:
        """Forget the objects before a position."""
        gone = min(max(first - self.first, 0), len(self))
        self.first += gone
        self._start += gone

    def rows(self, positions: Integers) -> Floats:
        """Return the values of some objects, column by column."""
        return self._held[:, positions - (self.first - self._start)]

    def restore(self, first: int, values: Floats) -> None:
        """Hold these objects, and no others."""
        length = values.shape[1]
        self._held = np.full((len(self._held), max(16, 2 * length)), np.inf)
        self._held[: self._width, :length] = values
        self._start, self.first, self.end = 0, first, first + length

    def _make_room(self) -> None:
        width, capacity = self._held.shape
        live = self.columns
        # Half of the room is free after this, so it is not done again before as many have come.
        if 2 * len(self) > capacity:
            self._held = np.empty((width, 2 * capacity))
            self._held[:, : len(self)] = live
        else:
            self._held[:, : len(self)] = live.copy()
        self._start = 0
