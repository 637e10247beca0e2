"""The latest arrival of each key that lives: when it came, and what is known of its pane.

Changes of objects outside the list ask for it. Most panes go by without being asked for, so a pane
is entered into the table when the next question comes, and not at all if it has expired by then.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.model.blocks import RowBlocks, rows_of

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData

__all__ = ["LastArrivals", "Lives"]

_NEVER = np.iinfo(np.int64).min


class Lives(NamedTuple):
    """Of some keys: when they came, until which window they live, and the scores of their panes."""

    positions: Integers
    end: Integers
    lowest: Floats
    highest: Floats


@dataclass(frozen=True, slots=True)
class _Pane:
    """A pane: its last window, and its arrivals until they are entered, then their extremes."""

    end: int
    keys: Integers
    positions: Integers
    streaming: Floats
    lowest: float = 0.0
    highest: float = 0.0


_NOTHING = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))


class LastArrivals:
    """Memory: two numbers for each key up to the largest, and the arrivals of panes that wait."""

    def __init__(self) -> None:
        self._panes: dict[int, _Pane] = {}  # by a number that rises
        self._count = 0
        self._waiting: deque[int] = deque()
        self._of_key: Integers = np.empty(0, dtype=np.int64)  # the number of its pane
        self._positions: Integers = np.empty(0, dtype=np.int64)
        self._newest, self._seen = _NEVER, 0
        self._blocks = RowBlocks()
        self._saved_from = 0
        """The first pane of the state before."""

    def take(self, end: int, keys: Integers, positions: Integers, streaming: Floats) -> None:
        """Take a pane, or a part of one."""
        self._panes[self._count] = _Pane(end, keys, positions, streaming)
        self._waiting.append(self._count)
        self._count += 1

    @property
    def newest(self) -> int:
        """The latest position of all panes that are not forgotten."""
        for number in range(max(self._seen, next(iter(self._panes), self._count)), self._count):
            positions = self._panes[number].positions
            self._newest = max(self._newest, int(positions.max(initial=_NEVER)))
        self._seen = self._count
        return self._newest

    def are_latest(self, keys: Integers, positions: Integers) -> Booleans:
        """Tell which arrivals are not older than the latest of their keys so far."""
        self._enter()
        self._grow(int(keys.max()) + 1)
        return self._positions[keys] <= positions

    def came_at(self, keys: Integers, positions: Integers) -> Booleans:
        """Tell which keys came last at just these positions, in a pane that is not forgotten."""
        known = self.known(keys)
        known[known] = self._positions[keys[known]] == positions[known]
        return known

    def known(self, keys: Integers) -> Booleans:
        """Tell which keys are in a pane that has not been forgotten."""
        self._enter()
        found = np.zeros(len(keys), dtype=bool)
        inside = np.flatnonzero((keys >= 0) & (keys < len(self._of_key)))
        found[inside] = self._of_key[keys[inside]] >= next(iter(self._panes), self._count)
        return found

    def lives(self, keys: Integers) -> Lives:
        """Return what is known of such keys."""
        numbers = np.array(list(self._panes), dtype=np.int64)
        facts = [(pane.end, pane.lowest, pane.highest) for pane in self._panes.values()]
        places = np.searchsorted(numbers, self._of_key[keys])
        end, lowest, highest = np.array(facts, dtype=np.float64).reshape(-1, 3)[places].T
        return Lives(self._positions[keys], end.astype(np.int64), lowest, highest)

    def expire(self, window: int) -> None:
        """Forget panes that do not live until a window, from the first on."""
        while self._panes and next(iter(self._panes.values())).end < window:
            number = next(iter(self._panes))
            del self._panes[number]
            if self._waiting and self._waiting[0] == number:
                self._waiting.popleft()

    def _enter(self) -> None:
        """Enter the panes that wait into the table."""
        self._newest = self.newest
        while self._waiting:
            number = self._waiting.popleft()
            pane = self._panes[number]
            keys, positions, streaming = pane.keys, pane.positions, pane.streaming
            self._grow(int(keys.max()) + 1)
            lowest, highest = float(streaming.min()), float(streaming.max())
            # Of two arrivals at once, one in each part of a pane, the larger x_S counts.
            at_once = self._of_key[keys[positions == self._positions[keys]]]
            for other in np.unique(at_once).tolist():
                highest = max(
                    highest, self._panes[other].highest if other in self._panes else highest
                )
            self._panes[number] = _Pane(pane.end, *_NOTHING, lowest, highest)
            order = np.argsort(positions, kind="stable")  # the last of a key counts
            keys, positions = keys[order], positions[order]
            is_news = positions >= self._positions[keys]
            keys, positions = keys[is_news], positions[is_news]
            self._of_key[keys] = number
            self._positions[keys] = positions
            self._blocks.touch(keys)

    def _grow(self, size: int) -> None:
        if size > len(self._of_key):
            more = max(size, 2 * len(self._of_key)) - len(self._of_key)
            self._of_key = np.concatenate((self._of_key, np.full(more, -1)))
            self._positions = np.concatenate((self._positions, np.full(more, _NEVER)))

    def state(self) -> StateData:
        """Return everything as plain data."""
        self._enter()
        # Of others it is enough that they came before: what comes now comes later.
        first = next(iter(self._panes), self._count)
        gone = (self._of_key >= self._saved_from) & (self._of_key < first)
        self._blocks.touch(np.flatnonzero(gone))
        self._saved_from = first
        keys = np.flatnonzero(self._of_key >= first)
        panes = [[n, pane.end, pane.lowest, pane.highest] for n, pane in self._panes.items()]
        return {
            "panes": panes,
            "count": self._count,
            "newest": self._newest,
            "size": len(keys),
            "keys": self._blocks.state(keys, self._rows),
        }

    def _rows(self, keys: list[int]) -> list[list[int]]:
        """Return keys, each with the number of its pane and its position."""
        rows = zip(keys, self._of_key[keys].tolist(), self._positions[keys].tolist(), strict=True)
        return [[*row] for row in rows]

    def restore(self, state: StateData) -> None:
        """Take everything back."""
        self._panes = {n: _Pane(end, *_NOTHING, *scores) for n, end, *scores in state["panes"]}
        self._count = self._seen = state["count"]
        self._newest, self._waiting = state["newest"], deque()
        rows = np.array(rows_of(state["keys"], state["size"]), dtype=np.int64).reshape(-1, 3)
        keys, numbers, positions = rows.T
        self._of_key, self._positions = _NOTHING[0], _NOTHING[1]
        self._grow(int(keys.max(initial=-1)) + 1)
        self._of_key[keys] = numbers
        self._positions[keys] = positions
        self._blocks = RowBlocks()
