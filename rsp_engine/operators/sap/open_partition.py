"""P_m, the open partition of SAP: it grows pane by pane, and is labelled unit by unit.

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
    from rsp_engine.operators.sap.rank_tuples import Entry
    from rsp_engine.operators.sap.unit_labels import LabelledUnit

__all__ = ["OpenPartition"]


class OpenPartition:
    """A partition that ends with an incomplete unit.

    `best` is P_m^k, including that unit, in ascending rank. An object that scores less than `least`
    cannot be in it.
    """

    def __init__(self, k: int, partition: Partition, latest: LatestObjects | None) -> None:
        self.k = k
        self.partition = partition
        self.best = partition.best_of(k, latest) if partition.ends else []
        self._labels = UnitLabels(k)
        self._is_plain = False
        self.unit = self.full = 0  # the pane indices at which the unit begins and is full
        self.start_unit(0)

    def start_unit(self, slides: int) -> None:
        """Begin a unit of `slides` slides after the last one."""
        self.unit = len(self.partition.ends) if self.full else 0
        self.full = self.unit + slides
        self._best_before_unit, self._border_before_unit = self.best.copy(), self.border
        self.set_least()

    def set_least(self) -> None:
        """Set the least score that can enter the best."""
        self.least = self.best[0][0] if len(self.best) == self.k else -inf

    @property
    def border(self) -> Entry | None:
        """The k-th object, or None if the partition has no worse object."""
        has_others = len(self.partition) > len(self.best) == self.k
        return self.best[0] if has_others else None

    def remove(self, entry: Entry) -> None:
        """Remove an object whose key arrived again."""
        for entries in (self.best, self._best_before_unit):
            place = bisect_left(entries, entry)
            if place < len(entries) and entries[place] == entry:
                del entries[place]

    def label(self, latest: LatestObjects | None) -> None:
        """Label the last unit, which may be incomplete.

        Small units are not worth a label: with one of them, the partition stays unlabelled.
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
        """Return the partition with its best objects, border and units."""
        partition = self.partition
        partition.best, partition.border, partition.units = self.best, self.border, self._units
        return partition

    def without_unit(self) -> tuple[Partition, Partition]:
        """Split off the last unit; return the partition before it, and the unit as a new one."""
        partition, unit = self.partition, self.partition.cut(self.unit)
        partition.best, partition.border = self._best_before_unit, self._border_before_unit
        partition.units = self._units
        return partition, unit
