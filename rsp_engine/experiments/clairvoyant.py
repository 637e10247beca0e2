"""The clairvoyant: what an election reaches that knows every remote value before it fetches it.

In each window it fetches key by key, each time the one after whose refresh the answer is best, by
the sum of nDCG@k and precision@k. Of equal ones it takes the one whose place, by its true value or
by the replica's, is highest. It fetches no key that would make the answer worse, and leaves budget
over if there is none.

So it is an answer that some election within the budget gives. No election is better in a window
where it reaches the oracle's answer. In others one may be: it looks neither two fetches ahead nor
at later windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.workload import WEIGHTS

if TYPE_CHECKING:
    from rsp_engine.experiments.workload import ScoreBounds
    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["CLAIRVOYANT", "Clairvoyant", "ClairvoyantAnswer", "WindowTruth"]

CLAIRVOYANT = "CLAIRVOYANT"
"""Its name among the policies of a suite."""

_DIGITS = 15
"""Scores that are equal so far are ties, which are broken as the oracle breaks them."""


class WindowTruth(NamedTuple):
    """The users of a window in the order of the oracle, with mn and the true dfc of each."""

    users: Integers
    streamed: Integers
    dfc: Floats


class ClairvoyantAnswer(NamedTuple):
    """The answer of a window, best first, its dfc in the replica, and the number of fetches."""

    users: Integers
    dfc: Floats
    fetched: int


class Clairvoyant:
    """Answers window by window, with a replica of its own."""

    def __init__(self, bounds: ScoreBounds, initial: Floats, k: int) -> None:
        self._bounds = bounds
        self._replica = initial
        self._k = k

    def answer(self, truth: WindowTruth, budget: int) -> ClairvoyantAnswer:
        """Fetch at most `budget` keys, and return the answer of a window."""
        values = self._replica[truth.users]
        goodness = _Goodness(self._k, len(truth.users))
        true_scores, scores = self._scores(truth, truth.dfc), self._scores(truth, values)
        fetched = 0
        now = goodness.of(scores[None, :])[0]
        while fetched < budget:
            stale = np.flatnonzero(values != truth.dfc)
            if not len(stale):
                break
            tried = np.repeat(scores[None, :], len(stale), axis=0)
            tried[np.arange(len(stale)), stale] = true_scores[stale]
            found = goodness.of(tried)
            highest = np.minimum(stale, _places(scores)[stale])
            best = np.lexsort((highest, -found))[0]
            if found[best] < now:
                break
            now, one = found[best], stale[best]
            values[one], scores[one] = truth.dfc[one], true_scores[one]
            fetched += 1
        self._replica[truth.users] = values
        shown = np.argsort(-scores, kind="stable")[: self._k]
        return ClairvoyantAnswer(truth.users[shown], values[shown], fetched)

    def _scores(self, truth: WindowTruth, dfc: Floats) -> Floats:
        """Return the scores of the query; a user without a value is last."""
        (fewest, most), (least, largest) = self._bounds
        by_mn = WEIGHTS[0] * (truth.streamed - fewest) / max(most - fewest, 1)
        by_dfc = WEIGHTS[1] * (dfc - least) / max(largest - least, 1e-9)
        return np.nan_to_num(np.round(by_mn + by_dfc, _DIGITS), nan=-np.inf)


class _Goodness:
    """nDCG@k + precision@k of many scorings at once, of users in the order of the oracle."""

    def __init__(self, k: int, count: int) -> None:
        shown = min(k, count)
        self._shown = shown
        ranks = np.arange(count)
        # Relevances are divided by 2^(2k), the largest, so that none is too large.
        depth = 2 * k
        gains = np.where(ranks < depth, 0.5**ranks - 0.5**depth, 0.0)
        discounts = 1 / np.log2(np.arange(shown) + 2)
        self._relevance = gains[:, None] * discounts / max(float(gains[:shown] @ discounts), 1e-300)

    def of(self, scores: Floats) -> Floats:
        """Return the sum for each row of scores."""
        places = np.argsort(-scores, axis=1, kind="stable")[:, : self._shown]
        ndcg = self._relevance[places, np.arange(self._shown)].sum(axis=1)
        right = (places < self._shown).mean(axis=1)
        total: Floats = np.round(np.minimum(ndcg, 1) + right, _DIGITS)
        return total


def _places(scores: Floats) -> Integers:
    """Return the place of each score, from 0 for the largest."""
    places = np.empty(len(scores), dtype=np.int64)
    places[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return places
