"""The naive algorithm: for each object its K best pairs with older objects, recomputed on expiry.

When an object expires, the K best pairs of every object that has it among them are recomputed. All
O(KN) pairs are kept, and sorted for each answer. It is the baseline of the K-skyband.

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
    """The naive operator. Time per object: O(N) for it and for about K ln N others. Memory: O(KN).

    Positions and scores are those of `PairSkyband`.
    """

    def __init__(self, k: int, width: int, score: PairScore) -> None:
        self.k = k
        self._score = score
        self._objects = LastObjects(width)
        self._best = LastObjects(2 * k)  # per object: K scores, then K positions of older objects

    def arrive(self, row: Floats | list[float]) -> None:
        """Add a new object, and find its K best pairs."""
        row = np.asarray(row, dtype=np.float64)
        pairs = self._k_best(row, len(self._objects))
        self._objects.append(row)
        self._best.append(pairs)

    def expire(self, first: int) -> None:
        """Remove the objects before a position, and recompute the pairs of those that had them."""
        self._objects.expire(first)
        self._best.expire(first)
        pairs, columns = self._best.columns, self._objects.columns
        has_expired = pairs[self.k :] < first  # false for NaN, where there is no pair
        for place in np.flatnonzero(has_expired.any(axis=0)).tolist():
            pairs[:, place] = self._k_best(columns[:, place], place)

    def _k_best(self, row: Floats, count: int) -> Floats:
        """Return the K best pairs of an object with the first `count` objects."""
        scores = self._score(self._objects.columns[:, :count], row)
        pairs = np.full(2 * self.k, np.nan)
        if count > self.k:
            # The partition ignores ties, so keep all objects that tie with the K-th.
            border = np.partition(scores, self.k - 1)[self.k - 1]
            near = np.flatnonzero(~(scores > border))  # NaN, for no pair, sorts last
        else:
            near = np.arange(count)
        best = near[np.lexsort((-near, scores[near]))][: self.k]
        best = best[~np.isnan(scores[best])]
        pairs[: len(best)] = scores[best]
        pairs[self.k : self.k + len(best)] = best + self._objects.first
        return pairs

    def best(self, k: int) -> Pairs:
        """Return the k best pairs, where k is at most K."""
        columns = self._best.columns
        scores, older = columns[: self.k], columns[self.k :]
        rows, places = np.nonzero(scores <= np.inf)
        positions = older[rows, places].astype(np.int64)
        pairs = Pairs(scores[rows, places], positions, places + self._best.first)
        return best_pairs_first(pairs).take(slice(0, k))
