"""With what probability an object that is seen in some streams will still come in another.

Of two streams i and j, sketches tell how many objects of a window are in both: |i| + |j| less those
of their union. The paper takes the share of these in |j| as the probability that an object of j is
in i. Here it is the probability that it will *still come* in i, where it has not come: objects in
both came first in the one as often as in the other, as nothing else is known; so half of those in
both were not in i when they came in j, and came there later; and so of

    |j| - |both| / 2    objects that came in j when they were not in i,
          |both| / 2    came in i later.

Of an object that is seen in several streams the largest of these probabilities counts. Streams in
which objects come more than once have fewer objects than observations: these are counted by their
sketches too. That an object which is not kept comes again is not noticed, so a sketch that tells of
far fewer objects than there are observations is believed as well.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section 4
and, for objects that come again, section 5.
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

_ERROR = 0.2  # of what a sketch tells: five times its standard error


class ArrivalProbability:
    """What is known of d streams. Memory: their sketches, whatever the window holds."""

    def __init__(self, most: tuple[int, ...]) -> None:
        self._most = most
        self._sketches = [FMSketch() for _ in most]
        self._repeats = [AMSSketch() for _ in most]
        self._sums: dict[int, Integers] = {}

    def hear(self, end: int, batch: Observations) -> None:
        """Take observations that live until a window."""
        streams = len(self._most)
        for stream in range(streams):
            mine = batch.streams == stream
            self._sketches[stream].add(batch.hashes[mine], end)
            if self._most[stream] > 1:
                self._repeats[stream].add(batch.hashes[mine], end, batch.since[mine])
        counts = np.bincount(batch.streams, minlength=streams)
        self._sums[end] = self._sums.get(end, 0) + counts
        for before in np.unique(batch.since).tolist():
            if before in self._sums:  # these have come again
                moved = batch.streams[batch.since == before]
                self._sums[before] = self._sums[before] - np.bincount(moved, minlength=streams)

    def expire(self, window: int) -> None:
        """Forget how many observations do not live until a window; bits know by themselves."""
        for end in [end for end in self._sums if end < window]:
            del self._sums[end]

    def recurrences(self, window: int) -> Floats:
        """Return how often an object comes in each stream, if it does: no more than promised."""
        found = [sketch.recurrences(window) for sketch in self._repeats]
        return np.minimum(found, self._most)

    def still(self, window: int) -> Floats:
        """Return with what probability an object of stream j still comes in stream i, at i, j."""
        streams = len(self._most)
        sizes = self._sizes(window)
        found = np.ones((streams, streams))
        for i in range(streams):
            for j in range(i):
                union = self._sketches[i].union(self._sketches[j]).distinct(window)
                both = min(max(sizes[i] + sizes[j] - union, 0.0), sizes[i], sizes[j])
                for one, other in ((i, j), (j, i)):
                    others = sizes[other] - both / 2
                    found[one, other] = both / 2 / others if others > 0 else 1.0
        return found

    def _sizes(self, window: int) -> Floats:
        """Return how many objects each stream has in a window."""
        counts = np.array(sum(self._sums.values(), np.zeros(len(self._most))), dtype=np.float64)
        told = np.array([sketch.distinct(window) for sketch in self._sketches])
        is_sure = (np.array(self._most) == 1) & (counts <= (1 + _ERROR) * told)
        return np.where(is_sure, counts, told)

    def state(self) -> StateData:
        """Return all there is to know, as plain data."""
        ends = sorted(self._sums)
        return {
            "sketches": [sketch.state() for sketch in self._sketches],
            "repeats": [sketch.state() for sketch in self._repeats],
            "ends": ends,
            "sums": [self._sums[end].tolist() for end in ends],
        }

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
        for sketch, saved in zip(self._sketches, state["sketches"], strict=True):
            sketch.restore(saved)
        for repeats, saved in zip(self._repeats, state["repeats"], strict=True):
            repeats.restore(saved)
        sums = (np.array(counts, dtype=np.int64) for counts in state["sums"])
        self._sums = dict(zip(state["ends"], sums, strict=True))
