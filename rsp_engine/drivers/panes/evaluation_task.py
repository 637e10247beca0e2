"""The task of an executor: a run of windows of one query, or some buckets of its keys."""

from __future__ import annotations

import json
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.drivers.panes.pane_file import PaneReader
from rsp_engine.evaluators.window_run import WindowRun, write_whole
from rsp_engine.model.windows import Pane

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.drivers.panes.due_window import DueWindow
    from rsp_engine.drivers.panes.stored_pane import TablePlace
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.step import PutContent

__all__ = ["EvaluationTask", "TaskResult", "bucket_tasks", "run_task", "window_tasks"]

PaneTables = dict[tuple[int, int], list[tuple[str, "TablePlace"]]]
"""The tables of panes: by the first and last window of a pane, the file and place of each."""


class EvaluationTask(NamedTuple):
    """Plain data, so that it can be sent to executors."""

    step: int
    """The number of the query."""
    has_buckets: bool
    """Whether it returns the parts of its buckets, not whole answers."""
    windows: list[tuple[int, tuple[int, ...], list[list[tuple[int, int]]]]]
    """The instant of each window, what each scan has closed, and the panes of each scan."""
    tables: list[PaneTables]
    """By scan."""


class TaskResult(NamedTuple):
    """What a task returns: the answers or parts as JSON, and the CPU seconds that each took."""

    answers: list[str]
    seconds: list[float]
    wall: float
    """The seconds of the task by the clock."""


def bucket_tasks(
    number: int, windows: Sequence[DueWindow], buckets: int, count: int
) -> list[EvaluationTask]:
    """Return at most `count` tasks over all windows, each with some of the buckets."""
    count = min(count, buckets)
    return [
        _task(number, windows, slice(first, None, count), has_buckets=True)
        for first in range(count)
    ]


def window_tasks(number: int, windows: Sequence[DueWindow], count: int) -> list[EvaluationTask]:
    """Return at most `count` tasks, each over a run of consecutive windows."""
    count = min(count, len(windows))
    edges = [len(windows) * place // count for place in range(count + 1)]
    runs = [windows[edges[n] : edges[n + 1]] for n in range(count)]
    return [_task(number, run, slice(None), has_buckets=False) for run in runs]


def _task(
    number: int, windows: Sequence[DueWindow], chosen: slice, *, has_buckets: bool
) -> EvaluationTask:
    """Return a task that reads the chosen tables of each stored pane."""
    tables: list[PaneTables] = [{} for _ in windows[0].panes]
    for window in windows:
        for into, panes in zip(tables, window.panes, strict=True):
            for pane, parts in panes.items():
                into[pane.first, pane.last] = [
                    (stored.file, table)
                    for stored in parts.stored
                    for table in stored.tables[chosen]
                    if table.size
                ]
    due = [
        (w.instant, w.closed, [[(p.first, p.last) for p in panes] for panes in w.panes])
        for w in windows
    ]
    return EvaluationTask(number, has_buckets, due, tables)


def run_task(plans: Mapping[int, PhysicalPlan], folder: str, task: EvaluationTask) -> TaskResult:
    """Evaluate the windows of a task."""
    begin, plan = perf_counter(), plans[task.step]
    run, answers, seconds = WindowRun(plan), [], []
    with PaneReader(folder) as reader:

        def load(scan: int, pane: Pane) -> Iterator[PutContent]:
            for file, table in task.tables[scan][pane.first, pane.last]:
                yield from reader.read(file, table)

        for instant, closed, edges in task.windows:
            start = process_time()
            run.move(closed, [[Pane(*pane) for pane in panes] for panes in edges], load)
            answer: Any
            if task.has_buckets:
                answer = run.part(instant)
            else:
                answer = write_whole(plan.operator.query, run.answer(instant))
            answers.append(json.dumps(answer))
            seconds.append(process_time() - start)
    return TaskResult(answers, seconds, perf_counter() - begin)
