"""AMS sketches of a sliding window: an estimate of its self-join size in constant memory.

Each object has a random sign for each counter, and every observation of it adds the sign to the
counter. The expected square of a counter is the self-join size: the sum of the squared frequencies
of the objects. Divided by the number of observations, it is the expected frequency of the object of
a random observation. Counters are additive, so there is a set for each pane, dropped when the pane
expires.

>>> sketch = AMSSketch()
>>> sketch.add(np.repeat(np.arange(50), 3), 5)
>>> round(sketch.recurrences(5), 1), sketch.recurrences(6)
(3.2, 1.0)

Alon, Gibbons, Matias, Szegedy: Tracking join and self-join sizes in limited storage. PODS 1999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.incomplete.hashing import hash_keys

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData

__all__ = ["AMSSketch"]

_COUNTERS = 64  # one for each bit of a hash


class AMSSketch:
    """The sketch of one stream. Time per observation and memory per pane: O(counters)."""

    def __init__(self) -> None:
        self._panes: dict[int, Integers] = {}
        self._sums: dict[int, int] = {}

    def add(self, objects: Integers, end: int, since: Integers | None = None) -> None:
        """Add observations, by the hashes of their objects, that live until window `end`.

        An observation that arrives again moves here from the pane with the last window `since`.
        """
        bits = np.unpackbits(hash_keys(objects, seed=1).view(np.uint8)).reshape(-1, _COUNTERS)
        signs = 2 * bits.astype(np.int64) - 1
        self._panes[end] = self._panes.get(end, 0) + signs.sum(axis=0)
        self._sums[end] = self._sums.get(end, 0) + len(objects)
        for previous in () if since is None else np.unique(since).tolist():
            if previous in self._panes:
                moved = since == previous
                self._panes[previous] = self._panes[previous] - signs[moved].sum(axis=0)
                self._sums[previous] -= int(np.count_nonzero(moved))

    def recurrences(self, window: int) -> float:
        """Return the estimated frequency of an object in a window, at least 1."""
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
        """Restore the state."""
        counters = (np.array(counts, dtype=np.int64) for counts in state["counters"])
        self._panes = dict(zip(state["ends"], counters, strict=True))
        self._sums = dict(zip(state["ends"], state["sums"], strict=True))
