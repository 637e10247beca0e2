"""The Mann-Whitney ranks test, and the constants that SAP takes from the three-sigma rule.

All of the scores of two samples are put into one order. If those of the first stand too high in it
to be there by chance, what they were drawn from tends to be larger. Equal scores share their ranks.

For samples of ten or more the sum of ranks is taken to be normal, with the mean
n1 (n1 + n2 + 1) / 2 (section 2.2 of SAP prints sums of ranks in place of the sizes; its Equation 2
is right); for smaller ones its distribution is counted out, as the tables do that the paper means.
(Equation 2 gives both cases for k = 10; here it is normal.)

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

__all__ = ["eta", "rank_sum", "tends_to_be_larger", "zeta", "zeta_max"]

_ALPHA = 0.05  # how often the test may reject what is true
_UPPER = 1.959963984540054  # the normal distribution leaves alpha / 2 above


def zeta(k: int) -> float:
    """Return zeta*, the solution of (x - k) / sqrt(x) = 3.

    So many of one set leave, in all likelihood, at least k of another like it above the last.

    >>> zeta(10), round(zeta(100), 3)
    (25.0, 134.836)
    """
    return ((3 + sqrt(9 + 4 * k)) / 2) ** 2


def zeta_max(k: int) -> float:
    """Return the solution of (x - zeta*) / sqrt(zeta*) = 3: more than this is a rise.

    >>> zeta_max(10)
    40.0
    """
    return zeta(k) + 3 * sqrt(zeta(k))


def eta(k: int) -> float:
    """Return the solution of (x k - k) / sqrt(x k) = 3.

    Of two samples of one set, the k-th of the one that is so many times larger is better.

    >>> eta(10), round(eta(1000), 4)
    (2.5, 1.0995)
    """
    return zeta(k) / k


def rank_sum(first: Floats, second: Floats) -> float:
    """Return R_1: the sum of the ranks of the first sample among both, the smallest being 1.

    >>> rank_sum(np.array([2.0, 5.0]), np.array([1.0, 5.0]))
    5.5
    """
    both = np.sort(np.concatenate((first, second)))
    below, until = both.searchsorted(first, "left"), both.searchsorted(first, "right")
    return float((below + until + 1).sum() / 2)


def tends_to_be_larger(first: Floats, second: Floats) -> bool:
    """Tell whether the function F of Equation 2 is above zero.

    >>> tends_to_be_larger(np.arange(20.0), np.arange(20.0))
    False
    >>> tends_to_be_larger(np.arange(10.0, 30.0), np.arange(20.0))
    True
    """
    n1, n2 = len(first), len(second)
    found = rank_sum(first, second)
    if min(n1, n2) < 10:
        return found > upper_rank_sum(n1, n2)
    mean, deviation = n1 * (n1 + n2 + 1) / 2, sqrt(n1 * n2 * (n1 + n2 + 1) / 12)
    return (found - mean) / deviation > _UPPER


@cache
def upper_rank_sum(n1: int, n2: int) -> int:
    """Return T_up: chance leaves a sum of ranks above it in at most alpha / 2 of all cases.

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
    """Return for each sum in how many ways so many of the ranks up to the largest make it."""
    most = count * largest
    ways = [[1] + [0] * most] + [[0] * (most + 1) for _ in range(count)]
    for rank in range(1, largest + 1):
        for taken in range(min(count, rank), 0, -1):
            fewer, more = ways[taken - 1], ways[taken]
            for total in range(rank, most + 1):
                more[total] += fewer[total - rank]
    return ways[count]
