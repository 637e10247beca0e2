"""The join keys of solutions, as key numbers of the replica."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.garbage import no_garbage_collection
from rsp_engine.model.terms.ntriples import read_rows
from rsp_engine.operators.aggregates.dense_integers import are_distinct
from rsp_engine.operators.sparql.pane_matcher import UnreadRows
from rsp_engine.replica.sparql_client.request_text import key_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Integers
    from rsp_engine.operators.sparql.pane_matcher import PaneSolutions
    from rsp_engine.options import ArrivalRule
    from rsp_engine.replica.pattern import Key
    from rsp_engine.replica.store.keys import Keys

__all__ = ["NO_KEY", "JoinKeys"]

NO_KEY = -1
"""The number of a key that nothing remote can join."""


class JoinKeys:
    """Finds the numbers of join keys, given as text or as terms.

    Memory: the texts of keys that arrived as text, until they are forgotten.
    """

    def __init__(self, keys: Keys, width: int) -> None:
        self._keys = keys
        self._width = width
        self._of_text: dict[str, int] = {}
        # Most keys arrive as one text.
        self._texts: dict[int, str] = {}
        self._other_texts: defaultdict[int, list[str]] = defaultdict(list)

    def arrivals(
        self, matched: PaneSolutions, columns: tuple[int, ...], arrivals: ArrivalRule
    ) -> tuple[Integers, Integers]:
        """Return the key and the index of each arrival that counts, in time order.

        The key is in some columns of a solution. Solutions that nothing remote can join are left
        out. With arrivals `latest`, only the latest solution of each key counts, so pushdown may
        drop the others beforehand.
        """
        places = np.array(matched.in_order(range(len(matched.solutions))), dtype=np.int64)
        rows = matched.solutions
        if isinstance(rows, UnreadRows):
            texts = rows.column(*columns)
            numbers = self.of_texts([texts[place] for place in places.tolist()])
        else:
            keys: Any = [tuple([rows[p][at] for at in columns]) for p in places.tolist()]
            numbers = self._of(keys)
        is_joined = numbers != NO_KEY
        numbers, places = numbers[is_joined], places[is_joined]
        if arrivals == "latest" and not are_distinct(numbers):
            last = _last_occurrences(numbers)
            return numbers[last], places[last]
        return numbers, places

    def of_texts(self, texts: Sequence[str]) -> Integers:
        """Return the number of each key, given as text; assign missing ones."""
        known = self._of_text
        numbers = list(map(known.get, texts))
        if None in numbers:
            pairs = zip(texts, numbers, strict=True)
            self._read([*dict.fromkeys([text for text, number in pairs if number is None])])
            return np.array([known.get(text, NO_KEY) for text in texts], dtype=np.int64)
        return np.array(numbers, dtype=np.int64)

    @no_garbage_collection()
    def _read(self, texts: Sequence[str]) -> None:
        """Read keys that are not known as text."""
        read: Any = read_rows(texts, self._width)
        for text, number in zip(texts, self._of(read).tolist(), strict=True):
            if number != NO_KEY:
                self._of_text[text] = number
                if self._texts.setdefault(number, text) is not text:
                    self._other_texts[number].append(text)

    def _of(self, keys: Sequence[Key]) -> Integers:
        """Return the numbers of keys; assign missing ones."""
        numbers = [
            self._new(key) if number is None else number
            for key, number in zip(keys, self._keys.get(keys), strict=True)
        ]
        return np.array(numbers, dtype=np.int64)

    def _new(self, key: Key) -> int:
        # A blank node equals no term but itself, so nothing remote joins it.
        return self._keys.number(key) if key_fault(key) is None else NO_KEY

    def forget(self, numbers: Integers) -> None:
        """Forget the texts of keys whose numbers are reused."""
        for number in numbers.tolist():
            if (text := self._texts.pop(number, None)) is not None:
                del self._of_text[text]
                for other in self._other_texts.pop(number, ()):
                    del self._of_text[other]


def _last_occurrences(numbers: Integers) -> Integers:
    """Return the index of the last occurrence of each number, in order.

    >>> _last_occurrences(np.array([7, 5, 7]))
    array([1, 2])
    """
    _, first = np.unique(numbers[::-1], return_index=True)
    last: Integers = np.sort(len(numbers) - 1 - first)
    return last
