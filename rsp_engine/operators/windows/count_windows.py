"""Windows over a number of elements or triples, in the order of their timestamps.

Window i of `[ELEMENTS n STEP m]` holds what has the numbers i*m to i*m + n - 1.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.model.answers import Interval
from rsp_engine.model.terms.ntriples import read_triples, triples_text
from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.windows.element_order import ElementOrder, columns, elements
from rsp_engine.operators.windows.scan import NO_LANE, Refusal

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.state import StateData
    from rsp_engine.model.streams import Lane
    from rsp_engine.model.windows import CountFrame
    from rsp_engine.operators.sparql.pane_matcher import Matched, Matcher
    from rsp_engine.operators.windows.element_solutions import Describing

__all__ = ["CountScan", "CountedScan", "DescribedCountScan"]


class CountScan:
    """A window over a number of elements or triples. Memory: the elements of open windows.

    With `closes_partial`, the end of the stream closes windows that are not full as well. Their
    instants can be long over, so beside other windows they are left out.
    """

    def __init__(self, frame: CountFrame, *, closes_partial: bool = True) -> None:
        self.frame = frame
        self._closes_partial = closes_partial
        self.closed = -1
        self.has_news = False
        self._counting = ElementOrder(frame)
        self._count = 0
        self._settled: deque[tuple[int, Sequence[Triple]]] = deque()

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
        lane: Lane | None = None,
    ) -> Refusal | None:
        """Let an element wait until no other can come before it."""
        refusal = self._counting.take(timestamp, triples, watermark)
        if refusal is None:
            self.has_news = self.has_news or self._may_be_full()
        return refusal

    def lane(self, watermark: float) -> tuple[float, float]:
        return NO_LANE

    def settle(self, watermark: float) -> None:
        """Count what no other can precede; what waits on is news for a later watermark."""
        for timestamp, triples in self._counting.settled(watermark):
            self._add(timestamp, triples)
            self._count += 1
        self.has_news = self._counting.waiting > 0 and self._may_be_full()

    def _may_be_full(self) -> bool:
        """Tell whether the next window is full when all that waits is counted."""
        needed = (self.closed + 1) * self.frame.step + self.frame.size
        return self._count + self._counting.waiting >= needed

    def _window(self, index: int) -> tuple[int, int]:
        """Return the number with which a window begins, and the one that comes after it so far."""
        start = index * self.frame.step
        return start, min(start + self.frame.size, self._count)

    def next(self, *, skip_empty: bool) -> tuple[int, int] | None:
        """Return the next full window; at the end of the stream one that is not full will do.

        None is empty, so there is nothing to skip.
        """
        start, end = self._window(self.closed + 1)
        is_over = self._closes_partial and self._counting.is_over
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
        """Hold what is counted next."""
        self._settled.append((timestamp, triples))

    def _time(self, number: int) -> int:
        """Return the timestamp of what has a number, at an edge of an open window."""
        return self._settled[number - self._dropped][0]

    def _forget(self, until: int) -> None:
        """Forget what comes before a number."""
        for _ in range(min(until - self._dropped, len(self._settled))):
            self._settled.popleft()

    def state(self) -> StateData:
        """Return the elements in their order: which of equal ones came first is not told."""
        return {
            "closed": self.closed,
            "has_news": self.has_news,
            **self._counting.state(),
            **self._held_state(),
        }

    def restore(self, state: StateData) -> None:
        self.closed, self.has_news = state["closed"], state["has_news"]
        self._counting.restore(state)
        self._restore_held(state)

    def _held_state(self) -> StateData:
        return {"settled": columns(self._settled), "dropped": self._dropped}

    def _restore_held(self, state: StateData) -> None:
        self._settled = deque(elements(state["settled"]))
        self._count = state["dropped"] + len(self._settled)


class DescribedCountScan(CountScan):
    """A window over the last so many elements whose content are their solutions, as triples."""

    def __init__(
        self, frame: CountFrame, describing: Describing, *, closes_partial: bool = True
    ) -> None:
        super().__init__(frame, closes_partial=closes_partial)
        self._describing = describing
        self._described = 0  # elements from here on are as they came

    def content(self) -> Iterable[tuple[Hashable, Sequence[Triple]]]:
        if self.closed < 0:
            return ()
        _, end = self._window(self.closed)
        start = max(self._described, self._dropped)
        places = range(start - self._dropped, end - self._dropped)
        new = [self._settled[place] for place in places]
        triples = [triple for _, part in new for triple in part]
        numbers = range(start, end)
        found = self._describing.one_by_one(triples, [len(part) for _, part in new], numbers)
        for place, (timestamp, _), solutions in zip(places, new, found, strict=True):
            self._settled[place] = timestamp, solutions
        self._described = max(self._described, end)
        return super().content()

    def _held_state(self) -> StateData:
        return {**super()._held_state(), "described": self._described}

    def _restore_held(self, state: StateData) -> None:
        super()._restore_held(state)
        self._described = state["described"]


class CountedScan(CountScan):
    """A window over a number of elements or triples, for those who look at each pane once.

    A pane is a run of elements between two neighbouring edges of windows: what one of event time
    is, with numbers for instants.

        [ELEMENTS 5 STEP 2]    0 1 | 2 3 | 4 | 5 | 6 | 7 | 8 ...
        W0                     -------------
        W1                           -------------
        W2                                 -------------

    Memory: the triples of panes whose first window is open, and the edges of open windows.
    """

    def __init__(self, frame: CountFrame, *, closes_partial: bool = True) -> None:
        super().__init__(frame, closes_partial=closes_partial)
        self._numbers = TimeFrame(frame.size, frame.step, bounds="[)")
        self._edges: dict[int, int] = {}
        self._panes: deque[_Held] = deque()

    def fresh(self, matcher: Matcher, now: int) -> Iterator[tuple[Pane, Matched]]:
        """Yield the solutions of panes that the last closed window is the first to hold.

        Each came with the number of its element. Their triples are forgotten.
        """
        while self._panes and self._panes[0].pane.first <= self.closed:
            pane, triples, numbers = self._panes.popleft()
            if triples:
                came = np.array(numbers, dtype=np.int64)
                _, sizes = np.unique(came, return_counts=True)
                yield pane, matcher.match(triples, came, now, sizes.tolist())

    def content(self) -> Iterable[tuple[Pane, Sequence[Triple]]]:
        """Return what nobody has looked at of the last closed window; the rest is forgotten."""
        held = (held for held in self._panes if held.pane.first <= self.closed)
        return [(pane, triples) for pane, triples, _ in held]

    def _add(self, timestamp: int, triples: Sequence[Triple]) -> None:
        number = self._count
        if not self._is_edge(number - 1):
            self._edges.pop(number - 1, None)
        self._edges[number] = timestamp  # where a window that is not full may end
        pane = self._numbers.pane(number)
        if pane is None:
            return
        if not self._panes or self._panes[-1].pane != pane:
            self._panes.append(_Held(pane, [], []))
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

    def _held_state(self) -> StateData:
        panes = [
            [pane.first, pane.last, triples_text(triples), numbers]
            for pane, triples, numbers in self._panes
        ]
        return {"count": self._count, "edges": [*map(list, self._edges.items())], "panes": panes}

    def _restore_held(self, state: StateData) -> None:
        self._count = state["count"]
        self._edges = dict(state["edges"])
        self._panes = deque(
            _Held(Pane(first, last), read_triples(text), list(numbers))
            for first, last, text, numbers in state["panes"]
        )
        if any(len(held.triples) != len(held.numbers) for held in self._panes):
            raise ValueError("a triple has no number")


class _Held(NamedTuple):
    """A pane that nobody has looked at: its triples, and the number of the element of each."""

    pane: Pane
    triples: list[Triple]
    numbers: list[int]
