"""MinTopk: the minimal top-k candidate set, kept up to date.

An object can still reach an answer if and only if fewer than k objects are better and live at
least as long: then it is among the k best of the last window that holds it. These objects, best
first, are the super-top-k list; the first k of them are the answer of the window that closes.

New arrivals live longest, so one search of the new scores in the list tells how many of them stand
before each candidate; a candidate with k before it is dropped, and never comes back. Marks and
lower bound pointers follow from the list, and are worked out when they are asked for.

A key must always arrive with the same score; for scores that change there is Topk+N.

Yang, Shastri, Rundensteiner, Ward: An optimal strategy for monitoring top-k queries in streaming
windows. EDBT 2011.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rsp_engine.operators.topk import (
    Arrivals,
    Integers,
    PaneBuffer,
    Ranking,
    TopkConfig,
    as_arrivals,
)

__all__ = ["Candidate", "MinTopk"]


class Candidate(NamedTuple):
    """An object of the super-top-k list, with the first and last window whose top-k it is in."""

    key: int
    score: float
    start: int
    end: int


class MinTopk:
    """Time for a pane of n arrivals: O(n + c log c), with c candidates; memory: O(c)."""

    def __init__(self, config: TopkConfig) -> None:
        self.config = config
        self._buffer = PaneBuffer(config)
        self._largest = -1
        self._list = as_arrivals([], [], [])
        self._end: Integers = np.empty(0, dtype=np.int64)
        self._before: Integers = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._list.keys)

    def arrive(self, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(as_arrivals(keys, positions, scores))

    def close(self, window: int) -> Ranking:
        for pane, best in self._buffer.close(window):
            if pane.last >= window:
                self._insert(pane.last, best)
        self._keep(self._end >= window)
        k = self.config.k
        return Ranking(window, self._list.keys[:k].copy(), self._list.scores[:k].copy())

    def _insert(self, end: int, new: Arrivals) -> None:
        """Merge the best of a pane into the list."""
        if len(self) and new.keys.min() <= self._largest:
            self._forget(np.isin(self._list.keys, new.keys))
        self._largest = max(self._largest, int(new.keys.max()))
        # Of equal scores the later arrival is better, so an equal new one stands before an old one.
        new_falling, falling = -new.scores, -self._list.scores
        self._before += np.searchsorted(new_falling, falling, side="right")
        kept = self._before < self.config.k
        self._keep(kept)
        falling = falling[kept]
        before = np.arange(len(new.keys))
        if len(falling) and self._end.max() == end:  # another pane that lives as long
            before += np.searchsorted(falling[self._end == end], new_falling, side="left")
            chosen = np.flatnonzero(before < self.config.k)
            new, before, new_falling = new.take(chosen), before[chosen], new_falling[chosen]
        places = np.searchsorted(falling, new_falling, side="left") + np.arange(len(new.keys))
        self._merge(places, new, end, before)

    def _merge(self, places: Integers, new: Arrivals, end: int, before: Integers) -> None:
        """Put new objects into the list, to these places of the new list."""
        is_old = np.ones(len(self) + len(places), dtype=bool)
        is_old[places] = False

        def merged(old: np.ndarray[Any, Any], more: Any) -> Any:  # noqa: ANN401 - of any type
            whole = np.empty(len(is_old), dtype=old.dtype)
            whole[is_old], whole[places] = old, more
            return whole

        self._end, self._before = merged(self._end, end), merged(self._before, before)
        self._list = Arrivals(*(merged(o, m) for o, m in zip(self._list, new, strict=True)))

    def _forget(self, again: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Remove objects that arrive again: they no longer stand before those they outlived."""
        for place in np.flatnonzero(again):
            outlived = self._end[place + 1 :] <= self._end[place]
            self._before[place + 1 :] -= outlived
        self._keep(~again)

    def _keep(self, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        if not kept.all():
            self._list = self._list.take(kept)
            self._end, self._before = self._end[kept], self._before[kept]

    def candidates(self) -> list[Candidate]:
        """Return the super-top-k list, with marks."""
        current, k = max(self._buffer.closed, 0), self.config.k
        found = []
        for place, end in enumerate(self._end.tolist()):
            ends = np.sort(self._end[:place])[::-1]
            # In the windows that k better objects are in, this one is not.
            start = current if place < k else max(current, int(ends[k - 1]) + 1)
            key, score = int(self._list.keys[place]), float(self._list.scores[place])
            found.append(Candidate(key, score, start, end))
        return found

    def _check(self) -> None:
        """Assert what always holds."""
        scores, at, keys = self._list.scores, self._list.positions, self._list.keys
        order = np.lexsort((keys, at, scores))[::-1]
        assert (order == np.arange(len(keys))).all(), "the list is in order"  # noqa: S101
        assert (self._before < self.config.k).all(), "all are among the k best of a window"  # noqa: S101
        assert len(np.unique(keys)) == len(keys), "a key stands once"  # noqa: S101
