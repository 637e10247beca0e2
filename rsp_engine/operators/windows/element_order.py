"""The order in which elements count: that of their timestamps, and of terms where these are equal.

An element waits until no other can come before it; then it is settled.
"""

from __future__ import annotations

import heapq
from itertools import count, islice
from math import inf
from typing import TYPE_CHECKING

from rsp_engine.model.terms.ntriples import read_triples, triples_text
from rsp_engine.operators.windows.scan import PASSED, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import CountFrame

    _Waiting = tuple[int, str, int, Sequence[Triple]]
    """An element that others may still precede: what it is ordered by, and its triples."""
    Counted = tuple[int, Sequence[Triple]]
    """A timestamp and what counts as one: the triples of an element, or one triple."""

__all__ = ["ElementOrder", "columns", "elements"]


class ElementOrder:
    """Puts elements in order. Memory: the elements that wait."""

    def __init__(self, frame: CountFrame) -> None:
        self._by_triples = frame.unit == "TRIPLES"
        self._waiting: list[_Waiting] = []  # a heap
        self._numbers = count()  # of two that are equal the first comes first
        self._watermark = -inf
        self.waiting = 0
        """How many wait that will be counted: elements, or their triples."""

    @property
    def is_over(self) -> bool:
        """Whether no element will come any more."""
        return self._watermark == inf

    def take(self, timestamp: int, triples: Sequence[Triple], watermark: float) -> Refusal | None:
        """Let an element wait until no other can come before it."""
        if timestamp < max(watermark, self._watermark):
            return PASSED
        triples = tuple(sorted(set(triples), key=str)) if len(triples) > 1 else tuple(triples)
        self._wait(timestamp, triples)
        return None

    def _wait(self, timestamp: int, triples: Sequence[Triple]) -> None:
        key = triples_text(triples)
        heapq.heappush(self._waiting, (timestamp, key, next(self._numbers), triples))
        self.waiting += len(triples) if self._by_triples else 1

    def settled(self, watermark: float) -> Iterator[Counted]:
        """Yield what no other can precede, in order: elements, or their triples one by one."""
        self._watermark = max(self._watermark, watermark)
        while self._waiting and self._waiting[0][0] < watermark:
            timestamp, _, _, triples = heapq.heappop(self._waiting)
            self.waiting -= len(triples) if self._by_triples else 1
            if self._by_triples:
                yield from ((timestamp, (triple,)) for triple in triples)
            else:
                yield timestamp, triples

    def state(self) -> StateData:
        """Return what waits, in its order: which of equal ones came first is not told."""
        waiting = ((timestamp, triples) for timestamp, _, _, triples in sorted(self._waiting))
        return {"waiting": columns(waiting), "watermark": self._watermark}

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
        self._waiting, self._numbers, self.waiting = [], count(), 0
        for timestamp, triples in elements(state["waiting"]):
            self._wait(timestamp, triples)
        self._watermark = state["watermark"]


def columns(counted: Iterable[Counted]) -> StateData:
    """Return what counts as plain data, to be read by `elements`."""
    held = list(counted)
    return {
        "timestamps": [timestamp for timestamp, _ in held],
        "sizes": [len(triples) for _, triples in held],
        "triples": triples_text(triple for _, triples in held for triple in triples),
    }


def elements(state: StateData) -> Iterator[Counted]:
    """Yield what is written down."""
    triples = iter(read_triples(state["triples"]))
    for timestamp, size in zip(state["timestamps"], state["sizes"], strict=True):
        found = tuple(islice(triples, size))
        if len(found) < size:
            raise ValueError("a triple of an element is missing")
        yield timestamp, found
