"""Scans of windows over event time, with one list of triples per pane."""

from __future__ import annotations

from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.blocks import TextBlocks, rows_of
from rsp_engine.model.terms.lazy_text import WrittenTriples
from rsp_engine.model.terms.matched_triples import MatchedTriples
from rsp_engine.model.terms.ntriples import read_rows, read_terms, read_triples, triples_text
from rsp_engine.model.windows import Pane
from rsp_engine.operators.scoring.exact_scores import NumberKind
from rsp_engine.operators.sparql.pane_matcher import PaneSolutions
from rsp_engine.operators.windows.scan import BEFORE_T0, BETWEEN_WINDOWS, LATE, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.answers import Interval
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import TimeFrame
    from rsp_engine.operators.joins.triple_selection import TripleSelection
    from rsp_engine.operators.sparql.pane_matcher import Matcher
    from rsp_engine.operators.windows.element_solutions import SolutionDescriber

__all__ = ["DescribedScan", "ElementScan", "MatchedScan", "TimeScan", "TimedScan"]


class TimeScan:
    """The scan of a window over event time. Memory: the triples of the open windows."""

    def __init__(self, frame: TimeFrame) -> None:
        self.frame = frame
        self.closed = -1
        self.has_news = False
        self._panes: dict[Pane, _PaneTriples] = {}
        self._written: dict[Pane, WrittenTriples] = {}  # unparsed panes; disjoint from _panes
        self._texts: dict[Pane, tuple[str, TextBlocks]] = {}  # their text in the last state
        self._last = -1
        # The edges of the previous element's pane are cached, because the next element mostly
        # falls into the same pane. Times are integers, so `[)` is `(]` shifted by one.
        self._shift = 0 if frame.bounds == "(]" else 1
        self._low, self._high, self._until = 0, -1, 0
        self._current = _PaneTriples()
        self._target = self._current  # the pane that received the previous element

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
    ) -> Refusal | None:
        """Put an element into its pane, restricted to those of its windows that are still open."""
        shift = self._shift
        if self._low < timestamp + shift <= self._high and watermark + shift <= self._until:
            self._target = self._current
            self._current.extend(triples)
            return None
        pane = self.frame.pane(timestamp)
        if pane is None:
            return BEFORE_T0 if self.frame.is_before_t0(timestamp) else BETWEEN_WINDOWS
        closed = max(self.closed, self.frame.last_closed(watermark))
        if pane.last <= closed:
            return LATE
        if pane.first <= closed:
            self._target = self._pane(Pane(int(closed) + 1, pane.last))
            self._target.extend(triples)
            return None
        edges = self.frame.edges(pane)
        self._low, self._high = edges.open, edges.close
        self._until = self.frame.interval(pane.first).close
        self._target = self._current = self._pane(pane)
        self._current.extend(triples)
        return None

    def put(self, pane: Pane, triples: Sequence[Triple]) -> None:
        """Put triples into a pane whose windows are all open."""
        if isinstance(triples, WrittenTriples) and pane not in self._panes:
            self._written.setdefault(pane, WrittenTriples()).add(triples.text)
            self._note_pane(pane)
        else:
            self._pane(pane).extend(triples)

    def fill(self, pane: Pane) -> None:
        """Let a pane count as filled, by content that is kept elsewhere; its windows are open."""
        if pane not in self._panes:
            self._written.setdefault(pane, WrittenTriples())
            self._note_pane(pane)

    def release(self, pane: Pane) -> None:
        """Drop the content of a pane that is no longer needed; the pane still counts as filled."""
        if pane not in self._written and pane not in self._panes:
            return  # its windows have closed
        if pane in self._written:
            self._written[pane] = WrittenTriples()
        else:
            self._panes[pane].clear()

    def _pane(self, pane: Pane) -> _PaneTriples:
        if pane not in self._panes:
            self._panes[pane] = self._new_pane()
            self._panes[pane].extend(self._written.pop(pane, ()))
            self._note_pane(pane)
        return self._panes[pane]

    def _note_pane(self, pane: Pane) -> None:
        self._last = max(self._last, pane.last)
        self.has_news = True

    def _filled_panes(self) -> list[Pane]:
        """Return the panes with content, in time order."""
        return sorted([*self._panes, *self._written]) if self._written else sorted(self._panes)

    def _new_pane(self) -> _PaneTriples:
        return _PaneTriples()

    def settle(self, watermark: float) -> None:
        """Do nothing: the closing instants of time windows are known in advance."""

    def next(self, *, skip_empty: bool) -> tuple[int, int] | None:
        index = self.closed + 1
        if skip_empty:
            coming = [max(pane.first, index) for pane in self._filled_panes() if pane.last >= index]
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
        panes: dict[Pane, Sequence[Triple]] = {**self._panes, **self._written}
        return [
            (pane, panes[pane])
            for pane in self._filled_panes()
            if pane.first <= self.closed <= pane.last
        ]

    def is_empty(self) -> bool:
        return not any(pane.first <= self.closed <= pane.last for pane in self._filled_panes())

    def state(self) -> StateData:
        """Return the panes in time order; the cached current pane is not part of the state."""
        self._texts = {pane: text for pane, text in self._texts.items() if pane in self._written}
        panes = {
            pane.name: self._saved_text(pane)
            if pane in self._written
            else self._saved(self._panes[pane])
            for pane in self._filled_panes()
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
        panes = sorted((Pane.named(name), saved) for name, saved in state["panes"].items())
        if len(panes) != state["size"]:
            raise ValueError(f"{state['size']} panes were saved")
        self._panes = {pane: self._read(saved) for pane, saved in panes}
        self._written, self._texts = {}, {}
        self.has_news = state["has_news"]

    def _saved_text(self, pane: Pane) -> StateData:
        """Return the triples of an unparsed pane as plain data."""
        text = self._written[pane].text
        known, lines = self._texts.get(pane, ("", TextBlocks()))
        if not text.startswith(known):
            lines = TextBlocks()
        self._texts[pane] = text, lines
        return lines.state(text.split("\n") if text and text is not known else [], str)

    def _saved(self, triples: _PaneTriples) -> StateData:
        return triples.texts.state(triples, str)

    def _read(self, state: StateData) -> _PaneTriples:
        return _PaneTriples(read_triples("\n".join(rows_of(state["rows"], state["size"]))))


class ElementScan(TimeScan):
    """The scan of a window over event time that also keeps the boundaries of elements."""

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
    ) -> Refusal | None:
        refusal = super().take(timestamp, triples, watermark)
        if refusal is None:
            _elements(self._target).sizes.append(len(triples))
        return refusal

    def fill(self, pane: Pane) -> None:
        self._pane(pane)
        self._note_pane(pane)

    def sizes(self, pane: Pane) -> Sequence[int]:
        """Return the number of triples of each element of a pane, in the order of the triples."""
        return _elements(self._panes[pane]).sizes

    def _new_pane(self) -> _PaneTriples:
        return _PaneElements()


class DescribedScan(ElementScan):
    """The scan of a window over event time whose content is the solutions of its elements.

    Solutions are described as triples. An element is evaluated when the first window that holds it
    has closed.
    """

    def __init__(self, frame: TimeFrame, describing: SolutionDescriber) -> None:
        super().__init__(frame)
        self._describing = describing

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
    ) -> Refusal | None:
        refusal = super().take(timestamp, triples, watermark)
        if refusal is None:
            _described(self._target).times.append(timestamp)
        return refusal

    def put(self, pane: Pane, triples: Sequence[Triple]) -> None:
        """Put solutions that are already described into a pane whose windows are all open."""
        text = triples.text if isinstance(triples, WrittenTriples) else triples_text(triples)
        _described(self._pane(pane)).solutions.add(text)

    def content(self) -> Iterable[tuple[Pane, Sequence[Triple]]]:
        return [(pane, self._solutions(_described(part))) for pane, part in super().content()]

    def _solutions(self, pane: _DescribedElements) -> Sequence[Triple]:
        if pane.sizes:
            pane.solutions.add(self._describing.together(pane, pane.sizes, pane.times).text)
            pane.forget_elements()
        return pane.solutions

    def _new_pane(self) -> _PaneTriples:
        return _DescribedElements()

    def _saved(self, triples: _PaneTriples) -> StateData:
        pane = _described(triples)
        return {
            **super()._saved(triples),
            "sizes": [*pane.sizes],
            "times": [*pane.times],
            "solutions": pane.solutions.text,
        }

    def _read(self, state: StateData) -> _PaneTriples:
        pane = _DescribedElements(super()._read(state))
        pane.resize(state["sizes"])
        if len(state["times"]) != len(state["sizes"]):
            raise ValueError("an element has no time")
        pane.times.extend(state["times"])
        pane.solutions.add(state["solutions"])
        return pane


class MatchedScan(TimeScan):
    """The scan of a window over event time that keeps only the triples that patterns can match.

    Triples are selected when the first window that holds them has closed, or before they arrive.
    """

    def __init__(self, frame: TimeFrame, selection: TripleSelection) -> None:
        super().__init__(frame)
        self._selection = selection

    def put(self, pane: Pane, triples: Sequence[Triple]) -> None:
        """Put triples that are already selected into a pane whose windows are all open."""
        assert isinstance(triples, MatchedTriples), "made by the same selection"  # noqa: S101
        _matched(self._pane(pane)).add(triples)

    def fill(self, pane: Pane) -> None:
        self._pane(pane)
        self._note_pane(pane)

    def content(self) -> Iterable[tuple[Pane, Sequence[Triple]]]:
        return [(pane, self._selected(_matched(part))) for pane, part in super().content()]

    def _selected(self, pane: _PaneMatches) -> MatchedTriples:
        if pane or not pane.parts:
            pane.add(self._selection.of(pane))
            pane.forget_triples()
        return pane.whole()

    def _new_pane(self) -> _PaneTriples:
        return _PaneMatches()

    def _saved(self, triples: _PaneTriples) -> StateData:
        pane = _matched(triples)
        return {**super()._saved(triples), "arrivals": len(pane.parts), "matched": pane.state()}

    def _read(self, state: StateData) -> _PaneTriples:
        pane = _PaneMatches(super()._read(state))
        saved = state["matched"]
        for number in range(state["arrivals"]):
            pane.add(_read_matched(saved[str(number)], self._selection.predicates))
        return pane


class TimedScan(ElementScan):
    """The scan of a window over event time that also keeps the arrival time of each triple."""

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
    ) -> Refusal | None:
        refusal = super().take(timestamp, triples, watermark)
        if refusal is None:
            _timed(self._target).times.extend([timestamp] * len(triples))
        return refusal

    def put_matched(self, pane: Pane, matched: PaneSolutions) -> None:
        """Put solutions that are already matched into a pane whose windows are all open."""
        _timed(self._pane(pane)).matched.append(matched)

    def put_timed(self, pane: Pane, triples: Sequence[Triple], times: Integers) -> None:
        """Put triples and their arrival times into a pane whose windows are all open."""
        target = _timed(self._pane(pane))
        target.extend(triples)
        target.times.extend(times.tolist())
        target.sizes.extend([1] * len(triples))  # only sent where element boundaries do not matter

    def times(self, pane: Pane) -> Integers:
        """Return the arrival times of the triples of a pane, in the order of the triples."""
        return np.array(_timed(self._panes[pane]).times, dtype=np.int64)

    def fresh(self, matcher: Matcher, now: int) -> Iterator[tuple[Pane, PaneSolutions]]:
        """Yield the solutions of the panes up to the last closed window, each pane once.

        Solutions that arrived already matched are joined with those matched here. The triples of
        the pane are released.
        """
        panes = ((p, _timed(t)) for p, t in self._panes.items() if p.first <= self.closed)
        fresh = [(pane, content) for pane, content in panes if content or content.matched]
        for pane, content in sorted(fresh, key=itemgetter(0)):
            times = self.times(pane)
            here = [matcher.match(content, times, now, content.sizes)] if content else []
            matched = PaneSolutions.joined([*content.matched, *here])
            self.release(pane)
            yield pane, matched

    def _new_pane(self) -> _PaneTriples:
        return _TimedTriples()

    def _saved(self, triples: _PaneTriples) -> StateData:
        pane = _timed(triples)
        rows = pane.texts.state(range(len(pane)), lambda n: [str(pane[n]), pane.times[n]])
        sizes = None if pane.sizes == [1] * len(pane) else [*pane.sizes]
        return {**rows, "sizes": sizes, "matched": pane.matched_state()}

    def _read(self, state: StateData) -> _PaneTriples:
        rows = rows_of(state["rows"], state["size"])
        pane = _TimedTriples(read_triples("\n".join([text for text, _ in rows])))
        pane.times.extend(time for _, time in rows)
        sizes = state["sizes"]
        pane.resize([1] * len(pane) if sizes is None else sizes)
        saved = state["matched"]
        width, texts, keys = saved["width"], saved["texts"], saved["keys"]
        times, numbers, kind = saved["times"], saved["numbers"], saved["kind"]
        if not len(texts) == len(times) == len(numbers) == len(numbers if keys is None else keys):
            raise ValueError("a solution has no time or no number")
        if texts:
            solutions: list[Any] = read_rows(texts, width)
            columns = np.array(times, dtype=np.int64), np.array(numbers, dtype=np.float64)
            kind = None if kind is None else NumberKind(*kind)
            pane.matched.append(PaneSolutions(solutions, *columns, keys, kind))
        return pane


class _PaneTriples(list["Triple"]):
    """The triples of a pane, with their text blocks in the last state."""

    __slots__ = ("texts",)

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        super().__init__(triples)
        self.texts = TextBlocks()

    def clear(self) -> None:
        super().clear()
        self.texts = TextBlocks()


class _PaneElements(_PaneTriples):
    """The triples of a pane, with the number of triples of each element."""

    __slots__ = ("sizes",)

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        super().__init__(triples)
        self.sizes: list[int] = []

    def resize(self, sizes: Sequence[int]) -> None:
        """Set the sizes of all elements."""
        if sum(sizes) != len(self):
            raise ValueError("a triple is in no element")
        self.sizes = [*sizes]

    def clear(self) -> None:
        super().clear()
        self.sizes.clear()


class _DescribedElements(_PaneElements):
    """The elements of a pane that are not yet evaluated, and the solutions of the others."""

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


class _PaneMatches(_PaneTriples):
    """The triples of a pane that are not yet selected, and those that are, as they arrived."""

    __slots__ = ("_saved", "_whole", "parts")

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        super().__init__(triples)
        self.parts: list[MatchedTriples] = []
        self._saved: dict[str, StateData] = {}
        self._whole: MatchedTriples | None = None

    def add(self, matched: MatchedTriples) -> None:
        """Add triples that are selected."""
        self.parts.append(matched)
        self._whole = None

    def whole(self) -> MatchedTriples:
        """Return all triples that are selected: the same object until others arrive."""
        if self._whole is None:
            self._whole = MatchedTriples.joined(self.parts)
        return self._whole

    def forget_triples(self) -> None:
        super().clear()

    def clear(self) -> None:
        self.forget_triples()
        self.parts, self._saved, self._whole = [], {}, None

    def state(self) -> dict[str, StateData]:
        """Return the selected triples as columns of plain data; each arrival is encoded once."""
        for number in range(len(self._saved), len(self.parts)):
            part = self.parts[number]
            sizes, codes = part.columns()
            self._saved[str(number)] = {
                "texts": tuple(part.texts),
                "sizes": tuple(sizes.tolist()),
                "codes": tuple(codes.tolist()),
                "fingerprints": tuple(part.fingerprints.tolist()),
            }
        return dict(self._saved)


class _TimedTriples(_PaneElements):
    """The triples of a pane with their arrival times, and solutions that arrived matched."""

    __slots__ = ("_columns", "matched", "times")

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        super().__init__(triples)
        self.times: list[int] = []
        self.matched: list[PaneSolutions] = []
        self._columns: tuple[int, StateData] | None = None

    def clear(self) -> None:
        super().clear()
        self.times.clear()
        self.matched.clear()
        self._columns = None

    def matched_state(self) -> StateData:
        """Return the solutions as columns of plain data, cached until more solutions arrive."""
        if self._columns is None or self._columns[0] != len(self.matched):
            matched = PaneSolutions.joined(self.matched)
            columns = {
                "width": matched.width,
                "texts": tuple(matched.texts()),
                "times": tuple(matched.times.tolist()),
                "numbers": tuple(matched.numbers.tolist()),
                "keys": None if matched.keys is None else tuple(matched.keys),
                "kind": None if matched.kind is None else tuple(matched.kind),
            }
            self._columns = len(self.matched), columns
        return self._columns[1]


def _read_matched(state: StateData, predicates: Sequence[str]) -> MatchedTriples:
    """Read selected triples; a text that is not a term is damaged."""
    texts = list(state["texts"])
    read_terms(texts)
    sizes, codes, fingerprints = (
        np.array(state[name], dtype=np.int64) for name in ("sizes", "codes", "fingerprints")
    )
    if (fingerprints[1:] <= fingerprints[:-1]).any():
        raise ValueError("fingerprints are not in order")
    return MatchedTriples.of_columns(predicates, texts, (sizes, codes), fingerprints)


def _elements(triples: Sequence[Triple]) -> _PaneElements:
    assert isinstance(triples, _PaneElements), "made by _new_pane"  # noqa: S101
    return triples


def _described(triples: Sequence[Triple]) -> _DescribedElements:
    assert isinstance(triples, _DescribedElements), "made by _new_pane"  # noqa: S101
    return triples


def _matched(triples: Sequence[Triple]) -> _PaneMatches:
    assert isinstance(triples, _PaneMatches), "made by _new_pane"  # noqa: S101
    return triples


def _timed(triples: Sequence[Triple]) -> _TimedTriples:
    assert isinstance(triples, _TimedTriples), "made by _new_pane"  # noqa: S101
    return triples
