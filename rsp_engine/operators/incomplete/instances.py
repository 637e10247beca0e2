"""Instances of objects, as arrays in the order of expiry.

An object has an instance for each pane that has observations of it; the instance aggregates all
values from that pane on. So the score of an instance only rises while it lives, and the oldest
instance of an object has the score of the object. Instances expire at the front, and are mostly
added at the end.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
3.2.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.incomplete.observations import ScoreAggregate

__all__ = ["Columns", "IdTable", "Instances", "over_streams"]

_END, _KEY, _LATEST = range(3)


def over_streams(function: ScoreAggregate, values: Floats) -> Floats:
    """Return the aggregate over streams of values that have a row for each stream.

    >>> over_streams("sum", np.array([[1.0, 2.0], [3.0, 0.0]]))
    array([4., 2.])
    """
    combine = np.add if function == "sum" else np.maximum
    scores: Floats = values[0].copy()
    for row in values[1:]:
        combine(scores, row, out=scores)
    return scores


class Columns(NamedTuple):
    """Instances as columns of equal length.

    `ends` is the last window of each instance, and `latest` the last arrival of its object. `cells`
    has a row of aggregated values for each stream, followed by a row of counts for each stream.
    """

    ends: Integers
    keys: Integers
    latest: Integers
    cells: Floats
    scores: Floats

    @property
    def values(self) -> Floats:
        """The values, with a row for each stream."""
        return self.cells[: len(self.cells) // 2]

    @property
    def counts(self) -> Floats:
        """The numbers of values, with a row for each stream."""
        return self.cells[len(self.cells) // 2 :]


class Instances:
    """A buffer of instances that grows by doubling."""

    def __init__(self, streams: int) -> None:
        self._start = self._stop = 0
        self._columns: Columns | None = None
        self._marks = np.empty((3, 64), dtype=np.int64)
        self._cells = np.empty((2 * streams, 64))
        self._scores = np.empty(64)

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def columns(self) -> Columns:
        """All instances, as views that can be overwritten."""
        if self._columns is None:
            here = slice(self._start, self._stop)
            ends, keys, latest = self._marks
            self._columns = Columns(
                ends[here], keys[here], latest[here], self._cells[:, here], self._scores[here]
            )
        return self._columns

    def add(self, new: Columns) -> None:
        """Add instances that expire with one window. Time: O(new) if it is the last one."""
        count = len(new.ends)
        if not count:
            return
        self._columns = None
        if self._stop + count > len(self._scores):
            self._make_room(count)
        place = self._stop
        ends, keys, latest = self._marks
        if len(self) and ends[self._stop - 1] > new.ends[0]:
            live = ends[self._start : self._stop]
            place = self._start + int(np.searchsorted(live, new.ends[0], side="right"))
            for array in self._arrays():
                later = array[..., place : self._stop].copy()
                array[..., place + count : self._stop + count] = later
        here = slice(place, place + count)
        ends[here], keys[here], latest[here] = new.ends, new.keys, new.latest
        self._cells[:, here], self._scores[here] = new.cells, new.scores
        self._stop += count

    def expire(self, window: int) -> None:
        """Remove instances whose last window is before this one."""
        if self._start < self._stop and self._marks[_END, self._start] < window:
            ends = self._marks[_END, self._start : self._stop]
            self._start += int(np.searchsorted(ends, window))
            self._columns = None

    def keep(self, chosen: Booleans) -> None:
        """Remove all other instances. Time: O(instances)."""
        self._columns = None
        places = np.flatnonzero(chosen) + self._start
        for array in self._arrays():
            array[..., : len(places)] = array.take(places, axis=-1)
        self._start, self._stop = 0, len(places)

    def state(self) -> StateData:
        """Return all instances as plain data."""
        return {name: column.tolist() for name, column in self.columns._asdict().items()}

    def restore(self, state: StateData) -> None:
        """Replace all instances."""
        ends = np.array(state["ends"], dtype=np.int64)
        length = len(ends)
        self._start, self._stop = 0, length
        self._make_room(64)
        self._marks[:, :length] = ends, state["keys"], state["latest"]
        self._cells[:, :length] = np.array(state["cells"]).reshape(len(self._cells), length)
        self._scores[:length] = state["scores"]

    def _arrays(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        return self._marks, self._cells, self._scores

    def _make_room(self, count: int) -> None:
        # The new buffer is at least half free, which makes the copy O(1) amortised per instance.
        self._columns = None
        live = slice(self._start, min(self._stop, len(self._scores)))
        room = 2 * (len(self) + count)
        arrays = []
        for array in self._arrays():
            larger = np.empty((*array.shape[:-1], room), dtype=array.dtype)
            larger[..., : live.stop - live.start] = array[..., live]
            arrays.append(larger)
        self._stop -= self._start
        self._start = 0
        self._marks, self._cells, self._scores = arrays


class IdTable:
    """A lookup of many keys among a few, by a direct-address table if the keys are dense.

    After the first call, every key must have been among the `few` of an earlier call.
    """

    def __init__(self) -> None:
        self._low = 0
        self._table = np.full(0, -1)

    def places(self, few: Integers, keys: Integers) -> Integers:
        """Return the index of each key among the sorted `few`; -1 if it is not among them.

        >>> IdTable().places(np.array([3, 7]), np.array([7, 5, 3])).tolist()
        [1, -1, 0]
        """
        low, high = int(few[0]), int(few[-1])
        if low < self._low or high >= self._low + len(self._table):
            if len(keys):
                low, high = min(low, int(keys.min())), max(high, int(keys.max()))
            if high - low > 64 * (len(keys) + len(few)) + 4096:
                self._table = np.full(0, -1)  # a table would be too large
                near = np.minimum(np.searchsorted(few, keys), len(few) - 1)
                return np.where(few[near] == keys, near, -1)
            self._low = low
            self._table = np.full(2 * (high - low + 1), -1)
        table, at = self._table, few - self._low
        table[at] = np.arange(len(few))
        places: Integers = table[keys - self._low]
        table[at] = -1
        return places
