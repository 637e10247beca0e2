"""The threshold algorithm for global scoring functions: a new object is scored with few others.

A global scoring function combines local scores, one for each attribute, and never falls when one of
them rises. A local score is loose monotonic: it is monotonic in the distance of the other object's
value from the new one's, separately above and below it. So in a list that is sorted by the
attribute, two cursors, one for each side, read objects in the order of their local scores. All
cursors, and one by age, are read to the same depth, until the rest is dominated by the K-staircase:
it is no younger than the last object read, and no better than the last local scores combined.

The paper reads pair by pair, and advances the better of the two cursors. Here all cursors advance
at once: the depth is determined first, from the local scores alone, and then the pairs are scored.
The lists are sorted again only from time to time: objects that arrived since are the youngest,
which the cursor by age reads anyway.

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
"""The direction of a local score as the other value moves away from that of the new object."""


@dataclass(frozen=True, slots=True)
class LocalScore:
    """A loose monotonic score of one attribute: its column, and its direction on each side."""

    column: int
    score: Callable[[Floats, float], Floats]
    above: Going
    below: Going


@dataclass(frozen=True, slots=True)
class GlobalScoring:
    """Local scores, and a function that combines them and never falls when one of them rises."""

    local: tuple[LocalScore, ...]
    combine: Callable[[list[Floats]], Floats]


class SortedLists:
    """Objects sorted by each attribute, used for windows of at least `least` objects.

    Time per object: O(M) for the M objects that are read, and O(log N) amortised for sorting.

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
        self._lists: list[_SortedList] = []
        self._until = -1  # objects before this position are in the lists
        self._has_infinite = False
        self._depth = 1  # a first guess, taken from the previous object

    def forget(self) -> None:
        """Invalidate the lists, because positions have changed."""
        self._until = -1

    def seen(self, columns: Floats, row: Floats, bounds: Floats, first: int) -> Integers | None:
        """Return the positions of the objects to score a new one with; None means all.

        A position may occur twice. `columns` are the values of the objects from position `first`
        on, and `bounds` the largest scores that the staircase allows there.
        """
        count = len(bounds)
        end = first + count
        if count < self.least:
            return None
        if self._until < 0 or end - self._until > max(8, count // 64):
            self._sort(columns, first)
        values = [float(row[each.column]) for each in self.scoring.local]
        if self._has_infinite or np.isinf(values).any():
            return None  # with infinite values, lists are not in the order of local scores
        if np.isnan(values).any():
            return np.flatnonzero(bounds == np.inf) + first  # it has no score, and ranks last
        depth = self._depth
        while 2 * depth < count:
            reads = [
                each.read(value, depth) for each, value in zip(self._lists, values, strict=True)
            ]
            if (stop := self._stop(reads, bounds)) is not None:
                self._depth = stop + stop // 4 + 1
                return self._positions(reads, stop, first, end)
            depth *= 2
        return None

    def _sort(self, columns: Floats, first: int) -> None:
        used = columns[[each.column for each in self.scoring.local]]
        finite = np.isfinite(used).all(axis=0)
        self._has_infinite = bool(np.isinf(used).any())
        places = np.flatnonzero(finite)  # without a value there is no score, and age alone decides
        self._lists = [
            _SortedList(each, values[places], places + first)
            for each, values in zip(self.scoring.local, used, strict=True)
        ]
        self._until = first + columns.shape[1]

    def _stop(self, reads: list[_Read], bounds: Floats) -> int | None:
        """Return the depth after which the rest is dominated; None if there is none."""
        with np.errstate(all="ignore"):  # at the end of a side, zero may meet infinity
            best = self.scoring.combine([each.scores for each in reads])
        last = len(bounds) - 1  # per step of depth, the cursor by age reads two objects
        allowed = bounds[last - 2 * len(best) : last - 1 : 2][::-1]
        [dominated] = (best > allowed).nonzero()
        return int(dominated[0]) + 1 if len(dominated) else None

    def _positions(self, reads: list[_Read], depth: int, first: int, end: int) -> Integers:
        parts = [side[:depth] for each in reads for side in (each.below, each.above)]
        recent = np.arange(max(min(end - 2 * depth, self._until), first), end)
        listed = np.concatenate(parts)
        return np.concatenate([listed[listed >= first], recent])


class _Read(NamedTuple):
    """Positions by local score on both sides, and for each depth the least score of the rest."""

    below: Integers
    above: Integers
    scores: Floats


class _SortedList:
    """The values of one attribute in order, with the positions of their objects."""

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
        scores = [self._rest(self._values[side][::way], value, depth) for side, way in sides]
        return _Read(positions[0], positions[1], np.minimum(*scores))

    def _rest(self, values: Floats, value: float, depth: int) -> Floats:
        """Return the least local score of the rest of a side: infinite past its end."""
        scores = self._local.score(values, value)
        if len(scores) == depth:
            return scores
        return np.concatenate([scores[:-1], np.full(depth - max(len(scores) - 1, 0), np.inf)])
