"""TBUI: which units of a partition may hold many k-skyband objects.

A unit is a smallest partition. Scores above a threshold tau are counted unit by unit; tau is the
zeta*-th best score of a unit, so that the next one has at least k above it if nothing has changed.
If it has, the unit before is no k-unit: k later objects dominate all of its objects below tau. If
it has not, scores fall, and the unit before stays a k-unit; tau is found anew. If it has too many,
scores rise, and tau with them.

Of a k-unit the objects above tau are remembered, of any other the best score only: this is the list
L_i of the paper.

Decided: a unit is labelled when it is full. The paper keeps the objects above tau while the unit
fills, and lets a median raise tau whenever there are twice zeta* of them; here a unit is stored
anyhow, and one selection finds such a border. Of a unit that falls below tau the paper keeps fewer
than k objects, and needs k of them later (section 5.2); here it keeps k. The paper's Algorithm 2
writes L_k for L_i.

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
    from rsp_engine.operators.topk.rank_tuples import Entry

__all__ = ["LabelledUnit", "UnitLabels"]


@dataclass(slots=True)
class LabelledUnit:
    """The objects of a partition from one place to another, and what L_i remembers of them.

    `high` are the best of a k-unit, the worst of them first, and at least k if there are so many.
    """

    start: int
    stop: int
    top: float
    high: list[Entry] = field(default_factory=list)

    @property
    def is_k_unit(self) -> bool:
        """Whether many of the objects may be k-skyband objects."""
        return bool(self.high)


class UnitLabels:
    """The labels of the units of one partition, in time order."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.units: list[LabelledUnit] = []
        self.tau = -inf
        self._is_initial = True
        self._some = ceil(zeta(k))
        self._many = max(2 * self._some, ceil(zeta_max(k)))

    def add(self, start: int, scores: Floats, best: Callable[[int], list[Entry]]) -> None:
        """Label a unit that is full. `best` gives so many of its best objects, the worst first."""
        if not len(scores):
            return
        above = int(np.count_nonzero(scores >= self.tau))
        falls = not self._is_initial and above < self.k
        count = self.k if falls else above
        if self._is_initial or above > self._many:
            count = min(self._some, len(scores))
            self.tau = float(np.partition(scores, len(scores) - count)[len(scores) - count])
        if not falls and self.units:
            self.units[-1].high = []
        self._is_initial = falls
        if falls:
            self.tau = -inf
        stop = start + len(scores)
        self.units.append(LabelledUnit(start, stop, float(scores.max()), best(count)))
