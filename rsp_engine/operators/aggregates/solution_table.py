"""A table of distinct solutions, found by a hash index, all solutions of a batch at once.

Solutions are rows of integers. The index uses open addressing: a row starts at the slot of its
hash, and goes on to the next slot while another row has it. All rows of a batch take this step
together, so a batch takes a few steps whatever its size.

>>> table = SolutionTable(2)
>>> first, other, again = table.rows([np.array([7, 8, 7]), np.array([1, 1, 1])])
>>> bool(first == again != other), table.rows([np.array([8]), np.array([1])]) == other
(True, array([ True]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Integers

__all__ = ["GONE", "SolutionTable"]

GONE = -1
"""The end of a solution that is in no open window."""

_FREE = -1  # a slot without a row
_LEAST_SLOTS = 1024
_ROOM = 4  # slots for each row, at least: a search takes a step or two
_FEW_GONE = 64  # so many rows may be gone before the table is compacted
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_FOLD = np.uint64(29)


class SolutionTable:
    """Distinct rows of integers with their ends. Time for n rows: O(n). Memory: the live rows."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._columns = [np.empty(0, dtype=np.int64) for _ in range(width)]
        self._ends = np.empty(0, dtype=np.int64)
        self._slots = _free_slots(_LEAST_SLOTS)
        self._size = self._gone = 0

    @property
    def ends(self) -> Integers:
        """The last window that contains each row; `GONE` if there is none."""
        return self._ends[: self._size]

    def extend(self, rows: Integers, end: int) -> None:
        """Set the end of some distinct rows."""
        self._gone -= int(np.count_nonzero(self._ends[rows] == GONE))
        self._ends[rows] = end

    def drop(self, rows: Integers) -> None:
        """Mark distinct rows with an end as gone."""
        self._gone += len(rows)
        self._ends[rows] = GONE

    def column(self, number: int) -> Integers:
        """Return a column of all rows."""
        return self._columns[number][: self._size]

    def rows(self, columns: Sequence[Integers]) -> Integers:
        """Return the row of each solution; add those that the table does not have, as gone."""
        count = len(columns[0])
        self._reserve(count)
        found = np.empty(count, dtype=np.int64)
        mask = len(self._slots) - 1
        slots = (_hashes(columns) >> np.uint64(32)).astype(np.int64) & mask
        left = np.arange(count)
        while len(left):
            at = self._slots[slots[left]]
            is_free = at == _FREE
            if is_free.any():
                places, at, left = left[is_free], at[~is_free], left[~is_free]
                lost = self._add(columns, places, slots, found)
            else:
                lost = left[:0]
            is_same = np.ones(len(left), dtype=np.bool_)
            for mine, others in zip(self._columns, columns, strict=True):
                is_same &= mine[at] == others[left]
            found[left[is_same]] = at[is_same]
            left = left[~is_same]
            slots[left] = (slots[left] + 1) & mask
            left = np.concatenate((left, lost)) if len(lost) else left
        return found

    def _add(
        self, columns: Sequence[Integers], places: Integers, slots: Integers, found: Integers
    ) -> Integers:
        """Add rows at free slots; return those that lost their slot to another one."""
        chosen = slots[places]
        self._slots[chosen] = places
        has_won = self._slots[chosen] == places
        won = places if (all_won := bool(has_won.all())) else places[has_won]
        start, end = self._size, self._size + len(won)
        found[won] = np.arange(start, end)
        self._slots[chosen if all_won else chosen[has_won]] = found[won]
        for mine, others in zip(self._columns, columns, strict=True):
            mine[start:end] = others[won]
        self._ends[start:end] = GONE
        self._gone += end - start
        self._size = end
        return places[:0] if all_won else places[~has_won]

    def _reserve(self, count: int) -> None:
        """Make room for more rows; at most a quarter of the slots are in use."""
        needed = self._size + count
        if needed > len(self._ends):
            room = max(needed, 2 * len(self._ends))
            self._columns = [_resized(column, room) for column in self._columns]
            self._ends = _resized(self._ends, room)
        if _ROOM * needed > len(self._slots):
            self._index(1 << (2 * _ROOM * needed - 1).bit_length())

    def _index(self, slots: int) -> None:
        """Index all rows, which are distinct, anew."""
        self._slots = _free_slots(slots)
        mask = slots - 1
        columns = [column[: self._size] for column in self._columns]
        places = (_hashes(columns) >> np.uint64(32)).astype(np.int64) & mask
        left = np.arange(self._size)
        while len(left):
            is_free = self._slots[places[left]] == _FREE
            self._slots[places[left[is_free]]] = left[is_free]
            left = left[self._slots[places[left]] != left]
            places[left] = (places[left] + 1) & mask

    def compact(self) -> Integers | None:
        """Remove rows that are gone, if they are many; return the new numbers of the others."""
        if 2 * self._gone <= self._size + _FEW_GONE:
            return None
        kept = np.flatnonzero(self.ends != GONE)
        numbers = np.full(self._size, GONE)
        numbers[kept] = np.arange(len(kept))
        room = 2 * len(kept)
        self._columns = [_resized(column[kept], room) for column in self._columns]
        self._ends = _resized(self._ends[kept], room)
        self._size, self._gone = len(kept), 0
        self._index(max(_LEAST_SLOTS, 1 << (2 * _ROOM * len(kept) - 1).bit_length()))
        return numbers


def _free_slots(count: int) -> NDArray[np.int32]:
    """Return slots without rows; there are less than 2**31 rows."""
    return np.full(count, _FREE, dtype=np.int32)


def _hashes(columns: Sequence[Integers]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        hashes = (hashes ^ (hashes >> _FOLD) ^ column.view(np.uint64)) * _MIX
    return hashes


def _resized(column: Integers, size: int) -> Integers:
    resized = np.empty(size, dtype=np.int64)
    resized[: len(column)] = column
    return resized
