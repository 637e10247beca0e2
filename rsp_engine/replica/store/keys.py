"""The key dictionary: maps keys, which are terms, to small integers."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.blocks import RowBlocks, rows_of
from rsp_engine.model.terms.ntriples import read_terms
from rsp_engine.model.terms.term_order import full_key
from rsp_engine.replica.store.terms import key_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.replica.pattern import Key

__all__ = ["Keys"]


class Keys:
    """Assigns each key the smallest free number; a key keeps it until it is forgotten.

    So arrays indexed by number are no longer than the largest number of keys known at once. Numbers
    say nothing about the order of keys: use `in_order` and `precedence`.

    >>> from pyoxigraph import Literal
    >>> keys = Keys()
    >>> keys.numbers([(Literal("a"),), (Literal("b"),), (Literal("a"),)])
    array([0, 1, 0])
    >>> keys[1]
    (<Literal value=b datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#string>>,)
    >>> keys.forget([0])
    >>> keys.number((Literal("c"),)), keys.in_order(np.array([0, 1]))
    (0, array([1, 0]))
    """

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys: dict[int, Key] = {}
        self._numbers: dict[Key, int] = {}
        self._blocks = RowBlocks()
        self._free: list[int] = []  # a heap
        self._order: dict[int, tuple[str, ...]] = {}  # cached sort keys
        self.size = 0
        """One more than the largest number assigned so far."""
        for key in keys:
            self.number(key)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __getitem__(self, number: int) -> Key:
        return self._keys[number]

    def get(self, keys: Iterable[Key]) -> list[int | None]:
        """Return the number of each key; None if it has none."""
        return list(map(self._numbers.get, keys))

    def number(self, key: Key) -> int:
        """Return the number of a key; assign one if it has none."""
        number = self._numbers.get(key)
        if number is None:
            number = heappop(self._free) if self._free else self.size
            self.size = max(self.size, number + 1)
            self._numbers[key], self._keys[number] = number, key
            self._blocks.touch_one(number)
        return number

    def numbers(self, keys: Collection[Key]) -> Integers:
        """Return the numbers of keys, in the given order; assign missing ones."""
        known = self._numbers
        new = dict.fromkeys([key for key in keys if key not in known] if known else keys)
        assigned = self._assign(new)
        if len(new) == len(keys):  # the common case of a snapshot: each is new
            return np.array(assigned, dtype=np.int64)
        return np.fromiter(map(known.__getitem__, keys), dtype=np.int64, count=len(keys))

    def _assign(self, keys: Collection[Key]) -> list[int]:
        """Assign numbers to new keys, the smallest free ones first; return them."""
        reused = [heappop(self._free) for _ in range(min(len(keys), len(self._free)))]
        beyond = range(self.size, self.size + len(keys) - len(reused))
        numbers = [*reused, *beyond]
        self.size = beyond.stop
        self._numbers.update(zip(keys, numbers, strict=True))
        self._keys.update(zip(numbers, keys, strict=True))
        self._blocks.touch(numbers)
        return numbers

    def every(self) -> Integers:
        """Return the numbers of all keys."""
        return np.array(sorted(self._keys), dtype=np.int64)

    def of(self, numbers: Iterable[int] | Integers) -> list[Key]:
        """Return the keys of numbers, in the given order."""
        return [self._keys[int(number)] for number in numbers]

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget keys and free their numbers for other keys."""
        for number in numbers:
            del self._numbers[self._keys.pop(number)]
            self._order.pop(number, None)
            self._blocks.touch_one(number)
            heappush(self._free, number)

    def in_order(self, numbers: Integers) -> Integers:
        """Return numbers in the term order of their keys."""
        return np.array(sorted(numbers.tolist(), key=self._order_of), dtype=np.int64)

    def precedence(self, numbers: Integers, scores: Floats) -> Integers:
        """Return the ranks of keys by ascending score, with ties broken by term order.

        A rank does not depend on the number of a key, so it is a deterministic tie-breaker.
        """
        order = np.argsort(scores, kind="stable")
        sorted_scores = scores[order]
        before, after = sorted_scores[:-1], sorted_scores[1:]
        differ = (after != before) & ~(np.isnan(after) & np.isnan(before))
        starts = np.flatnonzero(np.concatenate(([True], differ, [True])))
        for run in np.flatnonzero(np.diff(starts) > 1).tolist():
            tied = order[starts[run] : starts[run + 1]]
            sort_keys = [self._order_of(number) for number in numbers[tied].tolist()]
            tied[:] = tied[sorted(range(len(tied)), key=sort_keys.__getitem__)]
        ranks = np.empty(len(numbers), dtype=np.int64)
        ranks[order] = np.arange(len(numbers))
        return ranks

    def _order_of(self, number: int) -> tuple[str, ...]:
        sort_key = self._order.get(number)
        if sort_key is None:
            sort_key = self._order[number] = tuple(map(full_key, self._keys[number]))
        return sort_key

    def state(self) -> dict[str, Any]:
        """Return the keys with their numbers, as plain data."""
        return {"size": len(self._keys), "keys": self._blocks.state(self._keys, self._rows)}

    def _rows(self, numbers: list[int]) -> list[list[Any]]:
        return [[number, *key_text(self._keys[number])] for number in numbers]

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Keys:
        """Return the keys of a saved state, with the same numbers."""
        keys = cls()
        keys.restore(state)
        return keys

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state into an empty dictionary."""
        rows: list[list[Any]] = rows_of(state["keys"], state["size"])
        terms = iter(read_terms([text for _, *key in rows for text in key]))
        self._keys = {number: tuple(islice(terms, len(key))) for number, *key in rows}
        self._numbers = {key: number for number, key in self._keys.items()}
        if len(self._numbers) != len(rows) or min(self._keys, default=0) < 0:
            raise ValueError("a key occurs twice, or has a negative number")
        self.size = max(self._keys, default=-1) + 1
        self._free = [number for number in range(self.size) if number not in self._keys]
        heapify(self._free)
