"""Global scoring functions: a new object is scored with those objects only that can matter.

A global scoring function combines local scores, one for each attribute, and never falls when one of
these rises. A local score is loose monotonic: it goes one way as the other object's value goes away
from the new one's, upwards, and one way downwards. So in a list that is sorted by the attribute,
objects are found in the order of their local scores by two cursors, one for each side. All cursors,
and that of ages, are read to the same depth, until what is left is dominated by the K-staircase: it
is no younger than the last that was seen, and no better than the last local scores together.

The paper reads pair by pair, and lets the better of two cursors go first. Here all of them go at
once. The depth is found first, from the local scores alone, and the pairs are scored then. The
lists are sorted anew from time to time: the objects that have come since are the youngest, which
are seen anyway.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section V.B and Algorithm 5. (Fagin, Lotem, Naor: Optimal aggregation algorithms for middleware.
JCSS 66(4), 2003.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["GlobalScoring", "LocalScore", "SortedLists"]

Going = Literal["rises", "falls"]
"""What a local score does as the other value goes away from that of the new object."""


@dataclass(frozen=True, slots=True)
class LocalScore:
    """A loose monotonic scoring function of one attribute: its column, and which way it goes."""

    column: int
    score: Callable[[Floats, float], Floats]
    above: Going
    below: Going


@dataclass(frozen=True, slots=True)
class GlobalScoring:
    """Local scores, and a function of these that never falls when one of them rises."""

    local: tuple[LocalScore, ...]
    combine: Callable[[list[Floats]], Floats]


class SortedLists:
    """Objects sorted by each attribute, for windows of at least so many objects.

    Time for an object: O(M) for the M objects that are seen, and O(log N) amortised for sorting.

    >>> def difference(values, value):
    ...     return np.abs(values - value)
    >>> near = LocalScore(0, difference, "rises", "rises")
    >>> lists = SortedLists(GlobalScoring((near,), sum))
    >>> values = np.array([[5.0, 1.0, 0.0, 2.0, 9.0]])
    >>> lists.seen(values, np.array([1.5]), np.array([0.1, 0.2, 0.4, 0.6, 9.0]), 0)
    array([1, 3, 3, 4])
    """

    def __init__(self, scoring: GlobalScoring, least: int = 0) -> None:
        self.scoring = scoring
        self.least = least
        self._lists: list[_Sorted] = []
        self._until = -1  # the position up to which objects are in the lists
        self._has_infinite = False
        self._depth = 1  # a guess, from the object before

    def forget(self) -> None:
        """Sort anew for the next object, since positions have changed."""
        self._until = -1

    def seen(self, columns: Floats, row: Floats, bounds: Floats, first: int) -> Integers | None:
        """Return the positions of objects to score a new one with, some twice; nothing means all.

        `columns` are the values of the objects from position `first` on, and `bounds` the largest
        scores that the staircase allows there.
        """
        count = len(bounds)
        end = first + count
        if count < self.least:
            return None
        if self._until < 0 or end - self._until > max(8, count // 64):
            self._sort(columns, first)
        values = [float(row[each.column]) for each in self.scoring.local]
        if self._has_infinite or np.isinf(values).any():
            return None  # beside what is infinite, lists are in no order
        if np.isnan(values).any():
            return np.flatnonzero(bounds == np.inf) + first  # it has no score, and ranks last
        depth = self._depth
        while 2 * depth < count:
            read = [
                held.read(value, depth) for held, value in zip(self._lists, values, strict=True)
            ]
            if (found := self._stop(read, bounds)) is not None:
                self._depth = found + found // 4 + 1
                return self._positions(read, found, first, end)
            depth *= 2
        return None

    def _sort(self, columns: Floats, first: int) -> None:
        used = columns[[each.column for each in self.scoring.local]]
        finite = np.isfinite(used).all(axis=0)
        self._has_infinite = bool(np.isinf(used).any())
        places = np.flatnonzero(finite)  # what lacks a value has no score: its age alone can tell
        self._lists = [
            _Sorted(each, values[places], places + first)
            for each, values in zip(self.scoring.local, used, strict=True)
        ]
        self._until = first + columns.shape[1]

    def _stop(self, read: list[_Read], bounds: Floats) -> int | None:
        """Return after how many of each side what is left is dominated, if that is so."""
        with np.errstate(all="ignore"):  # where a side is at its end, zero may meet infinity
            best = self.scoring.combine([each.scores for each in read])
        last = len(bounds) - 1  # all cursors together have seen two of the youngest for each step
        allowed = bounds[last - 2 * len(best) : last - 1 : 2][::-1]
        [dominated] = (best > allowed).nonzero()
        return int(dominated[0]) + 1 if len(dominated) else None

    def _positions(self, read: list[_Read], depth: int, first: int, end: int) -> Integers:
        parts = [side[:depth] for each in read for side in (each.below, each.above)]
        recent = np.arange(max(min(end - 2 * depth, self._until), first), end)
        sorted_ones = np.concatenate(parts)
        return np.concatenate([sorted_ones[sorted_ones >= first], recent])


class _Read(NamedTuple):
    """Positions by local score, on both sides, and the least score that is left at each depth."""

    below: Integers
    above: Integers
    scores: Floats


class _Sorted:
    """Values in order, and whose they are."""

    def __init__(self, local: LocalScore, values: Floats, positions: Integers) -> None:
        order = np.argsort(values)
        self._local = local
        self._values, self._positions = values[order], positions[order]

    def read(self, value: float, depth: int) -> _Read:
        """Return the objects with the smallest local scores on each side of a value."""
        middle, length = int(np.searchsorted(self._values, value)), len(self._values)
        is_near_first = self._local.below == "rises", self._local.above == "rises"
        below = slice(max(middle - depth, 0), middle), slice(0, min(depth, middle))
        above = slice(middle, middle + depth), slice(max(length - depth, middle), length)
        sides = (
            (below[0], -1) if is_near_first[0] else (below[1], 1),
            (above[0], 1) if is_near_first[1] else (above[1], -1),
        )
        positions = [self._positions[side][::way] for side, way in sides]
        scores = [self._left(self._values[side][::way], value, depth) for side, way in sides]
        return _Read(positions[0], positions[1], np.minimum(*scores))

    def _left(self, values: Floats, value: float, depth: int) -> Floats:
        """Return the least local score that is left on a side: infinite where it is at its end."""
        scores = self._local.score(values, value)
        if len(scores) == depth:
            return scores
        return np.concatenate([scores[:-1], np.full(depth - max(len(scores) - 1, 0), np.inf)])
