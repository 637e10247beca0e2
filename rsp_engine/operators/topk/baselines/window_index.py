"""All objects of a window, to be scanned for its best: in cells, or as a plain buffer."""

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
_EDGE = 2.0**62  # cells further out than this are one


class WindowIndex(Protocol):
    """Holds the objects of a window; of a key that comes again, the latest counts."""

    def __len__(self) -> int:
        """Return how many objects there are, earlier arrivals of a key among them."""

    def add(self, end: int, batch: Arrivals) -> None:
        """Add the objects of a pane."""

    def purge(self, window: int) -> None:
        """Let objects go that do not live until a window."""

    def best(self, count: int, window: int) -> tuple[Arrivals, Integers]:
        """Return so many of the best objects that live until a window, and their ends."""

    def objects(self) -> tuple[Arrivals, Integers]:
        """Return all objects, and their ends."""


def state_of(index: WindowIndex) -> StateData:
    """Return the objects of an index as plain data, in an order that does not tell of cells."""
    found, ends = index.objects()
    order = np.lexsort((found.keys, found.positions, ends))
    objects = [column[order].tolist() for column in found]
    return {"objects": objects, "ends": ends[order].tolist()}


def restore(index: WindowIndex, state: StateData) -> None:
    """Put the objects of a state into an empty index."""
    objects, ends = as_arrivals(*state["objects"]), np.array(state["ends"], dtype=np.int64)
    for end in np.unique(ends).tolist():
        index.add(end, objects.take(ends == end))


class RingBuffer:
    """Arrays through which the window slides; a scan reads all of it.

    Time to add or to purge: O(1) for an object, by copying; to scan: O(n). Memory: O(n).
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
            lives = run >= window  # those behind a late one wait for it
            self._head += int(lives.argmax()) if lives.any() else len(run)

    def objects(self) -> tuple[Arrivals, Integers]:
        *columns, ends = (column[self._head : self._tail] for column in self._columns)
        return Arrivals(*columns), ends

    def best(self, count: int, window: int) -> tuple[Arrivals, Integers]:
        found, ends = self.objects()
        if (lives := ends >= window).all():
            return _best(found, ends, count)
        return _best(found.take(lives), ends[lives], count)


class ScoreGrid:
    """Objects in cells by their scores; a scan reads cells from the best down.

    Time to add or to purge a pane: O(n log n + c), with c cells; to scan: the cells that it needs.
    Memory: O(n). The cells are as wide as the scores of the first scan want it, and are cut anew
    when there are four times too many or too few of them.
    """

    def __init__(self, cells: int = _CELLS) -> None:
        self._wanted = cells
        self._width = 1.0
        self._clear()

    def _clear(self) -> None:
        self._cells: dict[int, deque[tuple[int, Arrivals]]] = {}
        self._order: list[int] = []  # of cells that hold something
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
                held = self._cells[cell]
                held.popleft()
                if not held:
                    del self._cells[cell], self._order[bisect_left(self._order, cell)]

    def objects(self) -> tuple[Arrivals, Integers]:
        return _whole([part for held in self._cells.values() for part in held])

    def best(self, count: int, window: int) -> tuple[Arrivals, Integers]:
        if not self._wanted // 4 <= len(self._order) <= 4 * self._wanted:
            self._cut_anew()
        taken: list[tuple[int, Arrivals]] = []
        for cell in reversed(self._order):
            taken += [part for part in self._cells[cell] if part[0] >= window]
            if sum(len(part.keys) for _, part in taken) >= count:
                found, ends = _best(*_whole(taken), count)
                if len(found.keys) == count:  # no key came several times
                    return found, ends
        return _best(*_whole(taken), count)

    def _cut_anew(self) -> None:
        """Make cells of another width, if the scores are not all the same."""
        found, ends = self.objects()
        finite = found.scores[np.isfinite(found.scores)]
        spread = float(finite.max() - finite.min()) if len(finite) else 0.0
        width = spread / self._wanted
        if not 0 < width < np.inf or 0.5 < width / self._width < 2:
            return
        panes = [end for end, _, _ in self._panes]
        self._clear()
        self._width = width
        for end in dict.fromkeys(panes):
            self.add(end, found.take(ends == end))


def _whole(parts: list[tuple[int, Arrivals]]) -> tuple[Arrivals, Integers]:
    """Return parts with an end each as one."""
    if not parts:
        return as_arrivals([], [], []), np.empty(0, dtype=np.int64)
    ends = np.repeat([end for end, _ in parts], [len(part.keys) for _, part in parts])
    return concatenated_arrivals(part for _, part in parts), ends


def _best(objects: Arrivals, ends: Integers, count: int) -> tuple[Arrivals, Integers]:
    """Return so many of the best, of each key the latest, and their ends."""
    scores = objects.scores
    if len(scores) > 2 * count + 32:
        border = np.partition(scores, len(scores) - count - 16)[len(scores) - count - 16]
        near = scores >= border
        found = _in_order(objects.take(near), ends[near], count)
        if len(found[1]) == count:  # no key came several times
            return found
    return _in_order(objects, ends, count)


def _in_order(objects: Arrivals, ends: Integers, count: int) -> tuple[Arrivals, Integers]:
    found = best_arrivals_first(objects).first(count)
    marks = zip(objects.keys.tolist(), objects.positions.tolist(), strict=True)
    until = dict(zip(marks, ends.tolist(), strict=True))
    chosen = zip(found.keys.tolist(), found.positions.tolist(), strict=True)
    return found, np.array([until[mark] for mark in chosen], dtype=np.int64)
