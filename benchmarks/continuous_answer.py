"""The answer of a continuous query, maintained from window to window.

Expired pairs leave it, and new pairs that are better than its last pair enter. Only if fewer than k
remain is the answer recomputed from the skyband, because pairs below the last remaining one may be
better than any new pair. Objects must arrive in order.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section IV.B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.operators.pairs.pairs import as_pairs, best_pairs_first, concatenated_pairs

if TYPE_CHECKING:
    from rsp_engine.operators.pairs.pairs import Pairs
    from rsp_engine.operators.pairs.skyband import PairSkyband

__all__ = ["ContinuousAnswer"]


class ContinuousAnswer:
    """The k best pairs of a window that slides over a skyband. Memory: O(k).

    Time: O(new pairs + k), and with a probability of about k / n that of a snapshot.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.recomputed = 0
        """The number of times the answer was recomputed."""
        self._best = as_pairs([], [], [])
        self._seen = 0

    def update(self, skyband: PairSkyband, since: int) -> Pairs:
        """Return the k best pairs of the objects from a position on, best first."""
        pairs = skyband.pairs()
        left = self._best.since(since)
        if len(left.scores):
            new = pairs.take(pairs.newer >= self._seen).since(since)
            new = new.take(new.scores <= left.scores[-1])  # newer pairs win ties
            self._best = best_pairs_first(concatenated_pairs([left, new])).take(slice(0, self.k))
        if len(self._best.scores) < self.k or not len(left.scores):
            self.recomputed += 1
            self._best = skyband.best(self.k, since)
        self._seen = skyband.end
        return self._best
