"""The best of a batch, found by looking at few of it."""

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
    """Finds those of a batch that can be among its k best. The batch before tells where to look.

    Only few of many scores are near the top. Those above a border guessed from the last batch are
    enough; if the guess was bad, a partition finds a better one.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        # So many above the border leave at least k of the next batch above it, in all likelihood.
        self.some = k + 6 * isqrt(k) + 10
        self.guess = float(np.inf)
        self.lowest = -np.inf  # those that were left out last are below

    def above(self, scores: Floats) -> NDArray[np.intp] | None:
        """Return the places of at least k scores, the best; nothing means all of a small batch.

        A score that is not a number is above no border.
        """
        self.lowest = -np.inf
        if len(scores) <= 2 * self.some:
            return None
        above = np.flatnonzero(scores >= self.guess)
        if self.k <= len(above) <= 16 * self.k:
            self.lowest = self.guess
            return above
        wanted = self.some
        # NaN counts as large in a partition: a border among the numbers is found below them.
        if unknown := int(np.count_nonzero(np.isnan(scores))):
            wanted = min(wanted + unknown, len(scores))
        border = float(np.partition(scores, len(scores) - wanted)[len(scores) - wanted])
        if isnan(border):
            return None
        self.lowest = border
        return np.flatnonzero(scores >= border)

    def learn(self, scores: Floats) -> None:
        """Take the border of the next batch from the scores of this one, best first."""
        if len(scores):
            self.guess = float(scores[min(self.some, len(scores)) - 1])


class ScoreThreshold:
    """Reduces arrivals to the k best keys, best first. A key always has the same score."""

    def __init__(self, k: int) -> None:
        self._border = Border(k)

    def __call__(self, arrivals: Arrivals) -> Arrivals:
        """Return the k best of a batch, each key once, best first."""
        above = self._border.above(arrivals.scores)
        if above is None:
            return best_arrivals_first(arrivals).first(self._border.k)
        best = best_arrivals_first(arrivals.take(above))
        if len(best.keys) < self._border.k:
            best = best_arrivals_first(arrivals)  # the same few keys again and again
        self._border.learn(best.scores)
        return best.first(self._border.k)
