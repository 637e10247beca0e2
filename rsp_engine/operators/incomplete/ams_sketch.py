"""AMS sketches of a sliding window: its self-join size, in little room.

Each object has a sign, by chance, in each of some counters, and adds it there whenever it comes.
The square of a counter is the self-join size, in the mean over all chances: the sum of the squares
of how often each object came. Divided by how often any came, it is how often an object has come
that an observation taken by chance is of. Counters are sums, so those of a pane are left out when
it expires.

>>> sketch = AMSSketch()
>>> sketch.add(np.repeat(np.arange(50), 3), 5)
>>> round(sketch.recurrences(5), 1), sketch.recurrences(6)
(3.2, 1.0)

Alon, Gibbons, Matias, Szegedy: Tracking join and self-join sizes in limited storage. PODS 1999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.incomplete.hashing import hashed

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData

__all__ = ["AMSSketch"]

_COUNTERS = 64  # a bit of a hash each


class AMSSketch:
    """Time: O(counters) for an object. Memory: the counters of each pane."""

    def __init__(self) -> None:
        self._panes: dict[int, Integers] = {}
        self._sums: dict[int, int] = {}

    def add(self, objects: Integers, end: int, since: Integers | None = None) -> None:
        """Hear of observations of objects, by hashes, that live until a window.

        An observation that comes again moves here from the pane that lived until `since`.
        """
        bits = np.unpackbits(hashed(objects, seed=1).view(np.uint8)).reshape(-1, _COUNTERS)
        signs = 2 * bits.astype(np.int64) - 1
        self._panes[end] = self._panes.get(end, 0) + signs.sum(axis=0)
        self._sums[end] = self._sums.get(end, 0) + len(objects)
        for before in () if since is None else np.unique(since).tolist():
            if before in self._panes:
                moved = since == before
                self._panes[before] = self._panes[before] - signs[moved].sum(axis=0)
                self._sums[before] -= int(np.count_nonzero(moved))

    def recurrences(self, window: int) -> float:
        """Return about how often an object of a window comes in it, once at least."""
        for end in [end for end in self._panes if end < window]:
            del self._panes[end], self._sums[end]
        count = sum(self._sums.values())
        if not count:
            return 1.0
        counters = np.sum(list(self._panes.values()), axis=0)
        return max(1.0, float(np.mean(counters**2)) / count)

    def state(self) -> StateData:
        """Return the counters of each pane, as plain data."""
        ends = sorted(self._panes)
        return {
            "ends": ends,
            "counters": [self._panes[end].tolist() for end in ends],
            "sums": [self._sums[end] for end in ends],
        }

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
        counters = (np.array(counts, dtype=np.int64) for counts in state["counters"])
        self._panes = dict(zip(state["ends"], counters, strict=True))
        self._sums = dict(zip(state["ends"], state["sums"], strict=True))
