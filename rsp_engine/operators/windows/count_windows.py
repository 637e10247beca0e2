"""Scans of windows over a number of elements or triples, in the order of their timestamps.

Window i of `[ELEMENTS n STEP m]` has the items numbered i*m to i*m + n - 1. Items are numbered by
timestamp, and by term order where timestamps are equal. An element waits until no other element can
precede it; then it is settled, and numbered.
"""

from __future__ import annotations

import heapq
from collections import deque
from itertools import count, islice
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.model.answers import Interval
from rsp_engine.model.terms.ntriples import read_triples, triples_text
from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.windows.scan import PASSED, Refusal

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import CountFrame
    from rsp_engine.operators.sparql.pane_matcher import Matcher, PaneSolutions
    from rsp_engine.operators.windows.element_solutions import SolutionDescriber

    _Waiting = tuple[int, str, int, Sequence[Triple]]
    """An element that others may still precede: timestamp, text and number, and its triples."""
    _Item = tuple[int, Sequence[Triple]]
    """A timestamp and what is counted as one: the triples of an element, or one triple."""

__all__ = ["CountScan", "CountedScan", "DescribedCountScan"]


class CountScan:
    """The scan of a window over elements or triples. Memory: the elements of open windows.

    With `closes_partial`, the end of the stream also closes windows that are not full. Their
    instants may lie far in the past, so a query with several windows leaves them out.
    """

    def __init__(self, frame: CountFrame, *, closes_partial: bool = True) -> None:
        self.frame = frame
        self._closes_partial = closes_partial
        self.closed = -1
        self.has_news = False
        self._order = _ElementOrder(frame)
        self._count = 0
        self._settled: deque[_Item] = deque()

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
    ) -> Refusal | None:
        """Let an element wait until no other can precede it."""
        refusal = self._order.take(timestamp, triples, watermark)
        if refusal is None:
            self.has_news = self.has_news or self._may_be_full()
        return refusal

    def settle(self, watermark: float) -> None:
        """Count the elements that no other can precede; the rest waits for a later watermark."""
        for timestamp, triples in self._order.settled(watermark):
            self._add(timestamp, triples)
            self._count += 1
        self.has_news = self._order.waiting > 0 and self._may_be_full()

    def _may_be_full(self) -> bool:
        """Return whether the next window is full once all waiting elements are counted."""
        needed = (self.closed + 1) * self.frame.step + self.frame.size
        return self._count + self._order.waiting >= needed

    def _window(self, index: int) -> tuple[int, int]:
        """Return the first number of a window, and the number after its last item so far."""
        start = index * self.frame.step
        return start, min(start + self.frame.size, self._count)

    def next(self, *, skip_empty: bool) -> tuple[int, int] | None:
        """Return the next full window, or at the end of the stream one that is not full.

        No window is empty, so `skip_empty` has no effect.
        """
        start, end = self._window(self.closed + 1)
        is_over = self._closes_partial and self._order.is_over
        if start >= end or (end - start < self.frame.size and not is_over):
            return None
        return self.closed + 1, self._time(end - 1)

    def last_content(self) -> float:
        needed = 1 if self._closes_partial else self.frame.size
        last = (self._count - needed) // self.frame.step
        _, end = self._window(last)
        return -inf if last < max(self.closed, 0) else self._time(end - 1)

    def close(self, index: int) -> None:
        self.closed = index
        self._forget(index * self.frame.step)

    def close_until(self, instant: int) -> None:
        while (coming := self.next(skip_empty=False)) is not None and coming[1] <= instant:
            self.close(coming[0])

    def interval(self) -> Interval:
        start, end = self._window(self.closed)
        return Interval(self._time(start), self._time(end - 1))

    def content(self) -> Iterable[tuple[Hashable, Sequence[Triple]]]:
        if self.closed < 0:
            return
        start, end = self._window(self.closed)
        places = islice(self._settled, start - self._dropped, end - self._dropped)
        for number, (_, triples) in enumerate(places, start):
            yield number, triples

    def is_empty(self) -> bool:
        return self.closed < 0

    @property
    def _dropped(self) -> int:
        return self._count - len(self._settled)

    def _add(self, timestamp: int, triples: Sequence[Triple]) -> None:
        """Add the next counted item."""
        self._settled.append((timestamp, triples))

    def _time(self, number: int) -> int:
        """Return the timestamp of a numbered item at an edge of an open window."""
        return self._settled[number - self._dropped][0]

    def _forget(self, until: int) -> None:
        """Drop the items before a number."""
        for _ in range(min(until - self._dropped, len(self._settled))):
            self._settled.popleft()

    def state(self) -> StateData:
        """Return the elements in order; the arrival order of equal elements is not saved."""
        return {
            "closed": self.closed,
            "has_news": self.has_news,
            **self._order.state(),
            **self._items_state(),
        }

    def restore(self, state: StateData) -> None:
        self.closed, self.has_news = state["closed"], state["has_news"]
        self._order.restore(state)
        self._restore_items(state)

    def _items_state(self) -> StateData:
        return {"settled": _columns(self._settled), "dropped": self._dropped}

    def _restore_items(self, state: StateData) -> None:
        self._settled = deque(_items(state["settled"]))
        self._count = state["dropped"] + len(self._settled)


class DescribedCountScan(CountScan):
    """The scan of a window over elements whose content is the solutions of each, as triples."""

    def __init__(
        self, frame: CountFrame, describing: SolutionDescriber, *, closes_partial: bool = True
    ) -> None:
        super().__init__(frame, closes_partial=closes_partial)
        self._describing = describing
        self._described = 0  # items from this number on are not yet described

    def content(self) -> Iterable[tuple[Hashable, Sequence[Triple]]]:
        if self.closed < 0:
            return ()
        _, end = self._window(self.closed)
        start = max(self._described, self._dropped)
        places = range(start - self._dropped, end - self._dropped)
        new = [self._settled[place] for place in places]
        triples = [triple for _, part in new for triple in part]
        numbers = range(start, end)
        described = self._describing.one_by_one(triples, [len(part) for _, part in new], numbers)
        for place, (timestamp, _), solutions in zip(places, new, described, strict=True):
            self._settled[place] = timestamp, solutions
        self._described = max(self._described, end)
        return super().content()

    def _items_state(self) -> StateData:
        return {**super()._items_state(), "described": self._described}

    def _restore_items(self, state: StateData) -> None:
        super()._restore_items(state)
        self._described = state["described"]


class CountedScan(CountScan):
    """The scan of a window over elements or triples, for evaluators that read each pane once.

    A pane is a run of items between two neighbouring edges of windows, as in event time, with
    numbers in place of instants.

        [ELEMENTS 5 STEP 2]    0 1 | 2 3 | 4 | 5 | 6 | 7 | 8 ...
        W0                     -------------
        W1                           -------------
        W2                                 -------------

    Memory: the triples of panes whose first window is open, and the edges of the open windows.
    """

    def __init__(self, frame: CountFrame, *, closes_partial: bool = True) -> None:
        super().__init__(frame, closes_partial=closes_partial)
        self._numbers = TimeFrame(frame.size, frame.step, bounds="[)")
        self._edges: dict[int, int] = {}
        self._panes: deque[_CountedPane] = deque()

    def fresh(self, matcher: Matcher, now: int) -> Iterator[tuple[Pane, PaneSolutions]]:
        """Yield the solutions of the panes whose first window is the last closed one.

        The time of a solution is the number of its item. The triples of the panes are dropped.
        """
        while self._panes and self._panes[0].pane.first <= self.closed:
            pane, triples, numbers = self._panes.popleft()
            if triples:
                times = np.array(numbers, dtype=np.int64)
                _, sizes = np.unique(times, return_counts=True)
                yield pane, matcher.match(triples, times, now, sizes.tolist())

    def content(self) -> Iterable[tuple[Pane, Sequence[Triple]]]:
        """Return the unread panes of the last closed window; read panes are dropped."""
        unread = (each for each in self._panes if each.pane.first <= self.closed)
        return [(pane, triples) for pane, triples, _ in unread]

    def _add(self, timestamp: int, triples: Sequence[Triple]) -> None:
        number = self._count
        if not self._is_edge(number - 1):
            self._edges.pop(number - 1, None)
        self._edges[number] = timestamp  # a window that is not full may end here
        pane = self._numbers.pane(number)
        if pane is None:
            return
        if not self._panes or self._panes[-1].pane != pane:
            self._panes.append(_CountedPane(pane, [], []))
        self._panes[-1].triples.extend(triples)
        self._panes[-1].numbers.extend([number] * len(triples))

    def _is_edge(self, number: int) -> bool:
        step = self.frame.step
        return number % step == 0 or (number + 1 - self.frame.size) % step == 0

    def _time(self, number: int) -> int:
        return self._edges[number]

    def _forget(self, until: int) -> None:
        for number in range(until - self.frame.step, until):  # windows close one by one
            self._edges.pop(number, None)

    def _items_state(self) -> StateData:
        panes = [
            [pane.first, pane.last, triples_text(triples), numbers]
            for pane, triples, numbers in self._panes
        ]
        return {"count": self._count, "edges": [*map(list, self._edges.items())], "panes": panes}

    def _restore_items(self, state: StateData) -> None:
        self._count = state["count"]
        self._edges = dict(state["edges"])
        self._panes = deque(
            _CountedPane(Pane(first, last), read_triples(text), list(numbers))
            for first, last, text, numbers in state["panes"]
        )
        if any(len(each.triples) != len(each.numbers) for each in self._panes):
            raise ValueError("a triple has no number")


class _CountedPane(NamedTuple):
    """An unread pane: its triples, and for each triple the number of its item."""

    pane: Pane
    triples: list[Triple]
    numbers: list[int]


class _ElementOrder:
    """A reorder buffer that releases elements by timestamp. Memory: the waiting elements."""

    def __init__(self, frame: CountFrame) -> None:
        self._by_triples = frame.unit == "TRIPLES"
        self._heap: list[_Waiting] = []
        self._numbers = count()  # equal elements keep their order of arrival
        self._watermark = -inf
        self.waiting = 0
        """The number of waiting items: elements, or their triples."""

    @property
    def is_over(self) -> bool:
        """Whether the stream has ended."""
        return self._watermark == inf

    def take(self, timestamp: int, triples: Sequence[Triple], watermark: float) -> Refusal | None:
        """Let an element wait until no other can precede it."""
        if timestamp < max(watermark, self._watermark):
            return PASSED
        triples = tuple(sorted(set(triples), key=str)) if len(triples) > 1 else tuple(triples)
        self._push(timestamp, triples)
        return None

    def _push(self, timestamp: int, triples: Sequence[Triple]) -> None:
        key = triples_text(triples)
        heapq.heappush(self._heap, (timestamp, key, next(self._numbers), triples))
        self.waiting += len(triples) if self._by_triples else 1

    def settled(self, watermark: float) -> Iterator[_Item]:
        """Yield the items that no other can precede, in order: elements, or single triples."""
        self._watermark = max(self._watermark, watermark)
        while self._heap and self._heap[0][0] < watermark:
            timestamp, _, _, triples = heapq.heappop(self._heap)
            self.waiting -= len(triples) if self._by_triples else 1
            if self._by_triples:
                yield from ((timestamp, (triple,)) for triple in triples)
            else:
                yield timestamp, triples

    def state(self) -> StateData:
        waiting = ((timestamp, triples) for timestamp, _, _, triples in sorted(self._heap))
        return {"waiting": _columns(waiting), "watermark": self._watermark}

    def restore(self, state: StateData) -> None:
        self._heap, self._numbers, self.waiting = [], count(), 0
        for timestamp, triples in _items(state["waiting"]):
            self._push(timestamp, triples)
        self._watermark = state["watermark"]


def _columns(items: Iterable[_Item]) -> StateData:
    """Return items as plain data, to be read by `_items`."""
    rows = list(items)
    return {
        "timestamps": [timestamp for timestamp, _ in rows],
        "sizes": [len(triples) for _, triples in rows],
        "triples": triples_text(triple for _, triples in rows for triple in triples),
    }


def _items(state: StateData) -> Iterator[_Item]:
    triples = iter(read_triples(state["triples"]))
    for timestamp, size in zip(state["timestamps"], state["sizes"], strict=True):
        part = tuple(islice(triples, size))
        if len(part) < size:
            raise ValueError("a triple of an element is missing")
        yield timestamp, part
