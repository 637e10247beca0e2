"""The K-staircase, and K-skyband and K-staircase made of pairs in one pass.

A point of age-score space that a step of the staircase dominates is dominated by K pairs. So a new
pair, which is the best of all pairs of its score, can be in the K-skyband only if its score is not
larger than that of the step for its age.

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
    """Steps of rising scores and falling ages, so `older` rises too."""

    scores: Floats
    older: Integers

    def dominates(self, score: float, older: int) -> bool:
        """Tell whether a new pair is dominated by K pairs. Time: O(log steps).

        Steps with a smaller score have a larger age, so the first step that is young enough tells.
        """
        place = int(np.searchsorted(self.older, older))
        return place < len(self.older) and bool(self.scores[place] < score)

    def bounds(self, first: int, end: int) -> Floats:
        """Return the largest score that is not dominated, for each position of an older object.

        It is infinite where fewer than K pairs are as young. Time: O(end - first).
        """
        made = np.full(end - first, np.inf)
        edges = np.minimum(np.maximum(self.older - (first - 1), 0), end - first)
        lengths = edges.copy()
        lengths[1:] -= edges[:-1]
        steps = self.scores.repeat(lengths)
        made[: len(steps)] = steps
        return made


def update_skyband_and_staircase(pairs: Pairs, k: int) -> tuple[Integers, Staircase]:
    """Return the places of the pairs in the K-skyband, and the K-staircase (Algorithm 4).

    The pairs come best first. The heap holds the K youngest of those that were looked at, the
    oldest of them on top. Time: O(pairs log k).
    """
    ages: list[int] = pairs.older.tolist()
    heap = ages[:k]
    heapify(heap)
    kept = list(range(len(heap)))
    if len(heap) < k:  # no K pairs dominate anything
        return np.array(kept, dtype=np.int64), Staircase(pairs.scores[:0], pairs.older[:0])
    oldest = heap[0]
    tops = [oldest]
    for place, older in enumerate(islice(ages, k, None), k):
        if older > oldest:
            heapreplace(heap, older)
            oldest = heap[0]
            kept.append(place)
            tops.append(oldest)
    found = np.array(kept, dtype=np.int64)
    return found, Staircase(pairs.scores[found[k - 1 :]], np.array(tops, dtype=np.int64))
