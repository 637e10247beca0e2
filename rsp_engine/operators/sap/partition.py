"""A partition of SAP: neighbouring panes of the window, with all that can matter of them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.topk.contract import Arrivals, as_arrivals
from rsp_engine.operators.topk.rank_tuples import Entry, best_entries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.sap.unit_labels import LabelledUnit

__all__ = ["LatestObjects", "Partition"]

LatestObjects = dict[int, tuple[int, int]]
"""Of keys that may come again: the position and the end of the last arrival."""


class Partition:
    """P_i: objects in the order of their ends.

    `best` is P_i^k, the worst of them first, `border` its k-th object unless there are no others,
    `rho` the group dominance number (Definition 1), as far as it is known.
    """

    def __init__(self) -> None:
        self.keys, self.positions, self.scores = array("q"), array("q"), array("d")
        self.starts, self.ends = array("q"), array("q")  # of each pane: the first place, the end
        self.units: list[LabelledUnit] = []
        self.best: list[Entry] = []
        self.border: Entry | None = None
        self.rho = 0

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def first(self) -> int:
        """The first window that does not hold all objects is the one after this."""
        return self.ends[0]

    @property
    def last(self) -> int:
        """The last window that holds an object."""
        return self.ends[-1]

    def add(self, end: int, batch: Arrivals) -> None:
        """Add a pane that ends no sooner than those before."""
        self.starts.append(len(self.keys))
        self.ends.append(end)
        self.keys.frombytes(batch.keys.tobytes())
        self.positions.frombytes(batch.positions.tobytes())
        self.scores.frombytes(batch.scores.tobytes())

    def objects(self, start: int = 0, stop: int | None = None) -> tuple[Arrivals, Integers]:
        """Return objects with their ends."""
        keys, positions = (np.array(column[start:stop]) for column in (self.keys, self.positions))
        places = np.arange(start, start + len(keys))
        panes = np.array(self.starts).searchsorted(places, "right") - 1
        ends: Integers = np.array(self.ends)[panes]
        return Arrivals(keys, positions, np.array(self.scores[start:stop])), ends

    def live(
        self, window: int, latest: LatestObjects | None, start: int = 0, stop: int | None = None
    ) -> tuple[Arrivals, Integers]:
        """Return objects that live until a window and have not come again."""
        found, ends = self.objects(start, stop)
        kept: NDArray[np.bool_] = ends >= window
        if latest is not None:
            pairs = zip(found.keys.tolist(), found.positions.tolist(), strict=True)
            kept &= np.array(
                [key in latest and latest[key][0] == position for key, position in pairs],
                dtype=bool,
            )
        return found.take(kept), ends[kept]

    def best_of(
        self, count: int, latest: LatestObjects | None, start: int = 0, stop: int | None = None
    ) -> list[Entry]:
        """Return so many of the best objects, the worst of them first."""
        lowest = self.ends[0] if self.ends else 0
        found, ends = self.live(lowest, latest, start, stop)
        return best_entries(found.keys, found.positions, found.scores, ends, count)

    def cut(self, pane: int) -> Partition:
        """Cut off what comes from a pane on, and return it."""
        start, rest = self.starts[pane], Partition()
        rest.keys, rest.positions = self.keys[start:], self.positions[start:]
        rest.scores, rest.ends = self.scores[start:], self.ends[pane:]
        rest.starts = array("q", [place - start for place in self.starts[pane:]])
        del self.keys[start:], self.positions[start:], self.scores[start:]
        del self.starts[pane:], self.ends[pane:]
        return rest

    def state(self, window: int, latest: LatestObjects | None) -> StateData:
        """Return what lives until a window, as plain data."""
        found, ends = self.live(window, latest)
        return {"arrivals": [column.tolist() for column in found], "ends": ends.tolist()}

    @classmethod
    def restored(cls, state: StateData) -> Partition:
        """Return a partition of objects in the order of their ends."""
        return cls.of(as_arrivals(*state["arrivals"]), np.array(state["ends"], dtype=np.int64))

    @classmethod
    def of(cls, objects: Arrivals, ends: Integers) -> Partition:
        """Return a partition of objects, in the order of their ends."""
        made, order = cls(), np.argsort(ends, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(ends[order])) + 1):
            if len(places):
                made.add(int(ends[places[0]]), objects.take(places))
        return made
