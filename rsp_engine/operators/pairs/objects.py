"""The last objects of a stream, as columns of float64: the paper's stream manager.

Objects are appended at the end, and the oldest expire. They are contiguous in memory, so that a new
object is scored with all others by a few array operations.

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
    """The values of the objects at the positions `first` to `end` - 1, column by column.

    `extra` is the number of additional columns, which are infinite for a new object.

    >>> objects = LastObjects(1)
    >>> for value in (5.0, 6.0, 7.0):
    ...     objects.append([value])
    >>> objects.expire(1)
    >>> objects.columns, objects.first, objects.end
    (array([[6., 7.]]), 1, 3)
    """

    def __init__(self, width: int, extra: int = 0) -> None:
        self.first = self.end = 0
        self._start = 0  # the index of the first object in the buffer
        self._width = width
        self._buffer = np.empty((width + extra, 16))

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def columns(self) -> Floats:
        """The values of all objects, column by column, to be read or overwritten."""
        return self._buffer[:, self._start : self._start + len(self)]

    def append(self, row: Floats | list[float]) -> None:
        """Append a new object. Time: O(width), amortised."""
        place = self._start + self.end - self.first
        if place == self._buffer.shape[1]:
            self._make_room()
            place = self._start + self.end - self.first
        self._buffer[: self._width, place] = row
        self._buffer[self._width :, place] = np.inf
        self.end += 1

    def insert(self, position: int, row: Floats | list[float]) -> None:
        """Insert an object; those from this position on move by one. Time: O(objects)."""
        if self._start + len(self) == self._buffer.shape[1]:
            self._make_room()
        place = self._start + position - self.first
        last = self._start + len(self)
        self._buffer[:, place + 1 : last + 1] = self._buffer[:, place:last].copy()
        self._buffer[: self._width, place] = row
        self._buffer[self._width :, place] = np.inf
        self.end += 1

    def expire(self, first: int) -> None:
        """Remove the objects before a position."""
        count = min(max(first - self.first, 0), len(self))
        self.first += count
        self._start += count

    def rows(self, positions: Integers) -> Floats:
        """Return the values of some objects, column by column."""
        return self._buffer[:, positions - (self.first - self._start)]

    def restore(self, first: int, values: Floats) -> None:
        """Replace all objects."""
        length = values.shape[1]
        self._buffer = np.full((len(self._buffer), max(16, 2 * length)), np.inf)
        self._buffer[: self._width, :length] = values
        self._start, self.first, self.end = 0, first, first + length

    def _make_room(self) -> None:
        width, capacity = self._buffer.shape
        live = self.columns
        # At least half of the buffer is free afterwards, which makes an append O(1) amortised.
        if 2 * len(self) > capacity:
            self._buffer = np.empty((width, 2 * capacity))
            self._buffer[:, : len(self)] = live
        else:
            self._buffer[:, : len(self)] = live.copy()
        self._start = 0
