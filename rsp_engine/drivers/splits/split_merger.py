"""The merge of sources: their splits become one sequence, in the order of event time.

Splittable sources are read elsewhere, split by split, and arrive reduced to segments. The others
are read here: batches of them are reduced to segments too, single elements are left as they are. A
dead letter, and the end of a source, have the latest time of their source so far.

    An element is late for the windows of its pane that the watermark has closed. The elements
    before it in its own source determine the watermark when it is read: a source is read on only
    while it is behind the others, so no other is ahead of it. A split with a late element is read
    again here, one element at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple

from rsp_engine.drivers.splits.segments import Segment, SplitLetter
from rsp_engine.drivers.splits.split_reducer import ReducedSplit
from rsp_engine.io.sources.batch import ElementBatch, InBatches
from rsp_engine.io.sources.extent import is_sized
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.io.sources.predicate_sample import PredicateSample
from rsp_engine.io.sources.splits import Lined, Split, Splittable
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.drivers.splits.split_reducer import SplitReducer
    from rsp_engine.io.blank_nodes import ElementNames
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.io.sources.live.source import LivePartition
    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import TimeFrame

    Item = Segment | Element | DeadLetter
    Waiting = Item | SplitLetter

__all__ = ["ClosedWindows", "Reduce", "Silence", "SplitMerger"]

Reduce = Callable[[int, Split], ReducedSplit]
"""Reduces a split of a source, given by its number."""

How = Literal["reduced", "here", "rest"]
"""How a split is read: reduced elsewhere, here by element, or here with the rest of the source."""


class Silence:
    """An item that marks a stream as idle: its watermark does not hold back the others."""


class ClosedWindows(NamedTuple):
    """Which windows are closed, by the number of the query and of the scan."""

    frames: Mapping[tuple[int, int], TimeFrame]
    max_delay: int
    watermark: Callable[[int], float]
    """Returns the watermark of a query, by its number."""

    def reached(self) -> dict[int, float]:
        """Return the watermark of each query.

        It may be later than that of a source: the queries do not wait for one that is silent.
        """
        return {step: self.watermark(step) for step, _ in self.frames}

    def after(self, high: float, reached: Mapping[int, float]) -> dict[tuple[int, int], float]:
        """Return the last window of each scan that is closed after an element at a time."""
        own = high - self.max_delay
        return {
            (step, scan): frame.last_closed(max(own, reached[step]))
            for (step, scan), frame in self.frames.items()
        }


class _Part:
    """A split of a source that is being merged; without a split, the whole source."""

    def __init__(
        self, split: Split | None, items: Iterable[Waiting], how: How, since: float
    ) -> None:
        self.split = split
        self.how = how
        self.taken = 0
        """How many items are merged; of a source that is read here, how many elements."""
        self.since = since
        """The latest time in the source before this split."""
        self.reached = since
        """The latest time in the source before the head."""
        self.items = iter(items)
        self.files: frozenset[str] = frozenset()
        """The pane files of its segments."""
        self._head: Waiting | None = None
        self._lines: int | None = None

    def head(self) -> Waiting | None:
        """Return the next item; None at the end."""
        if self._head is None:
            self._head = next(self.items, None)
        return self._head

    def take(self) -> None:
        """Advance to the item after the head."""
        taken = 1
        if isinstance(self._head, Segment):
            self.reached = max(self.reached, self._head.high)
            taken = self._head.elements if self.how == "rest" else 1
        elif isinstance(self._head, Element):
            self.reached = max(self.reached, self._head.timestamp)
        self._head = None
        self.taken += taken

    def lines_before(self, source: Lined) -> int:
        """Return how many lines of its source are before its split."""
        if self._lines is None:
            self._lines = 0 if self.split is None else source.lines_before(self.split)
        return self._lines

    def time(self, head: Waiting) -> float:
        """Return the time at which the head is merged: no earlier than what is before it."""
        if isinstance(head, Segment | Element):
            return max(self.reached, head.timestamp)
        if isinstance(head, DeadLetter):
            return self.reached
        return self.since if head.after is None else max(self.since, head.after)


@dataclass(slots=True)
class _Progress:
    """The progress of a source: the splits that wait to be merged, and its latest times."""

    stream: str
    source: ElementSource
    partition: LivePartition | None = None
    """What is read in splits, if the source is live."""
    parts: deque[_Part] = field(default_factory=deque)
    high: float = -inf
    """The latest time of all splits that were added."""
    reached: float = -inf
    """The latest time of the splits that were merged."""
    has_ended: bool = False
    """Whether no more splits will be added."""
    is_over: bool = False
    """Whether its end was merged."""
    is_silent: bool = False
    """Whether it is live and idle."""

    def head(self) -> Waiting | None:
        """Return the next item; None at the end, or where another split must be added first."""
        while self.parts:
            head = self.parts[0].head()
            if head is not None:
                return head
            merged = self.parts.popleft()
            self.reached = max(self.reached, merged.reached)
        return None

    def time(self) -> float | None:
        """Return the time at which its next item or its end is merged; None if not known yet."""
        return self.time_of(self.head())

    def time_of(self, head: Waiting | None) -> float | None:
        """Return `time()`, given the head."""
        if head is not None:
            return self.parts[0].time(head)
        return max(self.high, self.reached) if self.has_ended else None

    def item(self, part: _Part, head: Waiting) -> Item:
        """Return the head of a part as it is merged: with its position in the source."""
        if isinstance(head, Segment):
            return head
        item = head.letter if isinstance(head, SplitLetter) else head
        if part.split is None or not isinstance(self.source, Lined):
            return item
        position = part.lines_before(self.source) + item.position
        if isinstance(item, Element):
            return item._replace(position=position)
        return replace(item, position=position)

    def is_exhausted(self) -> bool:
        """Return whether there is nothing left to merge, now or later."""
        return self.head() is None and self.has_ended


class SplitMerger:
    """A merger of the items of all sources. Memory: the items that wait for another source."""

    def __init__(
        self,
        sources: Mapping[str, Sequence[ElementSource]],
        here: Mapping[int, SplitReducer | None],
        closed: ClosedWindows,
        names: Mapping[str, ElementNames],
    ) -> None:
        """Set up the sources, some of which are read `here`, with the reducer of their batches."""
        self._closed = closed
        self._names = names
        self.samples: dict[int, PredicateSample] = {}
        """The predicates of sources that can be read only once, by number."""
        opened = [(stream, source) for stream, bound in sources.items() for source in bound]
        self._sources: dict[int, _Progress]
        self._sources = {number: _Progress(*each) for number, each in enumerate(opened)}
        """By number, in its order: which of two equal times goes first does not depend on when a
        partition was found."""
        self._bound = len(opened)
        self._reducers = here
        for number in here:
            self._read_rest(number, None)

    def add_partition(
        self, number: int, stream: str, source: ElementSource, partition: LivePartition
    ) -> None:
        """Add a partition of a live source, under a number of its own."""
        self._sources[number] = _Progress(stream, source, partition)
        self._sources = dict(sorted(self._sources.items()))

    def wants(self, number: int) -> bool:
        """Return whether a source has nothing left to merge until another split of it is added."""
        progress = self._sources[number]
        return not progress.has_ended and progress.head() is None

    @property
    def is_done(self) -> bool:
        """Whether all sources have ended, and all is merged."""
        return all(progress.is_over for progress in self._sources.values())

    def add(self, number: int, split: Split, reduced: ReducedSplit) -> None:
        """Add the next split of a source; an empty one marks the source as silent."""
        progress = self._sources[number]
        if progress.has_ended:
            return  # its rest is read here
        progress.is_silent = split.end == split.start
        if progress.is_silent:
            return
        if reduced.lasts:
            self._read_rest(number, Split(split.start, None))
            return
        is_usable = self._is_usable(progress, reduced, progress.high)
        self._enqueue(progress, split, reduced.items if is_usable else None)

    def end(self, number: int) -> None:
        """Mark a source as ended: it has no more splits."""
        self._sources[number].has_ended = True

    def has_ended(self, number: int) -> bool:
        """Return whether a source is known to have no more splits."""
        return self._sources[number].has_ended

    def wake(self, number: int) -> None:
        """Mark a source as no longer silent: it has a split that will be added."""
        self._sources[number].is_silent = False

    def is_silent(self, number: int) -> bool:
        """Return whether a source is known to be silent."""
        return self._sources[number].is_silent

    def _left(self) -> list[_Progress]:
        """Return the sources that hold back the merge."""
        return [
            p for p in self._sources.values() if not p.is_over and (p.has_ended or not p.is_silent)
        ]

    def has_more(self) -> bool:
        """Return whether items can be merged before another split is added."""
        times = [progress.time() for progress in self._left()]
        return bool(times) and None not in times

    def oldest(self, number: int) -> int | None:
        """Return the start of the first split of a source that is not merged; None if all are."""
        progress = self._sources[number]
        progress.head()  # drops the parts that are merged
        splits = [part.split for part in progress.parts if part.split is not None]
        return splits[0].start if splits else None

    def pane_files(self) -> set[str]:
        """Return the pane files of the splits that wait to be merged."""
        parts = (part for progress in self._sources.values() for part in progress.parts)
        return {file for part in parts for file in part.files}

    def items(
        self, at_most: float = inf, is_enough: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[str, Item | Silence | None, ElementSource | None]]:
        """Yield the name of a stream, the next item of one of its sources, and that source.

        At the end of a stream, item and source are None. A stream whose sources are all silent
        yields a `Silence` first. The items end after about `at_most` elements that are read here,
        where a source needs another split first, or when `is_enough()`.
        """
        for stream in dict.fromkeys(progress.stream for progress in self._sources.values()):
            open_sources = [
                p for p in self._sources.values() if p.stream == stream and not p.is_exhausted()
            ]
            if open_sources and all(p.is_silent for p in open_sources):
                yield stream, Silence(), open_sources[0].source
        while (first := self._first()) is not None:
            progress, until = first
            while not progress.is_over:
                head = progress.head()
                time = progress.time_of(head)
                if time is None or time > until:
                    break
                if head is None:
                    progress.is_over = True
                    if all(
                        p.is_over for p in self._sources.values() if p.stream == progress.stream
                    ):
                        yield progress.stream, None, None
                    continue
                part = progress.parts[0]
                if part.how == "rest" and isinstance(head, Segment | Element):
                    if at_most <= 0:
                        return
                    at_most -= head.elements if isinstance(head, Segment) else 1
                part.take()
                yield progress.stream, progress.item(part, head), progress.source
                if is_enough():
                    return

    def _first(self) -> tuple[_Progress, float] | None:
        """Return the source that is behind the others, and the time up to which it is.

        Return None if a source needs another split first.
        """
        left = self._left()
        times = [time for p in left if (time := p.time()) is not None]
        if not left or len(times) < len(left):
            return None
        first = times.index(min(times))
        # Of equal times, that of the source that was bound first goes first; times are integers.
        until = min([*(time - 1 for time in times[:first]), *times[first + 1 :]], default=inf)
        return left[first], until

    def _is_usable(self, progress: _Progress, reduced: ReducedSplit, high: float) -> bool:
        """Return whether what was reduced after the time `high` can be taken as it is.

        Elements with blank nodes are remembered: none of them may equal an earlier one.
        """
        is_reduced = reduced.trouble is None and self._is_in_time(reduced, high)
        return is_reduced and self._names[progress.stream].meet(reduced.names)

    def _is_in_time(self, reduced: ReducedSplit, high: float) -> bool:
        """Return whether no element is late for a window."""
        reached = self._closed.reached()
        for item in reduced.items:
            if isinstance(item, SplitLetter):
                continue
            high = max(high, item.timestamp)
            closed = self._closed.after(high, reached)
            if any(c.pane.first <= closed[c.step, c.scan] for c in item.pane_contents):
                return False
            if any(c.pane.first <= closed[c.step, c.scan] for c in item.stored):
                return False
            high = max(high, item.high)
        return True

    def _enqueue(
        self, progress: _Progress, split: Split, reduced: Sequence[Segment | SplitLetter] | None
    ) -> None:
        """Enqueue the items of a split: the reduced ones, or else its elements, read here."""
        items: Sequence[Waiting]
        items = self._elements(progress, split) if reduced is None else reduced
        before = progress.high
        for item in items:
            if isinstance(item, Segment | Element):
                high = item.high if isinstance(item, Segment) else item.timestamp
                progress.high = max(progress.high, high)
        how: How = "here" if reduced is None else "reduced"
        part = _Part(split, items, how, before)
        segments = (item for item in items if isinstance(item, Segment))
        part.files = frozenset(s.content.file for each in segments for s in each.stored)
        progress.parts.append(part)
        progress.has_ended = split.end is None

    def _elements(self, progress: _Progress, split: Split) -> list[Item]:
        source = progress.partition or progress.source
        assert isinstance(source, Splittable), "it was split"  # noqa: S101
        return list(source.part(split))

    def _read_rest(self, number: int, split: Split | None, taken: int = 0) -> None:
        """Read a source here from a split on to its end, or all of it; skip `taken` elements."""
        progress = self._sources[number]
        source = progress.source
        if split is not None:
            assert isinstance(source, Splittable), "it was split"  # noqa: S101
            source = source.part(split)
        part = _Part(split, (), "rest", progress.high)
        part.taken = taken
        sample = self._sample(number)
        reducer = self._reducers.get(number)
        if reducer is None or not isinstance(source, InBatches):
            items = iter(source) if sample is None else sample.take(source)
            part.items = islice(items, taken, None)
        else:
            batches = source.batches() if sample is None else sample.take(source.batches())
            part.items = self._reduced(progress, part, batches, reducer)
        progress.parts.append(part)
        progress.has_ended = True

    def _sample(self, number: int) -> PredicateSample | None:
        """Return a new sample of a source that can be read only once; None for any other."""
        source = self._sources[number].source
        if is_sized(source) or isinstance(source, LiveSource):
            return None
        return self.samples.setdefault(number, PredicateSample())

    def _reduced(
        self,
        progress: _Progress,
        part: _Part,
        batches: Iterator[ElementBatch | Element | DeadLetter],
        reducer: SplitReducer,
    ) -> Iterator[Waiting]:
        """Yield the items of a source that is read here, after those taken; reduce its batches.

        A batch is reduced when all before it is merged: so it is known which elements are late.
        """
        skipped = part.taken
        for item in batches:
            if not isinstance(item, ElementBatch):
                if skipped == 0:
                    yield item
                skipped = max(0, skipped - 1)
            elif skipped:
                yield from islice(item, skipped, None)
                skipped = max(0, skipped - len(item))
            else:
                reduced = reducer.reduce_batch(item)
                is_usable = self._is_usable(progress, reduced, part.reached)
                yield from reduced.items if is_usable else item

    def state(self) -> StateData:
        """Return the progress of all sources, as plain data."""
        saved = {number: _save(progress) for number, progress in self._sources.items()}
        partitions = {str(n): progress for n, progress in saved.items() if n >= self._bound}
        bound = [progress for n, progress in saved.items() if n < self._bound]
        return {"sources": bound, **({"partitions": partitions} if partitions else {})}

    def restore(self, state: StateData, reduce: Reduce) -> None:
        """Resume from a state; splits that were not merged are read again."""
        partitions = {int(number): saved for number, saved in state.get("partitions", {}).items()}
        for number, saved in [*enumerate(state["sources"]), *partitions.items()]:
            progress = self._sources[number]
            progress.parts.clear()
            for part in saved["parts"]:
                split = None if part["place"] is None else Split(*part["place"])
                progress.high = _read_time(part["since"])
                if split is None or part["how"] == "rest":
                    self._read_rest(number, split, part["taken"])
                    progress.parts[-1].reached = _read_time(part["reached"])
                    continue
                is_reduced = part["how"] == "reduced"
                self._enqueue(progress, split, reduce(number, split).items if is_reduced else None)
                for _ in range(part["taken"]):
                    progress.parts[-1].head()
                    progress.parts[-1].take()
            progress.high, progress.reached = map(_read_time, (saved["high"], saved["reached"]))
            progress.has_ended, progress.is_over = saved["has_ended"], saved["is_told"]
            progress.is_silent = saved.get("is_silent", False)


def _save(progress: _Progress) -> StateData:
    progress.head()  # drops the parts that are merged
    return {
        "high": _written_time(progress.high),
        "reached": _written_time(progress.reached),
        "has_ended": progress.has_ended,
        "is_told": progress.is_over,
        "is_silent": progress.is_silent,
        "parts": [
            {
                "place": None if p.split is None else [p.split.start, p.split.end],
                "how": p.how,
                "taken": p.taken,
                "since": _written_time(p.since),
                "reached": _written_time(p.reached),
            }
            for p in progress.parts
        ],
    }


def _written_time(time: float) -> float | None:
    return None if time == -inf else time


def _read_time(saved: float | None) -> float:
    return -inf if saved is None else saved
