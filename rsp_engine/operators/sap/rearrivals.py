"""Keys that arrive again: the latest arrival of each key.

SAP stores the arrivals of a window in partitions, and keeps a replaced arrival there. The table in
this module gives the arrival that is valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.topk.contract import Arrivals, best_arrivals_first

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.operators.sap.partition import LatestObjects, Partition
    from rsp_engine.operators.sap.rank_tuples import Entry

__all__ = ["Rearrivals"]

_FEW = 32  # up to this many keys, plain Python is faster than numpy


class Rearrivals:
    """A table of latest arrivals, created when a key arrives again for the first time.

    Until then only the largest key is kept. From then on, time: O(1) for each arrival; memory: an
    entry for each key of the window.
    """

    def __init__(self, largest: int = -1) -> None:
        self.largest = largest
        self.latest: LatestObjects | None = None

    def are_new(self, batch: Arrivals) -> bool:
        """Return whether all keys of a batch are new and distinct; if so, note its largest key."""
        if self.latest is not None:
            return False
        if len(batch.keys) <= _FEW:
            keys = batch.keys.tolist()
            if not keys:
                return True
            if min(keys) <= self.largest or len(set(keys)) < len(keys):
                return False
            self.largest = max(keys)
            return True
        in_order = batch.keys
        if not (in_order[1:] > in_order[:-1]).all():
            in_order = np.sort(in_order)
            if not (in_order[1:] > in_order[:-1]).all():
                return False
        if in_order[0] <= self.largest:
            return False
        self.largest = int(in_order[-1])
        return True

    def replace(
        self, batch: Arrivals, end: int, window: int, stored: Iterable[Partition]
    ) -> tuple[Arrivals, list[Entry]]:
        """Return the arrivals of a pane that are the latest of their keys, and those they replace.

        `stored` are the partitions of the window, from which the table is initialised.
        """
        if self.latest is None:
            self.latest = {}
            for partition in stored:
                objects, ends = partition.objects()
                marks = zip(objects.positions.tolist(), ends.tolist(), strict=True)
                self.latest.update(zip(objects.keys.tolist(), marks, strict=True))
        batch = best_arrivals_first(batch)
        kept, replaced = np.ones(len(batch.keys), dtype=bool), []
        for place, (key, position, score) in enumerate(
            zip(*(column.tolist() for column in batch), strict=True)
        ):
            known = self.latest.get(key)
            if known is not None and known[1] >= window:
                if known >= (position, end) or known[1] > end:
                    kept[place] = False
                    continue
                replaced.append((score, known[0], key, known[1]))
            self.latest[key] = position, end
        if len(batch.keys):
            self.largest = max(self.largest, int(batch.keys.max()))
        return batch.take(kept), replaced

    def forget(self, partition: Partition, window: int) -> None:
        """Remove the keys of a partition whose latest arrivals expire before a window."""
        if self.latest is not None:
            for key in set(partition.keys):
                if key in self.latest and self.latest[key][1] < window:
                    del self.latest[key]
