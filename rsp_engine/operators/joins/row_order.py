"""The order of rows by their text, found from the order of the distinct terms of each column.

A row is written as its terms with tabs between them. No term is the beginning of another that goes
on with a character below the tab, so rows are in the order of their first terms, then of their
second ones, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Integers

__all__ = ["RowOrder"]

_MOST = 1 << 62


class RowOrder:
    """The order of rows, given as codes of a dictionary that only grows.

    Memory: the distinct terms of the last rows. Those that come again are not sorted again.

    >>> order = RowOrder(2)
    >>> order.of([np.array([0, 1, 0]), np.array([1, 2, 2])], ["b", "a", "c"])
    array([1, 0, 2])
    """

    def __init__(self, width: int) -> None:
        self._sorted = [np.empty(0, dtype=np.int64) for _ in range(width)]

    def of(self, columns: Sequence[Integers], texts: Sequence[str]) -> Integers:
        """Return the places of rows in the order of their texts; `texts` are those of all codes."""
        ranks = [self._ranks(number, codes, texts) for number, codes in enumerate(columns)]
        sizes = [len(each) for each in self._sorted]
        if int(np.prod([max(size, 1) for size in sizes], dtype=object)) > _MOST:
            return np.lexsort(ranks[::-1])
        keys, *others = ranks
        for size, more in zip(sizes[1:], others, strict=True):
            keys = keys * size + more
        return np.argsort(keys)

    def _ranks(self, number: int, codes: Integers, texts: Sequence[str]) -> Integers:
        """Return the rank of each term among the distinct ones of a column."""
        is_there = np.zeros(len(texts), dtype=np.bool_)
        is_there[codes] = True
        before = self._sorted[number]
        before = before[is_there[before]]
        is_there[before] = False
        found = np.concatenate((before, np.flatnonzero(is_there)))
        if len(found) > len(before):
            names = [texts[code] for code in found.tolist()]
            # A sort that begins with the order before is fast: it merges the new terms.
            found = found[sorted(range(len(names)), key=names.__getitem__)]
        self._sorted[number] = found
        ranks = np.empty(len(texts), dtype=np.int64)
        ranks[found] = np.arange(len(found))
        return ranks[codes]
