"""The K-staircase, and the one-pass computation of K-skyband and K-staircase.

A point of the age-score space that a step of the staircase dominates is dominated by K pairs. So a
new pair, which wins all ties, can be in the K-skyband only if its score does not exceed that of the
step for its age.

>>> from rsp_engine.operators.pairs.pairs import as_pairs
>>> pairs = as_pairs([1, 2, 3, 4, 5, 6], [-6, -9, -4, -7, -1, -2], [0] * 6)
>>> kept, staircase = update_skyband_and_staircase(pairs, 2)
>>> kept.tolist(), staircase.scores.tolist(), staircase.older.tolist()
([0, 1, 2, 4, 5], [2.0, 3.0, 5.0, 6.0], [-9, -6, -4, -2])

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section V.A and Algorithm 4.
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.pairs.pairs import Pairs

__all__ = ["Staircase", "update_skyband_and_staircase"]


class Staircase(NamedTuple):
    """Steps of ascending score and descending age, so `older` is ascending too."""

    scores: Floats
    older: Integers

    def dominates(self, score: float, older: int) -> bool:
        """Return whether a new pair is dominated by K pairs. Time: O(log steps).

        The first step that is young enough decides, because it has the smallest score of those.
        """
        place = int(np.searchsorted(self.older, older))
        return place < len(self.older) and bool(self.scores[place] < score)

    def bounds(self, first: int, end: int) -> Floats:
        """Return the largest score that is not dominated, for each position of an older object.

        It is infinite where fewer than K pairs are as young. Time: O(end - first).
        """
        bounds = np.full(end - first, np.inf)
        edges = np.minimum(np.maximum(self.older - (first - 1), 0), end - first)
        lengths = edges.copy()
        lengths[1:] -= edges[:-1]
        steps = self.scores.repeat(lengths)
        bounds[: len(steps)] = steps
        return bounds


def update_skyband_and_staircase(pairs: Pairs, k: int) -> tuple[Integers, Staircase]:
    """Return the indices of the pairs in the K-skyband, and the K-staircase (Algorithm 4).

    The pairs are sorted best first. The heap contains the K youngest pairs so far, the oldest of
    them on top. Time: O(pairs log k).
    """
    ages: list[int] = pairs.older.tolist()
    heap = ages[:k]
    heapify(heap)
    kept = list(range(len(heap)))
    if len(heap) < k:  # fewer than K pairs dominate nothing
        return np.array(kept, dtype=np.int64), Staircase(pairs.scores[:0], pairs.older[:0])
    oldest = heap[0]
    tops = [oldest]
    for place, older in enumerate(islice(ages, k, None), k):
        if older > oldest:
            heapreplace(heap, older)
            oldest = heap[0]
            kept.append(place)
            tops.append(oldest)
    skyband = np.array(kept, dtype=np.int64)
    return skyband, Staircase(pairs.scores[skyband[k - 1 :]], np.array(tops, dtype=np.int64))
