"""Positions: the arrival order as one integer, which the top-k operators compare.

A later event time has a larger position; at the same time, a larger text has. So positions depend
neither on the order of reading nor on the batches.

An instant has 2^20 slots. Arrivals of one instant mostly are in one batch, and share its slots
evenly. A late arrival gets a slot between those of its peers: the arrivals of the same instant that
are still in use.

    slots of time 7    |..........a..........c..........|
    b arrives late     |..........a....b.....c..........|

If the slots are exhausted, or a time is more than 278 years from 1970, positions may be equal.

>>> positions = Positions()
>>> first = positions.of(np.array([6, 7, 7]), "bac".__getitem__, lambda _: ())
>>> known = [("a", first[1]), ("c", first[2])]
>>> late = positions.of(np.array([7]), "b".__getitem__, lambda _: known)
>>> bool(first[0] < first[1] < late[0] < first[2]), instants(late).tolist()
(True, [7])
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.blocks import RowBlocks, rows_of
from rsp_engine.operators.aggregates.dense_integers import distinct_counts
from rsp_engine.operators.scoring.integer_map import IntegerMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData

__all__ = ["LatestPositions", "Positions", "instants"]

Peers = list[tuple[str, int]]
"""The previous arrivals of one instant, in order: their texts and positions."""

_BITS = 20
_NEVER = np.iinfo(np.int64).min
_SLOTS = 1 << _BITS
_FARTHEST = (1 << 63 - _BITS) - 1
_STEP = 1 << 10  # gap beyond the outermost peer, which leaves room for many more late arrivals


def instants(positions: Integers) -> Integers:
    """Return the event times of positions."""
    return positions >> _BITS


class Positions:
    """The assignment of positions to arrivals. Time for n on-time arrivals: O(n). Memory: O(1)."""

    def __init__(self) -> None:
        self.is_crowded = False
        """Whether an arrival of the last batch found no free slot."""
        self._latest = -_FARTHEST

    def of(
        self,
        times: Integers,
        text: Callable[[int], str],
        peers: Callable[[Integers], Iterable[tuple[str, int]]],
    ) -> Integers:
        """Return the positions of a batch that is sorted by time, and then by text.

        `text` returns the text of an arrival by its index in the batch, and `peers` the texts and
        positions of the earlier arrivals of some instants.
        """
        self.is_crowded = False
        if not len(times):
            return times
        if times[0] > self._latest and times[-1] <= _FARTHEST and (times[1:] > times[:-1]).all():
            # The common case: one arrival per instant, and none before.
            self._latest = int(times[-1])
            return (times << _BITS) + _SLOTS // 2
        near = np.clip(times, -_FARTHEST, _FARTHEST)
        batch_instants, starts, counts = np.unique(near, return_index=True, return_counts=True)
        places = np.arange(1, len(times) + 1) - np.repeat(starts, counts)
        positions: Integers = (near << _BITS) + places * _SLOTS // np.repeat(counts + 1, counts)
        self.is_crowded = bool(counts.max() >= _SLOTS or (near != times).any())
        if batch_instants[0] <= self._latest:
            by_instant = _by_instant(peers(batch_instants))
            runs = zip(batch_instants.tolist(), starts.tolist(), counts.tolist(), strict=True)
            for instant, start, count in runs:
                if instant in by_instant:
                    texts = [text(place) for place in range(start, start + count)]
                    positions[start : start + count] = self._beside(texts, by_instant[instant])
        self._latest = max(self._latest, int(batch_instants[-1]))
        return positions

    def _beside(self, texts: list[str], peers: Peers) -> list[int]:
        """Return the positions of sorted arrivals of an instant that has peers."""
        peer_texts = [text for text, _ in peers]
        position_of = dict(peers)
        positions: list[int] = []
        for gap, group in groupby(texts, lambda text: bisect_left(peer_texts, text)):
            run = list(group)  # repeated peers are at its end
            repeated = [position_of[text] for text in run if text in position_of]
            positions += [*self._between(peers, gap, len(run) - len(repeated)), *repeated]
        return positions

    def _between(self, peers: Peers, gap: int, count: int) -> list[int]:
        """Return `count` positions between two neighbouring peers."""
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
        """Return the state as plain data."""
        return {"latest": self._latest}

    def restore(self, state: StateData) -> None:
        """Restore the state."""
        self._latest = state["latest"]


class LatestPositions:
    """The position of the latest arrival of each object. Memory: one integer per object.

    >>> latest = LatestPositions()
    >>> latest.note([1, 2], [7 << 20, 8 << 20])
    >>> latest.note([1], [3 << 20])
    >>> [number for number, _ in latest.at(np.array([3, 7]))]
    [1]
    """

    def __init__(self) -> None:
        self._of = IntegerMap()
        self._blocks = RowBlocks()

    def note(self, numbers: Sequence[int] | Integers, positions: Sequence[int] | Integers) -> None:
        """Record arrivals of objects; the latest position of each is kept."""
        objects, arrived = np.asarray(numbers, np.int64), np.asarray(positions, np.int64)
        new, _ = distinct_counts(objects[~self._of.has(objects)])
        self._of.insert(new, _NEVER)
        np.maximum.at(self._of.values, self._of.places(objects), arrived)
        self._blocks.touch(objects)

    def at(self, times: Integers) -> Iterator[tuple[int, int]]:
        """Yield the objects whose latest arrival was at some instants, and their positions."""
        chosen = np.isin(instants(self._of.values), times)
        columns = self._of.keys[chosen].tolist(), self._of.values[chosen].tolist()
        return zip(*columns, strict=True)

    def forget(self, numbers: Sequence[int] | Integers) -> None:
        """Remove objects, if present."""
        gone = np.asarray(numbers, np.int64)
        self._of.remove(gone)
        self._blocks.touch(gone)

    def state(self) -> StateData:
        """Return the objects and their positions, as plain data."""
        return {"size": len(self._of), "rows": self._blocks.state(self._of.keys, self._rows)}

    def _rows(self, numbers: list[int]) -> list[list[int]]:
        positions = self._of.values[self._of.places(np.array(numbers))].tolist()
        return [list(row) for row in zip(numbers, positions, strict=True)]

    def restore(self, state: StateData) -> None:
        """Restore the state."""
        rows = np.array(rows_of(state["rows"], state["size"]), dtype=np.int64).reshape(-1, 2)
        self._of = IntegerMap()
        self._of.keys, self._of.values = rows[:, 0].copy(), rows[:, 1].copy()
        self._blocks = RowBlocks()


def _by_instant(peers: Iterable[tuple[str, int]]) -> dict[int, Peers]:
    by_instant: dict[int, Peers] = {}
    for text, position in peers:
        by_instant.setdefault(int(position) >> _BITS, []).append((text, int(position)))
    for group in by_instant.values():
        group.sort()
    return by_instant
