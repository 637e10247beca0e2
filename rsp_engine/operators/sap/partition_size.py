"""The sizes of SAP's partitions: equal, or adapted to the scores.

A unit, the smallest partition, has n / m* objects, rounded down to whole slides; if that is at most
two slides, it has one. An equal partition is one unit. A dynamic partition grows unit by unit as
long as its best objects do not tend to score higher than the best of the window before it: then
later objects are expected to dominate it as a group, and its other objects are not needed. Its
size is at most n / (1 + eta) objects.

    m* = ceil(sqrt(n / max(s, k)))     l_min = n / m*     l_max = n / (1 + eta)

Decided: n is counted in slides, and s in stored objects per slide, so that time-based windows,
whose slides vary in size, are partitioned by their content (appendix A prints max(s, k) there too,
although its s is a time). The first partition has no window before it to compare with, and stays
one unit.

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017, sections 4.1 and 4.2, appendix A.
"""

from __future__ import annotations

from math import ceil, floor, sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from rsp_engine.operators.sap.rank_test import eta, tends_to_be_larger

if TYPE_CHECKING:
    from rsp_engine.operators.sap.rank_tuples import Entry

__all__ = ["Partitioning", "is_proper", "longest", "slides_of_unit"]

Partitioning = Literal["equal", "dynamic", "enhanced"]


def slides_of_unit(slides: int, s: float, k: int) -> int:
    """Return the number of slides in a unit, for a window of `slides` slides of s objects each.

    >>> slides_of_unit(100_000, 1, 100), slides_of_unit(100, 10_000, 10), slides_of_unit(4, 9, 2)
    (3125, 10, 1)
    """
    exact = slides / ceil(sqrt(slides / max(1.0, k / s)))  # n / m*
    return 1 if exact <= 2 else floor(exact)


def longest(slides: int, k: int) -> float:
    """Return l_max, the largest number of slides in a partition.

    >>> longest(70, 10)
    20.0
    """
    return slides / (1 + eta(k))


def is_proper(best: list[Entry], before: list[Entry], k: int) -> bool:
    """Return whether a partition with these best objects will likely need no others.

    `before` are the candidates of the window before it, in ascending rank.
    """
    compared = before[-ceil(eta(k) * k) :]
    if not best or not compared:
        return False
    scores = (np.array([entry[0] for entry in entries]) for entries in (best, compared))
    return not tends_to_be_larger(*scores)
