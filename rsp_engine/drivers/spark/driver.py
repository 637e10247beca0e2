"""The Spark driver: micro-batches of Structured Streaming, with the answers of the local driver.

Spark calls back for every micro-batch, in a thread of its own. Its answers are handed over to the
thread that iterates over the run. When that thread has taken all of them, the micro-batch is
committed. So an answer is emitted before the state that includes it is committed, and the responses
of services are logged before an answer that depends on them is emitted.

Every run is a new one for Spark: its own log is in a temporary folder. The checkpoint alone has the
last commit, and the plan of the micro-batch that broke off.
"""

from __future__ import annotations

import queue
import re
import tempfile
import threading
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from rsp_engine.drivers.checkpoint.commits import BatchPlan
from rsp_engine.drivers.spark.arrow_codec import from_rows
from rsp_engine.drivers.spark.executor import encode_tasks
from rsp_engine.drivers.spark.session import check_java, lost_java, start_session
from rsp_engine.drivers.spark.split_source import MOST_SPLITS, SOURCE_NAME, NextBatch, SplitSource
from rsp_engine.drivers.split_driver import SplitDriver
from rsp_engine.errors import DriverError, RspError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from rsp_engine.drivers.checkpoint.commits import CheckpointSpec
    from rsp_engine.drivers.splits.split_run import SplitRun
    from rsp_engine.model.answers import Answer

__all__ = ["SparkDriver", "SparkOptions"]

_POLL_S = 0.1
_ITEMS = 20_000
"""How many items one micro-batch takes of sources that cannot be split."""
_WAITING = 1_000
"""The most answers that wait to be taken; beyond them Spark's thread is blocked."""
_LONGEST = 300
"""The most characters of Spark's message that an error quotes."""
_UTILS = "org.apache.spark.util.Utils"
_RUNNER = "PythonStreamingSourceRunner"
"""The class that a trace names if the process that plans micro-batches fails."""
_TRIES = 4
"""How often that process is started: Spark waits 10 s for it, and has no setting for that."""
_VAGUE = re.compile(r"Exception thrown in awaitResult:?|Job aborted\.?|Boxed Exception|")
"""Messages that name no cause."""
_UNKNOWN = "it reports no cause"


class SparkOptions(NamedTuple):
    """The options of a run on Spark."""

    master: str | None = None
    """The Spark master; all cores of this computer if it is None."""
    split_bytes: int = 4 << 20
    """The approximate size of a split, in bytes."""
    splits: int = MOST_SPLITS
    """How many splits of a source one micro-batch reads for each core."""


class _Stopped(Exception):  # noqa: N818 - nothing went wrong
    """The iteration over the answers has ended."""


class _RunnerError(DriverError):
    """The process that plans micro-batches did not connect in time, so none was run."""


class _Handover:
    """A bounded queue of answers, from Spark's thread to the thread that iterates."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Answer | threading.Event | None] = queue.Queue(_WAITING)
        self._is_closed = threading.Event()

    def put(self, item: Answer | threading.Event | None) -> None:
        """Put an answer, an event to set when all before it are taken, or None for the end."""
        while not self._is_closed.is_set():
            with suppress(queue.Full):
                self._queue.put(item, timeout=_POLL_S)
                return
        raise _Stopped

    def settle(self) -> None:
        """Wait until all answers are taken."""
        taken = threading.Event()
        self.put(taken)
        while not taken.wait(_POLL_S):
            if self._is_closed.is_set():
                raise _Stopped

    def get(self) -> Answer | threading.Event | None:
        """Return the next item; raise `queue.Empty` if there is none for a while."""
        return self._queue.get(timeout=_POLL_S)

    def close(self) -> None:
        """Refuse further items."""
        self._is_closed.set()


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
        self._handover = _Handover()
        self._error: BaseException | None = None
        self._is_over = False

    def run(self) -> Iterator[Answer]:
        """Yield the answers of all queries, those of each query in order."""
        with (
            closing(self._commits),
            tempfile.TemporaryDirectory(prefix="rsp-") as temporary,
        ):
            self._commits.restore(is_strict=True)
            if self._run.is_done:
                return
            spark = start_session(self._options.master)
            with self._spark_failures():
                yield from self._run_query(spark, Path(temporary))

    def _run_query(self, spark: SparkSession, folder: Path) -> Iterator[Answer]:
        """Run Spark's query; retry if the process that plans micro-batches does not start."""
        for left in reversed(range(_TRIES)):
            (folder / str(left)).mkdir()  # each try needs a new log of Spark
            query, is_retried = self._start(spark, folder / str(left)), False
            try:
                yield from self._answers(query)
            except _RunnerError:
                is_retried = left > 0
                if not is_retried:
                    raise
            else:
                return
            finally:
                if not is_retried:
                    self._end()  # else a micro-batch would wait for ever to hand over answers
                with suppress(Exception):
                    query.stop()

    def _end(self) -> None:
        """Refuse further answers, and plan no further micro-batch."""
        self._is_over = True
        self._handover.close()

    @contextmanager
    def _spark_failures(self) -> Iterator[None]:
        """Turn every failure of Spark into one error that names the cause."""
        try:
            yield
        except (Py4JError, PySparkException, OSError) as error:
            if isinstance(self._error, RspError):
                raise self._error from None
            raise self._failure(str(error)) from error

    def _start(self, spark: SparkSession, folder: Path) -> StreamingQuery:
        self._next = NextBatch(folder)
        self._first = self._commits.last + 1
        self._splits = self._options.splits * spark.sparkContext.defaultParallelism
        if self._commits.broken is None:
            self._plan_next(waits=False)
        else:
            self._run.end(self._commits.broken.ended)
            self._next.write(1, self._commits.broken.splits)
        spark.dataSource.register(SplitSource)
        return (
            spark.readStream.format(SOURCE_NAME)
            .option("folder", str(folder))
            .option("work", encode_tasks(self._run.tasks))
            .load()
            .writeStream.option("checkpointLocation", str(folder / "spark"))
            .foreachBatch(self._run_batch)
            .start()
        )

    def _answers(self, query: StreamingQuery) -> Iterator[Answer]:
        while True:
            try:
                item = self._handover.get()
            except queue.Empty:
                if query.isActive:
                    continue
                if isinstance(self._error, RspError):
                    raise self._error from None
                raise self._failure(str(self._error or _trace(query))) from self._error
            if item is None:
                return
            if isinstance(item, threading.Event):
                item.set()
            else:
                yield item

    def _failure(self, trace: str) -> DriverError:
        """Return the error of a run that Spark ended, by the trace of its failure."""
        kept = "the state before this batch is kept"
        if self._commits.folder is not None:
            kept += ": run the same command again to resume"
        if (how := lost_java()) is not None:
            hint = f"{kept}; a killed process was often out of memory"
            return DriverError(f"Spark stopped: its Java process {how}", hint)
        if _RUNNER in trace and self._error is None:
            if "connect back" in trace:
                return _RunnerError("Spark stopped: its Python process did not start in time", kept)
            hint = f"{kept}; a killed process was often out of memory"
            return DriverError("Spark stopped: the Python process that plans batches died", hint)
        return DriverError(f"Spark stopped: {_cause(trace)}", kept)

    def _run_batch(self, batch: DataFrame, number: int) -> None:
        """Run a micro-batch: merge its splits, hand over the answers, and commit."""
        try:
            if self._first + number != self._commits.last + 1:
                raise DriverError(f"Spark runs batch {number} out of order")
            self._answer(batch)
        except _Stopped:
            raise
        except BaseException as error:
            self._error = error
            raise

    def _answer(self, batch: DataFrame) -> None:
        reduced = from_rows(batch.toArrow())
        for source, split, _ in reduced:
            self._commits.planned[source] = split
        for answer in self._run.merge(reduced, _ITEMS):
            self._commits.note()
            self._handover.put(answer)
        self._handover.settle()
        self._commits.commit()
        if self._run.is_done or self._is_stopping:
            self._handover.put(None)
        else:
            self._plan_next()

    def _plan_next(self, *, waits: bool = True) -> None:
        """Plan the next micro-batch; with `waits`, wait for live sources if they are empty."""
        splits = self._run.wait_for_splits(
            self._commits.planned,
            self._options.split_bytes,
            self._splits,
            lambda: self._is_stopping or self._is_over or not waits,
        )
        if self._is_over:
            return  # another run may use the checkpoint by now
        self._commits.plan(BatchPlan(splits, self._run.ended()))
        self._next.write(self._commits.last + 2 - self._first, splits)


def _trace(query: StreamingQuery) -> str:
    """Return the Java trace of a query's failure, with all its causes."""
    error = query._jsq.exception()  # pyspark's own exception leaves the causes out
    if not error.isDefined():
        return _UNKNOWN
    trace: str = getattr(SparkContext._jvm, _UTILS).exceptionString(error.get())
    return trace


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
