"""Blocks: the rows of a large table as plain data, so that checkpoints can be incremental.

A state lists its rows in blocks. A block whose rows did not change is the same tuple object as in
the previous state, and a checkpoint skips a tuple that it has already written. So the cost of a
checkpoint grows with the blocks that were touched since the last one, not with the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rsp_engine.model.arrays import Integers

__all__ = ["RowBlocks", "TextBlocks", "rows_of"]

_BITS = 7  # a block has 2**7 = 128 row numbers


class RowBlocks:
    """The encoded blocks of a table whose rows have numbers; block b has the rows 128 b and on.

    >>> blocks, values = RowBlocks(), {1: "a", 2: "b", 200: "c"}
    >>> def encode(numbers):
    ...     return [[number, values[number]] for number in numbers]
    >>> first = blocks.state(values, encode)
    >>> first
    {'0': ([1, 'a'], [2, 'b']), '1': ([200, 'c'],)}
    >>> values[200] = "d"
    >>> blocks.touch([200])
    >>> second = blocks.state(values, encode)
    >>> second["0"] is first["0"], second["1"]
    (True, ([200, 'd'],))
    """

    def __init__(self) -> None:
        self._encoded: dict[int, tuple[Any, ...]] = {}

    def touch(self, numbers: Iterable[int] | Integers) -> None:
        """Mark rows as added, changed or removed since the last state."""
        if self._encoded:
            for block in np.unique(_as_array(numbers) >> _BITS).tolist():
                self._encoded.pop(block, None)

    def touch_one(self, number: int) -> None:
        """Mark one row as added, changed or removed since the last state."""
        self._encoded.pop(number >> _BITS, None)

    def state(
        self,
        numbers: Iterable[int] | Integers,
        write: Callable[[list[int]], Sequence[Any]],
    ) -> dict[str, tuple[Any, ...]]:
        """Return the rows with these numbers by block, in order.

        `write` encodes the rows with some numbers; it is called for each touched block only.
        """
        ordered = np.sort(_as_array(numbers))
        blocks, starts = np.unique(ordered >> _BITS, return_index=True)
        edges = [*starts.tolist(), len(ordered)]
        previous, self._encoded = self._encoded, {}
        for place, block in enumerate(blocks.tolist()):
            rows = previous.get(block)
            if rows is None:
                rows = tuple(write(ordered[edges[place] : edges[place + 1]].tolist()))
            self._encoded[block] = rows
        return {str(block): rows for block, rows in self._encoded.items()}


def _as_array(numbers: Iterable[int] | Integers) -> Integers:
    return numbers if isinstance(numbers, np.ndarray) else np.array([*numbers], dtype=int)


class TextBlocks:
    """The encoded blocks of an append-only list; each item is encoded once.

    >>> texts, items = TextBlocks(), [1, 2]
    >>> texts.state(items, str)
    {'size': 2, 'rows': {'0': ('1', '2')}}
    """

    def __init__(self) -> None:
        self._count = 0
        self._full: dict[str, tuple[Any, ...]] = {}
        self._last: tuple[Any, ...] = ()

    def state(self, items: Sequence[Any], write: Callable[[Any], Any]) -> dict[str, Any]:
        """Return all items in blocks; `write` encodes the items that are new since last time."""
        while self._count < len(items):
            start = len(self._full) << _BITS
            added = [write(item) for item in items[self._count : start + (1 << _BITS)]]
            self._last = (*self._last, *added)
            self._count += len(added)
            if len(self._last) == 1 << _BITS:
                self._full[str(len(self._full))] = self._last
                self._last = ()
        last = {str(len(self._full)): self._last} if self._last else {}
        return {"size": self._count, "rows": {**self._full, **last}}


def rows_of(state: Mapping[str, Sequence[Any]], count: int) -> list[Any]:
    """Return the rows of all blocks, in order; raise `ValueError` if their number is not `count`.

    >>> rows_of({"10": [["c"]], "2": [["a"], ["b"]]}, 3)
    [['a'], ['b'], ['c']]
    """
    rows = [row for block in sorted(state, key=int) for row in state[block]]
    if len(rows) != count:
        raise ValueError(f"{count} rows were saved, but {len(rows)} are there")
    return rows
