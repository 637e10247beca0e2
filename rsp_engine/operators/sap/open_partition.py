"""P_m, the partition of SAP that is being filled, unit by unit.

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017, section 4.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.sap.rank_test import zeta
from rsp_engine.operators.sap.unit_labels import UnitLabels

if TYPE_CHECKING:
    from rsp_engine.operators.sap.partition import LatestObjects, Partition
    from rsp_engine.operators.sap.unit_labels import LabelledUnit
    from rsp_engine.operators.topk.rank_tuples import Entry

__all__ = ["OpenPartition"]


class OpenPartition:
    """A partition, and the unit at its end that is not yet full.

    `best` is P_m^k with that unit, the worst first; what scores less than `least` is not among it.
    """

    def __init__(self, k: int, partition: Partition, latest: LatestObjects | None) -> None:
        self.k = k
        self.partition = partition
        self.best = partition.best_of(k, latest) if partition.ends else []
        self._labels = UnitLabels(k)
        self._is_plain = False
        self.unit = self.full = 0  # where the unit begins and ends, by panes
        self.start_unit(0)

    def start_unit(self, slides: int) -> None:
        """Begin a unit of so many slides where the last one ends."""
        self.unit = len(self.partition.ends) if self.full else 0
        self.full = self.unit + slides
        self._before, self._border = self.best.copy(), self.border
        self.set_least()

    def set_least(self) -> None:
        """Find the least score that can be among the best."""
        self.least = self.best[0][0] if len(self.best) == self.k else -inf

    @property
    def border(self) -> Entry | None:
        """The k-th object, unless there are no others."""
        has_others = len(self.partition) > len(self.best) == self.k
        return self.best[0] if has_others else None

    def remove(self, entry: Entry) -> None:
        """Remove an object that has come again; its next arrival takes its place."""
        for entries in (self.best, self._before):
            place = bisect_left(entries, entry)
            if place < len(entries) and entries[place] == entry:
                del entries[place]

    def label(self, latest: LatestObjects | None) -> None:
        """Label the unit that is full, or all that there is of it.

        Where units are small there is nothing to tell apart: the partition is taken as one.
        """
        if self.unit == len(self.partition.ends):
            return
        partition, start = self.partition, self.partition.starts[self.unit]
        self._is_plain |= len(partition) - start <= 2 * zeta(self.k)
        if not self._is_plain:
            self._labels.add(
                start,
                np.array(partition.scores[start:]),
                lambda count: partition.best_of(count, latest, start),
            )

    @property
    def _units(self) -> list[LabelledUnit]:
        return [] if self._is_plain else self._labels.units

    def completed(self) -> Partition:
        """Return the partition as it is."""
        made = self.partition
        made.best, made.border, made.units = self.best, self.border, self._units
        return made

    def without_unit(self) -> tuple[Partition, Partition]:
        """Return the partition without the unit, and the unit as the beginning of another."""
        made, rest = self.partition, self.partition.cut(self.unit)
        made.best, made.border, made.units = self._before, self._border, self._units
        return made, rest
