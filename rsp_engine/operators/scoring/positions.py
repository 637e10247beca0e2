"""Positions: when an arrival came, as one integer that the top-k operators compare.

Of two arrivals the one of the later event time has the larger position; of two of one time, the one
with the larger text. So positions depend neither on the order of reading nor on the batches.

An instant has 2^20 slots. Arrivals of one time mostly come together, and share its slots evenly.
One of the same time that comes late gets a slot between those of its peers: the arrivals of that
time that still count.

    slots of time 7    |..........a..........c..........|
    b comes late       |..........a....b.....c..........|

Where there is no room, as for times further from 1970 than 278 years, positions may be equal.

>>> positions = Positions()
>>> first = positions.of(np.array([6, 7, 7]), "bac".__getitem__, lambda _: ())
>>> known = [("a", first[1]), ("c", first[2])]
>>> late = positions.of(np.array([7]), "b".__getitem__, lambda _: known)
>>> bool(first[0] < first[1] < late[0] < first[2]), instants(late).tolist()
(True, [7])
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import compress, groupby
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.blocks import RowBlocks, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData

__all__ = ["LatestPositions", "Positions", "instants"]

Peers = list[tuple[str, int]]
"""Arrivals of one instant that are known, in order: their texts and positions."""

_BITS = 20
_SLOTS = 1 << _BITS
_FARTHEST = (1 << 63 - _BITS) - 1
_STEP = 1 << 10  # beside the peers at the edge, so that many can come there one after the other


def instants(positions: Integers) -> Integers:
    """Return the event times of positions."""
    return positions >> _BITS


class Positions:
    """Gives arrivals their positions. Time for n on-time arrivals: O(n). Memory: O(1)."""

    def __init__(self) -> None:
        self.is_crowded = False
        """Whether there was no room for an arrival of the last batch."""
        self._latest = -_FARTHEST

    def of(
        self,
        times: Integers,
        text: Callable[[int], str],
        peers: Callable[[Integers], Iterable[tuple[str, int]]],
    ) -> Integers:
        """Return the positions of a batch, which is in the order of time, and then of text.

        `text` gives the text of an arrival by its place, and `peers` the texts and positions of
        the arrivals of some instants that came before.
        """
        self.is_crowded = False
        if not len(times):
            return times
        near = np.clip(times, -_FARTHEST, _FARTHEST)
        found, starts, counts = np.unique(near, return_index=True, return_counts=True)
        places = np.arange(1, len(times) + 1) - np.repeat(starts, counts)
        positions: Integers = (near << _BITS) + places * _SLOTS // np.repeat(counts + 1, counts)
        self.is_crowded = bool(counts.max() >= _SLOTS or (near != times).any())
        if found[0] <= self._latest:
            by_instant = _by_instant(peers(found))
            stops = (starts + counts).tolist()
            for instant, start, stop in zip(found.tolist(), starts.tolist(), stops, strict=True):
                if instant in by_instant:
                    texts = [text(place) for place in range(start, stop)]
                    positions[start:stop] = self._beside(texts, by_instant[instant])
        self._latest = max(self._latest, int(found[-1]))
        return positions

    def _beside(self, texts: list[str], peers: Peers) -> list[int]:
        """Return the positions of arrivals of an instant, in order, that have peers."""
        known = [text for text, _ in peers]
        same = dict(peers)
        found: list[int] = []
        for gap, together in groupby(texts, lambda text: bisect_left(known, text)):
            run = list(together)  # those that are known stand at its end
            again = [same[text] for text in run if text in same]
            found += [*self._between(peers, gap, len(run) - len(again)), *again]
        return found

    def _between(self, peers: Peers, gap: int, count: int) -> list[int]:
        """Return so many positions between two neighbours among the peers."""
        first = peers[0][1] >> _BITS << _BITS
        lower = peers[gap - 1][1] if gap else first - 1
        upper = peers[gap][1] if gap < len(peers) else first + _SLOTS
        step = (upper - lower) // (count + 1)
        self.is_crowded |= step == 0
        if 0 < gap < len(peers):
            return [lower + step * place for place in range(1, count + 1)]
        step = min(step, _STEP)
        start = lower if gap else upper - step * (count + 1)
        return [start + step * place for place in range(1, count + 1)]

    def state(self) -> StateData:
        """Return all there is to know, as plain data."""
        return {"latest": self._latest}

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
        self._latest = state["latest"]


class LatestPositions:
    """The position at which each object came last. Memory: a number for each object.

    >>> latest = LatestPositions()
    >>> latest.note([1, 2], [7 << 20, 8 << 20])
    >>> latest.note([1], [3 << 20])
    >>> [number for number, _ in latest.at(np.array([3, 7]))]
    [1]
    """

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._blocks = RowBlocks()

    def note(self, numbers: Iterable[int], positions: Iterable[int]) -> None:
        """Note arrivals of objects; of each the latest counts."""
        known, numbers = self._of, [*numbers]
        self._blocks.touch(numbers)
        for number, position in zip(numbers, positions, strict=True):
            known[number] = max(position, known.get(number, position))

    def at(self, times: Integers) -> Iterator[tuple[int, int]]:
        """Yield the objects that came last at some instants, and their positions."""
        positions = np.fromiter(self._of.values(), np.int64, len(self._of))
        return compress(self._of.items(), np.isin(instants(positions), times).tolist())

    def forget(self, number: int) -> None:
        """Forget an object, if it is known."""
        self._of.pop(number, None)
        self._blocks.touch_one(number)

    def state(self) -> StateData:
        """Return the objects and their positions, as plain data."""
        rows = self._blocks.state(self._of, lambda some: [[n, self._of[n]] for n in some])
        return {"size": len(self._of), "rows": rows}

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
        self._of = dict(rows_of(state["rows"], state["size"]))
        self._blocks = RowBlocks()


def _by_instant(peers: Iterable[tuple[str, int]]) -> dict[int, Peers]:
    found: dict[int, Peers] = {}
    for text, position in peers:
        found.setdefault(int(position) >> _BITS, []).append((text, int(position)))
    for known in found.values():
        known.sort()
    return found
