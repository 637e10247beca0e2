"""Numbers of texts, for as long as the texts are in use.

>>> numbers = TextNumbers()
>>> codes = numbers.of(["a", "b"])
>>> numbers.use(codes[[0, 0, 1]])
>>> numbers.drop(codes[[0, 1]]).tolist(), numbers.texts
([1], {0: 'a'})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.blocks import RowBlocks, rows_of
from rsp_engine.operators.aggregates.dense_integers import distinct_counts
from rsp_engine.operators.scoring.integer_map import IntegerMap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData

__all__ = ["TextNumbers"]

_FEW = 16  # as many times more texts are not sorted for the ranks of some


class TextNumbers:
    """Numbers of texts, in the order of their first use, and never used again."""

    def __init__(self) -> None:
        self.next = 0
        self.texts: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._uses = IntegerMap()  # how often each number is in use
        self._seen = 0  # numbers from here on were new at the last call of `ranks`
        self._ranks = IntegerMap()  # the numbers in the order of their texts, when they are known
        self._blocks = RowBlocks()

    def of(self, texts: Sequence[str]) -> Integers:
        """Return the numbers of texts; assign missing ones. Each of these must then be used."""
        codes = list(map(self._numbers.get, texts))
        if None in codes:
            missing = [text for text, code in zip(texts, codes, strict=True) if code is None]
            new = self._assign([*dict.fromkeys(missing)])
            if len(new) < len(missing):
                new = list(map(self._numbers.__getitem__, missing))
            assigned = iter(new)
            codes = [next(assigned) if code is None else code for code in codes]
        return np.array(codes, dtype=np.int64)

    def _assign(self, texts: Sequence[str]) -> list[int]:
        """Assign numbers to distinct new texts, and return them."""
        new = np.arange(self.next, self.next + len(texts))
        numbers: list[int] = new.tolist()
        self.next += len(texts)
        self._numbers.update(zip(texts, numbers, strict=True))
        self.texts.update(zip(numbers, texts, strict=True))
        self._uses.insert(new, 0)
        self._blocks.touch(new)
        return numbers

    @property
    def numbers(self) -> Integers:
        """The numbers of all texts, in order."""
        return self._uses.keys

    def use(self, numbers: Integers) -> None:
        """Count uses of numbers."""
        distinct, counts = distinct_counts(numbers)
        self._uses.values[self._uses.places(distinct)] += counts

    def drop(self, numbers: Integers) -> Integers:
        """Count uses that end; return the numbers that are no longer in use, and forget them."""
        distinct, counts = distinct_counts(numbers)
        places = self._uses.places(distinct)
        self._uses.values[places] -= counts
        gone: Integers = distinct[self._uses.values[places] == 0]
        if len(gone):
            self._uses.remove(gone)
            self._blocks.touch(gone)
            for number in gone.tolist():
                del self._numbers[self.texts.pop(number)]
        return gone

    def count(self, number: int) -> int:
        """Return how often a number is in use."""
        return int(self._uses.values[self._uses.places(np.array([number]))[0]])

    def ranks(self, numbers: Integers) -> Integers:
        """Return integers in the order of the texts of some distinct numbers.

        Ranks of all texts are kept: they are sorted again when no text is new.
        """
        if not self._ranks.has(numbers).all():
            if len(numbers) < len(self.texts) // _FEW or numbers[-1] >= self._seen:
                self._seen = self.next
                return _ranks([self.texts[number] for number in numbers.tolist()])
            self._ranks = IntegerMap()
            self._ranks.insert(self._uses.keys, 0)
            self._ranks.values = _ranks([self.texts[n] for n in self._uses.keys.tolist()])
        return self._ranks.values[self._ranks.places(numbers)]

    def state(self) -> StateData:
        """Return the numbers as plain data, without their uses."""
        rows = self._blocks.state(self._uses.keys, self._rows)
        return {"next": self.next, "size": len(self.texts), "rows": rows}

    def _rows(self, numbers: list[int]) -> list[list[Any]]:
        return [[number, self.texts[number]] for number in numbers]

    def restore(self, state: StateData) -> None:
        """Restore the numbers; their uses must be counted again."""
        rows = rows_of(state["rows"], state["size"])
        self.next = state["next"]
        self.texts = dict(rows)
        self._numbers = {text: number for number, text in rows}
        self._uses = IntegerMap()
        self._uses.insert(np.array([number for number, _ in rows], dtype=np.int64), 0)


def _ranks(texts: Sequence[str]) -> Integers:
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks
