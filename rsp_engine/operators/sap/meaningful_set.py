"""M_i: the objects of a partition that may be needed once its best slide out of the window.

It is formed as late as possible, from the stored objects of the partition, and little by little
while the partition before slides out. Two tests leave objects out (Lemma 2): F_theta, the k-th of
all later partitions, and the S-AVL, which leaves out what k - rho later objects of the partition
dominate. The objects of a slide are pushed best first: so no more than k - rho of them are kept, as
appendix C wants it, and no buffer is needed.

UBSA: where the units of a partition have labels, those that are no k-units are passed over if even
their best is not good enough, and of a k-unit only the k best are pushed at first. The others
cannot be needed before the unit itself begins to slide out; they get an S-AVL of their own when the
unit before the one before it is gone.

Decided: an object of P_i that ties with F_theta is compared by the order of the family, so that the
answer is that of the oracle; later units count in F_theta by way of the S-AVL, since what is not
better than its least top is left out.

Zhu, Wang, Yang, Zheng, Wang: SAP: improving continuous top-k queries over streaming data. IEEE
TKDE 29(6), 2017, sections 5.1 and 5.2, appendix C.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.sap.stack_index import StackIndex
from rsp_engine.operators.sap.unit_labels import LabelledUnit

if TYPE_CHECKING:
    from rsp_engine.operators.sap.partition import LatestObjects, Partition
    from rsp_engine.operators.topk.rank_tuples import Entry

__all__ = ["NEVER_EXPIRES", "MeaningfulSet"]

NEVER_EXPIRES = 1 << 62
"""A window that does not come."""


class MeaningfulSet:
    """The meaningful objects of a partition, with k - rho stacks in each S-AVL."""

    def __init__(self, partition: Partition, stacks: int, k: int) -> None:
        self.partition = partition
        self._stacks, self._k = stacks, k
        self._indexes = [StackIndex(max(stacks, 1))]
        units = partition.units or [LabelledUnit(0, len(partition), np.inf)]
        self._left = units.copy() if partition.border is not None and stacks > 0 else []
        self._stop = len(partition)  # from here on, objects of the last unit left are pushed
        self._waiting = [i for i, unit in enumerate(self._left) if unit.is_k_unit]

    def __len__(self) -> int:
        return sum(map(len, self._indexes))

    @property
    def is_complete(self) -> bool:
        """Whether all objects have been looked at, but for k-units that wait."""
        return not self._left

    @property
    def due(self) -> int:
        """The window at which the next k-unit is to be looked at."""
        return self._due_of(self._waiting[0]) if self._waiting else NEVER_EXPIRES

    def _due_of(self, number: int) -> int:
        if number < 2:
            return self.partition.first
        place = self.partition.units[number - 2].stop - 1
        pane = int(np.array(self.partition.starts).searchsorted(place, "right")) - 1
        return self.partition.ends[pane] + 1

    def form(self, count: int, theta: Entry | None, latest: LatestObjects | None) -> None:
        """Look at so many objects, from the latest to the earliest."""
        [index, *_] = self._indexes
        while count > 0 and self._left:
            unit = self._left[-1]
            start = unit.start
            if unit.is_k_unit:
                high = unit.high[-self._k :]
                self._push(index, sorted(high, key=lambda e: (e[3], e)), theta, latest)
            elif not self._is_passed_over(unit, theta, index):
                start = max(unit.start, self._stop - count)
                found = self._found(start, self._stop, theta, index)
                self._push(index, found, theta, latest)
                count -= self._stop - start
            self._stop = start
            if start == unit.start:
                self._left.pop()

    def segment(self, window: int, theta: Entry | None, latest: LatestObjects | None) -> None:
        """Look at the k-units that are due."""
        while self._waiting and self._due_of(self._waiting[0]) <= window:
            unit = self.partition.units[self._waiting.pop(0)]
            index = StackIndex(self._stacks)
            pushed = unit.high[-self._k :]
            if theta is not None and unit.high[0] < theta:  # all others are below as well
                found = sorted(unit.high[: -self._k], key=lambda e: (e[3], e))
            else:
                found = self._found(unit.start, unit.stop, theta, index)
                found = [entry for entry in found if entry < pushed[0]]
            self._push(index, found, theta, latest)
            if len(index):
                self._indexes.append(index)

    def skip(self) -> None:
        """Leave the k-units that wait as they are: k later objects dominate all of them."""
        self._waiting = []

    def _is_passed_over(self, unit: LabelledUnit, theta: Entry | None, index: StackIndex) -> bool:
        least = index.least
        return (theta is not None and unit.top < theta[0]) or (
            least is not None and unit.top < least[0]
        )

    def _found(self, start: int, stop: int, theta: Entry | None, index: StackIndex) -> list[Entry]:
        """Return objects that may be good enough, the latest last, of a slide the best last."""
        border, partition = self.partition.border, self.partition
        assert border is not None, "a partition without a border has no others"  # noqa: S101
        scores = np.array(partition.scores[start:stop])
        lowest = max(
            (bound[0] for bound in (theta, index.least) if bound is not None), default=-np.inf
        )
        places = np.flatnonzero((scores >= lowest) & (scores <= border[0])) + start
        panes = np.array(partition.starts).searchsorted(places, "right") - 1
        ends = np.array(partition.ends)[panes].tolist()
        found: list[Entry] = [
            (partition.scores[place], partition.positions[place], partition.keys[place], end)
            for place, end in zip(places.tolist(), ends, strict=True)
        ]
        found.sort(key=lambda entry: (entry[3], entry))
        return found

    def _push(
        self,
        index: StackIndex,
        found: list[Entry],
        theta: Entry | None,
        latest: LatestObjects | None,
    ) -> None:
        border = self.partition.border
        assert border is not None, "a partition without a border has no others"  # noqa: S101
        for entry in reversed(found):
            if entry < border and (theta is None or entry > theta):
                if latest is not None and is_superseded(entry, latest):
                    continue
                index.push(entry)

    def taken(
        self, found: list[Entry], count: int, window: int, latest: LatestObjects | None
    ) -> list[Entry]:
        """Remove and return those that belong to the so many best of others; they join these.

        `found` has at most so many, the worst first.
        """
        taken = []
        for index in self._indexes:
            while (top := index.best()) is not None:
                is_gone = top[3] < window or (latest is not None and is_superseded(top, latest))
                if not is_gone:
                    if len(found) == count:
                        if top < found[0]:
                            break
                        del found[0]
                    insort(found, top)
                    taken.append(top)
                index.pop()
        return taken

    def entries(self) -> list[Entry]:
        """Return all objects, in any order."""
        return [e for index in self._indexes for stack in index.stacks() for e in stack]

    def waiting(self) -> list[set[tuple[int, int]]]:
        """Return the objects of each k-unit that waits, as positions and keys."""
        found = []
        for number in self._waiting:
            objects, _ = self.partition.objects(*self._range(number))
            found.append(set(zip(objects.positions.tolist(), objects.keys.tolist(), strict=True)))
        return found

    def _range(self, number: int) -> tuple[int, int]:
        unit = self.partition.units[number]
        return unit.start, unit.stop

    def check(self) -> None:
        """Assert what always holds."""
        for index in self._indexes:
            index.check()
        border = self.partition.border
        for entry in self.entries():
            assert border is not None, "only where there are others"  # noqa: S101
            assert entry < border, "the best of the partition are candidates"  # noqa: S101
        assert len(set(self.entries())) == len(self), "each object is kept once"  # noqa: S101


def is_superseded(entry: Entry, latest: LatestObjects) -> bool:
    """Tell whether the key of an entry has come again since."""
    return entry[2] not in latest or latest[entry[2]][0] != entry[1]
