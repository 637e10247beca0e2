"""The numbers of keys: terms outside, dense integers inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.replica.terms import key_text, read_terms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rsp_engine.model.arrays import Integers
    from rsp_engine.replica.pattern import Key

__all__ = ["Keys"]


class Keys:
    """Gives each key a number, from 0, in the order of first asking; a number never changes.

    >>> from pyoxigraph import Literal
    >>> keys = Keys()
    >>> keys.numbers([(Literal("a"),), (Literal("b"),), (Literal("a"),)])
    array([0, 1, 0])
    >>> keys[1]
    (<Literal value=b datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#string>>,)
    """

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys: list[Key] = []
        self._numbers: dict[Key, int] = {}
        for key in keys:
            self.number(key)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __getitem__(self, number: int) -> Key:
        return self._keys[number]

    def number(self, key: Key) -> int:
        """Return the number of a key, a new one if it has none yet."""
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number

    def numbers(self, keys: Collection[Key]) -> Integers:
        """Return the numbers of keys, in their order."""
        return np.fromiter(map(self.number, keys), dtype=np.int64, count=len(keys))

    def of(self, numbers: Iterable[int] | Integers) -> list[Key]:
        """Return the keys of numbers, in their order."""
        return [self._keys[number] for number in numbers]

    def state(self) -> list[list[str]]:
        """Return the keys as plain data, in the order of their numbers."""
        return [key_text(key) for key in self._keys]

    @classmethod
    def restored(cls, state: Sequence[Sequence[str]]) -> Keys:
        """Return what was saved, with the same numbers."""
        made = cls()
        made.restore(state)
        return made

    def restore(self, state: Sequence[Sequence[str]]) -> None:
        """Take up what was saved, before any key has a number here."""
        terms = iter(read_terms([text for key in state for text in key]))
        for key in state:
            self.number(tuple([next(terms) for _ in key]))
        if len(self) != len(state):
            raise ValueError("a key stands twice")
