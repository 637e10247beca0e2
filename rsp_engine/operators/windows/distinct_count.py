"""The number of distinct triples in a window, by their fingerprints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from rsp_engine.model.arrays import Integers

__all__ = ["DistinctCount"]


class DistinctCount:
    """Counts what is in at least one part. Time of a change: a copy of the fingerprints.

    >>> count = DistinctCount()
    >>> count.move({"first": np.array([1, 2]), "second": np.array([2, 3])})
    3
    >>> count.move({"second": np.array([2, 3])})
    2
    """

    def __init__(self) -> None:
        self._parts: dict[Hashable, Integers] = {}
        self._all = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)  # the number of parts that have each

    def move(self, parts: Mapping[Hashable, Integers]) -> int:
        """Replace the parts, each sorted and without repeats; return the number of distinct ones.

        The part of a key never changes.
        """
        for key in [key for key in self._parts if key not in parts]:
            self._remove(self._parts.pop(key))
        for key in [key for key in parts if key not in self._parts]:
            self._parts[key] = parts[key]
            self._add(parts[key])
        return len(self._all)

    def _add(self, part: Integers) -> None:
        places = np.searchsorted(self._all, part)
        is_known = np.zeros(len(part), dtype=np.bool_)
        is_inside = places < len(self._all)
        is_known[is_inside] = self._all[places[is_inside]] == part[is_inside]
        self._counts[places[is_known]] += 1
        new = places[~is_known]
        self._all = np.insert(self._all, new, part[~is_known])
        self._counts = np.insert(self._counts, new, 1)

    def _remove(self, part: Integers) -> None:
        places = np.searchsorted(self._all, part)
        self._counts[places] -= 1
        gone = places[self._counts[places] == 0]
        self._all, self._counts = np.delete(self._all, gone), np.delete(self._counts, gone)
