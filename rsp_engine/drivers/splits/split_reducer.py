"""The reduction of a split: from its elements to segments, with the content that queries need.

Splits are reduced in parallel where they are read, each without knowledge of the others. The split
merger decides what one split alone cannot: whether an element is late, and whether an equal one
came before.

Windows whose RANGE is a multiple of their STEP cut a stream at the same instants if their STEP, t0
and bounds are equal: their panes have the same content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.drivers.splits.fast_reducer import plain_pushdown
from rsp_engine.drivers.splits.pushdown import DescribedElements, shared
from rsp_engine.drivers.splits.segments import PaneContent, Segment, SplitLetter
from rsp_engine.io.blank_nodes import ElementNames, within_stream
from rsp_engine.io.canonical_literals import TripleTermError, canonical_triples
from rsp_engine.io.sources.batch import ElementBatch, InBatches
from rsp_engine.io.sources.columns.quad_lines import InColumns
from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.model.windows import Pane
from rsp_engine.operators.joins.triple_selection import TripleSelection

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.drivers.splits.fast_reducer import Pack
    from rsp_engine.drivers.splits.pushdown import Pushdown, Wanted
    from rsp_engine.evaluators.step import PutContent
    from rsp_engine.io.sources.columns.quad_lines import ReadQuads, Rename
    from rsp_engine.io.sources.splits import SplitPart
    from rsp_engine.model.arrays import Booleans, Integers
    from rsp_engine.model.windows import TimeFrame
    from rsp_engine.operators.sparql.pane_matcher import PaneSolutions

__all__ = ["PaneCuts", "ReducedSplit", "SplitReducer", "last_closed", "panes_of"]


@dataclass(frozen=True, slots=True)
class ReducedSplit:
    """The segments and dead letters of a split; or why it cannot be reduced."""

    items: Sequence[Segment | SplitLetter] = ()
    names: Sequence[tuple[int, str, int]] = ()
    """Elements with blank nodes: their timestamps, their names, and how often they occur."""
    trouble: str | None = None
    """Why the elements of the split must be taken one by one; None if it is reduced."""
    lasts: bool = False
    """Whether the trouble holds for all later splits of the source too."""
    away: str | None = None
    """Why the split could not be read at the moment; None if it was."""


class SplitReducer:
    """A reducer of the splits of one stream, for the queries that read it."""

    def __init__(
        self,
        stream: str,
        number: int,
        pushdowns: Sequence[Pushdown],
        frames: Sequence[TimeFrame],
        max_delay: int,
    ) -> None:
        """Set up the pushdowns of a stream; `frames` are those of all queries."""
        self._stream = stream
        self._number = number
        self._pushdowns = shared(pushdowns)
        self._frames = frames
        self._max_delay = max_delay
        self._reductions = [_reduction(pushdown.wanted) for pushdown in self._pushdowns]
        plain = [plain_pushdown(pushdown.wanted) for pushdown in self._pushdowns]
        self._plain = [pushdown for pushdown in plain if pushdown is not None]
        self._is_plain = len(self._plain) == len(self._pushdowns)

    def reduce(self, part: SplitPart) -> ReducedSplit:
        """Read a split, and reduce it: as columns if they suffice, else as parsed elements."""
        if self._is_plain and isinstance(part, InColumns):
            names = ElementNames(self._stream)
            try:
                read = part.read_columns(self._renaming(part, names))
            except TripleTermError as error:
                return ReducedSplit(trouble=str(error))
            reduced = None if read is None else self._reduce_columns(read, names)
            if reduced is not None:
                return reduced
        return self._reduce_elements(part)

    def _renaming(self, part: SplitPart, names: ElementNames) -> Rename:
        """Return the function that renames the blank nodes of an element."""
        if part.blank_node_scope == "element":
            return names.rename
        return lambda _time, triples: within_stream(triples, self._number)

    def _reduce_columns(self, read: ReadQuads, names: ElementNames) -> ReducedSplit | None:
        """Reduce quads that were read as columns; return None if they must be parsed."""
        lines = read.lines
        if not len(lines):
            return None
        times = lines.times
        if any(frame.is_before_t0(int(times.min())) for frame in self._frames):
            return None
        packs: list[Pack] = []
        for plain in self._plain:
            pack = plain.over(lines)
            if pack is None:
                return None
            packs.append(pack)
        # Lines of one element have one time, so they are in the same segment and the same panes.
        starts = np.arange(len(times) + 1)
        segments = self._segments(times, starts, lines.begins, packs)
        return _reduced(segments, _letters(read.letters, times), names)

    def reduce_batch(self, batch: ElementBatch) -> ReducedSplit:
        """Reduce a batch of a source that cannot be split."""
        names = ElementNames(self._stream)
        try:
            elements = _read((batch,), None, self._number)
        except TripleTermError as error:
            return ReducedSplit(trouble=str(error))
        return self._reduce_read(elements, names)

    def _reduce_elements(self, part: SplitPart) -> ReducedSplit:
        names = ElementNames(self._stream)
        is_scoped = part.blank_node_scope == "element"
        items = part.batches() if isinstance(part, InBatches) else iter(part)
        try:
            elements = _read(items, names if is_scoped else None, self._number)
        except TripleTermError as error:
            return ReducedSplit(trouble=str(error))
        if part.leans_on_others:
            return ReducedSplit(trouble="other splits state its timestamps", lasts=True)
        return self._reduce_read(elements, names)

    def _reduce_read(self, elements: _Elements, names: ElementNames) -> ReducedSplit:
        times = np.array(elements.timestamps, dtype=np.int64)
        if any(frame.is_before_t0(int(times.min())) for frame in self._frames if len(times)):
            return ReducedSplit(trouble="an element is before t0")
        starts = np.array(elements.starts, dtype=np.int64)
        packs = [_content_pack(reduce, elements, starts, times) for reduce in self._reductions]
        begins = np.ones(len(times), dtype=bool)
        segments = self._segments(times, starts, begins, packs)
        return _reduced(segments, _letters(elements.letters, times), names)

    def _segments(
        self,
        times: Integers,
        starts: Integers,
        begins: Booleans,
        packs: Sequence[Pack],
    ) -> Iterator[tuple[int, Segment]]:
        """Yield segments of lines or elements, each with the index of its first one.

        `starts` has the index of the first triple of each, and at last the number of triples;
        `begins` has those that begin an element.
        """
        if not len(times):
            return
        edges = self._edges(times)
        contents: list[list[PaneContent[PutContent]]] = [[] for _ in edges[:-1]]
        cuts = PaneCuts(times, edges)
        for pushdown, pack in zip(self._pushdowns, packs, strict=True):
            for number, indices, readers in cuts.shared(pushdown.readers):
                content = pack(indices)
                contents[number] += [
                    PaneContent(reader.step, reader.scan, pane, content) for reader, pane in readers
                ]
        between = begins & ~cuts.taken
        for (start, end), pane_contents in zip(pairwise(edges), contents, strict=True):
            yield (
                start,
                Segment(
                    int(times[start]),
                    int(times[start:end].max()),
                    int(np.count_nonzero(begins[start:end])),
                    int(starts[end] - starts[start]),
                    int(np.count_nonzero(between[start:end])),
                    pane_contents,
                ),
            )

    def _edges(self, times: Integers) -> list[int]:
        """Return the index at which each segment begins, and at last the end of the last one."""
        watermarks = np.maximum.accumulate(times) - self._max_delay
        begins = np.zeros(len(times), dtype=bool)
        begins[0] = True
        for frame in self._frames:
            closed = last_closed(frame, watermarks)
            begins[1:] |= closed[1:] != closed[:-1]
        return [*np.flatnonzero(begins).tolist(), len(times)]


class PaneCuts:
    """The panes of segments, whose `edges` are indices of `times`; equal cuts are made once."""

    def __init__(self, times: Integers, edges: Sequence[int]) -> None:
        self._times = times
        self._edges = edges
        self._windows: dict[TimeFrame, tuple[Integers, Integers]] = {}
        self._groups: dict[Hashable, list[tuple[int, Integers]]] = {}
        self.taken = np.zeros(len(times), dtype=bool)
        """Which indices are in a pane of the windows that were asked for so far."""

    def shared(
        self, readers: Sequence[Pushdown]
    ) -> Iterator[tuple[int, Integers, list[tuple[Pushdown, Pane]]]]:
        """Yield what is in both a segment and a pane, as the number of the segment and indices.

        Each comes with the readers that have such a pane, and with the pane of each.
        """
        by_cut: dict[Hashable, list[Pushdown]] = {}
        for reader in readers:
            by_cut.setdefault(reader.frame.cut, []).append(reader)
        for cut, alike in by_cut.items():
            windows = [self._windows_of(reader.frame) for reader in alike]
            for number, indices in self._groups_of(cut, *windows[0]):
                at = indices[0]
                panes = [Pane(int(first[at]), int(last[at])) for first, last in windows]
                yield number, indices, list(zip(alike, panes, strict=True))

    def _windows_of(self, frame: TimeFrame) -> tuple[Integers, Integers]:
        """Return the first and the last window of each index."""
        if frame not in self._windows:
            first, last = self._windows[frame] = panes_of(frame, self._times)
            self.taken |= first <= last
        return self._windows[frame]

    def _groups_of(
        self, cut: Hashable, first: Integers, last: Integers
    ) -> list[tuple[int, Integers]]:
        """Return the number of a segment, and the indices of what is in it and in one pane."""
        if cut not in self._groups:
            self._groups[cut] = list(_groups(self._edges, first, last))
        return self._groups[cut]


def _groups(
    edges: Sequence[int], first: Integers, last: Integers
) -> Iterator[tuple[int, Integers]]:
    for number, (start, end) in enumerate(pairwise(edges)):
        low, high = first[start:end], last[start:end]
        inside = np.flatnonzero(low <= high)
        if not len(inside):
            continue
        keys = (low + high)[inside]  # both rise with time, so their sum identifies a pane
        order = np.argsort(keys, kind="stable")
        cuts = np.flatnonzero(np.diff(keys[order])) + 1
        for part in np.split(inside[order], cuts):
            yield number, part + start


def panes_of(frame: TimeFrame, times: Integers) -> tuple[Integers, Integers]:
    """Return the first and the last window of each instant; if first > last, there is none.

    This is `TimeFrame.pane` for arrays.
    """
    since = times - frame.t0
    if frame.bounds == "(]":
        first, last = -((frame.range - since) // frame.step), -(-since // frame.step) - 1
    else:
        first, last = (since - frame.range) // frame.step + 1, since // frame.step
    return np.maximum(first, 0), last


def last_closed(frame: TimeFrame, watermarks: Integers) -> Integers:
    """Return the last window that each watermark closes: `TimeFrame.last_closed` for arrays."""
    since = watermarks - frame.t0 - frame.range
    return -(-since // frame.step) - 1 if frame.bounds == "(]" else since // frame.step


@dataclass(slots=True)
class _Elements:
    """The elements of a split as columns, and the dead letters between them, with their indices."""

    timestamps: list[int] = field(default_factory=list)
    triples: list[Triple] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    letters: list[tuple[int, DeadLetter]] = field(default_factory=list)


def _read(
    items: Iterable[ElementBatch | Element | DeadLetter], names: ElementNames | None, stream: int
) -> _Elements:
    read = _Elements()
    for item in items:
        if isinstance(item, DeadLetter):
            read.letters.append((len(read.timestamps), item))
        elif isinstance(item, ElementBatch):
            offset = len(read.triples)
            read.timestamps.extend(item.timestamps)
            read.starts.extend([offset + start for start in item.starts[1:]])
            triples = canonical_triples(item.triples)
            has_labels = b"_:" in b"".join(item.raws)
            read.triples.extend(within_stream(triples, stream) if has_labels else triples)
        else:
            read.timestamps.append(item.timestamp)
            read.triples.extend(_with_names(item, names, stream))
            read.starts.append(len(read.triples))
    return read


def _with_names(element: Element, names: ElementNames | None, stream: int) -> Sequence[Triple]:
    triples = canonical_triples(element.triples)
    if names is None:
        return within_stream(triples, stream) if b"_:" in element.raw else triples
    return names.rename(element.timestamp, triples)


@dataclass(frozen=True, slots=True)
class _Content:
    """The triples of the elements of one pane."""

    read: _Elements
    starts: Integers
    arrivals: Integers
    elements: Integers

    def triples(self) -> Sequence[Triple]:
        """Return the triples of all elements."""
        elements, triples = self.elements, self.read.triples
        start, end = int(elements[0]), int(elements[-1]) + 1
        if end - start == len(elements):
            return triples[int(self.starts[start]) : int(self.starts[end])]
        pairs = zip(self.starts[elements].tolist(), self.starts[elements + 1].tolist(), strict=True)
        return [triple for begin, stop in pairs for triple in triples[begin:stop]]

    def distinct(self) -> Sequence[Triple]:
        """Return each triple once, in the order of arrival."""
        return list(dict.fromkeys(self.triples()))

    def times(self) -> Integers:
        """Return the arrival time of each triple."""
        return np.repeat(self.arrivals[self.elements], self.sizes())

    def sizes(self) -> list[int]:
        """Return how many triples each element has."""
        sizes: list[int] = (self.starts[self.elements + 1] - self.starts[self.elements]).tolist()
        return sizes


def _content_pack(
    reduce: Callable[[_Content], Sequence[Triple] | PaneSolutions],
    elements: _Elements,
    starts: Integers,
    times: Integers,
) -> Pack:
    """Return a function that makes pane contents of elements."""
    return lambda indices: reduce(_Content(elements, starts, times, indices))


def _reduction(
    wanted: Wanted,
) -> Callable[[_Content], Sequence[Triple] | PaneSolutions]:
    """Return the function that reduces the elements of a pane to what a pushdown needs."""
    if wanted is None:
        return _Content.distinct
    if isinstance(wanted, TripleSelection):
        return lambda content: wanted.of(content.triples())
    if isinstance(wanted, DescribedElements):
        describing = wanted.describing()

        def describe(content: _Content) -> Sequence[Triple]:
            arrivals: list[int] = content.arrivals[content.elements].tolist()
            return describing.together(content.triples(), content.sizes(), arrivals)

        return describe
    matcher, keep = wanted.matcher(), wanted.keep

    def match(content: _Content) -> PaneSolutions:
        matched = matcher.match(content.triples(), content.times(), 0, content.sizes())
        return keep.keep(matched)

    return match


def _letters(
    letters: Sequence[tuple[int, DeadLetter]], times: Integers
) -> list[tuple[int, SplitLetter]]:
    """Return dead letters with their indices, and the latest timestamp before each."""
    latest = np.maximum.accumulate(times)
    return [
        (at, SplitLetter(letter, int(latest[at - 1]) if at else None)) for at, letter in letters
    ]


def _reduced(
    segments: Iterator[tuple[int, Segment]],
    letters: Sequence[tuple[int, SplitLetter]],
    names: ElementNames,
) -> ReducedSplit:
    named = [(time, name, count) for time, name, count in names.state()]
    return ReducedSplit(list(_in_order(segments, letters)), named)


def _in_order(
    segments: Iterator[tuple[int, Segment]], letters: Sequence[tuple[int, SplitLetter]]
) -> Iterator[Segment | SplitLetter]:
    """Yield each dead letter before the first segment that begins at or after its index."""
    waiting = list(reversed(letters))
    for start, segment in segments:
        while waiting and waiting[-1][0] <= start:
            yield waiting.pop()[1]
        yield segment
    yield from (letter for _, letter in reversed(waiting))
