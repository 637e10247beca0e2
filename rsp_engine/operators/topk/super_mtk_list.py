"""The super-top-k list: every object that can still enter an answer, in one list, best first.

An object can still enter an answer if and only if fewer than `size` objects dominate it, that is,
rank higher and live at least as long: then it is in the top-`size` of the last window that contains
it. So each object carries its `end`, the last window that contains it, and the number of its
dominators in the list. An object with `size` dominators is dropped for good.

New arrivals usually live longest. Then one stable merge of their scores into the list gives both
the new order and the number of new dominators of each old object.

    the list of AcquaTop, Fig 6(d):   G 8    E 7    C 6    F 5    A 2       size 3
                              end       3      2      1      2      3
                       dominators       0      1      2      2      1
                            marks     1-3    1-2    1-1    2-2    3-3       pointers W1 C, W2 F

The window marks and lower bound pointers of the papers follow from these, and are computed on
demand.

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

__all__ = ["Candidate", "DroppedObjects", "SuperMTKList"]

_FEW = 128  # up to this many removals, updating the dominance counts is faster than recounting
_KEYS, _POSITIONS, _NEGATED, _END, _PAYLOAD = range(5)


class Candidate(NamedTuple):
    """A listed object with its window marks: the first and last window whose top-`size` has it."""

    key: int
    score: float
    start: int
    end: int


class DroppedObjects(NamedTuple):
    """Objects that left the list before they expired; `negated` are their scores, negated."""

    end: Integers
    negated: Floats
    payload: Floats


class SuperMTKList:
    """A super-top-k list; each object may carry a row of `payload_width` further numbers.

    Time for n new objects: O(c + n), with c objects in the list. Memory: O(c).
    """

    def __init__(self, size: int, payload_width: int = 0) -> None:
        self.size = size
        kinds = (np.int64, np.int64, np.float64, np.int64)
        self._columns: list[NDArray[Any]] = [np.empty(0, dtype=kind) for kind in kinds]
        if payload_width:
            self._columns.append(np.empty((0, payload_width)))
        self._dominators: Integers = np.empty(0, dtype=np.int64)
        self._latest = np.iinfo(np.int64).min  # upper bound of the listed positions
        self._last = -1  # upper bound of the listed ends

    def __len__(self) -> int:
        return len(self._dominators)

    @property
    def keys(self) -> Integers:
        """The keys, best first."""
        return self._columns[_KEYS]

    @property
    def positions(self) -> Integers:
        """The position of the latest arrival of each object."""
        return self._columns[_POSITIONS]

    @property
    def scores(self) -> Floats:
        """The scores, in descending order."""
        return -self._columns[_NEGATED]

    @property
    def end(self) -> Integers:
        """The last window that contains each object."""
        return self._columns[_END]

    @property
    def payload(self) -> Floats:
        """The payload rows of the objects."""
        return self._columns[_PAYLOAD]

    def insert(
        self, end: int, new: Arrivals, payload: Floats | None = None, *, window: int
    ) -> DroppedObjects | None:
        """Insert objects that share one end, best first; `window` is the current window.

        Their keys must not be in the list. Ties rank by later position, then by larger key. Objects
        that expire before the current window are removed.
        """
        if not len(new.keys):
            self.purge(window)
            return None
        columns: list[NDArray[Any]]
        columns = [new.keys, new.positions, -new.scores, np.full(len(new.keys), end)]
        if payload is not None:
            columns.append(payload)
        if new.positions.min() > self._latest and end >= self._last:
            return self._append(columns, window)
        both = zip(self._columns, columns, strict=True)
        return self._sort([np.concatenate(pair) for pair in both], window)

    def _append(self, new: list[NDArray[Any]], window: int) -> DroppedObjects | None:
        """Merge objects that are later than all others and live at least as long."""
        count = len(new[_KEYS])
        # New objects first: the merge is stable, and of a tie the later arrival ranks higher.
        columns = list(map(np.concatenate, zip(new, self._columns, strict=True)))
        order = columns[_NEGATED].argsort(kind="stable")
        is_new = order < count
        counts = np.concatenate((np.zeros(count, dtype=np.int64), self._dominators))[order]
        counts += is_new.cumsum()
        counts -= is_new
        end = int(new[_END][0])
        if end == self._last:  # old objects that live as long also dominate new ones
            lives_as_long = (columns[_END][order] == end) & ~is_new
            counts += np.where(is_new, lives_as_long.cumsum(), 0)
        self._latest, self._last = max(self._latest, int(new[_POSITIONS].max())), end
        return self._keep(columns, order, counts, window)

    def _sort(self, columns: list[NDArray[Any]], window: int) -> DroppedObjects | None:
        """Replace the list by objects in any order: sort them, and recount dominators."""
        order = np.lexsort((-columns[_KEYS], -columns[_POSITIONS], columns[_NEGATED]))
        ends = columns[_END][order]
        if len(order):
            self._latest = max(self._latest, int(columns[_POSITIONS].max()))
            self._last = max(self._last, int(ends.max()))
        return self._keep(columns, order, dominators(ends), window)

    def _keep(
        self, columns: list[NDArray[Any]], order: NDArray[np.intp], counts: Integers, window: int
    ) -> DroppedObjects | None:
        """Keep the objects that can still enter an answer; return live ones that cannot."""
        is_live = columns[_END].take(order) >= window
        kept = (counts < self.size) & is_live
        dropped = order[is_live & ~kept]
        order = order[kept]
        self._columns = [column.take(order, axis=0) for column in columns]
        self._dominators = counts[kept]
        if len(columns) <= _PAYLOAD or not len(dropped):
            return None
        return DroppedObjects(
            *(columns[i].take(dropped, axis=0) for i in (_END, _NEGATED, _PAYLOAD))
        )

    def purge(self, window: int) -> None:
        """Remove objects that expire before a window."""
        kept = self.end >= window
        if not kept.all():
            # Expired objects dominate no remaining one: they do not live as long.
            self._columns = [column[kept] for column in self._columns]
            self._dominators = self._dominators[kept]

    def remove(self, removed: NDArray[np.bool_]) -> None:
        """Remove the objects of a mask, and discount them as dominators."""
        places = np.flatnonzero(removed)
        if not len(places):
            return
        kept = np.flatnonzero(~removed)
        if len(places) <= _FEW:
            self._dominators = (self._dominators - dominators_among(places, self.end))[kept]
        self._columns = [column.take(kept, axis=0) for column in self._columns]
        if len(places) > _FEW:
            self._dominators = dominators(self.end)

    def cut(self, count: int) -> None:
        """Keep the `count` best; the others dominate none of them."""
        self._columns = [column[:count] for column in self._columns]
        self._dominators = self._dominators[:count]

    def remove_replaced(self, new: Arrivals) -> Arrivals:
        """Remove objects that arrive again; return arrivals that are not older than the listed one.

        Both sides have each key once.
        """
        common, among_list, among_new = np.intersect1d(
            self.keys, new.keys, assume_unique=True, return_indices=True
        )
        if not len(common):
            return new
        is_later = new.positions[among_new] >= self.positions[among_list]
        removed = np.zeros(len(self), dtype=bool)
        removed[among_list[is_later]] = True
        self.remove(removed)
        kept = np.ones(len(new.keys), dtype=bool)
        kept[among_new[~is_later]] = False
        return new.take(kept)

    def replace(
        self, arrivals: Arrivals, end: Integers, payload: Floats | None = None, *, window: int
    ) -> DroppedObjects | None:
        """Replace the whole list by objects in any order."""
        columns: list[NDArray[Any]] = [arrivals.keys, arrivals.positions, -arrivals.scores, end]
        if payload is not None:
            columns.append(payload)
        return self._sort(columns, window)

    def recode(self, ranks: Integers) -> None:
        """Replace the scores and positions of the objects by ranks in the same order."""
        self._columns[_POSITIONS], self._columns[_NEGATED] = ranks, -ranks.astype(np.float64)
        self._latest = int(ranks.max(initial=np.iinfo(np.int64).min))

    def candidates(self, current: int) -> list[Candidate]:
        """Return the list with its window marks, as of the current window."""
        longest: list[int] = []  # the `size` largest ends so far
        candidates = []
        for key, score, end in zip(
            self.keys.tolist(), self.scores.tolist(), self.end.tolist(), strict=True
        ):
            start = current
            if len(longest) == self.size:
                # It is not in the top-`size` of a window that contains `size` better objects.
                start = max(current, longest[0] + 1)
                heapq.heappushpop(longest, end)
            else:
                heapq.heappush(longest, end)
            candidates.append(Candidate(key, score, start, end))
        return candidates

    def pointers(self, current: int) -> dict[int, int]:
        """Return the lower bound pointers: the last key of each window that has `size` objects."""
        windows = range(current, int(self.end.max(initial=current)) + 1)
        contents = {window: np.flatnonzero(self.end >= window) for window in windows}
        return {
            window: int(self.keys[places[self.size - 1]])
            for window, places in contents.items()
            if len(places) >= self.size
        }

    def state(self) -> list[list[Any]]:
        """Return the columns as plain data."""
        return [column.tolist() for column in (*self._columns, self._dominators)]

    def restore(self, columns: list[list[Any]]) -> None:
        """Restore the columns from plain data."""
        kinds = [column[:0] for column in (*self._columns, self._dominators)]
        *self._columns, self._dominators = (
            np.array(column, dtype=kind.dtype).reshape(-1, *kind.shape[1:])
            for column, kind in zip(columns, kinds, strict=True)
        )
        if len(self):
            self._latest = int(self.positions.max())
            self._last = int(self.end.max())

    def check(self, current: int) -> None:
        """Assert the invariants of the list, among them Lemmas 4.2 to 4.4 of MinTopk."""
        order = np.lexsort((self.keys, self.positions, self.scores))[::-1]
        assert (order == np.arange(len(self))).all(), "the list is in order"  # noqa: S101
        assert len(np.unique(self.keys)) == len(self), "keys are unique"  # noqa: S101
        assert (self._dominators < self.size).all(), "every object is in the top of a window"  # noqa: S101
        naive = [int((self.end[:i] >= self.end[i]).sum()) for i in range(len(self))]
        assert self._dominators.tolist() == naive, "dominance counts are right"  # noqa: S101
        listed = self.candidates(current)
        assert all(c.start <= c.end for c in listed), "every object can enter an answer"  # noqa: S101
        assert all(c.start == current for c in listed[: self.size]), "Lemma 4.4"  # noqa: S101
        windows = range(current, int(self.end.max(initial=current)) + 1)
        lowest = []
        for window in windows:
            inside = [c.score for c in listed if c.start <= window <= c.end]
            live = int((self.end >= window).sum())
            assert len(inside) == min(self.size, live), "Lemma 4.3: careers have no gap"  # noqa: S101
            lowest.append(min(inside) if len(inside) == self.size else -np.inf)
        assert lowest == sorted(lowest, reverse=True), "Lemma 4.2: bounds fall"  # noqa: S101
