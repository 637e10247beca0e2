"""Global scoring functions: a new object is scored with those objects only that can matter.

A global scoring function combines local scores, one for each attribute, and never falls when one of
these rises. A local score is loose monotonic: it goes one way as the other object's value goes away
from the new one's, upwards, and one way downwards. So in a list that is sorted by the attribute,
objects are found in the order of their local scores by two cursors at most. All lists, and that of
ages, are read to the same depth, until what is left is dominated by the K-staircase: it is no
younger than the last that was seen and no better than the last local scores together.

The paper reads the lists pair by pair. Here the depth is found first, from the local scores alone,
and the pairs are scored then: the same ones, at once.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
section V.B and Algorithm 5. (Fagin, Lotem, Naor: Optimal aggregation algorithms for middleware.
JCSS 66(4), 2003.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

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
    """Objects sorted by each attribute. Time: O(N) in one move of memory to add or remove one.

    >>> def difference(values, value):
    ...     return np.abs(values - value)
    >>> near = LocalScore(0, difference, "rises", "rises")
    >>> lists = SortedLists(GlobalScoring((near,), sum))
    >>> for position, value in enumerate((5.0, 1.0, 2.0, 9.0)):
    ...     lists.add(position, [value])
    >>> lists.seen([1.2], np.array([0.1, 0.5, 0.5, 9.0]), 0)
    array([1, 2, 3])
    """

    def __init__(self, scoring: GlobalScoring) -> None:
        self.scoring = scoring
        self._lists = [_Sorted() for _ in scoring.local]
        self._unsorted = 0
        self._depth = 1  # a guess, from the object before

    def add(self, position: int, row: Floats | list[float]) -> None:
        """Take an object. One that lacks a value has no score, and is in no list."""
        values = [float(row[each.column]) for each in self.scoring.local]
        if not np.isfinite(values).all():
            self._unsorted += bool(np.isinf(values).any())
            return
        for held, value in zip(self._lists, values, strict=True):
            held.add(value, position)

    def remove(self, position: int, row: Floats | list[float]) -> None:
        """Forget an object."""
        values = [float(row[each.column]) for each in self.scoring.local]
        if not np.isfinite(values).all():
            self._unsorted -= bool(np.isinf(values).any())
            return
        for held, value in zip(self._lists, values, strict=True):
            held.remove(value, position)

    def move(self, position: int) -> None:
        """Learn that objects from this position on have moved by one."""
        for held in self._lists:
            held.move(position)

    def seen(self, row: Floats | list[float], bounds: Floats, first: int) -> Integers | None:
        """Return the positions of the objects to score a new one with; nothing means all.

        `bounds` are the largest scores that the staircase allows, from position `first` on.
        """
        values = [float(row[each.column]) for each in self.scoring.local]
        if self._unsorted or np.isinf(values).any():
            return None  # beside what is infinite, lists are in no order
        if np.isnan(values).any():
            return np.flatnonzero(bounds == np.inf) + first  # it has no score, and ranks last
        count = len(bounds)
        depth = min(self._depth, count - 1)
        while depth > 0:
            read = [
                held.read(each, value, depth)
                for held, each, value in zip(self._lists, self.scoring.local, values, strict=True)
            ]
            reach = min(depth, *(len(scores) for _, scores in read))
            if (found := self._stop(read, bounds, reach)) is not None:
                self._depth = found + found // 4
                return _union(read, found, first + count)
            if reach < depth or depth == count - 1:
                break
            depth = min(2 * depth, count - 1)
        return None

    def _stop(self, read: list[tuple[Integers, Floats]], bounds: Floats, reach: int) -> int | None:
        """Return after how many of each list what is left is dominated, if that is so."""
        count = len(bounds)
        best = self.scoring.combine([scores[:reach] for _, scores in read])
        allowed = bounds[count - 1 - reach : count - 1][::-1]
        dominated = np.flatnonzero(best > allowed)
        return int(dominated[0]) + 1 if len(dominated) else None

    def _check(self) -> None:
        """Assert what always holds."""
        for held in self._lists:
            held.check()


def _union(read: list[tuple[Integers, Floats]], depth: int, end: int) -> Integers:
    lists = [positions[:depth] for positions, _ in read]
    return np.unique(np.concatenate([*lists, np.arange(end - depth, end)]))


class _Sorted:
    """Values in order, and whose they are; equal ones are in the order of positions."""

    def __init__(self) -> None:
        self._values = np.empty(16)
        self._positions = np.empty(16, dtype=np.int64)
        self._length = 0

    def add(self, value: float, position: int) -> None:
        if self._length == len(self._values):
            self._values = np.concatenate([self._values, self._values])
            self._positions = np.concatenate([self._positions, self._positions])
        place, length = self._place(value, position), self._length
        for held, new in ((self._values, value), (self._positions, position)):
            held[place + 1 : length + 1] = held[place:length].copy()
            held[place] = new
        self._length += 1

    def remove(self, value: float, position: int) -> None:
        place, length = self._place(value, position), self._length
        for held in (self._values, self._positions):
            held[place : length - 1] = held[place + 1 : length].copy()
        self._length -= 1

    def move(self, position: int) -> None:
        held = self._positions[: self._length]
        held += held >= position

    def _place(self, value: float, position: int) -> int:
        """Return where an object is, or belongs."""
        values = self._values[: self._length]
        low = int(np.searchsorted(values, value, side="left"))
        high = int(np.searchsorted(values, value, side="right"))
        return low + int(np.searchsorted(self._positions[low:high], position))

    def read(self, local: LocalScore, value: float, depth: int) -> tuple[Integers, Floats]:
        """Return the objects with the smallest local scores, and these, in order."""
        middle = int(np.searchsorted(self._values[: self._length], value))
        if local.below == "falls":
            below = slice(0, min(depth, middle))
        else:
            below = slice(max(middle - depth, 0), middle)
        if local.above == "falls":
            above = slice(max(self._length - depth, middle), self._length)
        else:
            above = slice(middle, min(middle + depth, self._length))
        values = np.concatenate([self._values[below], self._values[above]])
        positions = np.concatenate([self._positions[below], self._positions[above]])
        scores = local.score(values, value)
        order = np.argsort(scores, kind="stable")[:depth]
        return positions[order], scores[order]

    def check(self) -> None:
        values, positions = self._values[: self._length], self._positions[: self._length]
        order = np.lexsort((positions, values))
        assert (order == np.arange(self._length)).all(), "objects are sorted"  # noqa: S101
