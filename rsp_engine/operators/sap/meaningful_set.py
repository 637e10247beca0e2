"""M_i: the meaningful objects of a partition, which may be needed once its best have slid out.

The set is formed as late as possible from the stored objects of the partition, step by step while
the partition before it slides out. Two tests prune objects (Lemma 2): F_theta, the k-th object of
all later partitions, and the S-AVL, which discards objects that k - rho later objects of the
partition dominate. The objects of a slide are pushed best first, so at most k - rho of them are
kept, as appendix C requires, without a buffer.

UBSA: where the units of a partition are labelled, a unit that is no k-unit is skipped if its best
score is too low, and of a k-unit only the k best objects are pushed at first. Its other objects are
not needed before the unit begins to slide out; they get an S-AVL of their own when the unit two
before it has expired.

Decided: an object of P_i that ties with F_theta is compared by the rank order of the operators, so
that the answer equals the oracle's. Later units count towards F_theta through the S-AVL, which
discards objects that are not better than its least top.

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
    from rsp_engine.operators.sap.rank_tuples import Entry

__all__ = ["NEVER_EXPIRES", "MeaningfulSet", "is_superseded"]

NEVER_EXPIRES = 1 << 62
"""A window index that is never reached."""


class MeaningfulSet:
    """The meaningful objects of a partition, with k - rho stacks in each S-AVL."""

    def __init__(self, partition: Partition, stacks: int, k: int) -> None:
        self.partition = partition
        self._stacks, self._k = stacks, k
        self._indexes = [StackIndex(max(stacks, 1))]
        units = partition.units or [LabelledUnit(0, len(partition), np.inf)]
        self._unread = units.copy() if partition.border is not None and stacks > 0 else []
        self._stop = len(partition)  # objects from this index on have been read
        self._waiting = [i for i, unit in enumerate(self._unread) if unit.is_k_unit]

    def __len__(self) -> int:
        return sum(map(len, self._indexes))

    @property
    def is_complete(self) -> bool:
        """Whether all units have been read, except for the rest of waiting k-units."""
        return not self._unread

    @property
    def due(self) -> int:
        """The window at which the rest of the next waiting k-unit is needed."""
        return self._due_of(self._waiting[0]) if self._waiting else NEVER_EXPIRES

    def _due_of(self, number: int) -> int:
        if number < 2:
            return self.partition.first
        place = self.partition.units[number - 2].stop - 1
        pane = int(np.array(self.partition.starts).searchsorted(place, "right")) - 1
        return self.partition.ends[pane] + 1

    def form(self, count: int, theta: Entry | None, latest: LatestObjects | None) -> None:
        """Process `count` objects, from the latest to the earliest."""
        [index, *_] = self._indexes
        while count > 0 and self._unread:
            unit = self._unread[-1]
            start = unit.start
            if unit.is_k_unit:
                high = unit.high[-self._k :]
                self._push(index, sorted(high, key=lambda e: (e[3], e)), theta, latest)
            elif not self._is_prunable(unit, theta, index):
                start = max(unit.start, self._stop - count)
                entries = self._select(start, self._stop, theta, index)
                self._push(index, entries, theta, latest)
                count -= self._stop - start
            self._stop = start
            if start == unit.start:
                self._unread.pop()

    def segment(self, window: int, theta: Entry | None, latest: LatestObjects | None) -> None:
        """Process the rest of the k-units that are due at a window."""
        while self._waiting and self._due_of(self._waiting[0]) <= window:
            unit = self.partition.units[self._waiting.pop(0)]
            index = StackIndex(self._stacks)
            pushed = unit.high[-self._k :]
            if theta is not None and unit.high[0] < theta:  # so are all its other objects
                entries = sorted(unit.high[: -self._k], key=lambda e: (e[3], e))
            else:
                entries = self._select(unit.start, unit.stop, theta, index)
                entries = [entry for entry in entries if entry < pushed[0]]
            self._push(index, entries, theta, latest)
            if len(index):
                self._indexes.append(index)

    def skip(self) -> None:
        """Discard the rest of waiting k-units: k later objects dominate all of them."""
        self._waiting = []

    def _is_prunable(self, unit: LabelledUnit, theta: Entry | None, index: StackIndex) -> bool:
        least = index.least
        return (theta is not None and unit.top < theta[0]) or (
            least is not None and unit.top < least[0]
        )

    def _select(self, start: int, stop: int, theta: Entry | None, index: StackIndex) -> list[Entry]:
        """Return objects that the bounds do not prune, in order of end, then of rank."""
        border, partition = self.partition.border, self.partition
        assert border is not None, "a partition without a border has no others"  # noqa: S101
        scores = np.array(partition.scores[start:stop])
        lowest = max(
            (bound[0] for bound in (theta, index.least) if bound is not None), default=-np.inf
        )
        places = np.flatnonzero((scores >= lowest) & (scores <= border[0])) + start
        panes = np.array(partition.starts).searchsorted(places, "right") - 1
        ends = np.array(partition.ends)[panes].tolist()
        entries: list[Entry] = [
            (partition.scores[place], partition.positions[place], partition.keys[place], end)
            for place, end in zip(places.tolist(), ends, strict=True)
        ]
        entries.sort(key=lambda entry: (entry[3], entry))
        return entries

    def _push(
        self,
        index: StackIndex,
        entries: list[Entry],
        theta: Entry | None,
        latest: LatestObjects | None,
    ) -> None:
        border = self.partition.border
        assert border is not None, "a partition without a border has no others"  # noqa: S101
        for entry in reversed(entries):
            if entry < border and (theta is None or entry > theta):
                if latest is not None and is_superseded(entry, latest):
                    continue
                index.push(entry)

    def move_best(
        self, best: list[Entry], count: int, window: int, latest: LatestObjects | None
    ) -> list[Entry]:
        """Move objects that are among the `count` best into `best`, and return them.

        `best` has at most `count` entries, in ascending rank.
        """
        moved = []
        for index in self._indexes:
            while (top := index.best()) is not None:
                is_gone = top[3] < window or (latest is not None and is_superseded(top, latest))
                if not is_gone:
                    if len(best) == count:
                        if top < best[0]:
                            break
                        del best[0]
                    insort(best, top)
                    moved.append(top)
                index.pop()
        return moved

    def entries(self) -> list[Entry]:
        """Return all objects, in any order."""
        return [e for index in self._indexes for stack in index.stacks() for e in stack]

    def waiting(self) -> list[set[tuple[int, int]]]:
        """Return the (position, key) pairs of each waiting k-unit."""
        pairs = []
        for number in self._waiting:
            objects, _ = self.partition.objects(*self._range(number))
            pairs.append(set(zip(objects.positions.tolist(), objects.keys.tolist(), strict=True)))
        return pairs

    def _range(self, number: int) -> tuple[int, int]:
        unit = self.partition.units[number]
        return unit.start, unit.stop

    def check(self) -> None:
        """Assert the invariants of the set."""
        for index in self._indexes:
            index.check()
        border = self.partition.border
        for entry in self.entries():
            assert border is not None, "M_i is empty without a border"  # noqa: S101
            assert entry < border, "the best of the partition are candidates"  # noqa: S101
        assert len(set(self.entries())) == len(self), "each object is kept once"  # noqa: S101


def is_superseded(entry: Entry, latest: LatestObjects) -> bool:
    """Return whether the key of an entry has arrived again, or expired."""
    return entry[2] not in latest or latest[entry[2]][0] != entry[1]
