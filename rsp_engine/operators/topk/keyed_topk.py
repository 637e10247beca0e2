"""MinTopk over RDF terms of any kind, with ranks as scores.

MinTopk only compares scores. So the listed objects and those of a new pane are sorted together by
the order of their terms, and their ranks serve as scores. Recoding the list preserves its order:

    list        Dora    Bert           by name, descending
    ranks       2       1
    new pane    Carl
    recoded     3       1       2

>>> from rsp_engine.model.windows import Pane
>>> operator = KeyedTopk(2, descending=True)
>>> operator.arrive(Pane(0, 1), 0, [7, 8], [("Bert", 1, "b"), ("Dora", 1, "d")])
>>> operator.arrive(Pane(0, 1), 0, [9], [("Carl", 2, "c")])
>>> operator.close(0)
[8, 9]
"""

from __future__ import annotations

from heapq import nlargest, nsmallest
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.topk.contract import TopkOperatorConfig
from rsp_engine.operators.topk.mintopk import MinTopk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.sparql.pane_matcher import PaneSolutions

__all__ = ["KeyedPlace", "KeyedTopk", "best_of"]

KeyedPlace = tuple[str, int, str]
"""The sort key of an object: the order key of its term, its event time, its solution as text."""


def in_order(places: Sequence[KeyedPlace], *, descending: bool) -> list[int]:
    """Return the indices of places in ascending rank, the best last.

    Among equal order keys, later and then larger text ranks higher, in either direction.

    >>> in_order([("a", 1, ""), ("b", 1, ""), ("a", 2, "")], descending=False)
    [1, 0, 2]
    """
    order = sorted(range(len(places)), key=lambda number: places[number][1:])
    order.sort(key=lambda number: places[number][0], reverse=not descending)
    return order


def best_of(
    matched: PaneSolutions, k: int, *, descending: bool
) -> tuple[PaneSolutions, list[KeyedPlace]]:
    """Return the latest arrivals of the k best solutions, and their places."""
    near = matched.at(_near(matched, k, descending=descending))
    texts = near.texts()
    places = list(zip(near.order_keys(), near.times.tolist(), texts, strict=True))
    latest: dict[str, int] = {}
    for number, text in enumerate(texts):
        other = latest.setdefault(text, number)
        if places[other][1] < places[number][1]:
            latest[text] = number
    numbers = list(latest.values())
    order = in_order([places[number] for number in numbers], descending=descending)
    best = [numbers[place] for place in order[-k:]]
    return near.at(best), [places[number] for number in best]


def _near(matched: PaneSolutions, k: int, *, descending: bool) -> Sequence[int]:
    """Return the indices of a superset of the k best solutions that includes all ties."""
    size, wanted = len(matched.solutions), 2 * k + 16
    if size <= 2 * wanted:
        return range(size)
    near: list[int]
    if (keys := matched.keys) is None:
        scores = matched.numbers if descending else -matched.numbers
        border = np.partition(scores, size - wanted)[size - wanted]
        near = np.flatnonzero(scores >= border).tolist()
    elif descending:
        least = nlargest(wanted, keys)[-1]
        near = [number for number, key in enumerate(keys) if key >= least]
    else:
        most = nsmallest(wanted, keys)[-1]
        near = [number for number, key in enumerate(keys) if key <= most]
    # Few distinct solutions may have arrived many times.
    return near if len(set(matched.at(near).texts())) >= k else range(size)


class KeyedTopk:
    """MinTopk for objects with a sort key in place of a score.

    Time for a pane of n objects: O((c + n) log (c + n)), with c candidates. Memory: O(c).
    """

    def __init__(self, k: int, *, descending: bool) -> None:
        self._config = TopkOperatorConfig(k)
        self._descending = descending
        self._mintopk = MinTopk(self._config)
        self._places: dict[int, KeyedPlace] = {}

    def arrive(
        self, pane: Pane, window: int, keys: Sequence[int], places: Sequence[KeyedPlace]
    ) -> None:
        """Add objects of a pane; `window` is the first window that contains it."""
        listed = self._mintopk.keys.tolist()
        all_places = [*(self._places[key] for key in listed), *places]
        ranks = np.empty(len(all_places), dtype=np.int64)
        ranks[in_order(all_places, descending=self._descending)] = np.arange(len(all_places))
        self._mintopk.recode(ranks[: len(listed)])
        new_ranks = ranks[len(listed) :]
        self._mintopk.arrive(pane, keys, new_ranks, new_ranks)
        self._mintopk.settle(window)
        for key, place in zip(keys, places, strict=True):
            self._places[key] = max(place, self._places.get(key, place), key=itemgetter(1))

    def close(self, window: int) -> list[int]:
        """Close a window and return the keys of its top-k, best first."""
        best: list[int] = self._mintopk.close(window).keys.tolist()
        self._places = {key: self._places[key] for key in self._mintopk.keys.tolist()}
        return best

    def state(self) -> StateData:
        """Return the state of the operator as plain data."""
        places = [[key, *place] for key, place in self._places.items()]
        return {"mintopk": self._mintopk.state(), "places": places}

    @classmethod
    def restored(cls, k: int, state: StateData, *, descending: bool) -> KeyedTopk:
        """Restore an operator from a saved state."""
        operator = cls(k, descending=descending)
        operator._mintopk = MinTopk.restored(operator._config, state["mintopk"])
        operator._places = {key: (term, time, text) for key, term, time, text in state["places"]}
        return operator
