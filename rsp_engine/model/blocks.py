"""Rows of large tables as plain data for states, in blocks that stay the same while their rows do.

A checkpoint does not look at a tuple that it has seen. So a table that says which rows are touched
costs a state what was touched, and little for each block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rsp_engine.model.arrays import Integers

__all__ = ["RowBlocks", "TextBlocks", "rows_of"]

_BITS = 7


class RowBlocks:
    """The blocks of rows that are known by numbers, each block of 128 numbers.

    >>> blocks, values = RowBlocks(), {1: "a", 2: "b", 200: "c"}
    >>> def written(numbers):
    ...     return [[number, values[number]] for number in numbers]
    >>> first = blocks.state(values, written)
    >>> first
    {'0': ([1, 'a'], [2, 'b']), '1': ([200, 'c'],)}
    >>> values[200] = "d"
    >>> blocks.touch([200])
    >>> second = blocks.state(values, written)
    >>> second["0"] is first["0"], second["1"]
    (True, ([200, 'd'],))
    """

    def __init__(self) -> None:
        self._written: dict[int, tuple[Any, ...]] = {}

    def touch(self, numbers: Iterable[int] | Integers) -> None:
        """Learn that rows are others now, new or gone."""
        if self._written:
            found = numbers if isinstance(numbers, np.ndarray) else np.array([*numbers], dtype=int)
            for block in np.unique(found >> _BITS).tolist():
                self._written.pop(block, None)

    def touch_one(self, number: int) -> None:
        """Learn that a row is another now, new or gone."""
        self._written.pop(number >> _BITS, None)

    def state(
        self,
        numbers: Iterable[int] | Integers,
        write: Callable[[list[int]], Sequence[Any]],
    ) -> dict[str, tuple[Any, ...]]:
        """Return the rows of these numbers by block, in order; `write` gives those of some."""
        found = numbers if isinstance(numbers, np.ndarray) else np.array([*numbers], dtype=int)
        found = np.sort(found)
        blocks, starts = np.unique(found >> _BITS, return_index=True)
        edges = [*starts.tolist(), len(found)]
        known, self._written = self._written, {}
        for place, block in enumerate(blocks.tolist()):
            written = known.get(block)
            if written is None:
                written = tuple(write(found[edges[place] : edges[place + 1]].tolist()))
            self._written[block] = written
        return {str(block): written for block, written in self._written.items()}


class TextBlocks:
    """The blocks of a list that only grows: what is written of an item is written once.

    >>> texts, items = TextBlocks(), [1, 2]
    >>> texts.state(items, str)
    {'size': 2, 'rows': {'0': ('1', '2')}}
    """

    def __init__(self) -> None:
        self._count = 0
        self._whole: dict[str, tuple[Any, ...]] = {}
        self._last: tuple[Any, ...] = ()

    def state(self, items: Sequence[Any], write: Callable[[Any], Any]) -> dict[str, Any]:
        """Return what is written of each item, in blocks."""
        while self._count < len(items):
            start = len(self._whole) << _BITS
            more = [write(item) for item in items[self._count : start + (1 << _BITS)]]
            self._last = (*self._last, *more)
            self._count += len(more)
            if len(self._last) == 1 << _BITS:
                self._whole[str(len(self._whole))] = self._last
                self._last = ()
        last = {str(len(self._whole)): self._last} if self._last else {}
        return {"size": self._count, "rows": {**self._whole, **last}}


def rows_of(state: Mapping[str, Sequence[Any]], count: int) -> list[Any]:
    """Return all rows of blocks, in order; as many as there were.

    >>> rows_of({"10": [["c"]], "2": [["a"], ["b"]]}, 3)
    [['a'], ['b'], ['c']]
    """
    found = [row for block in sorted(state, key=int) for row in state[block]]
    if len(found) != count:
        raise ValueError(f"{count} rows were saved, and {len(found)} are there")
    return found
