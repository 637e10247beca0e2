"""The probability that an object observed in some streams will still arrive in another.

For two streams i and j, sketches estimate the number of objects of a window that are in both:
|i| + |j| minus the size of their union. The paper uses its share of |j| as the probability that an
object of j is in i. Here it is the probability that an object of j which has not arrived in i *will
still arrive* there. An object in both is assumed to arrive first in either with equal probability,
so that of

    |j| - |both| / 2    objects that were not in i when they arrived in j,
          |both| / 2    arrived in i later.

For an object observed in several streams, the largest of these probabilities counts. A stream whose
objects occur once has as many objects as observations; the objects of other streams are counted by
sketches. Repeated objects may go unnoticed once they are not kept, so a sketch that finds far fewer
objects than observations is also preferred.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section 4
and, for objects that recur, section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.incomplete.ams_sketch import AMSSketch
from rsp_engine.operators.incomplete.fm_sketch import FMSketch

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.incomplete.observations import Observations

__all__ = ["ArrivalProbability"]

_ERROR = 0.2  # tolerated relative error of a sketch: five times its standard error


class ArrivalProbability:
    """The arrival statistics of d streams. Memory: their sketches, independent of the window."""

    def __init__(self, most: tuple[int, ...]) -> None:
        self._most = most
        self._sketches = [FMSketch() for _ in most]
        self._repeats = [AMSSketch() for _ in most]
        self._sums: dict[int, Integers] = {}

    def add(self, end: int, batch: Observations) -> None:
        """Add observations that live until window `end`."""
        streams = len(self._most)
        for stream in range(streams):
            is_own = batch.streams == stream
            self._sketches[stream].add(batch.hashes[is_own], end)
            if self._most[stream] > 1:
                self._repeats[stream].add(batch.hashes[is_own], end, batch.since[is_own])
        counts = np.bincount(batch.streams, minlength=streams)
        self._sums[end] = self._sums.get(end, 0) + counts
        for previous in np.unique(batch.since).tolist():
            if previous in self._sums:  # observations that arrive again move
                moved = batch.streams[batch.since == previous]
                self._sums[previous] = self._sums[previous] - np.bincount(moved, minlength=streams)

    def expire(self, window: int) -> None:
        """Drop the counts of observations that end before a window; sketches expire by bit."""
        for end in [end for end in self._sums if end < window]:
            del self._sums[end]

    def recurrences(self, window: int) -> Floats:
        """Return the estimated frequency of an object in each stream, at most the configured."""
        frequencies = [sketch.recurrences(window) for sketch in self._repeats]
        return np.minimum(frequencies, self._most)

    def still(self, window: int) -> Floats:
        """Return at [i, j] the probability that an object of stream j still arrives in stream i."""
        streams = len(self._most)
        sizes = self._sizes(window)
        probabilities = np.ones((streams, streams))
        for i in range(streams):
            for j in range(i):
                union = self._sketches[i].union(self._sketches[j]).distinct(window)
                both = min(max(sizes[i] + sizes[j] - union, 0.0), sizes[i], sizes[j])
                for one, other in ((i, j), (j, i)):
                    absent = sizes[other] - both / 2
                    probabilities[one, other] = both / 2 / absent if absent > 0 else 1.0
        return probabilities

    def _sizes(self, window: int) -> Floats:
        """Return the estimated number of objects of each stream in a window."""
        counts = np.array(sum(self._sums.values(), np.zeros(len(self._most))), dtype=np.float64)
        estimates = np.array([sketch.distinct(window) for sketch in self._sketches])
        is_count_exact = (np.array(self._most) == 1) & (counts <= (1 + _ERROR) * estimates)
        return np.where(is_count_exact, counts, estimates)

    def state(self) -> StateData:
        """Return the state as plain data."""
        ends = sorted(self._sums)
        return {
            "sketches": [sketch.state() for sketch in self._sketches],
            "repeats": [sketch.state() for sketch in self._repeats],
            "ends": ends,
            "sums": [self._sums[end].tolist() for end in ends],
        }

    def restore(self, state: StateData) -> None:
        """Restore the state."""
        for sketch, saved in zip(self._sketches, state["sketches"], strict=True):
            sketch.restore(saved)
        for repeats, saved in zip(self._repeats, state["repeats"], strict=True):
            repeats.restore(saved)
        sums = (np.array(counts, dtype=np.int64) for counts in state["sums"])
        self._sums = dict(zip(state["ends"], sums, strict=True))
