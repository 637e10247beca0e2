"""Windows over the last so many elements or triples, in the order of their timestamps."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import count, islice
from math import inf
from typing import TYPE_CHECKING

from rsp_engine.model.answers import Interval
from rsp_engine.model.ntriples import read_triples, triples_text
from rsp_engine.operators.scan import NO_LANE, PASSED, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.windows import CountFrame
    from rsp_engine.operators.state import State

__all__ = ["CountScan"]


@dataclass(frozen=True, slots=True, order=True)
class _Waiting:
    """An element of a count window that others may still precede."""

    timestamp: int
    key: str
    number: int
    triples: Sequence[Triple] = field(compare=False)


class CountScan:
    """A window over the last so many elements or triples. Memory: the elements of open windows.

    With `closes_partial`, the end of the stream closes windows that are not full as well. Their
    instants can be long over, so beside other windows they are left out.
    """

    def __init__(self, frame: CountFrame, *, closes_partial: bool = True) -> None:
        self.frame = frame
        self._closes_partial = closes_partial
        self.closed = -1
        self.has_news = False
        self._waiting: list[_Waiting] = []
        self._numbers = count()
        self._settled: deque[tuple[int, Sequence[Triple]]] = deque()
        self._dropped = 0
        self._watermark = -inf

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
        times: Sequence[int] | None = None,
    ) -> Refusal | None:
        """Let an element wait until no other can come before it."""
        if timestamp < max(watermark, self._watermark):
            return PASSED
        triples = tuple(sorted(set(triples), key=str))
        key = triples_text(triples)
        heapq.heappush(self._waiting, _Waiting(timestamp, key, next(self._numbers), triples))
        self.has_news = True
        return None

    def lane(self, watermark: float) -> tuple[float, float]:
        return NO_LANE

    def settle(self, watermark: float) -> None:
        """Count what no other can precede; what waits on is news for a later watermark."""
        self._watermark = max(self._watermark, watermark)
        while self._waiting and self._waiting[0].timestamp < watermark:
            element = heapq.heappop(self._waiting)
            if self.frame.unit == "TRIPLES":
                self._settled.extend((element.timestamp, (t,)) for t in element.triples)
            else:
                self._settled.append((element.timestamp, element.triples))
        self.has_news = bool(self._waiting)

    def _window(self, index: int) -> tuple[int, int]:
        """Return where a window begins and ends in what is settled."""
        start = index * self.frame.step - self._dropped
        return start, min(start + self.frame.size, len(self._settled))

    def next(self, *, skip_empty: bool) -> tuple[int, int] | None:
        """Return the next full window; at the end of the stream one that is not full will do.

        None is empty, so there is nothing to skip.
        """
        start, end = self._window(self.closed + 1)
        is_over = self._closes_partial and self._watermark == inf
        if start >= end or (end - start < self.frame.size and not is_over):
            return None
        return self.closed + 1, self._settled[end - 1][0]

    def last_content(self) -> float:
        needed = 1 if self._closes_partial else self.frame.size
        last = (self._dropped + len(self._settled) - needed) // self.frame.step
        start, end = self._window(last)
        return self._settled[end - 1][0] if 0 <= start < end else -inf

    def close(self, index: int) -> None:
        self.closed = index
        start, _ = self._window(index)
        for _ in range(min(start, len(self._settled))):
            self._settled.popleft()
            self._dropped += 1

    def close_until(self, instant: int) -> None:
        while (coming := self.next(skip_empty=False)) is not None and coming[1] <= instant:
            self.close(coming[0])

    def interval(self) -> Interval:
        start, end = self._window(self.closed)
        return Interval(self._settled[start][0], self._settled[end - 1][0])

    def content(self) -> Iterable[tuple[int, Sequence[Triple]]]:
        if self.closed < 0:
            return
        start, end = self._window(self.closed)
        for place, (_, triples) in enumerate(islice(self._settled, start, end), start):
            yield self._dropped + place, triples

    def is_empty(self) -> bool:
        return self.closed < 0

    def state(self) -> State:
        """Return the elements in their order: which of equal ones came first is not told."""
        waiting = sorted(self._waiting)
        return {
            "closed": self.closed,
            "has_news": self.has_news,
            "waiting": _columns((element.timestamp, element.triples) for element in waiting),
            "settled": _columns(self._settled),
            "dropped": self._dropped,
            "watermark": self._watermark,
        }

    def restore(self, state: State) -> None:
        self.closed, self.has_news = state["closed"], state["has_news"]
        self._numbers = count()
        self._waiting = [
            _Waiting(timestamp, triples_text(triples), next(self._numbers), triples)
            for timestamp, triples in _elements(state["waiting"])
        ]
        self._settled = deque(_elements(state["settled"]))
        self._dropped, self._watermark = state["dropped"], state["watermark"]


def _columns(elements: Iterable[tuple[int, Sequence[Triple]]]) -> State:
    held = list(elements)
    return {
        "timestamps": [timestamp for timestamp, _ in held],
        "sizes": [len(triples) for _, triples in held],
        "triples": triples_text(triple for _, triples in held for triple in triples),
    }


def _elements(state: State) -> Iterator[tuple[int, Sequence[Triple]]]:
    triples = iter(read_triples(state["triples"]))
    for timestamp, size in zip(state["timestamps"], state["sizes"], strict=True):
        found = tuple(islice(triples, size))
        if len(found) < size:
            raise ValueError("a triple of an element is missing")
        yield timestamp, found
