"""How large the partitions of SAP are: equal, or as the scores want it.

A unit, the smallest partition, has n / m* objects, in whole slides; if that is no more than two
slides, one slide. Equal partitions are one unit each. A dynamic partition takes up unit
after unit as long as its best do not tend to be larger than the best of the window before it: then
later objects will dominate it as a group, and nothing needs to be known of its other objects. It is
at most n / (1 + eta) objects long.

    m* = ceil(sqrt(n / max(s, k)))     l_min = n / m*     l_max = n / (1 + eta)

Decided: n and s are counted in slides and in stored objects a slide, so that windows over time,
where a slide may hold any number of objects, are cut by what they hold (appendix A prints
max(s, k) there too, although its s is a time). Without anything before it, there is nothing to
compare a partition with, and it stays a unit.

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017, sections 4.1 and 4.2, appendix A.
"""

from __future__ import annotations

from math import ceil, floor, sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from rsp_engine.operators.sap.rank_test import eta, tends_to_be_larger

if TYPE_CHECKING:
    from rsp_engine.operators.topk.rank_tuples import Entry

__all__ = ["Partitioning", "is_proper", "longest", "slides_of_unit"]

Partitioning = Literal["equal", "dynamic", "enhanced"]


def slides_of_unit(slides: int, s: float, k: int) -> int:
    """Return how many slides a unit has, of a window of so many slides of s objects.

    >>> slides_of_unit(100_000, 1, 100), slides_of_unit(100, 10_000, 10), slides_of_unit(4, 9, 2)
    (3125, 10, 1)
    """
    exact = slides / ceil(sqrt(slides / max(1.0, k / s)))  # n / m*
    return 1 if exact <= 2 else floor(exact)


def longest(slides: int, k: int) -> float:
    """Return how many slides a partition may have: l_max.

    >>> longest(70, 10)
    20.0
    """
    return slides / (1 + eta(k))


def is_proper(best: list[Entry], before: list[Entry], k: int) -> bool:
    """Tell whether a partition with these best objects will hardly need any others.

    `before` are the candidates of the window before it, the worst first.
    """
    compared = before[-ceil(eta(k) * k) :]
    if not best or not compared:
        return False
    scores = (np.array([entry[0] for entry in entries]) for entries in (best, compared))
    return not tends_to_be_larger(*scores)
