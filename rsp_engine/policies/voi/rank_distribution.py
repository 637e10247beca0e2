"""The distribution of ranks when scores are uncertain: pi and g of each object at each score.

The score of u is a random variable Y_u over a few scores. A_w(y) is the probability that w ranks
above u if Y_u = y: its score is larger, or it is equal and w wins the tie. Then

    pi_u(y) = Phi((K - 1/2 - sum A_w) / sqrt(sum A_w (1 - A_w) + 1e-4))      sums over w != u
    g_u(y)  = max(0, prod (1 - A_w / 2) - 2^-K)

pi is the probability that u is in the top K, by the normal approximation; 1 if there are at most K
objects. g is the expected gain of u, as E[2^-(objects above u)], less 2^-K, so that an object below
the K-th rank gains nothing.

All scores of all objects are sorted together, best first. Along this order each A_w only grows, so
a sum over objects is a running sum of increments: O(m log m) for m scores in total, where comparing
n objects pairwise would take O(n m).

(Refresh by the value of information: docs/explanation/voi.md, "The rank of an object".)
"""

from __future__ import annotations

from math import erf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.candidates import Outlook

__all__ = ["RankDistribution", "rank_distribution"]

_LEAST_VARIANCE = 1e-4


class RankDistribution(NamedTuple):
    """pi and g of each object (row) at each of its scores (column), and their means over Y_u.

    `above` is the sum of A_w: the expected number of objects above.
    """

    above: Floats
    pi: Floats
    g: Floats
    p_in: Floats
    gain: Floats


def rank_distribution(outlook: Outlook, k: int) -> RankDistribution:
    """Return pi and g of each object at each of its scores."""
    scores, chances = outlook.scores, outlook.chances
    count, width = scores.shape
    # Each row from its best score down: A at a score is the probability mass before it.
    falling = np.argsort(-scores, axis=1, kind="stable")
    own = np.take_along_axis(chances, falling, axis=1)
    until = np.minimum(np.cumsum(own, axis=1), 1.0)
    before = np.concatenate((np.zeros((count, 1)), until[:, :-1]), axis=1)
    order = np.lexsort(
        (
            np.repeat(-outlook.precedence, width),
            -np.take_along_axis(scores, falling, axis=1).ravel(),
        )
    )
    above = _others(before, until, order)
    squares = _others(before**2, until**2, order)
    halves = _others(np.log1p(-before / 2), np.log1p(-until / 2), order)
    if count <= k:
        pi = np.ones((count, width))
    else:
        deviation = np.sqrt(np.maximum(above - squares, 0.0) + _LEAST_VARIANCE)
        pi = _normal((k - 0.5 - above) / deviation)
    gain = np.maximum(np.exp(halves) - 0.5**k, 0.0)
    back = np.argsort(falling, axis=1, kind="stable")
    above, pi, gain = (np.take_along_axis(each, back, axis=1) for each in (above, pi, gain))
    p_in, mean_gain = (chances * pi).sum(axis=1), (chances * gain).sum(axis=1)
    return RankDistribution(above, pi, gain, p_in, mean_gain)


def _others(
    before: Floats, until: Floats, order: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> Floats:
    """Return at each score the sum, over the other objects, of their terms before that score."""
    increments = (until - before).ravel()[order]
    sums = np.empty(before.size)
    sums[order] = np.cumsum(increments) - increments
    return sums.reshape(before.shape) - (before - before[:, :1])


def _normal(values: Floats) -> Floats:
    """Return Phi, the normal distribution function, of each value."""
    scaled = (values / sqrt(2)).ravel().tolist()
    errors = np.fromiter(map(erf, scaled), dtype=np.float64, count=len(scaled))
    return (1 + errors.reshape(values.shape)) / 2
