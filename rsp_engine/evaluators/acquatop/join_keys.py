"""The join keys of solutions, as the numbers that the replica gives them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rsp_engine.model.terms.lazy_text import WrittenRows
from rsp_engine.model.terms.ntriples import read_rows
from rsp_engine.replica.sparql_client.request_text import unaskable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.evaluators.acquatop.config import ArrivalRule
    from rsp_engine.model.arrays import Integers
    from rsp_engine.operators.sparql.pane_matcher import Matched
    from rsp_engine.replica.pattern import Key
    from rsp_engine.replica.store.keys import Keys

__all__ = ["JoinKeys"]

_NONE = -1
T = TypeVar("T")


class JoinKeys:
    """Tells the keys of solutions. Memory: the texts of keys that came as text, until forgotten.

    With arrivals `latest` only the latest solution of each key counts. So whoever leaves out others
    beforehand gives the keys the same numbers.
    """

    def __init__(self, keys: Keys, columns: tuple[int, ...], arrivals: ArrivalRule) -> None:
        self._keys = keys
        self._columns = columns
        self._are_all = arrivals == "all"
        self._of_text: dict[str, int] = {}
        self._texts: defaultdict[int, list[str]] = defaultdict(list)

    def arrivals(self, matched: Matched) -> tuple[Integers, Integers]:
        """Return the key and the place of each arrival that counts, in the order of time.

        What nothing remote joins is left out.
        """
        places = np.array(matched.in_order(range(len(matched.solutions))), dtype=np.int64)
        rows = matched.solutions
        if isinstance(rows, WrittenRows):
            texts = rows.column(*self._columns)
            chosen, places = self._counting([texts[place] for place in places.tolist()], places)
            numbers = self._numbers_of_texts(chosen)
        else:
            keys: Any = [tuple([rows[p][at] for at in self._columns]) for p in places.tolist()]
            chosen, places = self._counting(keys, places)
            numbers = np.array([self._number(key) for key in chosen], dtype=np.int64)
        is_joined = numbers != _NONE
        return numbers[is_joined], places[is_joined]

    def _counting(self, keys: list[T], places: Integers) -> tuple[list[T], Integers]:
        if self._are_all:
            return keys, places
        latest = dict(zip(keys, range(len(keys)), strict=True))
        if len(latest) == len(keys):
            return keys, places
        kept = np.sort(np.fromiter(latest.values(), dtype=np.int64, count=len(latest)))
        return [keys[at] for at in kept.tolist()], places[kept]

    def _numbers_of_texts(self, texts: Sequence[str]) -> Integers:
        known = self._of_text
        unknown = [text for text in dict.fromkeys(texts) if text not in known]
        if unknown:
            read: Any = read_rows(unknown, len(self._columns))
            for text, number in zip(unknown, map(self._number, read), strict=True):
                if number != _NONE:
                    known[text] = number
                    self._texts[number].append(text)
        return np.array([known.get(text, _NONE) for text in texts], dtype=np.int64)

    def forget(self, numbers: Integers) -> None:
        """Forget the texts of keys whose numbers go to others."""
        for number in numbers.tolist():
            for text in self._texts.pop(number, ()):
                del self._of_text[text]

    def _number(self, key: Key) -> int:
        # A blank node is no other than itself, so nothing remote joins it.
        return self._keys.number(key) if key in self._keys or unaskable(key) is None else _NONE
