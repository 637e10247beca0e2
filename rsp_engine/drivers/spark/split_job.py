"""The jobs of a micro-batch: executors read its splits, and evaluate windows that are due.

A reduced split is a text of Arrow to Spark, which copies it from the executors to the driver.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from rsp_engine.drivers.spark.arrow_codec import from_rows
from rsp_engine.drivers.spark.executor import evaluate_task, execute, pane_writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark import RDD, SparkContext

    from rsp_engine.drivers.panes.evaluation_task import EvaluationTask, TaskResult
    from rsp_engine.drivers.panes.pane_file import PaneWriter
    from rsp_engine.drivers.splits.split_reducer import ReducedSplit
    from rsp_engine.io.sources.splits import Split

    Planned = tuple[int, Split]
    Numbered = tuple[int | None, ...]
    """The number of a split in its micro-batch, its source, its start and its end."""

__all__ = ["MOST_SPLITS", "evaluate_windows", "read_splits"]

Result = TypeVar("Result")

TASK_BYTES = 2 << 20
"""The most bytes of splits that share a task."""
MOST_SPLITS = 8
"""The most splits that share a task; a micro-batch has as many of a source for each core."""


def read_splits(
    context: SparkContext,
    work: str,
    splits: Sequence[Planned],
    bytes_in: Callable[[int, Split], int | None],
) -> list[tuple[int, Split, ReducedSplit]]:
    """Read splits on the executors, each with the number of its source; return them in order.

    `work` is the encoded work of the run; `bytes_in` estimates the size of a split.
    """
    groups = tasks(
        [(n, source, split.start, split.end) for n, (source, split) in enumerate(splits)],
        [bytes_in(source, split) for source, split in splits],
    )
    if not groups:
        return []
    job = context.parallelize(groups, len(groups)).flatMap(partial(_read, work))
    return from_rows(pa.concat_tables(map(_table, _result(job, len(splits)))))


def _result(job: RDD[Result], count: int) -> list[Result]:
    """Return the results of a job; raise an OSError if Java does not send them all.

    pyspark takes a connection that breaks off for the end of the result.
    """
    try:
        sent = job.collect()
    except UnboundLocalError as error:  # pyspark closes a connection that it could not open
        raise OSError(str(error.__context__)) from error
    if len(sent) < count:
        raise OSError(f"it sent {len(sent)} of {count} results")
    return sent


def evaluate_windows(
    context: SparkContext, work: str, tasks: Sequence[EvaluationTask]
) -> list[TaskResult]:
    """Evaluate windows on the executors; return the results of the tasks in order."""
    job = context.parallelize(tasks, len(tasks)).map(partial(evaluate_task, work))
    return _result(job, len(tasks))


def _read(work: str, group: Sequence[tuple[int, int, int, int | None]]) -> list[bytes]:
    """Return each split of a task, reduced; executors call this."""
    writer = pane_writer(work)
    if writer is None:
        return list(_encoded(work, group, None))
    with writer:
        return list(_encoded(work, group, writer))


def _encoded(
    work: str,
    group: Sequence[tuple[int, int, int, int | None]],
    writer: PaneWriter | None,
) -> Iterator[bytes]:
    for number, source, start, end in group:
        batch = execute(work, number, source, (start, end), writer)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield sink.getvalue().to_pybytes()


def _table(encoded: bytes) -> pa.Table:
    return pa.ipc.open_stream(encoded).read_all()


def tasks(splits: Sequence[Numbered], sizes: Sequence[int | None]) -> list[list[Numbered]]:
    """Group small neighbouring splits: a task costs as much as reading some hundred kB.

    A size of None is not known.

    >>> splits = [(number, 0, number, number + 1) for number in range(4)]
    >>> [len(group) for group in tasks(splits, [1_000, 1_000, 9_000_000, 1_000])]
    [2, 1, 1]
    """
    groups: list[list[Numbered]] = []
    total = 0
    for split, size in zip(splits, sizes, strict=True):
        length = TASK_BYTES if size is None else size
        if not groups or total + length > TASK_BYTES or len(groups[-1]) == MOST_SPLITS:
            groups.append([])
            total = 0
        groups[-1].append(split)
        total += length
    return groups
