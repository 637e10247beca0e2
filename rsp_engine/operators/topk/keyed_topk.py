"""MinTopk over terms of any kind: their ranks are the scores.

MinTopk needs to know which of two objects is better, and nothing else of a score. So the objects of
its list and those of a new pane are put in the order of terms together, and their ranks are what
MinTopk takes for scores. A recoding that keeps the order changes nothing in the list:

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
    from rsp_engine.operators.sparql.pane_matcher import Matched

__all__ = ["KeyedPlace", "KeyedTopk", "best_of"]

KeyedPlace = tuple[str, int, str]
"""What orders an object: the key of its term, the event time, and the text of its solution."""


def in_order(places: Sequence[KeyedPlace], *, descending: bool) -> list[int]:
    """Return the numbers of places, the best last.

    Later and larger is better among those of one key, whichever way the keys go.

    >>> in_order([("a", 1, ""), ("b", 1, ""), ("a", 2, "")], descending=False)
    [1, 0, 2]
    """
    order = sorted(range(len(places)), key=lambda number: places[number][1:])
    order.sort(key=lambda number: places[number][0], reverse=not descending)
    return order


def best_of(matched: Matched, k: int, *, descending: bool) -> tuple[Matched, list[KeyedPlace]]:
    """Return the k best solutions, of each the latest arrival, and what orders them."""
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


def _near(matched: Matched, k: int, *, descending: bool) -> Sequence[int]:
    """Return the numbers of solutions among which are the k best, and others that are as good."""
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
    # The same few solutions may have come again and again.
    return near if len(set(matched.at(near).texts())) >= k else range(size)


class KeyedTopk:
    """Time for a pane of n objects: O((c + n) log (c + n)), with c candidates; memory: O(c)."""

    def __init__(self, k: int, *, descending: bool) -> None:
        self._config = TopkOperatorConfig(k)
        self._descending = descending
        self._mintopk = MinTopk(self._config)
        self._places: dict[int, KeyedPlace] = {}

    def arrive(
        self, pane: Pane, window: int, keys: Sequence[int], places: Sequence[KeyedPlace]
    ) -> None:
        """Take objects of a pane that a window is about to be the first to hold."""
        held = self._mintopk.keys.tolist()
        found = [*(self._places[key] for key in held), *places]
        ranks = np.empty(len(found), dtype=np.int64)
        ranks[in_order(found, descending=self._descending)] = np.arange(len(found))
        self._mintopk.recode(ranks[: len(held)])
        new = ranks[len(held) :]
        self._mintopk.arrive(pane, keys, new, new)
        self._mintopk.settle(window)
        for key, place in zip(keys, places, strict=True):
            self._places[key] = max(place, self._places.get(key, place), key=itemgetter(1))

    def close(self, window: int) -> list[int]:
        """Close a window, and return its best objects, best first."""
        best: list[int] = self._mintopk.close(window).keys.tolist()
        self._places = {key: self._places[key] for key in self._mintopk.keys.tolist()}
        return best

    def state(self) -> StateData:
        """Return all there is to know, as plain data, to be restored from."""
        places = [[key, *place] for key, place in self._places.items()]
        return {"mintopk": self._mintopk.state(), "places": places}

    @classmethod
    def restored(cls, k: int, state: StateData, *, descending: bool) -> KeyedTopk:
        """Return an operator that goes on from a state."""
        made = cls(k, descending=descending)
        made._mintopk = MinTopk.restored(made._config, state["mintopk"])
        made._places = {key: (term, time, text) for key, term, time, text in state["places"]}
        return made
