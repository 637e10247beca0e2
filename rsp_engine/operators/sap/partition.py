"""A partition of SAP: consecutive panes of the window with all their objects."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.sap.rank_tuples import Entry, best_entries
from rsp_engine.operators.topk.contract import Arrivals, as_arrivals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.sap.unit_labels import LabelledUnit

__all__ = ["LatestObjects", "Partition"]

LatestObjects = dict[int, tuple[int, int]]
"""The position and the end of the latest arrival of each key."""


class Partition:
    """P_i: objects in the order of their ends.

    `best` is P_i^k in ascending rank, `border` its k-th object, or None if the partition has no
    other objects, and `rho` a lower bound of the group dominance number (Definition 1).
    """

    def __init__(self) -> None:
        self.keys, self.positions, self.scores = array("q"), array("q"), array("d")
        self.starts, self.ends = array("q"), array("q")  # of each pane: its first index and its end
        self.units: list[LabelledUnit] = []
        self.best: list[Entry] = []
        self.border: Entry | None = None
        self.rho = 0

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def first(self) -> int:
        """The last window that contains all objects."""
        return self.ends[0]

    @property
    def last(self) -> int:
        """The last window that contains an object."""
        return self.ends[-1]

    def add(self, end: int, batch: Arrivals) -> None:
        """Add a pane that ends no sooner than the previous ones."""
        self.starts.append(len(self.keys))
        self.ends.append(end)
        self.keys.frombytes(batch.keys.tobytes())
        self.positions.frombytes(batch.positions.tobytes())
        self.scores.frombytes(batch.scores.tobytes())

    def objects(self, start: int = 0, stop: int | None = None) -> tuple[Arrivals, Integers]:
        """Return the objects of a range of indices, and their ends."""
        keys, positions = (np.array(column[start:stop]) for column in (self.keys, self.positions))
        places = np.arange(start, start + len(keys))
        panes = np.array(self.starts).searchsorted(places, "right") - 1
        ends: Integers = np.array(self.ends)[panes]
        return Arrivals(keys, positions, np.array(self.scores[start:stop])), ends

    def live(
        self, window: int, latest: LatestObjects | None, start: int = 0, stop: int | None = None
    ) -> tuple[Arrivals, Integers]:
        """Return the objects that are alive in a window and not replaced, and their ends."""
        objects, ends = self.objects(start, stop)
        kept: NDArray[np.bool_] = ends >= window
        if latest is not None:
            pairs = zip(objects.keys.tolist(), objects.positions.tolist(), strict=True)
            kept &= np.array(
                [key in latest and latest[key][0] == position for key, position in pairs],
                dtype=bool,
            )
        return objects.take(kept), ends[kept]

    def best_of(
        self, count: int, latest: LatestObjects | None, start: int = 0, stop: int | None = None
    ) -> list[Entry]:
        """Return the `count` best objects, in ascending rank."""
        lowest = self.ends[0] if self.ends else 0
        objects, ends = self.live(lowest, latest, start, stop)
        return best_entries(objects.keys, objects.positions, objects.scores, ends, count)

    def cut(self, pane: int) -> Partition:
        """Cut off the panes from an index on, and return them as a partition."""
        start, rest = self.starts[pane], Partition()
        rest.keys, rest.positions = self.keys[start:], self.positions[start:]
        rest.scores, rest.ends = self.scores[start:], self.ends[pane:]
        rest.starts = array("q", [place - start for place in self.starts[pane:]])
        del self.keys[start:], self.positions[start:], self.scores[start:]
        del self.starts[pane:], self.ends[pane:]
        return rest

    def state(self, window: int, latest: LatestObjects | None) -> StateData:
        """Return the objects that are alive in a window as plain data."""
        objects, ends = self.live(window, latest)
        return {"arrivals": [column.tolist() for column in objects], "ends": ends.tolist()}

    @classmethod
    def restored(cls, state: StateData) -> Partition:
        """Restore a partition from a saved state."""
        return cls.of(as_arrivals(*state["arrivals"]), np.array(state["ends"], dtype=np.int64))

    @classmethod
    def of(cls, objects: Arrivals, ends: Integers) -> Partition:
        """Create a partition from objects in any order."""
        partition, order = cls(), np.argsort(ends, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(ends[order])) + 1):
            if len(places):
                partition.add(int(ends[places[0]]), objects.take(places))
        return partition
