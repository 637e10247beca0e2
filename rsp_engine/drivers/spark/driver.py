"""The Spark driver: micro-batches that executors read, with the answers of the local driver.

A micro-batch is a job of Spark. Its answers are emitted before the state that includes them is
committed, and the responses of services are logged before an answer that depends on them is
emitted. The checkpoint has the last commit, and the plan of the micro-batch that broke off.

The job is one of Spark's core: neither a streaming query nor a data source in Python, for which
Spark starts four more kinds of Python processes.
"""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from rsp_engine.drivers.checkpoint.commits import BatchPlan
from rsp_engine.drivers.panes.evaluation import Evaluation, EvaluationOptions
from rsp_engine.drivers.panes.pane_file import SMALL_BYTES
from rsp_engine.drivers.panes.pane_store import PaneStore
from rsp_engine.drivers.spark.executor import Work
from rsp_engine.drivers.spark.session import check_java, lost_java, start_context
from rsp_engine.drivers.spark.split_job import MOST_SPLITS, evaluate_windows, read_splits
from rsp_engine.drivers.splits.split_run import SplitDriver
from rsp_engine.errors import DriverError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from pyspark import SparkContext

    from rsp_engine.drivers.checkpoint.commits import CheckpointSpec
    from rsp_engine.drivers.panes.evaluation import Where
    from rsp_engine.drivers.panes.pane_file import PaneFiles
    from rsp_engine.drivers.splits.split_reducer import ReducedSplit
    from rsp_engine.drivers.splits.split_run import SplitRun
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.model.answers import Answer

    Read = tuple[int, Split, ReducedSplit]
    """A split that was read, with the number of its source."""

__all__ = ["SparkDriver", "SparkOptions"]

_ITEMS = 20_000
"""How many items one micro-batch takes of sources that cannot be split."""
_MOST_GROWTH = 4
"""How many times as many splits a later micro-batch reads where executors evaluate windows: each
micro-batch loads its first window whole, so larger ones load less."""
_CLUSTER_BUCKETS = 16
"""The fewest buckets on a cluster, whose executors register after the run has begun, while its
checkpoint keeps their number. With fewer cores, a task has several buckets."""
_LONGEST = 300
"""The most characters of Spark's message that an error quotes."""
_VAGUE = re.compile(r"Exception thrown in awaitResult:?|Job aborted\.?|Boxed Exception|")
"""Messages that name no cause."""
_UNKNOWN = "it reports no cause"
_ENGINE_ERROR = re.compile(r"^rsp_engine\.errors\.\w+: (.*)(?:\n *hint: (.*))?", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"(\w+(?:Error|Exception)\b.*)")


class SparkOptions(NamedTuple):
    """The options of a run on Spark."""

    master: str | None = None
    """The Spark master; all cores of this computer if it is None."""
    split_bytes: int = 4 << 20
    """The approximate size of a split, in bytes."""
    settings: Mapping[str, str] = MappingProxyType({})
    """Settings of Spark that override the defaults."""
    splits: int = MOST_SPLITS
    """How many splits of a source one micro-batch reads for each core."""
    where: Where = "auto"
    """Who evaluates windows that executors can evaluate."""
    buckets: int | None = None
    """How many buckets the keys of groups are divided into: if it is None, as many as cores, and at
    least 16 on a cluster."""
    small_bytes: int = SMALL_BYTES
    """The panes of a split with fewer bytes are sent to the driver, and not stored."""


class SparkDriver(SplitDriver):
    """A driver that runs queries on Spark until their sources end, or it is stopped."""

    def __init__(
        self,
        run: SplitRun,
        checkpoint: CheckpointSpec | None = None,
        *,
        options: SparkOptions | None = None,
    ) -> None:
        check_java()
        super().__init__(run, checkpoint)
        self._options = options or SparkOptions()
        self._files: PaneFiles | None = None
        """How executors store what they read; None if the driver receives it."""
        self._cores = 1
        """How many tasks run at once; executors of a cluster come and go."""
        self._sent: tuple[int, str] | None = None
        """What was sent to executors, and the number of sources that it knows."""

    def run(self) -> Generator[Answer]:
        """Yield the answers of all queries, those of each query in order."""
        with closing(self._commits):
            self._commits.restore(is_strict=True)
            if self._run.is_done:
                return
            context = start_context(self._options.master, settings=self._options.settings)
            with self._spark_failures(), closing(PaneStore(self._commits.folder)) as store:
                yield from self._batches(context, store)

    def _set_up(self, context: SparkContext, store: PaneStore) -> None:
        """Set up the evaluation of windows."""
        run, cores = self._run, self._count_cores(context)
        least = 1 if str(context.master).partition("[")[0] == "local" else _CLUSTER_BUCKETS
        run.buckets = run.buckets or self._options.buckets or max(least, cores)
        # Executors on other computers cannot see a temporary folder of this one.
        can_share = store.is_durable or str(context.master).startswith("local")
        where = self._options.where
        if run.is_paced or not can_share or (where == "auto" and cores == 1):
            where = "driver"
        run.evaluation = evaluation = Evaluation(
            run.steps,
            store,
            lambda tasks: evaluate_windows(context, self._work(), tasks),
            EvaluationOptions(
                lambda: self._cores,
                run.buckets,
                where,
                run.is_paced,
                self._options.small_bytes,
            ),
        )
        store.sweep(
            run.pane_files()
        )  # what a run that broke off has left there may have filled the disk
        self._files = evaluation.files if where != "driver" and evaluation.plans else None

    def _work(self) -> str:
        """Return what executors need to know; it changes when partitions are added."""
        run = self._run
        assert run.evaluation is not None, "it is set up first"  # noqa: S101
        if self._sent is None or len(run.tasks) > self._sent[0]:
            work = Work(run.tasks, self._files, run.evaluation.plans).encoded()
            self._sent = len(run.tasks), work
        return self._sent[1]

    def _batches(self, context: SparkContext, store: PaneStore) -> Iterator[Answer]:
        """Run micro-batches, and yield their answers; commit each when its answers are taken."""
        self._set_up(context, store)
        growth = 1
        if self._commits.broken is None:
            reduced = self._read(context, self._plan(context, waits=False))
        else:
            reduced = self._read_again(context, self._commits.broken)
        while True:
            for source, split, _ in reduced:
                self._commits.planned[source] = split
            for answer in self._run.merge(reduced, _ITEMS):
                self._commits.note()
                yield answer
            needed = self._run.pane_files()
            store.sync(needed)
            self._commits.commit()
            store.sweep(needed)
            if self._run.is_done or self._is_stopping:
                return
            self._wait_for_outputs()
            growth = min(_MOST_GROWTH, 2 * growth) if self._run.shares_all else 1
            reduced = self._read(context, self._plan(context, growth))

    def _count_cores(self, context: SparkContext) -> int:
        """Return how many tasks run at once from now on."""
        self._cores = context.defaultParallelism
        return self._cores

    def _read(self, context: SparkContext, plan: BatchPlan) -> list[Read]:
        """Read the splits of a plan; those that cannot be read now are left to a later one."""
        reduced = self._read_splits(context, plan)
        if all(split.away is None for *_, split in reduced):
            return reduced
        away: set[int] = set()
        read: list[Read] = []
        for source, split, result in reduced:
            if result.away is not None:
                away.add(source)  # and its later splits wait, too
                self._run.report(source, result.away)
            if source not in away:
                read.append((source, split, result))
        self._commits.plan(plan._replace(splits=[(source, split) for source, split, _ in read]))
        return read

    def _read_again(self, context: SparkContext, plan: BatchPlan) -> list[Read]:
        """Read the splits of the micro-batch that broke off: all of them, as soon as possible."""
        self._run.include((number, split.start) for number, split in plan.splits)
        self._run.end(plan.ended)
        while True:
            reduced = self._read_splits(context, plan)
            away = [(source, split.away) for source, _, split in reduced if split.away is not None]
            if not away:
                return reduced
            self._run.report(*away[0])

    def _read_splits(self, context: SparkContext, plan: BatchPlan) -> list[Read]:
        return read_splits(context, self._work(), plan.splits, self._run.bytes_in)

    def _plan(self, context: SparkContext, growth: int = 1, *, waits: bool = True) -> BatchPlan:
        """Plan the next micro-batch; with `waits`, wait for live sources if they are empty."""
        most = growth * self._options.splits * self._count_cores(context)
        splits = self._run.wait_for_splits(
            self._commits.planned,
            self._options.split_bytes,
            most,
            lambda: self._is_stopping or not waits,
        )
        plan = BatchPlan(splits, self._run.ended())
        self._commits.plan(plan)
        return plan

    @contextmanager
    def _spark_failures(self) -> Iterator[None]:
        """Turn every failure of Spark into one error that names the cause."""
        try:
            yield
        except (Py4JError, PySparkException, OSError) as error:
            raise self._failure(str(error)) from error

    def _failure(self, trace: str) -> DriverError:
        """Return the error of a run that Spark ended, by the trace of its failure."""
        kept = "the state before this batch is kept"
        if self._commits.folder is not None:
            kept += ": run the same command again to resume"
        if (how := lost_java()) is not None:
            hint = f"{kept}; a killed process was often out of memory"
            return DriverError(f"Spark stopped: its Java process {how}", hint)
        if found := _ENGINE_ERROR.findall(trace):
            message, hint = found[-1]
            hint = f"{hint}; {kept}" if hint else kept
            return DriverError(f"an executor failed: {message}", hint)
        if (
            missing := re.search(r"ModuleNotFoundError: No module named '(\w+)", trace)
        ) is not None:
            message = f"the executors of Spark cannot import {missing[1]}"
            hint = f"install rsp-engine for the Python of each executor, PYSPARK_PYTHON; {kept}"
            return DriverError(message, hint)
        return DriverError(f"Spark stopped: {_cause(trace)}", kept)


def _cause(trace: str) -> str:
    r"""Return the line of a trace that names the cause: the Python error, if there is one.

    >>> _cause("org.apache.SparkException: Job aborted:\n at a.b\n OSError: no such file\n at c.d")
    'OSError: no such file'
    >>> _cause("An error occurred.\n: org.apache.SparkException: the worker exited\n at a.b")
    'the worker exited'
    >>> _cause("no worker connected back\n=== Streaming Query ===\nThread State: RUNNABLE")
    'no worker connected back'
    >>> _cause("a.SparkException: Exception thrown in awaitResult: \n at b\nCaused by: c.D: full")
    'full'
    """
    trace = trace.partition("=== Streaming Query ===")[0] or trace
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    python = [found[1] for line in lines if (found := _PYTHON_ERROR.match(line))]
    if python:
        return python[-1]
    messages = [text for line in lines if (text := _java_message(line)) is not None]
    clear = [text for text in messages if not _VAGUE.fullmatch(text)]
    return [*clear, *messages[-1:], *lines[-1:], _UNKNOWN][0][:_LONGEST]


def _java_message(line: str) -> str | None:
    """Return the message of a Java exception, or its class if it has none; None for other lines."""
    found = re.fullmatch(r"(?::|Caused by:)? ?((?:[\w$]+\.)+)([\w$]+)(?:: *(.*))?", line)
    if found is None or found[2][0].islower():
        return None
    return (found[3] or found[2]).strip()
