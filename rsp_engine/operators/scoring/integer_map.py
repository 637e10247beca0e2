"""A map from integers to integers, as two sorted columns, for many keys at once.

>>> numbers = IntegerMap()
>>> numbers.insert(np.array([3, 7]), 0)
>>> numbers.values[numbers.places(np.array([7, 7]))] += 2
>>> numbers.remove(np.array([3]))
>>> numbers.keys, numbers.values
(array([7]), array([2]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Integers

__all__ = ["IntegerMap"]


class IntegerMap:
    """A sorted map. Time for n keys of m: O(n log m), and O(m) to insert or remove some."""

    def __init__(self) -> None:
        self.keys: Integers = np.empty(0, dtype=np.int64)
        self.values: Integers = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    def places(self, keys: Integers) -> Integers:
        """Return the indices of keys that the map has."""
        return np.searchsorted(self.keys, keys)

    def has(self, keys: Integers) -> Booleans:
        """Return which keys the map has."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.bool_)
        places = np.minimum(self.places(keys), len(self.keys) - 1)
        known: Booleans = self.keys[places] == keys
        return known

    def insert(self, keys: Integers, value: int | Integers) -> None:
        """Add sorted distinct keys that the map does not have, with one value or one for each."""
        if not len(keys):
            return
        is_last = not len(self.keys) or keys[0] > self.keys[-1]
        places = np.full(len(keys), len(self.keys)) if is_last else self.places(keys)
        self.keys = np.insert(self.keys, places, keys)
        self.values = np.insert(self.values, places, value)

    def remove(self, keys: Integers) -> None:
        """Remove keys, if the map has them."""
        places = self.places(keys[self.has(keys)])
        if len(places):
            kept = np.ones(len(self.keys), dtype=np.bool_)
            kept[places] = False
            self.keys, self.values = self.keys[kept], self.values[kept]
