"""Windows over event time: one list of triples per pane."""

from __future__ import annotations

from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.ntriples import read_rows, read_triples, triples_text
from rsp_engine.model.windows import Pane
from rsp_engine.model.written import WrittenTriples
from rsp_engine.operators.matching import Matched
from rsp_engine.operators.scan import BEFORE_T0, BETWEEN_WINDOWS, LATE, NO_LANE, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.answers import Interval
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.windows import TimeFrame
    from rsp_engine.operators.matching import Matcher
    from rsp_engine.operators.state import State

__all__ = ["TimeScan", "TimedScan"]


class TimeScan:
    """A window over event time. Memory: the triples of the windows that are open."""

    def __init__(self, frame: TimeFrame) -> None:
        self.frame = frame
        self.closed = -1
        self.has_news = False
        self._panes: dict[Pane, list[Triple]] = {}
        self._written: dict[Pane, WrittenTriples] = {}  # panes that are not in the other
        self._last = -1
        # The pane of the element before: mostly the next one belongs to it as well. With `[)` all
        # edges are one later in terms of `(]`, times being integers.
        self._shift = 0 if frame.bounds == "(]" else 1
        self._low, self._high, self._until = 0, -1, 0
        self._current: list[Triple] = []
        self._into = self._current  # where the element before was put

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
        times: Sequence[int] | None = None,
    ) -> Refusal | None:
        """Put an element into its pane; of its windows those that are closed do not count."""
        shift = self._shift
        if self._low < timestamp + shift <= self._high and watermark + shift <= self._until:
            self._into = self._current
            self._current.extend(triples)
            return None
        pane = self.frame.pane(timestamp)
        if pane is None:
            return BEFORE_T0 if self.frame.is_before_t0(timestamp) else BETWEEN_WINDOWS
        closed = max(self.closed, self.frame.last_closed(watermark))
        if pane.last <= closed:
            return LATE
        if pane.first <= closed:
            self._into = self._pane(Pane(int(closed) + 1, pane.last))
            self._into.extend(triples)
            return None
        edges = self.frame.edges(pane)
        self._low, self._high = edges.open, edges.close
        self._until = self.frame.interval(pane.first).close
        self._into = self._current = self._pane(pane)
        self._current.extend(triples)
        return None

    def put(self, pane: Pane, triples: Sequence[Triple]) -> None:
        """Put triples into a pane, all of whose windows are open."""
        if isinstance(triples, WrittenTriples) and pane not in self._panes:
            self._written.setdefault(pane, WrittenTriples()).add(triples.text)
            self._meet(pane)
        else:
            self._pane(pane).extend(triples)

    def release(self, pane: Pane) -> None:
        """Forget the content of a pane that nobody will ask for again; that it was there stays."""
        self._panes[pane].clear()

    def lane(self, watermark: float) -> tuple[float, float]:
        """Return the edges of the pane of the element before, if all its windows are open.

        Its elements leave them open: the watermark is never past the element that raises it.
        """
        if watermark + self._shift > self._until:
            return NO_LANE
        return self._low - self._shift, self._high - self._shift

    def _pane(self, pane: Pane) -> list[Triple]:
        if pane not in self._panes:
            self._panes[pane] = self._new()
            self._panes[pane].extend(self._written.pop(pane, ()))
            self._meet(pane)
        return self._panes[pane]

    def _meet(self, pane: Pane) -> None:
        self._last = max(self._last, pane.last)
        self.has_news = True

    def _held(self) -> list[Pane]:
        """Return the panes that hold something, in the order of time."""
        return sorted([*self._panes, *self._written]) if self._written else sorted(self._panes)

    def _new(self) -> list[Triple]:
        return []

    def settle(self, watermark: float) -> None:
        """Do nothing: the instants of time windows are known beforehand."""

    def next(self, *, skip_empty: bool) -> tuple[int, int] | None:
        index = self.closed + 1
        if skip_empty:
            coming = [max(pane.first, index) for pane in self._held() if pane.last >= index]
            if not coming:
                return None
            index = min(coming)
        return index, self.frame.interval(index).close

    def last_content(self) -> float:
        return -inf if self._last < 0 else self.frame.interval(self._last).close

    def close(self, index: int) -> None:
        self.closed = index
        for panes in (self._panes, self._written):
            for pane in [pane for pane in panes if pane.last < index]:
                del panes[pane]

    def close_until(self, instant: int) -> None:
        frame = self.frame
        self.close(max(self.closed, (instant - frame.t0 - frame.range) // frame.step))

    def interval(self) -> Interval:
        return self.frame.interval(self.closed)

    def content(self) -> Iterable[tuple[Pane, Sequence[Triple]]]:
        held = (pane for pane in self._held() if pane.first <= self.closed <= pane.last)
        panes: dict[Pane, Sequence[Triple]] = {**self._panes, **self._written}
        return [(pane, panes[pane]) for pane in held]

    def is_empty(self) -> bool:
        return not any(pane.first <= self.closed <= pane.last for pane in self._held())

    def state(self) -> State:
        """Return the panes in time order; which of them came last is found again by itself."""
        written = {pane: [held.text] for pane, held in self._written.items()}
        read = {pane: self._saved(held) for pane, held in self._panes.items()}
        panes = sorted((read | written).items(), key=itemgetter(0))
        return {
            "closed": self.closed,
            "has_news": self.has_news,
            "last": self._last,
            "panes": [[pane.first, pane.last, *held] for pane, held in panes],
        }

    def restore(self, state: State) -> None:
        self.closed, self._last = state["closed"], state["last"]
        self._panes = {Pane(f, last): self._read(*held) for f, last, *held in state["panes"]}
        self._written = {}
        self.has_news = state["has_news"]

    def _saved(self, triples: list[Triple]) -> list[Any]:
        return [triples_text(triples)]

    def _read(self, text: str) -> list[Triple]:
        return read_triples(text)


class TimedScan(TimeScan):
    """A window over event time that also knows when each triple came."""

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
        times: Sequence[int] | None = None,
    ) -> Refusal | None:
        refusal = super().take(timestamp, triples, watermark)
        if refusal is None:
            came = [timestamp] * len(triples) if times is None else times
            self._timed(self._into).times.extend(came)
        return refusal

    def put_matched(self, pane: Pane, matched: Matched) -> None:
        """Put solutions that were matched elsewhere into a pane, all of whose windows are open."""
        self._timed(self._pane(pane)).matched.append(matched)

    def times(self, pane: Pane) -> Integers:
        """Return when the triples of a pane came, in the order of the triples."""
        return np.array(self._timed(self._panes[pane]).times, dtype=np.int64)

    def fresh(self, matcher: Matcher, now: int) -> Iterator[tuple[Pane, Matched]]:
        """Yield the solutions of panes of the last closed window that nobody has looked at.

        Some were matched elsewhere, and others are here. What they are made of is forgotten.
        """
        held = ((p, self._timed(t)) for p, t in self._panes.items() if p.first <= self.closed)
        news = [(pane, found) for pane, found in held if found or found.matched]
        for pane, found in sorted(news, key=itemgetter(0)):
            here = [matcher.match(found, self.times(pane), now)] if found else []
            matched = Matched.joined([*found.matched, *here])
            self.release(pane)
            yield pane, matched

    def _new(self) -> list[Triple]:
        return _Timed()

    def _saved(self, triples: list[Triple]) -> list[Any]:
        held = self._timed(triples)
        found = Matched.joined(held.matched)
        matched = [found.width, [*found.texts()], found.times.tolist(), found.numbers.tolist()]
        return [triples_text(triples), [*held.times], matched]

    def _read(
        self, text: str, times: Sequence[int] = (), matched: Sequence[Any] = (0, (), (), ())
    ) -> list[Triple]:
        made = _Timed()
        made.extend(read_triples(text))
        made.times.extend(times)
        if len(made) != len(made.times):
            raise ValueError("a triple has no time")
        width, rows, came, numbers = matched
        if not len(rows) == len(came) == len(numbers):
            raise ValueError("a solution has no time or no number")
        if rows:
            solutions: list[Any] = read_rows(rows, width)
            found = np.array(came, dtype=np.int64), np.array(numbers, dtype=np.float64)
            made.matched.append(Matched(solutions, *found))
        return made

    def _timed(self, triples: list[Triple]) -> _Timed:
        assert isinstance(triples, _Timed), "all panes are made here"  # noqa: S101
        return triples


class _Timed(list["Triple"]):
    """Triples, and when they came; and solutions that came without their triples."""

    __slots__ = ("matched", "times")

    def __init__(self) -> None:
        super().__init__()
        self.times: list[int] = []
        self.matched: list[Matched] = []

    def clear(self) -> None:
        super().clear()
        self.times.clear()
        self.matched.clear()
