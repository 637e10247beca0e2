"""A run whose sources are read in many places: what any driver does that reads elsewhere.

    plan     which places to read next: a few of each source that has nothing left to take
    reduce   read a place, and reduce it to segments: anywhere, many at once
    take     gather what was reduced, and let the queries answer what is due

The answers are those of the local driver, whatever the places are.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.drivers.local import LocalDriver
from rsp_engine.drivers.splits.pushdown import Pushdown, pushdowns
from rsp_engine.drivers.splits.split_merger import SplitMerger
from rsp_engine.drivers.splits.split_reducer import ReducedSplit, SplitReducer
from rsp_engine.evaluators.pairs import PairsConfig
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.io.sources.splits import Split, Splittable
from rsp_engine.model.windows import CountFrame, TimeFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rsp_engine.drivers.replay_clock import ReplayClock
    from rsp_engine.evaluators.step import Step
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.io.sources.splits import SplitPart
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.state import StateData
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.monitor.run_monitor import Counts

__all__ = ["SplitRun", "StreamTask", "UnreadSplit"]

_WAIT_S = 0.2


class StreamTask(NamedTuple):
    """All that is needed to reduce places of a source, wherever that is done."""

    source: Splittable | LiveSource
    stream: str
    number: int
    """The number of the stream, which tells its blank nodes from those of others."""
    readings: tuple[Pushdown, ...]
    frames: tuple[TimeFrame, ...]
    max_delay: int
    is_in_order: bool = False
    """Whether every element is needed, in its order: then places are read where they are taken."""

    def reducer(self) -> SplitReducer | UnreadSplit:
        """Return what reduces places of the source."""
        if self.is_in_order:
            return UnreadSplit()
        return SplitReducer(self.stream, self.number, self.readings, self.frames, self.max_delay)


class UnreadSplit:
    """Leaves places as they are: somebody else looks at their elements one by one."""

    def reduce(self, part: SplitPart) -> ReducedSplit:
        """Say that nothing was done."""
        return ReducedSplit(trouble=f"every element of {part.name} is needed")


class SplitRun:
    """Runs queries over sources, place by place."""

    def __init__(
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[ElementSource]],
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int = 0,
        pace: ReplayClock | None = None,
    ) -> None:
        self._steps = steps
        self._driver = LocalDriver(steps, sources, dead_letter, max_delay, pace)
        self.tasks = dict(_tasks(steps, sources, max_delay))
        """The sources that are read elsewhere, by number."""
        frames = {
            (step, number): scan.frame
            for step, each in enumerate(steps)
            for number, scan in enumerate(each.plan.scans)
            if isinstance(scan.frame, TimeFrame)
        }
        names = self._driver.names
        self._gathering = SplitMerger(sources, frozenset(self.tasks), frames, names, max_delay)
        self._reducers: dict[int, SplitReducer | UnreadSplit] = {}
        self._live = {
            number: task.source
            for number, task in self.tasks.items()
            if isinstance(task.source, LiveSource)
        }

    @property
    def counts(self) -> Counts:
        """What passed through the run so far."""
        return self._driver.counts

    def watermarks(self) -> dict[str, float]:
        """Return how far each query has come; another thread may ask."""
        return self._driver.watermarks()

    @property
    def is_done(self) -> bool:
        """Whether all sources have ended, and everything is answered."""
        return self._gathering.is_done

    def plan(
        self, planned: Mapping[int, Split], size: int, count: int
    ) -> Iterator[tuple[int, Split]]:
        """Yield places to read next, so many of a source, after those that were planned last."""
        for number, task in self.tasks.items():
            if not self._gathering.wants(number):
                continue
            live, since = self._live.get(number), planned.get(number)
            is_over = live is None or live.has_ended  # asked first: it may end meanwhile
            places = list(islice(task.source.cut(size, since), count))
            if not places and is_over:
                self._gathering.end(number)
            elif not places and live is not None:
                yield from self._silence(number, live, since)
            yield from ((number, place) for place in places)

    def _silence(
        self, number: int, live: LiveSource, since: Split | None
    ) -> Iterator[tuple[int, Split]]:
        """Yield a place without anything in it, once, where a source is silent."""
        if live.is_silent and not self._gathering.is_silent(number):
            at = 0 if since is None or since.end is None else since.end
            yield number, Split(at, at)

    @property
    def is_live(self) -> bool:
        """Whether more may come of a source than is there."""
        return bool(self._live)

    @property
    def is_full(self) -> bool:
        """Whether a sender waits for something to be released."""
        return any(source.is_full for source in self._live.values())

    def plan_when_there_is_more(
        self,
        planned: Mapping[int, Split],
        size: int,
        count: int,
        is_stopping: Callable[[], bool],
    ) -> list[tuple[int, Split]]:
        """Return places to read next; where all is waiting for live sources, wait for them."""
        while True:
            places = list(self.plan(planned, size, count))
            waiting = [n for n in self._live if self._gathering.wants(n)]
            if places or not waiting or is_stopping() or self._gathering.has_more():
                return places
            self._live[waiting[0]].wait(planned.get(waiting[0]), _WAIT_S / len(waiting))

    def release(self, needed: Mapping[int, int]) -> None:
        """Let live sources forget what comes before some places, by the numbers of sources."""
        for number, until in needed.items():
            self._live[number].release(until)

    def needed(self, planned: Mapping[int, Split]) -> dict[int, int]:
        """Return from where on live sources are needed, if the state as it is now is kept."""
        found = {}
        for number in self._live:
            oldest, place = self._gathering.oldest(number), planned.get(number)
            if oldest is not None:
                found[number] = oldest
            elif place is not None and place.end is not None:
                found[number] = place.end
        return found

    def reduce(self, number: int, place: Split) -> ReducedSplit:
        """Reduce a place of a source here."""
        if number not in self._reducers:
            self._reducers[number] = self.tasks[number].reducer()
        return self._reducers[number].reduce(self.tasks[number].source.part(place))

    def take(
        self,
        given: Iterable[tuple[int, Split, ReducedSplit]],
        at_most: float,
        is_enough: Callable[[], bool] = lambda: False,
    ) -> Iterator[Answer]:
        """Yield the answers that come of places, and of so many items of what is read here.

        Where it `is_enough`, the rest is taken the next time.
        """
        for number, place, reduced in given:
            self._gathering.give(number, place, reduced)
        yield from self._driver.take(self._gathering.items(at_most, is_enough))

    def ended(self) -> list[int]:
        """Return the sources of which no more places will be planned."""
        return [number for number in self.tasks if self._gathering.has_ended(number)]

    def end(self, numbers: Iterable[int]) -> None:
        """Learn that sources have ended, as they had when a batch was planned that broke off."""
        for number in numbers:
            self._gathering.end(number)

    def state(self) -> StateData:
        """Return all that is known, as plain data, between two takes."""
        return {
            "driver": self._driver.state(),
            "gathering": self._gathering.state(),
            "steps": {str(number): step.state() for number, step in enumerate(self._steps)},
        }

    def restore(self, state: StateData, planned: Mapping[int, Split]) -> None:
        """Go on from a state of the same queries and sources, after the places planned last."""
        for number, source in self._live.items():
            if number in planned:
                source.go_on(planned[number])
        self._driver.restore(state["driver"])
        for number, step in enumerate(self._steps):
            step.restore(state["steps"][str(number)])
        self._gathering.restore(state["gathering"], self.reduce)


def _tasks(
    steps: Sequence[Step], sources: Mapping[str, Sequence[ElementSource]], max_delay: int
) -> Iterator[tuple[int, StreamTask]]:
    """Yield the sources that can be read elsewhere, by number, and all that are live.

    Windows that count, queries of pairs, and queries that read the answers of others need every
    element in its order.
    """
    plans = [step.plan for step in steps]
    scans = [scan for plan in plans for scan in plan.scans]
    is_chained = any(plan.feeds is not None for plan in plans if _is_read(plan.feeds, steps))
    frames = tuple({scan.frame for scan in scans if isinstance(scan.frame, TimeFrame)})
    counted = {scan.stream for scan in scans if isinstance(scan.frame, CountFrame)}
    paired = {s.stream for p in plans if isinstance(p.operator, PairsConfig) for s in p.scans}
    scanned = set() if is_chained else {scan.stream for scan in scans} - counted - paired
    number = 0
    for stream_number, (stream, found) in enumerate(sources.items()):
        for source in found:
            if stream in scanned and isinstance(source, Splittable) and source.can_be_cut:
                wanted = tuple(pushdowns(plans, stream))
                task = StreamTask(source, stream, stream_number, wanted, frames, max_delay)
                yield number, task
            elif isinstance(source, LiveSource):
                yield number, StreamTask(source, stream, stream_number, (), (), max_delay, True)
            number += 1


def _is_read(stream: str | None, steps: Sequence[Step]) -> bool:
    return any(stream in step.streams for step in steps)
