"""Gathering: what was read in many places becomes one sequence again, in the order of time.

Sources that can be cut are read elsewhere, place by place, and come back reduced to segments; the
others are read here. Segments and elements are merged by time, as the local driver merges sources,
and give the same answers. A dead letter has the time that its source has come to, and so has the
end of a source: what comes of them is in the order of the local driver too.

    An element that some windows of its pane do not wait for any more is late for them. How far the
    watermark has come when it is read, the elements before it in its own source tell: a source is
    read on only where it is behind, so the others are never ahead of it. A place that holds such
    an element is read again here, one element at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Literal

from rsp_engine.drivers.splits.segments import PlacedLetter, Segment
from rsp_engine.drivers.splits.split_reducer import ReducedSplit
from rsp_engine.io.sources.splits import Split, Splittable
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.io.blank_nodes import ElementNames
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import TimeFrame

    Item = Segment | Element | DeadLetter
    Waiting = Item | PlacedLetter

__all__ = ["Reduce", "Silence", "SplitMerger"]

Reduce = Callable[[int, Split], ReducedSplit]
"""Reduces a place of a source, by its number."""

How = Literal["reduced", "here", "rest"]
"""How a place is read: elsewhere, here, or here with all that follows."""


class Silence:
    """What is told of a stream, in the order of its items, when nobody should wait for it."""


class _Part:
    """A place of a source that is being taken, or all of the source."""

    def __init__(
        self, place: Split | None, items: Iterable[Waiting], how: How, since: float
    ) -> None:
        self.place = place
        self.how = how
        self.taken = 0
        self.since = since
        """The latest time before it in its source."""
        self.reached = since
        """The latest time before what was not taken yet."""
        self._items = iter(items)
        self._head: Waiting | None = None

    def head(self) -> Waiting | None:
        """Return the next item; nothing at the end."""
        if self._head is None:
            self._head = next(self._items, None)
        return self._head

    def take(self) -> None:
        """Go on to the item after the head."""
        if isinstance(self._head, Segment):
            self.reached = max(self.reached, self._head.high)
        elif isinstance(self._head, Element):
            self.reached = max(self.reached, self._head.timestamp)
        self._head = None
        self.taken += 1

    def time(self, head: Waiting) -> float:
        """Return when the head is to be taken: its time, or that of what is before it if later."""
        if isinstance(head, Segment | Element):
            return max(self.reached, head.timestamp)
        if isinstance(head, DeadLetter):
            return self.reached
        return self.since if head.after is None else max(self.since, head.after)


@dataclass(slots=True)
class _Progress:
    """How far a source has come: what of it waits, and when its latest element came."""

    stream: str
    source: ElementSource
    parts: deque[_Part] = field(default_factory=deque)
    high: float = -inf
    """The latest time of what was given."""
    reached: float = -inf
    """The latest time of parts that are over."""
    has_ended: bool = False
    """Whether no more places will be given."""
    is_told: bool = False
    """Whether its end was told."""
    is_silent: bool = False
    """Whether it is live, and has given nothing for long."""

    def head(self) -> Waiting | None:
        """Return the next item; nothing at the end, or where another place has to come first."""
        while self.parts:
            head = self.parts[0].head()
            if head is not None:
                return head
            over = self.parts.popleft()
            self.reached = max(self.reached, over.reached)
        return None

    def time(self) -> float | None:
        """Return when its next item or its end is to be taken; nothing if that is not known."""
        head = self.head()
        if head is not None:
            return self.parts[0].time(head)
        return max(self.high, self.reached) if self.has_ended else None

    def is_over(self) -> bool:
        """Tell whether there is nothing more to take, ever."""
        return self.head() is None and self.has_ended


class SplitMerger:
    """The items of all sources, as far as they have come. Memory: what waits for another source."""

    def __init__(
        self,
        sources: Mapping[str, Sequence[ElementSource]],
        cut: frozenset[int],
        frames: Mapping[tuple[int, int], TimeFrame],
        names: Mapping[str, ElementNames],
        max_delay: int,
    ) -> None:
        """Take which sources are cut, by number, and the frames of scans by query and scan."""
        opened = [(stream, source) for stream, found in sources.items() for source in found]
        self._sources = [_Progress(*each) for each in opened]
        for number, progress in enumerate(self._sources):
            if number not in cut:
                self._read_rest(progress, None)
        self._frames = frames
        self._names = names
        self._max_delay = max_delay

    def wants(self, number: int) -> bool:
        """Tell whether a source has nothing left to take until another place of it is given."""
        progress = self._sources[number]
        return not progress.has_ended and progress.head() is None

    @property
    def is_done(self) -> bool:
        """Whether all sources have ended, and everything is taken."""
        return all(progress.is_told for progress in self._sources)

    def give(self, number: int, place: Split, reduced: ReducedSplit) -> None:
        """Take in the next place of a source."""
        progress = self._sources[number]
        if progress.has_ended:
            return  # it is read here by now
        progress.is_silent = place.end == place.start
        if progress.is_silent:
            return
        if reduced.lasts:
            self._read_rest(progress, Split(place.start, None, place.line))
            return
        is_fine = reduced.trouble is None and self._is_in_time(progress, reduced)
        is_fine = is_fine and self._have_new_names(progress, reduced)
        self._add(progress, place, reduced.items if is_fine else None)

    def end(self, number: int) -> None:
        """Learn that a source has no more places."""
        self._sources[number].has_ended = True

    def has_ended(self, number: int) -> bool:
        """Tell whether a source is known to have no more places."""
        return self._sources[number].has_ended

    def is_silent(self, number: int) -> bool:
        """Tell whether a source is known to be silent."""
        return self._sources[number].is_silent

    def _left(self) -> list[_Progress]:
        """Return the sources that others wait for."""
        return [p for p in self._sources if not p.is_told and (p.has_ended or not p.is_silent)]

    def has_more(self) -> bool:
        """Tell whether items can be taken before any other place is given."""
        times = [progress.time() for progress in self._left()]
        return bool(times) and None not in times

    def oldest(self, number: int) -> int | None:
        """Return where the first place of a source starts that still waits; nothing if none."""
        progress = self._sources[number]
        progress.head()  # parts that are over are forgotten
        places = [part.place for part in progress.parts if part.place is not None]
        return places[0].start if places else None

    def items(
        self, at_most: float = inf, is_enough: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[str, Item | Silence | None, ElementSource | None]]:
        """Yield what can be taken, as `merged` does; so many items at most of what is read here.

        It ends where a source has to give another place first, or where it `is_enough`. A stream
        whose sources are all silent is told to be.
        """
        for stream in dict.fromkeys(progress.stream for progress in self._sources):
            found = [p for p in self._sources if p.stream == stream and not p.is_over()]
            if found and all(p.is_silent for p in found):
                yield stream, Silence(), found[0].source
        while (progress := self._first()) is not None:
            head = progress.head()
            if head is None:
                progress.is_told = True
                if all(p.is_told for p in self._sources if p.stream == progress.stream):
                    yield progress.stream, None, None
                continue
            part = progress.parts[0]
            if part.how == "rest" and isinstance(head, Element):
                if at_most <= 0:
                    return
                at_most -= 1
            part.take()
            yield progress.stream, _item(head), progress.source
            if is_enough():
                return

    def _first(self) -> _Progress | None:
        """Return the source that is behind the others; nothing if one must give more before."""
        left = self._left()
        times = [time for p in left if (time := p.time()) is not None]
        if not left or len(times) < len(left):
            return None
        return left[times.index(min(times))]

    def _is_in_time(self, progress: _Progress, reduced: ReducedSplit) -> bool:
        """Tell whether all windows wait for all elements."""
        high = progress.high
        for item in reduced.items:
            if isinstance(item, PlacedLetter):
                continue
            high = max(high, item.timestamp)
            watermark = high - self._max_delay
            closed = {scan: frame.last_closed(watermark) for scan, frame in self._frames.items()}
            if any(p.pane.first <= closed[p.step, p.scan] for p in item.parcels):
                return False
            high = max(high, item.high)
        return True

    def _have_new_names(self, progress: _Progress, reduced: ReducedSplit) -> bool:
        """Remember elements with blank nodes; tell whether equal ones did not come before."""
        return self._names[progress.stream].meet(reduced.names)

    def _add(
        self, progress: _Progress, place: Split, reduced: Sequence[Segment | PlacedLetter] | None
    ) -> None:
        """Let the items of a place wait: what it was reduced to, or its elements, read here."""
        items: Sequence[Waiting]
        items = self._elements(progress, place) if reduced is None else reduced
        before = progress.high
        for item in items:
            if isinstance(item, Segment | Element):
                high = item.high if isinstance(item, Segment) else item.timestamp
                progress.high = max(progress.high, high)
        how: How = "here" if reduced is None else "reduced"
        progress.parts.append(_Part(place, items, how, before))
        progress.has_ended = place.end is None

    def _elements(self, progress: _Progress, place: Split) -> list[Item]:
        assert isinstance(progress.source, Splittable), "it was cut"  # noqa: S101
        return list(progress.source.part(place))

    def _read_rest(self, progress: _Progress, place: Split | None, taken: int = 0) -> None:
        """Read a source here, all of it or from a place on to its end, but for its first items."""
        source = progress.source
        if place is not None:
            assert isinstance(source, Splittable), "it was cut"  # noqa: S101
            source = source.part(place)
        items = islice(iter(source), taken, None)
        progress.parts.append(_Part(place, items, "rest", progress.high))
        progress.parts[-1].taken = taken
        progress.has_ended = True

    def state(self) -> StateData:
        """Return how far the sources have come, as plain data."""
        return {"sources": [_saved(progress) for progress in self._sources]}

    def restore(self, state: StateData, reduce: Reduce) -> None:
        """Go on from a state; what was waiting is read again."""
        for number, saved in enumerate(state["sources"]):
            progress = self._sources[number]
            progress.parts.clear()
            for part in saved["parts"]:
                place = None if part["place"] is None else Split(*part["place"])
                progress.high = _read_time(part["since"])
                if place is None or part["how"] == "rest":
                    self._read_rest(progress, place, part["taken"])
                    progress.parts[-1].reached = _read_time(part["reached"])
                    continue
                is_reduced = part["how"] == "reduced"
                self._add(progress, place, reduce(number, place).items if is_reduced else None)
                for _ in range(part["taken"]):
                    progress.parts[-1].head()
                    progress.parts[-1].take()
            progress.high, progress.reached = map(_read_time, (saved["high"], saved["reached"]))
            progress.has_ended, progress.is_told = saved["has_ended"], saved["is_told"]
            progress.is_silent = saved.get("is_silent", False)


def _saved(progress: _Progress) -> StateData:
    progress.head()  # parts that are over are forgotten
    return {
        "high": _written_time(progress.high),
        "reached": _written_time(progress.reached),
        "has_ended": progress.has_ended,
        "is_told": progress.is_told,
        "is_silent": progress.is_silent,
        "parts": [
            {
                "place": None if p.place is None else [p.place.start, p.place.end, p.place.line],
                "how": p.how,
                "taken": p.taken,
                "since": _written_time(p.since),
                "reached": _written_time(p.reached),
            }
            for p in progress.parts
        ],
    }


def _item(head: Waiting) -> Item:
    return head.letter if isinstance(head, PlacedLetter) else head


def _written_time(time: float) -> float | None:
    return None if time == -inf else time


def _read_time(saved: float | None) -> float:
    return -inf if saved is None else saved
