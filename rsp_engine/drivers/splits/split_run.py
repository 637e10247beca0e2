"""A run over splits, and the base of the drivers, which execute it and commit.

    plan     which splits to read next: a few of each source that has nothing left to merge
    reduce   read a split, and reduce it to segments: in any process, many at once
    merge    merge the reduced splits, and let the queries answer what is due

The answers do not depend on the splits.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

from rsp_engine.drivers.checkpoint.commits import CheckpointSpec, Commits
from rsp_engine.drivers.intake import Intake
from rsp_engine.drivers.splits.pushdown import Pushdown, pushdowns
from rsp_engine.drivers.splits.split_merger import ClosedWindows, SplitMerger
from rsp_engine.drivers.splits.split_reducer import ReducedSplit, SplitReducer
from rsp_engine.evaluators.pairs.config import PairsConfig
from rsp_engine.io.sources.live.source import LivePartition, LiveSource
from rsp_engine.io.sources.splits import Split, Splittable
from rsp_engine.model.windows import CountFrame, TimeFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rsp_engine.drivers.panes.evaluation import Evaluation
    from rsp_engine.drivers.replay_clock import ReplayClock
    from rsp_engine.evaluators.step import Step
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.io.sources.predicate_sample import PredicateSample
    from rsp_engine.io.sources.splits import SplitPart
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.state import StateData
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.monitor.run_monitor import Counts

__all__ = ["SplitDriver", "SplitRun", "StreamTask", "UnreadSplit"]

_WAIT_S = 0.2
"""How long to wait for live sources at a time, in seconds."""
_FULL_S = 0.02
"""How often a driver looks whether full outputs have room, in seconds."""


class StreamTask(NamedTuple):
    """All that is needed to reduce the splits of a source, in any process."""

    source: Splittable | LivePartition | LiveSource
    """A live source is replaced by its partitions, before anything of it is read."""
    stream: str
    number: int
    """The number of the stream, which scopes its blank nodes."""
    pushdowns: tuple[Pushdown, ...]
    frames: tuple[TimeFrame, ...]
    max_delay: int
    is_in_order: bool = False
    """Whether queries need every element in order: then splits are read where they are merged."""

    @property
    def is_split(self) -> bool:
        """Whether the source is read in splits; else the merger reads its batches."""
        return isinstance(self.source, LiveSource) or self.source.can_be_cut

    def cut(self, size: int, since: Split | None) -> Iterator[Split]:
        """Yield the splits after one, of about `size` bytes."""
        return cast("Splittable", self.source).cut(size, since)

    def part(self, split: Split) -> SplitPart:
        """Return a split as a source."""
        return cast("Splittable", self.source).part(split)

    def reducer(self) -> SplitReducer | UnreadSplit:
        """Return the reducer of the splits."""
        return UnreadSplit() if self.is_in_order else self.split_reducer()

    def split_reducer(self) -> SplitReducer:
        """Return a reducer of splits or batches that need not be in order."""
        return SplitReducer(self.stream, self.number, self.pushdowns, self.frames, self.max_delay)


class UnreadSplit:
    """A reducer that leaves splits unread: the merger reads their elements one by one."""

    def reduce(self, part: SplitPart) -> ReducedSplit:
        """Return a result that leaves the split unreduced."""
        return ReducedSplit(trouble=f"every element of {part.name} is needed")


class SplitRun:
    """A run of queries over sources, split by split."""

    def __init__(
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[ElementSource]],
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int = 0,
        replay_clock: ReplayClock | None = None,
    ) -> None:
        self._steps = steps
        self._evaluation: Evaluation | None = None
        self.buckets: int | None = None
        """How many buckets the keys of stored groups are divided into."""
        self._intake = Intake(steps, sources, dead_letter, max_delay, replay_clock)
        self._is_paced = replay_clock is not None
        self._bound = sum(map(len, sources.values()))
        tasks = dict(_tasks(steps, sources, max_delay))
        self.tasks = {number: task for number, task in tasks.items() if task.is_split}
        """The sources and partitions that are read in splits, by number.

        Partition p of source n, of N bound sources, has the number n + p * N.
        """
        frames = {
            (step, number): scan.frame
            for step, each in enumerate(steps)
            for number, scan in enumerate(each.plan.scans)
            if isinstance(scan.frame, TimeFrame)
        }
        names = self._intake.names
        self._reducers: dict[int, SplitReducer | UnreadSplit] = {}
        here = {
            number: tasks[number].split_reducer() if number in tasks else None
            for number in range(self._bound)
            if number not in self.tasks
        }
        closed = ClosedWindows(frames, max_delay, self._intake.watermark_of)
        self._merger = SplitMerger(sources, here, closed, names)
        self.passes = 0
        """How often the run has looked for something to read, or waited for it."""
        self._topics = {
            number: (task.source, task)
            for number, task in self.tasks.items()
            if isinstance(task.source, LiveSource)
        }
        self._live: dict[int, LivePartition] = {}
        self._pick_up()

    @property
    def evaluation(self) -> Evaluation | None:
        """What evaluates the windows of distributed steps, which there are only with it."""
        return self._evaluation

    @evaluation.setter
    def evaluation(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._intake.distributed = evaluation.steps

    def _pick_up(self) -> None:
        """Pick up the partitions of live sources, and what each has received."""
        for bound, (topic, task) in self._topics.items():
            for number, partition in enumerate(topic.partitions()):
                at = bound + number * self._bound
                if at in self._live:
                    continue
                self._live[at] = partition
                self.tasks[at] = task._replace(source=partition)
                self._merger.add_partition(at, task.stream, topic, partition)

    def include(self, starts: Iterable[tuple[int, int]]) -> None:
        """Include partitions by their numbers, each with the offset from which it is read."""
        for number, start in starts:
            if number not in self._live and number % self._bound in self._topics:
                topic, _ = self._topics[number % self._bound]
                topic.include(number // self._bound, start)
        self._pick_up()

    @property
    def steps(self) -> Sequence[Step]:
        """The queries."""
        return self._steps

    @property
    def shares_all(self) -> bool:
        """Whether executors evaluated the windows that were due last, of all queries."""
        return self.evaluation is not None and self.evaluation.shares_all

    def pane_files(self) -> set[str]:
        """Return the pane files that are needed: those of splits that wait, and of open panes."""
        if self.evaluation is None or self.is_done:
            return set()
        panes = (pane for step in self.evaluation.steps.values() for pane in step.stored())
        return {*self._merger.pane_files(), *(pane.file for pane in panes)}

    @property
    def is_paced(self) -> bool:
        """Whether elements wait for their time, and so must answers."""
        return self._is_paced

    @property
    def counts(self) -> Counts:
        """How many elements, triples and answers have passed through the run so far."""
        return self._intake.counts

    def watermarks(self) -> dict[str, float]:
        """Return the watermark of each query. Other threads may call this."""
        return self._intake.watermarks()

    @property
    def is_done(self) -> bool:
        """Whether all sources have ended, and all windows are answered."""
        return self._merger.is_done

    def sample(self, number: int) -> PredicateSample | None:
        """Return the predicates that were sampled of a source that can be read only once."""
        return self._merger.samples.get(number)

    def plan(
        self, planned: Mapping[int, Split], size: int, count: int
    ) -> Iterator[tuple[int, Split]]:
        """Yield up to `count` splits of each source, of about `size` bytes, after the last one."""
        self._pick_up()
        for number, task in self.tasks.items():
            if not self._merger.wants(number):
                continue
            live, since = self._live.get(number), planned.get(number)
            is_over = live is None or live.has_ended  # before the cut: it may end meanwhile
            splits = list(islice(task.cut(size, since), count))
            if splits:
                self._merger.wake(number)
            if not splits and is_over:
                self._merger.end(number)
            elif not splits and live is not None:
                yield from self._silence(number, live, since)
            yield from ((number, split) for split in splits)

    def _silence(
        self, number: int, live: LivePartition, since: Split | None
    ) -> Iterator[tuple[int, Split]]:
        """Yield an empty split, once, when a live source falls silent."""
        if live.is_silent and not self._merger.is_silent(number):
            at = 0 if since is None or since.end is None else since.end
            yield number, Split(at, at)

    @property
    def is_live(self) -> bool:
        """Whether a source is live."""
        return bool(self._live)

    @property
    def is_full(self) -> bool:
        """Whether back-pressure blocks a sender until something is released."""
        return any(source.is_full for source in self._live.values())

    def wait_for_splits(
        self,
        planned: Mapping[int, Split],
        size: int,
        count: int,
        is_stopping: Callable[[], bool],
    ) -> list[tuple[int, Split]]:
        """Return the splits to read next; wait for live sources if nothing else can be merged."""
        while True:
            self.passes += 1
            splits = list(self.plan(planned, size, count))
            waiting = [n for n in self._live if self._merger.wants(n)]
            if splits or not waiting or is_stopping() or self._merger.has_more():
                return splits
            sources = {number % self._bound for number in waiting}
            self._live[waiting[0]].wait(planned.get(waiting[0]), _WAIT_S / len(sources))

    def release(self, needed: Mapping[int, int]) -> None:
        """Release what live sources keep before a position, by the number of the source."""
        for number, until in needed.items():
            self._live[number].release(until)

    def needed(self, planned: Mapping[int, Split]) -> dict[int, int]:
        """Return the first position of each live source that a resumed run needs."""
        positions = {}
        for number in self._live:
            oldest, split = self._merger.oldest(number), planned.get(number)
            if oldest is not None:
                positions[number] = oldest
            elif split is not None and split.end is not None:
                positions[number] = split.end
        return positions

    def is_at_hand(self, number: int, split: Split) -> bool:
        """Return whether a split can be read now; if not, its sender is away."""
        return number not in self._live or self._live[number].is_at_hand(split)

    def report(self, number: int, trouble: str) -> None:
        """Log that the sender of a live source is away."""
        self._live[number].report(trouble)

    def bytes_in(self, number: int, split: Split) -> int | None:
        """Return about how many bytes a split has; None if it is the rest of a source."""
        if number in self._live:
            return self._live[number].bytes_in(split)
        return None if split.end is None else split.end - split.start

    def reduce(self, number: int, split: Split) -> ReducedSplit:
        """Reduce a split of a source in this process."""
        if number not in self._reducers:
            self._reducers[number] = self.tasks[number].reducer()
        return self._reducers[number].reduce(self.tasks[number].part(split))

    def merge(
        self,
        splits: Iterable[tuple[int, Split, ReducedSplit]],
        at_most: float,
        is_enough: Callable[[], bool] = lambda: False,
    ) -> Iterator[Answer]:
        """Merge splits, and at most `at_most` elements read here; yield the answers that are due.

        When `is_enough()`, the rest is left to the next call.
        """
        for number, split, reduced in splits:
            self._merger.add(number, split, reduced)
        due = self._intake.take(self._merger.items(at_most, is_enough))
        if self.evaluation is None:
            yield from cast("Iterator[Answer]", due)
        else:
            yield from self.evaluation.answers(due)

    def ended(self) -> list[int]:
        """Return the numbers of the sources that have no more splits."""
        return [number for number in self.tasks if self._merger.has_ended(number)]

    def end(self, numbers: Iterable[int]) -> None:
        """Mark sources as ended, as they were when the interrupted micro-batch was planned."""
        for number in numbers:
            self._merger.end(number)

    def state(self) -> StateData:
        """Return the state of the run, as plain data, between two merges."""
        return {
            "driver": self._intake.state(),
            "gathering": self._merger.state(),
            "steps": {str(number): step.state() for number, step in enumerate(self._steps)},
            "buckets": self.buckets,
            "starts": [
                [number, partition.start]
                for number, partition in self._live.items()
                if partition.start is not None
            ],
        }

    def restore(self, state: StateData, planned: Mapping[int, Split]) -> None:
        """Resume from a state of the same queries and sources, after the splits planned last."""
        self.include((number, start) for number, start in state.get("starts", ()))
        for number, source in self._live.items():
            if number in planned:
                source.go_on(planned[number])
        self._intake.restore(state["driver"])
        for number, step in enumerate(self._steps):
            step.restore(state["steps"][str(number)])
        self.buckets = state.get("buckets")
        self._merger.restore(state["gathering"], self.reduce)


class SplitDriver:
    """A split run, its commits, and its progress, which other threads may read."""

    def __init__(self, run: SplitRun, checkpoint: CheckpointSpec | None = None) -> None:
        self._run = run
        self._commits = Commits(run, checkpoint or CheckpointSpec())
        self._is_stopping = False
        self._is_patient = True
        """Whether full outputs stop the input."""

    @property
    def counts(self) -> Counts:
        """How many elements, triples and answers have passed through the run so far."""
        return self._run.counts

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._is_stopping

    @property
    def passes(self) -> int:
        """How often the run has looked for something to read; it is stuck if this stands still."""
        return self._run.passes

    def watermarks(self) -> dict[str, float]:
        """Return the watermark of each query. Other threads may call this."""
        return self._run.watermarks()

    def evaluated(self) -> Mapping[str, int]:
        """Return how many windows the driver and executors have evaluated, where both can."""
        evaluation = self._run.evaluation
        return {} if evaluation is None else evaluation.evaluated.copy()

    def sample(self, number: int) -> PredicateSample | None:
        """Return the predicates that were sampled of a source that can be read only once."""
        return self._run.sample(number)

    def read_to(self) -> Mapping[int, Split]:
        """Return the last split that was read of each source, by the number of the source."""
        return self._commits.planned.copy()

    def stop(self) -> None:
        """End the run after the current micro-batch."""
        self._is_stopping = True

    def take_the_rest(self) -> None:
        """Read on although outputs are full: the sources are about to end."""
        self._is_patient = False

    def _wait_for_outputs(self) -> None:
        """Wait while an output is full, unless the run is to end."""
        while self._is_patient and not self._is_stopping and self._commits.is_full:
            self._while_full()
            time.sleep(_FULL_S)

    def _while_full(self) -> None:
        """Do what is due while the input waits."""


def _tasks(
    steps: Sequence[Step], sources: Mapping[str, Sequence[ElementSource]], max_delay: int
) -> Iterator[tuple[int, StreamTask]]:
    """Yield the tasks of the sources that can be split or read in batches, by their number.

    Count windows, queries of pairs, and queries that read the answers of others need every element
    in order.
    """
    plans = [step.plan for step in steps]
    scans = [scan for plan in plans for scan in plan.scans]
    is_chained = any(plan.feeds is not None for plan in plans if _is_read(plan.feeds, steps))
    frames = tuple({scan.frame for scan in scans if isinstance(scan.frame, TimeFrame)})
    counted = {scan.stream for scan in scans if isinstance(scan.frame, CountFrame)}
    paired = {s.stream for p in plans if isinstance(p.operator, PairsConfig) for s in p.scans}
    scanned = set() if is_chained else {scan.stream for scan in scans} - counted - paired
    number = 0
    for stream_number, (stream, bound) in enumerate(sources.items()):
        for source in bound:
            if stream in scanned and isinstance(source, Splittable | LiveSource):
                pushed = tuple(pushdowns(plans, stream))
                task = StreamTask(source, stream, stream_number, pushed, frames, max_delay)
                yield number, task
            elif isinstance(source, LiveSource):
                yield number, StreamTask(source, stream, stream_number, (), (), max_delay, True)
            number += 1


def _is_read(stream: str | None, steps: Sequence[Step]) -> bool:
    return any(stream in step.streams for step in steps)
