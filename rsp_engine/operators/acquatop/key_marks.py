"""Which arrivals of a batch belong to some keys, found in one look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Integers

__all__ = ["KeyMarks"]


class KeyMarks:
    """A table with a mark for each key; memory: a byte for each. Keys are dense integers."""

    def __init__(self) -> None:
        self._marks: Booleans = np.zeros(0, dtype=bool)

    def reach(self, largest: int) -> None:
        """Make room for keys: none is larger."""
        if largest >= len(self._marks):
            self._marks = np.zeros(max(largest + 1, 2 * len(self._marks)), dtype=bool)

    def places(self, keys: Integers, *sought: Integers) -> NDArray[np.intp]:
        """Return the places of keys that are among those that are sought.

        >>> table = KeyMarks()
        >>> table.reach(3)
        >>> table.places(np.array([3, 1, 3, 2]), np.array([3]), np.array([2])).tolist()
        [0, 2, 3]
        """
        for array in sought:
            self._marks[array] = True
        found = self._marks.take(keys).nonzero()[0]
        for array in sought:
            self._marks[array] = False
        return found
