"""The executors' side: reading splits and reducing them, and evaluating windows."""

from __future__ import annotations

import base64
import os
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark import cloudpickle

from rsp_engine.drivers.panes.evaluation_task import run_task
from rsp_engine.drivers.panes.pane_file import PaneWriter
from rsp_engine.drivers.spark.arrow_codec import to_rows
from rsp_engine.drivers.splits.split_reducer import ReducedSplit
from rsp_engine.io.sources.live.receiver import SenderUnreachable
from rsp_engine.io.sources.splits import Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from rsp_engine.drivers.panes.evaluation_task import EvaluationTask, TaskResult
    from rsp_engine.drivers.panes.pane_file import PaneFiles
    from rsp_engine.drivers.splits.split_reducer import SplitReducer
    from rsp_engine.drivers.splits.split_run import StreamTask, UnreadSplit
    from rsp_engine.evaluators.physical_plan import PhysicalPlan

__all__ = ["Work", "can_send", "evaluate_task", "execute", "pane_writer"]


class Work(NamedTuple):
    """All that executors need to know of a run."""

    tasks: Mapping[int, StreamTask]
    """By the number of the source."""
    files: PaneFiles | None = None
    """How to store what is read; None if the driver receives it."""
    plans: Mapping[int, PhysicalPlan] = {}
    """The queries whose windows executors may evaluate, by number."""

    def encoded(self) -> str:
        """Encode the work for the executors."""
        plans = {number: _with_whole_paths(plan) for number, plan in self.plans.items()}
        sent = str(Path.cwd()), self._replace(plans=plans)
        pickled: bytes = cloudpickle.dumps(sent)  # type: ignore[no-untyped-call]
        return base64.b85encode(pickled).decode()


def _with_whole_paths(plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan whose static graphs do not depend on the working folder."""
    graphs = (replace(graph, path=graph.path.absolute()) for graph in plan.graphs)
    return replace(plan, graphs=tuple(graphs))


def can_send(plan: PhysicalPlan) -> bool:
    """Return whether a plan can be sent to executors: a registered function may not be."""
    if not plan.operator.query.functions:
        return True
    try:
        cloudpickle.dumps(plan)  # type: ignore[no-untyped-call]
    except Exception:  # whatever the objects that a function refers to raise
        return False
    return True


def pane_writer(work: str) -> PaneWriter | None:
    """Return a new pane file; None if the driver receives what is read."""
    files = _decoded(work).files
    return None if files is None else PaneWriter(files)


def execute(
    work: str,
    number: int,
    source: int,
    edges: tuple[int, int | None],
    writer: PaneWriter | None = None,
) -> pa.RecordBatch:
    """Read and reduce a split of a source; `number` is its position in the micro-batch."""
    split = Split(*edges)
    try:
        reduced = _reducer(work, source).reduce(_decoded(work).tasks[source].part(split))
    except SenderUnreachable as away:
        return to_rows(number, source, split, ReducedSplit(away=str(away)))
    if writer is not None:
        reduced = writer.store_split(reduced)
    return to_rows(number, source, split, reduced)


def evaluate_task(work: str, task: EvaluationTask) -> TaskResult:
    """Evaluate the windows of a task."""
    decoded = _decoded(work)
    assert decoded.files is not None, "windows are evaluated from files"  # noqa: S101
    return run_task(decoded.plans, decoded.files.folder, task)


@lru_cache(maxsize=1)
def _decoded(work: str) -> Work:
    """Decode the work; cached, since Spark reuses a Python worker for many tasks of a run."""
    decoded: tuple[str, Work]
    decoded = cloudpickle.loads(base64.b85decode(work))
    folder, found = decoded
    with suppress(OSError):
        os.chdir(folder)  # relative paths are those of the driver
    return found


@lru_cache(maxsize=16)
def _reducer(work: str, source: int) -> SplitReducer | UnreadSplit:
    return _decoded(work).tasks[source].reducer()
