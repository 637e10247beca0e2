"""The k best arrivals of a batch, selected by a score threshold learnt from the batch before."""

from __future__ import annotations

from math import isnan, isqrt
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.topk.contract import Arrivals, best_arrivals_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats

__all__ = ["Border", "ScoreThreshold"]


class Border:
    """A score threshold that selects the arrivals of a batch that can be among its k best.

    The threshold is a guess from the batch before. If it selects too few or too many, a partition
    of the batch (`np.partition`) finds a better one.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        # Chosen so that at least k scores of a similar next batch very likely exceed the border.
        self.margin = k + 6 * isqrt(k) + 10
        self.guess = float(np.inf)
        self.lowest = -np.inf  # every score that the last call left out is smaller

    def above(self, scores: Floats) -> NDArray[np.intp] | None:
        """Return the indices of at least k best scores, or None to take the whole batch.

        NaN is above no border.
        """
        self.lowest = -np.inf
        if len(scores) <= 2 * self.margin:
            return None
        above = np.flatnonzero(scores >= self.guess)
        if self.k <= len(above) <= 16 * self.k:
            self.lowest = self.guess
            return above
        count = self.margin
        # np.partition sorts NaN above every number, so skip as many places as there are NaN.
        if nan_count := int(np.count_nonzero(np.isnan(scores))):
            count = min(count + nan_count, len(scores))
        border = float(np.partition(scores, len(scores) - count)[len(scores) - count])
        if isnan(border):
            return None
        self.lowest = border
        return np.flatnonzero(scores >= border)

    def learn(self, scores: Floats) -> None:
        """Guess the border of the next batch from the scores of this one, best first."""
        if len(scores):
            self.guess = float(scores[min(self.margin, len(scores)) - 1])


class ScoreThreshold:
    """A filter that keeps the k best keys of a batch. A key always has the same score."""

    def __init__(self, k: int) -> None:
        self._border = Border(k)

    def __call__(self, arrivals: Arrivals) -> Arrivals:
        """Return the k best arrivals of a batch, one per key, best first."""
        above = self._border.above(arrivals.scores)
        if above is None:
            return best_arrivals_first(arrivals).first(self._border.k)
        best = best_arrivals_first(arrivals.take(above))
        if len(best.keys) < self._border.k:
            best = best_arrivals_first(arrivals)  # the selected arrivals have too few distinct keys
        self._border.learn(best.scores)
        return best.first(self._border.k)
