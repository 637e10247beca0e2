"""The Mann-Whitney ranks test, and the constants that SAP takes from the three-sigma rule.

The scores of two samples are ranked together. If the rank sum of the first is too large to be due
to chance, its distribution tends to be larger. Ties share their average rank.

For samples of ten or more the rank sum is approximated as normal, with mean n1 (n1 + n2 + 1) / 2
(section 2.2 of SAP prints rank sums in place of the sizes; its Equation 2 is right). For smaller
samples its exact distribution is enumerated, as in the tables that the paper refers to. (Equation 2
lists k = 10 under both cases; here it is normal.)

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017, sections 2.2, 4.2 and 4.3.
"""

from __future__ import annotations

from functools import cache
from math import comb, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats

__all__ = ["eta", "rank_sum", "tends_to_be_larger", "upper_rank_sum", "zeta", "zeta_max"]

_ALPHA = 0.05  # the significance level of the test
_UPPER = 1.959963984540054  # the 1 - alpha / 2 quantile of the normal distribution


def zeta(k: int) -> float:
    """Return zeta*, the solution of (x - k) / sqrt(x) = 3.

    By the three-sigma rule, at least k objects of a similar set exceed the zeta*-th best of a set.

    >>> zeta(10), round(zeta(100), 3)
    (25.0, 134.836)
    """
    return ((3 + sqrt(9 + 4 * k)) / 2) ** 2


def zeta_max(k: int) -> float:
    """Return the solution of (x - zeta*) / sqrt(zeta*) = 3; a larger count means rising scores.

    >>> zeta_max(10)
    40.0
    """
    return zeta(k) + 3 * sqrt(zeta(k))


def eta(k: int) -> float:
    """Return the solution of (x k - k) / sqrt(x k) = 3.

    By the three-sigma rule, a sample that is eta times larger has the better k-th object.

    >>> eta(10), round(eta(1000), 4)
    (2.5, 1.0995)
    """
    return zeta(k) / k


def rank_sum(first: Floats, second: Floats) -> float:
    """Return R_1, the rank sum of the first sample; the smallest score of both has rank 1.

    >>> rank_sum(np.array([2.0, 5.0]), np.array([1.0, 5.0]))
    5.5
    """
    both = np.sort(np.concatenate((first, second)))
    below, until = both.searchsorted(first, "left"), both.searchsorted(first, "right")
    return float((below + until + 1).sum() / 2)


def tends_to_be_larger(first: Floats, second: Floats) -> bool:
    """Return whether the function F of Equation 2 is positive.

    >>> tends_to_be_larger(np.arange(20.0), np.arange(20.0))
    False
    >>> tends_to_be_larger(np.arange(10.0, 30.0), np.arange(20.0))
    True
    """
    n1, n2 = len(first), len(second)
    total = rank_sum(first, second)
    if min(n1, n2) < 10:
        return total > upper_rank_sum(n1, n2)
    mean, deviation = n1 * (n1 + n2 + 1) / 2, sqrt(n1 * n2 * (n1 + n2 + 1) / 12)
    return (total - mean) / deviation > _UPPER


@cache
def upper_rank_sum(n1: int, n2: int) -> int:
    """Return T_up, which a rank sum exceeds by chance with probability at most alpha / 2.

    >>> upper_rank_sum(5, 5), upper_rank_sum(4, 6)
    (37, 31)
    """
    ways = _ways(n1, n1 + n2)
    allowed, above = comb(n1 + n2, n1) * _ALPHA / 2, 0
    for total in range(len(ways) - 1, 0, -1):
        above += ways[total]
        if above > allowed:
            return total
    return 0


def _ways(count: int, largest: int) -> list[int]:
    """Return for each sum the number of ways to reach it with `count` ranks up to `largest`."""
    most = count * largest
    ways = [[1] + [0] * most] + [[0] * (most + 1) for _ in range(count)]
    for rank in range(1, largest + 1):
        for taken in range(min(count, rank), 0, -1):
            fewer, more = ways[taken - 1], ways[taken]
            for total in range(rank, most + 1):
                more[total] += fewer[total - rank]
    return ways[count]
