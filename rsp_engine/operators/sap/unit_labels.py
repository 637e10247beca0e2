"""TBUI: labels for the k-units of a partition, which may contain many k-skyband objects.

A unit is the smallest partition. TBUI counts the scores of each unit above a threshold tau, the
zeta*-th best score of an earlier unit, so that a unit of the same distribution has at least k above
it. If a unit has k, the unit before it is no k-unit: k later objects dominate all its objects below
tau. If it has fewer, scores fall: the unit before it stays a k-unit, and tau is reset. If it has
too many, scores rise, and tau is raised.

A k-unit keeps its objects above tau; any other unit keeps only its best score. These are the
entries of the list L_i of the paper.

Decided: a unit is labelled when it is full. The paper collects the objects above tau while the unit
fills, and raises tau to their median when there are 2 zeta* of them; here all objects of the unit
are stored anyway, and one selection finds such a threshold. For a unit that falls below tau the
paper keeps fewer than k objects, but needs k of them later (section 5.2); here it keeps k. The
paper's Algorithm 2 writes L_k for L_i.

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017, section 4.3, Algorithm 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.sap.rank_test import zeta, zeta_max

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.sap.rank_tuples import Entry

__all__ = ["LabelledUnit", "UnitLabels"]


@dataclass(slots=True)
class LabelledUnit:
    """A unit: a range of indices in its partition, its best score, and its entry in L_i.

    `high` are the best objects of a k-unit in ascending rank: at least k, if the unit has k.
    """

    start: int
    stop: int
    top: float
    high: list[Entry] = field(default_factory=list)

    @property
    def is_k_unit(self) -> bool:
        """Whether the unit may contain many k-skyband objects."""
        return bool(self.high)


class UnitLabels:
    """The labels of the units of one partition, in time order."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.units: list[LabelledUnit] = []
        self.tau = -inf
        self._is_initial = True
        self._zeta = ceil(zeta(k))
        self._most_above = max(2 * self._zeta, ceil(zeta_max(k)))

    def add(self, start: int, scores: Floats, best: Callable[[int], list[Entry]]) -> None:
        """Label a full unit; `best(count)` returns its best objects in ascending rank."""
        if not len(scores):
            return
        above = int(np.count_nonzero(scores >= self.tau))
        falls = not self._is_initial and above < self.k
        count = self.k if falls else above
        if self._is_initial or above > self._most_above:
            count = min(self._zeta, len(scores))
            self.tau = float(np.partition(scores, len(scores) - count)[len(scores) - count])
        if not falls and self.units:
            self.units[-1].high = []
        self._is_initial = falls
        if falls:
            self.tau = -inf
        stop = start + len(scores)
        self.units.append(LabelledUnit(start, stop, float(scores.max()), best(count)))
