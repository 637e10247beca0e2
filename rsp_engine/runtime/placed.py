"""A run whose sources are read in many places: what any driver does that reads elsewhere.

    plan     which places to read next: a few of each source that has nothing left to take
    reduce   read a place, and reduce it to segments: anywhere, many at once
    take     gather what was reduced, and let the queries answer what is due

The answers are those of the local driver, whatever the places are.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.model.windows import CountFrame, TimeFrame
from rsp_engine.operators.pairs.evaluation import PairsConfig
from rsp_engine.runtime.gathering import Gathering
from rsp_engine.runtime.local import LocalDriver
from rsp_engine.runtime.readings import Reading, readings
from rsp_engine.runtime.reducing import Reducer
from rsp_engine.runtime.sources.cuts import Cuttable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.operators.state import State
    from rsp_engine.runtime.local import Counts
    from rsp_engine.runtime.pace import Pace
    from rsp_engine.runtime.reducing import Reduced
    from rsp_engine.runtime.sources import Source
    from rsp_engine.runtime.sources.cuts import Place
    from rsp_engine.runtime.step import Step

__all__ = ["PlacedRun", "StreamTask"]


class StreamTask(NamedTuple):
    """All that is needed to reduce places of a source, wherever that is done."""

    source: Cuttable
    stream: str
    number: int
    """The number of the stream, which tells its blank nodes from those of others."""
    readings: tuple[Reading, ...]
    frames: tuple[TimeFrame, ...]
    max_delay: int

    def reducer(self) -> Reducer:
        """Return what reduces places of the source."""
        return Reducer(self.stream, self.number, self.readings, self.frames, self.max_delay)


class PlacedRun:
    """Runs queries over sources, place by place."""

    def __init__(
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[Source]],
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int = 0,
        pace: Pace | None = None,
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
        self._gathering = Gathering(sources, frozenset(self.tasks), frames, names, max_delay)
        self._reducers: dict[int, Reducer] = {}

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
        self, planned: Mapping[int, Place], size: int, count: int
    ) -> Iterator[tuple[int, Place]]:
        """Yield places to read next, so many of a source, after those that were planned last."""
        for number, task in self.tasks.items():
            if not self._gathering.wants(number):
                continue
            places = list(islice(task.source.cut(size, planned.get(number)), count))
            if not places:
                self._gathering.end(number)
            yield from ((number, place) for place in places)

    def reduce(self, number: int, place: Place) -> Reduced:
        """Reduce a place of a source here."""
        if number not in self._reducers:
            self._reducers[number] = self.tasks[number].reducer()
        return self._reducers[number].reduce(self.tasks[number].source.part(place))

    def take(self, given: Iterable[tuple[int, Place, Reduced]], at_most: float) -> Iterator[Answer]:
        """Yield the answers that come of places, and of so many items of what is read here."""
        for number, place, reduced in given:
            self._gathering.give(number, place, reduced)
        yield from self._driver.take(self._gathering.items(at_most))

    def state(self) -> State:
        """Return all that is known, as plain data, between two takes."""
        return {
            "driver": self._driver.state(),
            "gathering": self._gathering.state(),
            "steps": [step.state() for step in self._steps],
        }

    def restore(self, state: State) -> None:
        """Go on from a state of the same queries and sources."""
        self._driver.restore(state["driver"])
        for step, saved in zip(self._steps, state["steps"], strict=True):
            step.restore(saved)
        self._gathering.restore(state["gathering"], self.reduce)


def _tasks(
    steps: Sequence[Step], sources: Mapping[str, Sequence[Source]], max_delay: int
) -> Iterator[tuple[int, StreamTask]]:
    """Yield the sources that can be read elsewhere, by number.

    Windows that count, queries of pairs, and queries that read the answers of others need every
    element in its order.
    """
    plans = [step.plan for step in steps]
    scans = [scan for plan in plans for scan in plan.scans]
    if any(plan.feeds is not None for plan in plans if _is_read(plan.feeds, steps)):
        return
    frames = tuple({scan.frame for scan in scans if isinstance(scan.frame, TimeFrame)})
    counted = {scan.stream for scan in scans if isinstance(scan.frame, CountFrame)}
    paired = {s.stream for p in plans if isinstance(p.operator, PairsConfig) for s in p.scans}
    scanned = {scan.stream for scan in scans} - counted - paired
    number = 0
    for stream_number, (stream, found) in enumerate(sources.items()):
        for source in found:
            if stream in scanned and isinstance(source, Cuttable) and source.can_be_cut:
                wanted = tuple(readings(plans, stream))
                task = StreamTask(source, stream, stream_number, wanted, frames, max_delay)
                yield number, task
            number += 1


def _is_read(stream: str | None, steps: Sequence[Step]) -> bool:
    return any(stream in step.streams for step in steps)
