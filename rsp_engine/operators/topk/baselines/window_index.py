"""Indexes of all objects of a window, for SMA to scan: a grid of score cells, or a ring buffer."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rsp_engine.operators.topk.contract import (
    Arrivals,
    as_arrivals,
    best_arrivals_first,
    concatenated_arrivals,
)

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData

__all__ = ["RingBuffer", "ScoreGrid", "WindowIndex", "restore", "state_of"]

_CELLS = 1024
_EDGE = 2.0**62  # cell numbers are clipped here, so that they fit into int64


class WindowIndex(Protocol):
    """An index of the objects of a window. Only the latest arrival of a key counts."""

    def __len__(self) -> int:
        """Return the number of objects, including replaced arrivals of a key."""

    def add(self, end: int, batch: Arrivals) -> None:
        """Add the objects of a pane."""

    def purge(self, window: int) -> None:
        """Remove objects that expire before a window."""

    def best(self, count: int, window: int) -> tuple[Arrivals, Integers]:
        """Return the `count` best objects that are alive in a window, and their ends."""

    def objects(self) -> tuple[Arrivals, Integers]:
        """Return all objects and their ends."""


def state_of(index: WindowIndex) -> StateData:
    """Return the objects of an index as plain data, in an order independent of its cells."""
    objects, ends = index.objects()
    order = np.lexsort((objects.keys, objects.positions, ends))
    columns = [column[order].tolist() for column in objects]
    return {"objects": columns, "ends": ends[order].tolist()}


def restore(index: WindowIndex, state: StateData) -> None:
    """Add the objects of a saved state to an empty index."""
    objects, ends = as_arrivals(*state["objects"]), np.array(state["ends"], dtype=np.int64)
    for end in np.unique(ends).tolist():
        index.add(end, objects.take(ends == end))


class RingBuffer:
    """A buffer through which the window slides; a scan reads all of it.

    Time to add or to purge an object: O(1) amortised; to scan: O(n). Memory: O(n).
    """

    def __init__(self) -> None:
        self._columns = [np.empty(0, dtype=kind) for kind in (np.int64, np.int64, float, np.int64)]
        self._head = self._tail = 0

    def __len__(self) -> int:
        return self._tail - self._head

    def add(self, end: int, batch: Arrivals) -> None:
        count, live = len(batch.keys), len(self)
        if self._tail + count > len(self._columns[0]):
            for place, column in enumerate(self._columns):
                wider = np.empty(2 * (live + count), dtype=column.dtype)
                wider[:live] = column[self._head : self._tail]
                self._columns[place] = wider
            self._head, self._tail = 0, live
        for column, new in zip(self._columns, (*batch, end), strict=True):
            column[self._tail : self._tail + count] = new
        self._tail += count

    def purge(self, window: int) -> None:
        ends = self._columns[3]
        while self._head < self._tail and ends[self._head] < window:
            run = ends[self._head : self._tail]
            is_live = run >= window  # objects behind a live one are purged after it
            self._head += int(is_live.argmax()) if is_live.any() else len(run)

    def objects(self) -> tuple[Arrivals, Integers]:
        *columns, ends = (column[self._head : self._tail] for column in self._columns)
        return Arrivals(*columns), ends

    def best(self, count: int, window: int) -> tuple[Arrivals, Integers]:
        objects, ends = self.objects()
        if (is_live := ends >= window).all():
            return _best(objects, ends, count)
        return _best(objects.take(is_live), ends[is_live], count)


class ScoreGrid:
    """A grid of cells by score; a scan reads cells from the best one down.

    Time to add or to purge a pane: O(n log n + c), with c cells; to scan: the cells it reads.
    Memory: O(n). The first scan sets the width of the cells from the range of the scores; a later
    scan resizes them when there are four times too many or too few.
    """

    def __init__(self, cells: int = _CELLS) -> None:
        self._wanted = cells
        self._width = 1.0
        self._clear()

    def _clear(self) -> None:
        self._cells: dict[int, deque[tuple[int, Arrivals]]] = {}
        self._order: list[int] = []  # of the cells that are not empty
        self._panes: deque[tuple[int, list[int], int]] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, end: int, batch: Arrivals) -> None:
        cells = np.clip(np.floor(batch.scores / self._width), -_EDGE, _EDGE).astype(np.int64)
        order = np.argsort(cells, kind="stable")
        cells, batch = cells[order], batch.take(order)
        starts = [0, *(np.flatnonzero(np.diff(cells)) + 1).tolist(), len(cells)]
        touched = cells[starts[:-1]].tolist() if len(cells) else []
        keys, positions, scores = batch
        for cell, start, stop in zip(touched, starts, starts[1:], strict=False):
            part = Arrivals(keys[start:stop], positions[start:stop], scores[start:stop])
            if cell not in self._cells:
                self._cells[cell] = deque()
                insort(self._order, cell)
            self._cells[cell].append((end, part))
        self._panes.append((end, touched, len(cells)))
        self._count += len(cells)

    def purge(self, window: int) -> None:
        while self._panes and self._panes[0][0] < window:
            _, touched, count = self._panes.popleft()
            self._count -= count
            for cell in touched:
                parts = self._cells[cell]
                parts.popleft()
                if not parts:
                    del self._cells[cell], self._order[bisect_left(self._order, cell)]

    def objects(self) -> tuple[Arrivals, Integers]:
        return _whole([part for parts in self._cells.values() for part in parts])

    def best(self, count: int, window: int) -> tuple[Arrivals, Integers]:
        if not self._wanted // 4 <= len(self._order) <= 4 * self._wanted:
            self._resize_cells()
        taken: list[tuple[int, Arrivals]] = []
        for cell in reversed(self._order):
            taken += [part for part in self._cells[cell] if part[0] >= window]
            if sum(len(part.keys) for _, part in taken) >= count:
                best, ends = _best(*_whole(taken), count)
                if len(best.keys) == count:  # fewer where keys repeat
                    return best, ends
        return _best(*_whole(taken), count)

    def _resize_cells(self) -> None:
        """Rebuild the grid with another cell width, unless all scores are equal."""
        objects, ends = self.objects()
        finite = objects.scores[np.isfinite(objects.scores)]
        spread = float(finite.max() - finite.min()) if len(finite) else 0.0
        width = spread / self._wanted
        if not 0 < width < np.inf or 0.5 < width / self._width < 2:
            return
        panes = [end for end, _, _ in self._panes]
        self._clear()
        self._width = width
        for end in dict.fromkeys(panes):
            self.add(end, objects.take(ends == end))


def _whole(parts: list[tuple[int, Arrivals]]) -> tuple[Arrivals, Integers]:
    """Concatenate parts that have one end each; return the objects and their ends."""
    if not parts:
        return as_arrivals([], [], []), np.empty(0, dtype=np.int64)
    ends = np.repeat([end for end, _ in parts], [len(part.keys) for _, part in parts])
    return concatenated_arrivals(part for _, part in parts), ends


def _best(objects: Arrivals, ends: Integers, count: int) -> tuple[Arrivals, Integers]:
    """Return the `count` best objects, one per key, and their ends."""
    scores = objects.scores
    if len(scores) > 2 * count + 32:
        border = np.partition(scores, len(scores) - count - 16)[len(scores) - count - 16]
        near = scores >= border
        best = _sort(objects.take(near), ends[near], count)
        if len(best[1]) == count:  # fewer where keys repeat
            return best
    return _sort(objects, ends, count)


def _sort(objects: Arrivals, ends: Integers, count: int) -> tuple[Arrivals, Integers]:
    best = best_arrivals_first(objects).first(count)
    marks = zip(objects.keys.tolist(), objects.positions.tolist(), strict=True)
    until = dict(zip(marks, ends.tolist(), strict=True))
    chosen = zip(best.keys.tolist(), best.positions.tolist(), strict=True)
    return best, np.array([until[mark] for mark in chosen], dtype=np.int64)
