"""The basic algorithm: the K-skyband of pairs without a K-staircase.

Each new object is scored with the whole window. Without a staircase, all its pairs are sorted into
the skyband, and one pass counts the dominators of each. The paper adds "all applicable
optimizations (e.g., dominance counter)" of earlier algorithms, without details; the counter is here
the heap of Algorithm 4.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section VI.D.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.pairs.objects import LastObjects
from rsp_engine.operators.pairs.pairs import Pairs, as_pairs, best_pairs_first, concatenated_pairs
from rsp_engine.operators.pairs.staircase import update_skyband_and_staircase

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.pairs.skyband import PairScore

__all__ = ["BasicSkyband"]


class BasicSkyband:
    """The K-skyband without a staircase. Time per object: O(N log N). Memory: as `PairSkyband`."""

    def __init__(self, k: int, width: int, score: PairScore) -> None:
        self.k = k
        self._score = score
        self._objects = LastObjects(width)
        self._pairs = as_pairs([], [], [])

    def fill(self, first: int, columns: Floats, pairs: Pairs) -> None:
        """Start with a window and its skyband."""
        self._objects.restore(first, columns)
        self._pairs = pairs

    def arrive(self, row: Floats | list[float]) -> None:
        """Add a new object."""
        row = np.asarray(row, dtype=np.float64)
        objects = self._objects
        scores = self._score(objects.columns, row)
        older = np.arange(objects.first, objects.end)
        new = Pairs(scores, older, np.full(len(scores), objects.end)).take(~np.isnan(scores))
        candidates = best_pairs_first(concatenated_pairs([self.pairs(), new]))
        kept, _ = update_skyband_and_staircase(candidates, self.k)
        self._pairs = candidates.take(kept)
        objects.append(row)

    def expire(self, first: int) -> None:
        """Remove the objects before a position."""
        self._objects.expire(first)

    def pairs(self) -> Pairs:
        """Return the pairs of the K-skyband, best first."""
        return self._pairs.since(self._objects.first)
