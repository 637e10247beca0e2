"""The evaluation of the windows that are due in a micro-batch: by executors, or here.

The answers leave in the order in which their windows became due, whoever evaluates them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Literal, NamedTuple

from rsp_engine.drivers.panes.distributed_step import BucketStep, DistributedStep
from rsp_engine.drivers.panes.due_window import DueWindow
from rsp_engine.drivers.panes.evaluation_cost import JobCost, WindowCost
from rsp_engine.drivers.panes.evaluation_task import bucket_tasks, window_tasks
from rsp_engine.drivers.panes.pane_file import SMALL_BYTES, PaneFiles, PaneReader, PaneWriter
from rsp_engine.evaluators.window_run import read_whole
from rsp_engine.model.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.drivers.panes.evaluation_task import EvaluationTask, TaskResult
    from rsp_engine.drivers.panes.pane_store import PaneStore
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.step import PendingAnswer, Step
    from rsp_engine.evaluators.window_run import WholeAnswer

__all__ = ["Evaluation", "EvaluationOptions", "RunTasks", "Where"]

Where = Literal["auto", "driver", "executors"]
"""Who evaluates windows: whoever is estimated to be faster, this process, or executors."""

RunTasks = Callable[["Sequence[EvaluationTask]"], "list[TaskResult]"]
"""Runs tasks in other processes, and returns their results in order."""


class EvaluationOptions(NamedTuple):
    """How windows are evaluated."""

    cores: Callable[[], int]
    """Returns how many tasks run at once."""
    buckets: int
    """How many buckets the keys of groups are divided into."""
    where: Where = "auto"
    is_paced: bool = False
    """Whether each window is evaluated at once, without those that become due later."""
    small_bytes: int = SMALL_BYTES
    """The panes of a split with fewer bytes are not stored."""


@dataclass(slots=True)
class _Batch:
    """The windows of one step in a micro-batch, and their answers."""

    number: int
    windows: list[DueWindow] = field(default_factory=list)
    tasks: list[EvaluationTask] = field(default_factory=list)
    answers: list[tuple[WholeAnswer, float]] = field(default_factory=list)


class Evaluation:
    """Evaluates the windows of the distributed steps of a run."""

    def __init__(
        self,
        steps: Sequence[Step],
        store: PaneStore,
        run_tasks: RunTasks,
        options: EvaluationOptions,
    ) -> None:
        self.steps = {n: s for n, s in enumerate(steps) if isinstance(s, DistributedStep)}
        """The steps that can be evaluated in any process, by the number of the query."""
        self._numbers = {id(step): number for number, step in self.steps.items()}
        self._store = store
        self._run_tasks = run_tasks
        self._options = options
        self._job = JobCost()
        self.evaluated: Counter[str] = Counter()
        """How many windows the driver and the executors have evaluated."""
        self._has_shared = False
        self._is_of_all = len(self.steps) == len(steps)
        self._costs = {number: WindowCost() for number in self.steps}
        for step in self.steps.values():
            store.check(step.stored())

    @property
    def files(self) -> PaneFiles:
        """Where pane files are, and how they are stored."""
        keys = {number: step.bucket_key for number, step in self.steps.items()}
        folder, is_durable = str(self._store.folder), self._store.is_durable
        options = self._options
        return PaneFiles(folder, keys, options.buckets, is_durable, options.small_bytes)

    @property
    def plans(self) -> Mapping[int, PhysicalPlan]:
        """The plans of the steps whose windows executors may evaluate, by number."""
        return {number: step.plan for number, step in self.steps.items()}

    @property
    def shares_all(self) -> bool:
        """Whether executors evaluated all windows that were due last, and may all others."""
        return self._is_of_all and self._has_shared

    def answers(self, due: Iterable[Answer | PendingAnswer]) -> Iterator[Answer]:
        """Yield answers in order; evaluate those that are pending, all together if possible."""
        if self._options.is_paced:
            for each in due:
                yield from self._together([each])
        else:
            yield from self._together(list(due))

    def _together(self, waiting: Sequence[Answer | PendingAnswer]) -> Iterator[Answer]:
        """Yield answers in order; those that are pending are evaluated together."""
        batches: dict[int, _Batch] = {}
        for each in waiting:
            if isinstance(each, DueWindow):
                number = self._numbers[id(each.step)]
                batches.setdefault(number, _Batch(number)).windows.append(each)
        if batches:
            self._evaluate(list(batches.values()))
        found = {number: iter(batch.answers) for number, batch in batches.items()}
        for each in waiting:
            if isinstance(each, DueWindow):
                whole, seconds = next(found[self._numbers[id(each.step)]])
                yield each.step.emit(each, whole, seconds)
            else:
                assert isinstance(each, Answer), "no other is pending"  # noqa: S101
                yield each

    def _evaluate(self, batches: Sequence[_Batch]) -> None:
        with PaneWriter(self.files) as writer:
            for batch in batches:
                if self._is_for_executors(batch):
                    self._give_away(batch, writer)
        for batch in batches:
            if not batch.tasks:
                self._evaluate_here(batch)
        away = [batch for batch in batches if batch.tasks]
        self._has_shared = len(away) == len(batches)
        for batch in batches:
            self.evaluated["executors" if batch.tasks else "driver"] += len(batch.windows)
        if away:
            self._evaluate_away(away)

    def _is_for_executors(self, batch: _Batch) -> bool:
        where = self._options.where
        if where != "auto":
            return where == "executors"
        cost, step = self._costs[batch.number], self.steps[batch.number]
        rows, panes = _rows(batch.windows), step.panes_per_window
        has_buckets = isinstance(step, BucketStep)
        return cost.gains(rows, panes, self._options.cores(), self._job, has_buckets=has_buckets)

    def _give_away(self, batch: _Batch, writer: PaneWriter) -> None:
        """Make the tasks of windows, all of whose content is stored."""
        step, cores = self.steps[batch.number], self._options.cores()
        step.leave_here(batch.number, batch.windows, writer)
        if isinstance(step, BucketStep):
            batch.tasks = bucket_tasks(batch.number, batch.windows, self._options.buckets, cores)
        else:
            batch.tasks = window_tasks(batch.number, batch.windows, cores)

    def _evaluate_here(self, batch: _Batch) -> None:
        step = self.steps[batch.number]
        is_first = not step.is_loaded
        with PaneReader(str(self._store.folder)) as reader:
            for window in batch.windows:
                start = process_time()
                whole = step.answer_here(window, reader)
                batch.answers.append((whole, process_time() - start))
        self._note(batch, [seconds for _, seconds in batch.answers], is_first=is_first)

    def _evaluate_away(self, batches: Sequence[_Batch]) -> None:
        """Run the tasks of all steps as one job."""
        start = perf_counter()
        results = self._run_tasks([task for batch in batches for task in batch.tasks])
        walls = [result.wall for result in results]
        busy = max(*walls, sum(walls) / self._options.cores())
        self._job.note(perf_counter() - start - busy)
        for batch in batches:
            own, results = results[: len(batch.tasks)], results[len(batch.tasks) :]
            step = self.steps[batch.number]
            if isinstance(step, BucketStep):
                self._take_buckets(step, batch, own)
            else:
                self._take_runs(batch, own)

    def _take_runs(self, batch: _Batch, results: Sequence[TaskResult]) -> None:
        """Take the answers of tasks over consecutive windows."""
        query = self.steps[batch.number].plan.operator.query
        done = 0
        for result in results:
            self._note(batch, result.seconds, done, is_first=True)
            done += len(result.seconds)
            for text, seconds in zip(result.answers, result.seconds, strict=True):
                batch.answers.append((read_whole(query, json.loads(text)), seconds))

    def _take_buckets(self, step: BucketStep, batch: _Batch, results: Sequence[TaskResult]) -> None:
        """Combine the parts of all buckets."""
        seconds = [*zip(*(result.seconds for result in results), strict=True)]
        self._note(batch, [*map(sum, seconds)], is_first=True)
        for place, window in enumerate(batch.windows):
            parts = [json.loads(result.answers[place]) for result in results]
            batch.answers.append((step.combine(window, parts), max(seconds[place])))

    def _note(
        self, batch: _Batch, seconds: Sequence[float], since: int = 0, *, is_first: bool
    ) -> None:
        """Note what consecutive windows have cost, from the one at a place on."""
        rows = _rows(batch.windows[since : since + len(seconds)])
        panes = self.steps[batch.number].panes_per_window
        costs = list(zip(seconds, rows, strict=True))
        self._costs[batch.number].note(costs, panes, is_first=is_first)


def _rows(windows: Sequence[DueWindow]) -> list[int]:
    """Return about how many rows each window has."""
    return [sum(p.rows for panes in w.panes for p in panes.values()) for w in windows]
