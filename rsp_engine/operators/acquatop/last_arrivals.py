"""The latest arrival of each live key: its position, and the range of x_S in its pane.

Topk+N looks these up when an object outside the list changes. Most panes expire without a lookup,
so a pane is entered into the table at the next lookup, and not at all if it has expired by then.
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

__all__ = ["KeyArrivals", "LastArrivals"]

_NEVER = np.iinfo(np.int64).min


class KeyArrivals(NamedTuple):
    """The latest arrivals of some keys: positions, ends, and the range of x_S in their panes."""

    positions: Integers
    end: Integers
    lowest: Floats
    highest: Floats


@dataclass(frozen=True, slots=True)
class _Pane:
    """A pane: its arrivals until they are entered into the table, then only the range of x_S."""

    end: int
    keys: Integers
    positions: Integers
    streaming: Floats
    lowest: float = 0.0
    highest: float = 0.0


_NOTHING = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))


class LastArrivals:
    """A table of latest arrivals, by key.

    Memory: two numbers for each key up to the largest, and the arrivals of panes not yet entered.
    """

    def __init__(self) -> None:
        self._panes: dict[int, _Pane] = {}  # by number, in order of arrival
        self._count = 0
        self._pending: deque[int] = deque()
        self._of_key: Integers = np.empty(0, dtype=np.int64)  # the pane number of each key
        self._positions: Integers = np.empty(0, dtype=np.int64)
        self._newest, self._seen = _NEVER, 0
        self._blocks = RowBlocks()
        self._saved_from = 0
        """The first pane of the last saved state."""

    def take(self, end: int, keys: Integers, positions: Integers, streaming: Floats) -> None:
        """Add a pane, or a part of one."""
        self._panes[self._count] = _Pane(end, keys, positions, streaming)
        self._pending.append(self._count)
        self._count += 1

    @property
    def newest(self) -> int:
        """An upper bound of the positions in live panes."""
        for number in range(max(self._seen, next(iter(self._panes), self._count)), self._count):
            positions = self._panes[number].positions
            self._newest = max(self._newest, int(positions.max(initial=_NEVER)))
        self._seen = self._count
        return self._newest

    def are_latest(self, keys: Integers, positions: Integers) -> Booleans:
        """Return which arrivals are at least as late as the latest of their keys so far."""
        self._enter()
        self._grow(int(keys.max()) + 1)
        return self._positions[keys] <= positions

    def came_at(self, keys: Integers, positions: Integers) -> Booleans:
        """Return which keys have their latest arrival at these positions, in a live pane."""
        known = self.known(keys)
        known[known] = self._positions[keys[known]] == positions[known]
        return known

    def known(self, keys: Integers) -> Booleans:
        """Return which keys have their latest arrival in a live pane."""
        self._enter()
        is_known = np.zeros(len(keys), dtype=bool)
        inside = np.flatnonzero((keys >= 0) & (keys < len(self._of_key)))
        is_known[inside] = self._of_key[keys[inside]] >= next(iter(self._panes), self._count)
        return is_known

    def lookup(self, keys: Integers) -> KeyArrivals:
        """Return the latest arrivals of keys that are `known`."""
        numbers = np.array(list(self._panes), dtype=np.int64)
        rows = [(pane.end, pane.lowest, pane.highest) for pane in self._panes.values()]
        places = np.searchsorted(numbers, self._of_key[keys])
        end, lowest, highest = np.array(rows, dtype=np.float64).reshape(-1, 3)[places].T
        return KeyArrivals(self._positions[keys], end.astype(np.int64), lowest, highest)

    def ends(self) -> tuple[Integers, Integers]:
        """Return the keys of all panes, in order, and the ends of their latest arrivals."""
        self._enter()
        keys = np.flatnonzero(self._of_key >= next(iter(self._panes), self._count))
        return keys, self.lookup(keys).end

    def expire(self, window: int) -> None:
        """Remove expired panes, in order of arrival, up to the first live one."""
        while self._panes and next(iter(self._panes.values())).end < window:
            number = next(iter(self._panes))
            del self._panes[number]
            if self._pending and self._pending[0] == number:
                self._pending.popleft()

    def _enter(self) -> None:
        """Enter the pending panes into the table."""
        self._newest = self.newest
        while self._pending:
            number = self._pending.popleft()
            pane = self._panes[number]
            keys, positions, streaming = pane.keys, pane.positions, pane.streaming
            self._grow(int(keys.max()) + 1)
            lowest, highest = float(streaming.min()), float(streaming.max())
            # Of two arrivals at one position, in two parts of a pane, the larger x_S wins.
            at_once = self._of_key[keys[positions == self._positions[keys]]]
            for other in np.unique(at_once).tolist():
                highest = max(
                    highest, self._panes[other].highest if other in self._panes else highest
                )
            self._panes[number] = _Pane(pane.end, *_NOTHING, lowest, highest)
            order = np.argsort(positions, kind="stable")  # the last assignment of a key wins
            keys, positions = keys[order], positions[order]
            is_latest = positions >= self._positions[keys]
            keys, positions = keys[is_latest], positions[is_latest]
            self._of_key[keys] = number
            self._positions[keys] = positions
            self._blocks.touch(keys)

    def _grow(self, size: int) -> None:
        if size > len(self._of_key):
            count = max(size, 2 * len(self._of_key)) - len(self._of_key)
            self._of_key = np.concatenate((self._of_key, np.full(count, -1)))
            self._positions = np.concatenate((self._positions, np.full(count, _NEVER)))

    def state(self) -> StateData:
        """Return the table as plain data."""
        self._enter()
        # Keys of expired panes need not be saved: any new arrival is later than theirs.
        first = next(iter(self._panes), self._count)
        expired = (self._of_key >= self._saved_from) & (self._of_key < first)
        self._blocks.touch(np.flatnonzero(expired))
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
        """Return a row for each key: the key, its pane number and its position."""
        rows = zip(keys, self._of_key[keys].tolist(), self._positions[keys].tolist(), strict=True)
        return [[*row] for row in rows]

    def restore(self, state: StateData) -> None:
        """Restore the table."""
        self._panes = {n: _Pane(end, *_NOTHING, *scores) for n, end, *scores in state["panes"]}
        self._count = self._seen = state["count"]
        self._newest, self._pending = state["newest"], deque()
        rows = np.array(rows_of(state["keys"], state["size"]), dtype=np.int64).reshape(-1, 3)
        keys, numbers, positions = rows.T
        self._of_key, self._positions = _NOTHING[0], _NOTHING[1]
        self._grow(int(keys.max(initial=-1)) + 1)
        self._of_key[keys] = numbers
        self._positions[keys] = positions
        self._blocks = RowBlocks()
