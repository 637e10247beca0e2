"""Windows over event time: one list of triples per pane."""

from __future__ import annotations

from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.blocks import TextBlocks, rows_of
from rsp_engine.model.terms.lazy_text import WrittenTriples
from rsp_engine.model.terms.ntriples import read_rows, read_triples, triples_text
from rsp_engine.model.windows import Pane
from rsp_engine.operators.scoring.exact_scores import NumberKind
from rsp_engine.operators.sparql.pane_matcher import Matched
from rsp_engine.operators.windows.scan import BEFORE_T0, BETWEEN_WINDOWS, LATE, NO_LANE, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.answers import Interval
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.streams import Lane
    from rsp_engine.model.windows import TimeFrame
    from rsp_engine.operators.sparql.pane_matcher import Matcher
    from rsp_engine.operators.windows.element_solutions import Describing

__all__ = ["DescribedScan", "ElementScan", "TimeScan", "TimedScan"]


class TimeScan:
    """A window over event time. Memory: the triples of the windows that are open."""

    def __init__(self, frame: TimeFrame) -> None:
        self.frame = frame
        self.closed = -1
        self.has_news = False
        self._panes: dict[Pane, _Held] = {}
        self._written: dict[Pane, WrittenTriples] = {}  # panes that are not in the other
        self._texts: dict[Pane, tuple[str, TextBlocks]] = {}  # of these, what states know
        self._last = -1
        # The pane of the element before: mostly the next one belongs to it as well. With `[)` all
        # edges are one later in terms of `(]`, times being integers.
        self._shift = 0 if frame.bounds == "(]" else 1
        self._low, self._high, self._until = 0, -1, 0
        self._current = _Held()
        self._into = self._current  # where the element before was put

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
        lane: Lane | None = None,
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
        if pane in self._written:
            self._written[pane] = WrittenTriples()
        else:
            self._panes[pane].clear()

    def lane(self, watermark: float) -> tuple[float, float]:
        """Return the edges of the pane of the element before, if all its windows are open.

        Its elements leave them open: the watermark is never past the element that raises it.
        """
        if watermark + self._shift > self._until:
            return NO_LANE
        return self._low - self._shift, self._high - self._shift

    def _pane(self, pane: Pane) -> _Held:
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

    def _new(self) -> _Held:
        return _Held()

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

    def state(self) -> StateData:
        """Return the panes in time order; which of them came last is found again by itself."""
        self._texts = {pane: held for pane, held in self._texts.items() if pane in self._written}
        panes = {
            pane.name: self._saved_text(pane)
            if pane in self._written
            else self._saved(self._panes[pane])
            for pane in self._held()
        }
        return {
            "closed": self.closed,
            "has_news": self.has_news,
            "last": self._last,
            "size": len(panes),
            "panes": panes,
        }

    def restore(self, state: StateData) -> None:
        self.closed, self._last = state["closed"], state["last"]
        panes = sorted((Pane.named(name), held) for name, held in state["panes"].items())
        if len(panes) != state["size"]:
            raise ValueError(f"{state['size']} panes were saved")
        self._panes = {pane: self._read(held) for pane, held in panes}
        self._written, self._texts = {}, {}
        self.has_news = state["has_news"]

    def _saved_text(self, pane: Pane) -> StateData:
        """Return the triples of a pane that nobody has read, as plain data."""
        text = self._written[pane].text
        known, lines = self._texts.get(pane, ("", TextBlocks()))
        if not text.startswith(known):
            lines = TextBlocks()
        self._texts[pane] = text, lines
        return lines.state(text.split("\n") if text and text is not known else [], str)

    def _saved(self, held: _Held) -> StateData:
        return held.texts.state(held, str)

    def _read(self, state: StateData) -> _Held:
        return _Held(read_triples("\n".join(rows_of(state["rows"], state["size"]))))


class ElementScan(TimeScan):
    """A window over event time that also knows which triples came in one element."""

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
        lane: Lane | None = None,
    ) -> Refusal | None:
        refusal = super().take(timestamp, triples, watermark)
        if refusal is None:
            _elements(self._into).sizes.extend((len(triples),) if lane is None else lane.sizes)
        return refusal

    def sizes(self, pane: Pane) -> Sequence[int]:
        """Return how many triples each element of a pane has, in the order of the triples."""
        return _elements(self._panes[pane]).sizes

    def _new(self) -> _Held:
        return _Elements()


class DescribedScan(ElementScan):
    """A window over event time whose content are the solutions of its elements, as triples.

    An element is looked at when the first window that holds it has closed.
    """

    def __init__(self, frame: TimeFrame, describing: Describing) -> None:
        super().__init__(frame)
        self._describing = describing

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
        lane: Lane | None = None,
    ) -> Refusal | None:
        refusal = super().take(timestamp, triples, watermark, lane)
        if refusal is None:
            came = (timestamp,) if lane is None else lane.timestamps
            _described(self._into).times.extend(came)
        return refusal

    def put(self, pane: Pane, triples: Sequence[Triple]) -> None:
        """Put solutions that others have described into a pane, all of whose windows are open."""
        text = triples.text if isinstance(triples, WrittenTriples) else triples_text(triples)
        _described(self._pane(pane)).solutions.add(text)

    def content(self) -> Iterable[tuple[Pane, Sequence[Triple]]]:
        return [(pane, self._solutions(_described(held))) for pane, held in super().content()]

    def _solutions(self, held: _Described) -> Sequence[Triple]:
        if held.sizes:
            held.solutions.add(self._describing.together(held, held.sizes, held.times).text)
            held.forget_elements()
        return held.solutions

    def _new(self) -> _Held:
        return _Described()

    def _saved(self, held: _Held) -> StateData:
        found = _described(held)
        return {
            **super()._saved(held),
            "sizes": [*found.sizes],
            "times": [*found.times],
            "solutions": found.solutions.text,
        }

    def _read(self, state: StateData) -> _Held:
        made = _Described(super()._read(state))
        made.resize(state["sizes"])
        if len(state["times"]) != len(state["sizes"]):
            raise ValueError("an element has no time")
        made.times.extend(state["times"])
        made.solutions.add(state["solutions"])
        return made


class TimedScan(ElementScan):
    """A window over event time that also knows when each triple came."""

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
        lane: Lane | None = None,
    ) -> Refusal | None:
        refusal = super().take(timestamp, triples, watermark, lane)
        if refusal is None:
            came = [timestamp] * len(triples) if lane is None else lane.times()
            _timed(self._into).times.extend(came)
        return refusal

    def put_matched(self, pane: Pane, matched: Matched) -> None:
        """Put solutions that were matched elsewhere into a pane, all of whose windows are open."""
        _timed(self._pane(pane)).matched.append(matched)

    def put_timed(self, pane: Pane, triples: Sequence[Triple], times: Integers) -> None:
        """Put triples and their times into a pane, all of whose windows are open."""
        into = _timed(self._pane(pane))
        into.extend(triples)
        into.times.extend(times.tolist())
        into.sizes.extend([1] * len(triples))  # which element they came in does not matter then

    def times(self, pane: Pane) -> Integers:
        """Return when the triples of a pane came, in the order of the triples."""
        return np.array(_timed(self._panes[pane]).times, dtype=np.int64)

    def fresh(self, matcher: Matcher, now: int) -> Iterator[tuple[Pane, Matched]]:
        """Yield the solutions of panes of the last closed window that nobody has looked at.

        Some were matched elsewhere, and others are here. What they are made of is forgotten.
        """
        held = ((p, _timed(t)) for p, t in self._panes.items() if p.first <= self.closed)
        news = [(pane, found) for pane, found in held if found or found.matched]
        for pane, found in sorted(news, key=itemgetter(0)):
            came = self.times(pane)
            here = [matcher.match(found, came, now, found.sizes)] if found else []
            matched = Matched.joined([*found.matched, *here])
            self.release(pane)
            yield pane, matched

    def _new(self) -> _Held:
        return _Timed()

    def _saved(self, held: _Held) -> StateData:
        found = _timed(held)
        rows = found.texts.state(range(len(found)), lambda n: [str(found[n]), found.times[n]])
        sizes = None if found.sizes == [1] * len(found) else [*found.sizes]
        return {**rows, "sizes": sizes, "matched": found.matched_state()}

    def _read(self, state: StateData) -> _Held:
        rows = rows_of(state["rows"], state["size"])
        made = _Timed(read_triples("\n".join([text for text, _ in rows])))
        made.times.extend(time for _, time in rows)
        sizes = state["sizes"]
        made.resize([1] * len(made) if sizes is None else sizes)
        saved = state["matched"]
        width, texts, keys = saved["width"], saved["texts"], saved["keys"]
        times, numbers, kind = saved["times"], saved["numbers"], saved["kind"]
        if not len(texts) == len(times) == len(numbers) == len(numbers if keys is None else keys):
            raise ValueError("a solution has no time or no number")
        if texts:
            solutions: list[Any] = read_rows(texts, width)
            found = np.array(times, dtype=np.int64), np.array(numbers, dtype=np.float64)
            kind = None if kind is None else NumberKind(*kind)
            made.matched.append(Matched(solutions, *found, keys, kind))
        return made


class _Held(list["Triple"]):
    """Triples, and what states know of them."""

    __slots__ = ("texts",)

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        super().__init__(triples)
        self.texts = TextBlocks()

    def clear(self) -> None:
        super().clear()
        self.texts = TextBlocks()


class _Elements(_Held):
    """Triples, and how many of them each element has."""

    __slots__ = ("sizes",)

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        super().__init__(triples)
        self.sizes: list[int] = []

    def resize(self, sizes: Sequence[int]) -> None:
        """Learn the sizes of the elements, all at once."""
        if sum(sizes) != len(self):
            raise ValueError("a triple is in no element")
        self.sizes = [*sizes]

    def clear(self) -> None:
        super().clear()
        self.sizes.clear()


class _Described(_Elements):
    """Elements that nobody has looked at, with their times, and the solutions of others."""

    __slots__ = ("solutions", "times")

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        super().__init__(triples)
        self.times: list[int] = []
        self.solutions = WrittenTriples()

    def forget_elements(self) -> None:
        super().clear()
        self.times.clear()

    def clear(self) -> None:
        self.forget_elements()
        self.solutions = WrittenTriples()


class _Timed(_Elements):
    """Triples, and when they came; and solutions that came without their triples."""

    __slots__ = ("_written", "matched", "times")

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        super().__init__(triples)
        self.times: list[int] = []
        self.matched: list[Matched] = []
        self._written: tuple[int, StateData] | None = None

    def clear(self) -> None:
        super().clear()
        self.times.clear()
        self.matched.clear()
        self._written = None

    def matched_state(self) -> StateData:
        """Return the solutions as columns of plain data; the same ones until others come."""
        if self._written is None or self._written[0] != len(self.matched):
            found = Matched.joined(self.matched)
            columns = {
                "width": found.width,
                "texts": tuple(found.texts()),
                "times": tuple(found.times.tolist()),
                "numbers": tuple(found.numbers.tolist()),
                "keys": None if found.keys is None else tuple(found.keys),
                "kind": None if found.kind is None else tuple(found.kind),
            }
            self._written = len(self.matched), columns
        return self._written[1]


def _elements(triples: Sequence[Triple]) -> _Elements:
    assert isinstance(triples, _Elements), "all panes are made here"  # noqa: S101
    return triples


def _described(triples: Sequence[Triple]) -> _Described:
    assert isinstance(triples, _Described), "all panes are made here"  # noqa: S101
    return triples


def _timed(triples: Sequence[Triple]) -> _Timed:
    assert isinstance(triples, _Timed), "all panes are made here"  # noqa: S101
    return triples
