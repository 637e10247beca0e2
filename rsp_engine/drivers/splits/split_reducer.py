"""From the elements of a place to segments: what is sent to the queries, and nothing else.

This is done where the stream is read, by whoever reads it, and many do at once. Nobody there knows
how far the stream has come elsewhere; so what cannot be told from one place alone is left to the
one who takes the segments: whether an element is late, and whether an equal one came before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.drivers.splits.fast_reducer import plain_pushdown
from rsp_engine.drivers.splits.pushdown import DescribedElements
from rsp_engine.drivers.splits.segments import PaneContent, PlacedLetter, Segment
from rsp_engine.io.blank_nodes import ElementNames, within_stream
from rsp_engine.io.canonical_literals import TripleTermError, canonical_triples
from rsp_engine.io.sources.batch import ElementBatch, InBatches
from rsp_engine.io.sources.files.nquads import NQuads
from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.model.windows import Pane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.drivers.splits.pushdown import MatchedSolutions, Pushdown
    from rsp_engine.io.sources.fast_nquads.plain_lines import PlainLines
    from rsp_engine.io.sources.splits import SplitPart
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.windows import TimeFrame
    from rsp_engine.operators.sparql.pane_matcher import Matched

__all__ = ["ReducedSplit", "SplitReducer"]


@dataclass(frozen=True, slots=True)
class ReducedSplit:
    """What is in a place.

    If that cannot be told there, `trouble` says why: then its elements have to be looked at one by
    one, and those of all places after it too if it `lasts`.
    """

    items: Sequence[Segment | PlacedLetter] = ()
    names: Sequence[tuple[int, str, int]] = ()
    """Elements with blank nodes: their times, what they are called after, how often they came."""
    trouble: str | None = None
    lasts: bool = False


class SplitReducer:
    """Reduces places of one stream, for the queries that read it."""

    def __init__(
        self,
        stream: str,
        number: int,
        readings: Sequence[Pushdown],
        frames: Sequence[TimeFrame],
        max_delay: int,
    ) -> None:
        """Take the name and the number of the stream, and the frames of all queries."""
        self._stream = stream
        self._number = number
        self._readings = readings
        self._frames = frames
        self._max_delay = max_delay
        self._packing = [_packing(reading.wanted) for reading in readings]
        plain = [plain_pushdown(reading) for reading in readings]
        self._plain = [found for found in plain if found is not None]
        self._is_plain = len(self._plain) == len(readings)

    def reduce(self, part: SplitPart) -> ReducedSplit:
        """Read a place, and reduce it."""
        if self._is_plain and isinstance(part, NQuads):
            lines = part.plain_lines()
            reduced = None if lines is None else self._reduce_plain(lines)
            if reduced is not None:
                return reduced
        return self._reduce_elements(part)

    def _reduce_plain(self, lines: PlainLines) -> ReducedSplit | None:
        """Reduce lines of the plainest form; nothing if more has to be known of them."""
        if not len(lines):
            return None
        times = lines.times
        if any(frame.is_before_t0(int(times.min())) for frame in self._frames):
            return None
        edges = self._edges(times)
        parcels: list[list[PaneContent]] = [[] for _ in edges[:-1]]
        taken = np.zeros(len(times), dtype=bool)
        for reading in self._plain:
            pack = reading.over(lines)
            if pack is None:
                return None
            first, last = panes_of(reading.reading.frame, times)
            taken |= first <= last
            for number, pane, places in _groups(edges, first, last):
                parcels[number].append(pack(pane, places))
        # Lines of one element have one time, so they are in the same segment and the same panes.
        begins, between = lines.begins, lines.begins & ~taken
        segments = [
            Segment(
                int(times[start]),
                int(times[start:end].max()),
                int(np.count_nonzero(begins[start:end])),
                end - start,
                int(np.count_nonzero(between[start:end])),
                held,
            )
            for (start, end), held in zip(pairwise(edges), parcels, strict=True)
        ]
        return ReducedSplit(segments)

    def _reduce_elements(self, part: SplitPart) -> ReducedSplit:
        names = ElementNames(self._stream)
        is_scoped = part.blank_node_scope == "element"
        try:
            read = _read(part, names if is_scoped else None, self._number)
        except TripleTermError as error:
            return ReducedSplit(trouble=str(error))
        if part.leans_on_others:
            return ReducedSplit(trouble="times are said elsewhere", lasts=True)
        times = np.array(read.timestamps, dtype=np.int64)
        if any(frame.is_before_t0(int(times.min())) for frame in self._frames if len(times)):
            return ReducedSplit(trouble="an element is before t0")
        segments = self._segments(times, read)
        found = [(time, name, count) for time, name, count in names.state()]
        return ReducedSplit(list(_in_order(segments, _letters(read.letters, times))), found)

    def _segments(self, times: Integers, read: _Read) -> Iterator[tuple[int, Segment]]:
        """Yield segments, each with the place of its first element."""
        if not len(times):
            return
        edges = self._edges(times)
        starts = np.array(read.starts, dtype=np.int64)
        parcels: list[list[PaneContent]] = [[] for _ in edges[:-1]]
        taken = np.zeros(len(times), dtype=bool)
        for reading, pack in zip(self._readings, self._packing, strict=True):
            first, last = panes_of(reading.frame, times)
            taken |= first <= last
            for number, pane, elements in _groups(edges, first, last):
                content = pack(_Content(read, starts, times, elements))
                parcels[number].append(PaneContent(reading.step, reading.scan, pane, content))
        for (start, end), held in zip(pairwise(edges), parcels, strict=True):
            part = times[start:end]
            yield (
                start,
                Segment(
                    int(part[0]),
                    int(part.max()),
                    end - start,
                    int(starts[end] - starts[start]),
                    int(np.count_nonzero(~taken[start:end])),
                    held,
                ),
            )

    def _edges(self, times: Integers) -> list[int]:
        """Return where segments begin, and at last where the last one ends."""
        watermarks = np.maximum.accumulate(times) - self._max_delay
        begins = np.zeros(len(times), dtype=bool)
        begins[0] = True
        for frame in self._frames:
            closed = last_closed(frame, watermarks)
            begins[1:] |= closed[1:] != closed[:-1]
        return [*np.flatnonzero(begins).tolist(), len(times)]


@dataclass(slots=True)
class _Read:
    """The elements of a place side by side, and where letters stand between them."""

    timestamps: list[int] = field(default_factory=list)
    triples: list[Triple] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    letters: list[tuple[int, DeadLetter]] = field(default_factory=list)


def _read(part: SplitPart, names: ElementNames | None, stream: int) -> _Read:
    read = _Read()
    items = part.batches() if isinstance(part, InBatches) else iter(part)
    for item in items:
        if isinstance(item, DeadLetter):
            read.letters.append((len(read.timestamps), item))
        elif isinstance(item, ElementBatch):
            offset = len(read.triples)
            read.timestamps.extend(item.timestamps)
            read.starts.extend(offset + start for start in item.starts[1:])
            triples = canonical_triples(item.triples)
            has_labels = any(b"_:" in raw for raw in item.raws)
            read.triples.extend(within_stream(triples, stream) if has_labels else triples)
        else:
            read.timestamps.append(item.timestamp)
            read.triples.extend(_named(item, names, stream))
            read.starts.append(len(read.triples))
    return read


def _named(element: Element, names: ElementNames | None, stream: int) -> Sequence[Triple]:
    triples = canonical_triples(element.triples)
    if names is None:
        return within_stream(triples, stream) if b"_:" in element.raw else triples
    return names.rename(element.timestamp, triples)


@dataclass(frozen=True, slots=True)
class _Content:
    """The triples of some elements."""

    read: _Read
    starts: Integers
    came: Integers
    elements: Integers

    def triples(self) -> Sequence[Triple]:
        """Return the triples of all the elements."""
        elements, triples = self.elements, self.read.triples
        start, end = int(elements[0]), int(elements[-1]) + 1
        if end - start == len(elements):
            return triples[int(self.starts[start]) : int(self.starts[end])]
        pairs = zip(self.starts[elements].tolist(), self.starts[elements + 1].tolist(), strict=True)
        return [triple for begin, stop in pairs for triple in triples[begin:stop]]

    def distinct(self) -> Sequence[Triple]:
        """Return each triple once, in the order in which they came."""
        return list(dict.fromkeys(self.triples()))

    def times(self) -> Integers:
        """Return when each of the triples came."""
        return np.repeat(self.came[self.elements], self.sizes())

    def sizes(self) -> list[int]:
        """Return how many triples each of the elements has."""
        sizes: list[int] = (self.starts[self.elements + 1] - self.starts[self.elements]).tolist()
        return sizes


def _packing(
    wanted: MatchedSolutions | DescribedElements | None,
) -> Callable[[_Content], Sequence[Triple] | Matched]:
    """Return what makes the content of a parcel."""
    if wanted is None:
        return _Content.distinct
    if isinstance(wanted, DescribedElements):
        describing = wanted.describing()

        def described(content: _Content) -> Sequence[Triple]:
            came: list[int] = content.came[content.elements].tolist()
            return describing.together(content.triples(), content.sizes(), came)

        return described
    matcher, keep = wanted.matcher(), wanted.keep

    def matched(content: _Content) -> Matched:
        found = matcher.match(content.triples(), content.times(), 0, content.sizes())
        return keep.keep(found)

    return matched


def _groups(
    edges: Sequence[int], first: Integers, last: Integers
) -> Iterator[tuple[int, Pane, Integers]]:
    """Yield the number of a segment, a pane, and the elements of the one that are in the other."""
    for number, (start, end) in enumerate(pairwise(edges)):
        low, high = first[start:end], last[start:end]
        inside = np.flatnonzero(low <= high)
        if not len(inside):
            continue
        tells = (low + high)[inside]  # both rise with time, so their sum tells panes apart
        order = np.argsort(tells, kind="stable")
        cuts = np.flatnonzero(np.diff(tells[order])) + 1
        for part in np.split(inside[order], cuts):
            yield number, Pane(int(low[part[0]]), int(high[part[0]])), part + start


def _letters(
    letters: Sequence[tuple[int, DeadLetter]], times: Integers
) -> list[tuple[int, PlacedLetter]]:
    """Return letters with their places, and the latest time before each."""
    latest = np.maximum.accumulate(times)
    return [
        (at, PlacedLetter(letter, int(latest[at - 1]) if at else None)) for at, letter in letters
    ]


def _in_order(
    segments: Iterator[tuple[int, Segment]], letters: Sequence[tuple[int, PlacedLetter]]
) -> Iterator[Segment | PlacedLetter]:
    """Yield letters before the first segment that begins at or after their place."""
    waiting = list(reversed(letters))
    for start, segment in segments:
        while waiting and waiting[-1][0] <= start:
            yield waiting.pop()[1]
        yield segment
    yield from (letter for _, letter in reversed(waiting))


def panes_of(frame: TimeFrame, times: Integers) -> tuple[Integers, Integers]:
    """Return the first and the last window that hold each instant: none if they cross.

    This is `TimeFrame.pane`, for arrays.
    """
    since = times - frame.t0
    if frame.bounds == "(]":
        first, last = -((frame.range - since) // frame.step), -(-since // frame.step) - 1
    else:
        first, last = (since - frame.range) // frame.step + 1, since // frame.step
    return np.maximum(first, 0), last


def last_closed(frame: TimeFrame, watermarks: Integers) -> Integers:
    """Return the last window that each watermark closes: this is `TimeFrame.last_closed`."""
    since = watermarks - frame.t0 - frame.range
    return -(-since // frame.step) - 1 if frame.bounds == "(]" else since // frame.step
