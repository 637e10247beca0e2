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
from rsp_engine.drivers.spark.executor import encode_tasks
from rsp_engine.drivers.spark.session import check_java, lost_java, start_context
from rsp_engine.drivers.spark.split_job import MOST_SPLITS, read_splits
from rsp_engine.drivers.split_driver import SplitDriver
from rsp_engine.errors import DriverError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkContext

    from rsp_engine.drivers.checkpoint.commits import CheckpointSpec
    from rsp_engine.drivers.splits.split_run import SplitRun
    from rsp_engine.model.answers import Answer

__all__ = ["SparkDriver", "SparkOptions"]

_ITEMS = 20_000
"""How many items one micro-batch takes of sources that cannot be split."""
_LONGEST = 300
"""The most characters of Spark's message that an error quotes."""
_VAGUE = re.compile(r"Exception thrown in awaitResult:?|Job aborted\.?|Boxed Exception|")
"""Messages that name no cause."""
_UNKNOWN = "it reports no cause"


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

    def run(self) -> Iterator[Answer]:
        """Yield the answers of all queries, those of each query in order."""
        with closing(self._commits):
            self._commits.restore(is_strict=True)
            if self._run.is_done:
                return
            context = start_context(self._options.master, settings=self._options.settings)
            with self._spark_failures():
                yield from self._batches(context)

    def _batches(self, context: SparkContext) -> Iterator[Answer]:
        """Run micro-batches, and yield their answers; commit each when its answers are taken."""
        work = encode_tasks(self._run.tasks)
        most = self._options.splits * context.defaultParallelism
        if self._commits.broken is None:
            plan = self._plan(most, waits=False)
        else:
            plan = self._commits.broken
            self._run.end(plan.ended)
        while True:
            reduced = read_splits(context, work, plan.splits)
            for source, split, _ in reduced:
                self._commits.planned[source] = split
            for answer in self._run.merge(reduced, _ITEMS):
                self._commits.note()
                yield answer
            self._commits.commit()
            if self._run.is_done or self._is_stopping:
                return
            plan = self._plan(most)

    def _plan(self, most: int, *, waits: bool = True) -> BatchPlan:
        """Plan the next micro-batch; with `waits`, wait for live sources if they are empty."""
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
    python = [line for line in lines if re.match(r"\w+(Error|Exception)\b", line)]
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
