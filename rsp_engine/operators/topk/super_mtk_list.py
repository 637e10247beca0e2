"""The super list: the objects that can still reach an answer, in one list, best first.

An object can still reach an answer if and only if fewer than `size` objects are better and live at
least as long: then it is among the best of the last window that holds it. So each object carries
its `end`, the last window that holds it, and `before`, how many of the list stand before it and
live at least as long; at `size` it is dropped, and never comes back by itself.

New arrivals mostly live longest. Then one stable merge of their scores into the list gives the new
order, and tells how many of them stand before each of the old; one permutation does the rest.

    the list of AcquaTop, Fig 6(d):   G 8    E 7    C 6    F 5    A 2       size 3
                              end       3      2      1      2      3
                           before       0      1      2      2      1
                            marks     1-3    1-2    1-1    2-2    3-3       pointers W1 C, W2 F

Marks and lower bound pointers of the papers follow from this, and are worked out when asked for.

Yang, Shastri, Rundensteiner, Ward: An optimal strategy for monitoring top-k queries in streaming
windows. EDBT 2011, section 4. Zahmatkesh, Della Valle: Continuous top-k approximated join of
streaming and evolving distributed data. Section 4.3.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rsp_engine.operators.topk.dominance import dominators, dominators_among

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.topk.contract import Arrivals

__all__ = ["Candidate", "Dropped", "SuperMTKList"]

_FEW = 128  # that leave at once: it is faster to take them out of the counters than to count anew
_KEYS, _POSITIONS, _FALLING, _END, _MORE = range(5)


class Candidate(NamedTuple):
    """An object of the list, with the first and the last window among whose best it is."""

    key: int
    score: float
    start: int
    end: int


class Dropped(NamedTuple):
    """Objects that had to leave the list although they live on."""

    end: Integers
    falling: Floats
    more: Floats


class SuperMTKList:
    """Time for n new objects: O(c + n), with c objects in the list. Memory: O(c).

    `more` numbers travel with each object, as a row.
    """

    def __init__(self, size: int, more: int = 0) -> None:
        self.size = size
        kinds = (np.int64, np.int64, np.float64, np.int64)
        self._columns: list[NDArray[Any]] = [np.empty(0, dtype=kind) for kind in kinds]
        if more:
            self._columns.append(np.empty((0, more)))
        self._before: Integers = np.empty(0, dtype=np.int64)
        self._latest = np.iinfo(np.int64).min  # no object of the list has a later position
        self._last = -1  # ... or end

    def __len__(self) -> int:
        return len(self._before)

    @property
    def keys(self) -> Integers:
        """The keys, best first."""
        return self._columns[_KEYS]

    @property
    def positions(self) -> Integers:
        """When each last arrived."""
        return self._columns[_POSITIONS]

    @property
    def scores(self) -> Floats:
        """The scores, which fall."""
        return -self._columns[_FALLING]

    @property
    def end(self) -> Integers:
        """The last window that holds each."""
        return self._columns[_END]

    @property
    def more(self) -> Floats:
        """The rows that travel with the objects."""
        return self._columns[_MORE]

    def insert(
        self, end: int, new: Arrivals, more: Floats | None = None, *, window: int
    ) -> Dropped | None:
        """Insert objects that come best first and live until one end; `window` is the current one.

        Their keys are not in the list. Of equal scores the later arrival stands first, then the
        larger key. Objects that do not live until the window leave.
        """
        if not len(new.keys):
            self.purge(window)
            return None
        columns: list[NDArray[Any]]
        columns = [new.keys, new.positions, -new.scores, np.full(len(new.keys), end)]
        if more is not None:
            columns.append(more)
        if new.positions.min() > self._latest and end >= self._last:
            return self._append(columns, window)
        both = zip(self._columns, columns, strict=True)
        return self._sort([np.concatenate(pair) for pair in both], window)

    def _append(self, new: list[NDArray[Any]], window: int) -> Dropped | None:
        """Merge objects that arrive after all others and live at least as long."""
        count = len(new[_KEYS])
        # New ones first: the merge is stable, and of equals the later arrival is better.
        columns = list(map(np.concatenate, zip(new, self._columns, strict=True)))
        order = columns[_FALLING].argsort(kind="stable")
        is_new = order < count
        before = np.concatenate((np.zeros(count, dtype=np.int64), self._before))[order]
        before += is_new.cumsum()
        before -= is_new
        end = int(new[_END][0])
        if end == self._last:  # old ones that live as long as the new ones
            lasts = (columns[_END][order] == end) & ~is_new
            before += np.where(is_new, lasts.cumsum(), 0)
        self._latest, self._last = max(self._latest, int(new[_POSITIONS].max())), end
        return self._keep(columns, order, before, window)

    def _sort(self, columns: list[NDArray[Any]], window: int) -> Dropped | None:
        """Take objects in any order: sort, and count anew."""
        order = np.lexsort((-columns[_KEYS], -columns[_POSITIONS], columns[_FALLING]))
        ends = columns[_END][order]
        if len(order):
            self._latest = max(self._latest, int(columns[_POSITIONS].max()))
            self._last = max(self._last, int(ends.max()))
        return self._keep(columns, order, dominators(ends), window)

    def _keep(
        self, columns: list[NDArray[Any]], order: NDArray[np.intp], before: Integers, window: int
    ) -> Dropped | None:
        """Keep those that can reach an answer; those that live on all the same are dropped."""
        lives = columns[_END].take(order) >= window
        kept = (before < self.size) & lives
        lost = order[lives & ~kept]
        order = order[kept]
        self._columns = [column.take(order, axis=0) for column in columns]
        self._before = before[kept]
        if len(columns) <= _MORE or not len(lost):
            return None
        return Dropped(*(columns[i].take(lost, axis=0) for i in (_END, _FALLING, _MORE)))

    def purge(self, window: int) -> None:
        """Let objects go that do not live until a window."""
        kept = self.end >= window
        if not kept.all():
            # Those that go stand before none that stays: they do not live as long.
            self._columns = [column[kept] for column in self._columns]
            self._before = self._before[kept]

    def remove(self, gone: NDArray[np.bool_]) -> None:
        """Take objects out: they no longer stand before those that they outlived."""
        places = np.flatnonzero(gone)
        if not len(places):
            return
        stays = np.flatnonzero(~gone)
        if len(places) <= _FEW:
            self._before = (self._before - dominators_among(places, self.end))[stays]
        self._columns = [column.take(stays, axis=0) for column in self._columns]
        if len(places) > _FEW:
            self._before = dominators(self.end)

    def cut(self, count: int) -> None:
        """Keep so many of the best: those that go stand before none of them."""
        self._columns = [column[:count] for column in self._columns]
        self._before = self._before[:count]

    def take_out(self, new: Arrivals) -> Arrivals:
        """Remove objects that arrive again; return the new ones without those that came before."""
        again, among_list, among_new = np.intersect1d(
            self.keys, new.keys, assume_unique=True, return_indices=True
        )
        if not len(again):
            return new
        is_later = new.positions[among_new] >= self.positions[among_list]
        gone = np.zeros(len(self), dtype=bool)
        gone[among_list[is_later]] = True
        self.remove(gone)
        stays = np.ones(len(new.keys), dtype=bool)
        stays[among_new[~is_later]] = False
        return new.take(stays)

    def replace(
        self, arrivals: Arrivals, end: Integers, more: Floats | None = None, *, window: int
    ) -> Dropped | None:
        """Make a list of other objects, given in any order."""
        columns: list[NDArray[Any]] = [arrivals.keys, arrivals.positions, -arrivals.scores, end]
        if more is not None:
            columns.append(more)
        return self._sort(columns, window)

    def recode(self, ranks: Integers) -> None:
        """Give the objects other scores in the same order, and positions: both are their ranks."""
        self._columns[_POSITIONS], self._columns[_FALLING] = ranks, -ranks.astype(np.float64)
        self._latest = int(ranks.max(initial=np.iinfo(np.int64).min))

    def candidates(self, current: int) -> list[Candidate]:
        """Return the list with its marks, seen from the current window."""
        longest: list[int] = []  # the ends of the `size` objects so far that live longest
        found = []
        for key, score, end in zip(
            self.keys.tolist(), self.scores.tolist(), self.end.tolist(), strict=True
        ):
            start = current
            if (
                len(longest) == self.size
            ):  # in the windows that so many better ones are in, it is not
                start = max(current, longest[0] + 1)
                heapq.heappushpop(longest, end)
            else:
                heapq.heappush(longest, end)
            found.append(Candidate(key, score, start, end))
        return found

    def pointers(self, current: int) -> dict[int, int]:
        """Return the lower bound pointers: the last of the best of each window that is full."""
        windows = range(current, int(self.end.max(initial=current)) + 1)
        held = {window: np.flatnonzero(self.end >= window) for window in windows}
        return {
            window: int(self.keys[places[self.size - 1]])
            for window, places in held.items()
            if len(places) >= self.size
        }

    def state(self) -> list[list[Any]]:
        """Return the columns as plain data."""
        return [column.tolist() for column in (*self._columns, self._before)]

    def restore(self, columns: list[list[Any]]) -> None:
        """Take columns back."""
        kinds = [column[:0] for column in (*self._columns, self._before)]
        *self._columns, self._before = (
            np.array(column, dtype=kind.dtype).reshape(-1, *kind.shape[1:])
            for column, kind in zip(columns, kinds, strict=True)
        )
        if len(self):
            self._latest = int(self.positions.max())
            self._last = int(self.end.max())

    def check(self, current: int) -> None:
        """Assert what always holds: Lemmas 4.2 to 4.4 of MinTopk, among others."""
        order = np.lexsort((self.keys, self.positions, self.scores))[::-1]
        assert (order == np.arange(len(self))).all(), "the list is in order"  # noqa: S101
        assert len(np.unique(self.keys)) == len(self), "a key stands once"  # noqa: S101
        assert (self._before < self.size).all(), "all are among the best of a window"  # noqa: S101
        naive = [int((self.end[:i] >= self.end[i]).sum()) for i in range(len(self))]
        assert self._before.tolist() == naive, "the counters are right"  # noqa: S101
        listed = self.candidates(current)
        assert all(c.start <= c.end for c in listed), "all can reach an answer"  # noqa: S101
        assert all(c.start == current for c in listed[: self.size]), "Lemma 4.4"  # noqa: S101
        windows = range(current, int(self.end.max(initial=current)) + 1)
        lowest = []
        for window in windows:
            inside = [c.score for c in listed if c.start <= window <= c.end]
            live = int((self.end >= window).sum())
            assert len(inside) == min(self.size, live), "Lemma 4.3: careers have no gap"  # noqa: S101
            lowest.append(min(inside) if len(inside) == self.size else -np.inf)
        assert lowest == sorted(lowest, reverse=True), "Lemma 4.2: bounds fall"  # noqa: S101
