"""The naive algorithm: of each object the K best pairs with older objects, found anew when needed.

When an object expires, every object that has it among its K best pairs looks for them again. This
is what the K-skyband is measured against; all O(KN) pairs are kept, and sorted when asked for.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section VI.B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.pairs.objects import LastObjects
from rsp_engine.operators.pairs.pairs import Pairs, best_pairs_first

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.pairs.skyband import PairScore

__all__ = ["NaivePairs"]


class NaivePairs:
    """Time for an object: O(N) for it and for each of about K ln N others; memory: O(KN)."""

    def __init__(self, k: int, width: int, score: PairScore) -> None:
        self.k = k
        self._score = score
        self._objects = LastObjects(width)
        self._best = LastObjects(2 * k)  # for each object: the scores and the older objects

    def arrive(self, row: Floats | list[float]) -> None:
        """Take a new object, and find its K best pairs."""
        row = np.asarray(row, dtype=np.float64)
        found = self._found(row, len(self._objects))
        self._objects.append(row)
        self._best.append(found)

    def expire(self, first: int) -> None:
        """Forget the objects before a position, and find what was lost with them."""
        self._objects.expire(first)
        self._best.expire(first)
        held, columns = self._best.columns, self._objects.columns
        lost = held[self.k :] < first  # where there is no pair, there is no number
        for place in np.flatnonzero(lost.any(axis=0)).tolist():
            held[:, place] = self._found(columns[:, place], place)

    def _found(self, row: Floats, count: int) -> Floats:
        """Return the K best pairs of an object with the first so many others."""
        scores = self._score(self._objects.columns[:, :count], row)
        found = np.full(2 * self.k, np.nan)
        if count > self.k:
            # Of equal ones the later is better, and only a sort that is stable knows.
            border = np.partition(scores, self.k - 1)[self.k - 1]
            near = np.flatnonzero(~(scores > border))  # NaN, for no pair, comes last
        else:
            near = np.arange(count)
        best = near[np.lexsort((-near, scores[near]))][: self.k]
        best = best[~np.isnan(scores[best])]
        found[: len(best)] = scores[best]
        found[self.k : self.k + len(best)] = best + self._objects.first
        return found

    def best(self, k: int) -> Pairs:
        """Return the k best pairs, where k is at most K."""
        held = self._best.columns
        scores, older = held[: self.k], held[self.k :]
        rows, places = np.nonzero(scores <= np.inf)
        numbers = older[rows, places].astype(np.int64)
        found = Pairs(scores[rows, places], numbers, places + self._best.first)
        return best_pairs_first(found).take(slice(0, k))
