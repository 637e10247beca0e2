"""The Spark driver: micro-batches of Structured Streaming, and the answers of the local driver.

Spark calls back for every batch, in a thread of its own. The answers of a batch are handed to the
one who iterates over the run; when all of them were taken, and written by whoever takes them, the
batch is committed. So an answer has left the engine before the state that comes of it is written,
and what services answered is written before the answer leaves.

Every run is a new one for Spark: its own log is in a folder that goes with the run. What was
committed, and what the batch reads that broke off, the checkpoint alone tells.
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
from rsp_engine.drivers.spark import arrow_codec as rows
from rsp_engine.drivers.spark.executor import encode_reduced
from rsp_engine.drivers.spark.session import check_java, lost_java, start_session
from rsp_engine.drivers.spark.split_source import MOST_PLACES, SOURCE_NAME, NextBatch, SplitSource
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
_READ_HERE = 20_000
"""So many items of sources that are read on the driver are taken in one batch."""
_WAITING = 1_000
"""So many answers at most wait to be taken."""
_LONGEST = 300
_UTILS = "org.apache.spark.util.Utils"
_RUNNER = "PythonStreamingSourceRunner"
"""What a trace names where the process fails that plans batches."""
_TRIES = 4
"""So often it is started: Spark waits 10 s for it, and has no setting for that."""
_VAGUE = re.compile(r"Exception thrown in awaitResult:?|Job aborted\.?|Boxed Exception|")
"""Messages that name no cause."""


class SparkOptions(NamedTuple):
    """How a run uses Spark."""

    master: str = "local[*]"
    place_bytes: int = 4 << 20
    """How many bytes one task reads, about."""
    places: int = MOST_PLACES
    """How many places of a source one batch reads, for each core."""


class _Stopped(Exception):  # noqa: N818 - nothing went wrong
    """Nobody takes the answers any more."""


class _RunnerError(DriverError):
    """The process that plans batches did not connect in time, so nothing was begun."""


class _Handover:
    """Answers on their way from the thread of Spark to the one who iterates."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Answer | threading.Event | None] = queue.Queue(_WAITING)
        self._is_closed = threading.Event()

    def put(self, thing: Answer | threading.Event | None) -> None:
        """Hand over an answer, an event to be set when all before it were taken, or the end."""
        while not self._is_closed.is_set():
            with suppress(queue.Full):
                self._queue.put(thing, timeout=_POLL_S)
                return
        raise _Stopped

    def settle(self) -> None:
        """Wait until everything was taken."""
        taken = threading.Event()
        self.put(taken)
        while not taken.wait(_POLL_S):
            if self._is_closed.is_set():
                raise _Stopped

    def get(self) -> Answer | threading.Event | None:
        """Take the next thing; `queue.Empty` if there is none for a while."""
        return self._queue.get(timeout=_POLL_S)

    def close(self) -> None:
        """Take nothing any more."""
        self._is_closed.set()


class SparkDriver(SplitDriver):
    """Runs queries over sources on Spark until these end."""

    def __init__(
        self,
        run: SplitRun,
        kept: CheckpointSpec | None = None,
        *,
        options: SparkOptions | None = None,
    ) -> None:
        check_java()
        super().__init__(run, kept)
        self._options = options or SparkOptions()
        self._handover = _Handover()
        self._error: BaseException | None = None
        self._is_over = False

    def run(self) -> Iterator[Answer]:
        """Yield the answers of all queries, each query's in order."""
        with (
            closing(self._commits),
            tempfile.TemporaryDirectory(prefix="rsp-") as temporary,
        ):
            self._commits.restore(is_strict=True)
            if self._run.is_done:
                return
            spark = start_session(self._options.master)
            with self._told_failures():
                yield from self._tried(spark, Path(temporary))

    def _tried(self, spark: SparkSession, folder: Path) -> Iterator[Answer]:
        """Run the query of Spark; try again if the process that plans batches does not start."""
        for left in reversed(range(_TRIES)):
            (folder / str(left)).mkdir()  # Spark's own log begins anew
            query, is_tried_again = self._started(spark, folder / str(left)), False
            try:
                yield from self._answers(query)
            except _RunnerError:
                is_tried_again = left > 0
                if not is_tried_again:
                    raise
            else:
                return
            finally:
                if not is_tried_again:
                    self._end()  # a batch that waits for somebody would else wait for ever
                with suppress(Exception):
                    query.stop()

    def _end(self) -> None:
        """Take no answers any more, and plan no batch."""
        self._is_over = True
        self._handover.close()

    @contextmanager
    def _told_failures(self) -> Iterator[None]:
        """Let anything that Spark fails with be one error that names the cause."""
        try:
            yield
        except (Py4JError, PySparkException, OSError) as error:
            if isinstance(self._error, RspError):
                raise self._error from None
            raise self._failure(str(error)) from error

    def _started(self, spark: SparkSession, folder: Path) -> StreamingQuery:
        self._next = NextBatch(folder)
        self._first = self._commits.last + 1
        self._places = self._options.places * spark.sparkContext.defaultParallelism
        if self._commits.broken is None:
            self._plan_next(waits=False)
        else:
            self._run.end(self._commits.broken.ended)
            self._next.write(1, self._commits.broken.places)
        spark.dataSource.register(SplitSource)
        return (
            spark.readStream.format(SOURCE_NAME)
            .option("folder", str(folder))
            .option("work", encode_reduced(self._run.tasks))
            .load()
            .writeStream.option("checkpointLocation", str(folder / "spark"))
            .foreachBatch(self._take)
            .start()
        )

    def _answers(self, query: StreamingQuery) -> Iterator[Answer]:
        while True:
            try:
                thing = self._handover.get()
            except queue.Empty:
                if query.isActive:
                    continue
                if isinstance(self._error, RspError):
                    raise self._error from None
                raise self._failure(str(self._error or _trace(query))) from self._error
            if thing is None:
                return
            if isinstance(thing, threading.Event):
                thing.set()
            else:
                yield thing

    def _failure(self, told: str) -> DriverError:
        """Return why a run ended before its end, by what Spark said of it."""
        kept = "the state before this batch is kept"
        if self._commits.folder is not None:
            kept += ": run the same again to go on"
        if (how := lost_java()) is not None:
            hint = f"{kept}; a process that is killed was often out of memory"
            return DriverError(f"Spark stopped: its Java process {how}", hint)
        if _RUNNER in told and self._error is None:
            if "connect back" in told:
                return _RunnerError("Spark stopped: its Python process did not start in time", kept)
            hint = f"{kept}; a process that is killed was often out of memory"
            return DriverError("Spark stopped: the Python process that plans batches died", hint)
        return DriverError(f"Spark stopped: {_cause(told)}", kept)

    def _take(self, batch: DataFrame, number: int) -> None:
        """Take a batch: answer what is due, and commit."""
        try:
            if self._first + number != self._commits.last + 1:
                raise DriverError(f"Spark runs batch {number} out of its order")
            self._answer(batch)
        except _Stopped:
            raise
        except BaseException as error:
            self._error = error
            raise

    def _answer(self, batch: DataFrame) -> None:
        given = rows.from_rows(batch.toArrow())
        for source, place, _ in given:
            self._commits.planned[source] = place
        for answer in self._run.take(given, _READ_HERE):
            self._commits.note()
            self._handover.put(answer)
        self._handover.settle()
        self._commits.commit()
        if self._run.is_done or self._is_stopping:
            self._handover.put(None)
        else:
            self._plan_next()

    def _plan_next(self, *, waits: bool = True) -> None:
        """Say what the next batch reads; where nothing is there, it may be waited for."""
        size, count = self._options.place_bytes, self._places
        places = self._run.plan_when_there_is_more(
            self._commits.planned,
            size,
            count,
            lambda: self._is_stopping or self._is_over or not waits,
        )
        if self._is_over:
            return  # the checkpoint may be another's by now
        self._commits.plan(BatchPlan(places, self._run.ended()))
        self._next.write(self._commits.last + 2 - self._first, places)


def _trace(query: StreamingQuery) -> str:
    """Return what Java says of the failure of a query, with all its causes."""
    found = query._jsq.exception()  # what pyspark makes of it leaves the causes out
    if not found.isDefined():
        return "nobody knows why"
    written: str = getattr(SparkContext._jvm, _UTILS).exceptionString(found.get())
    return written


def _cause(told: str) -> str:
    r"""Return the line of a trace that says what happened: what Python says of it, if it does.

    >>> _cause("org.apache.SparkException: Job aborted:\n at a.b\n OSError: no such file\n at c.d")
    'OSError: no such file'
    >>> _cause("An error occurred.\n: org.apache.SparkException: the worker exited\n at a.b")
    'the worker exited'
    >>> _cause("no worker connected back\n=== Streaming Query ===\nThread State: RUNNABLE")
    'no worker connected back'
    >>> _cause("a.SparkException: Exception thrown in awaitResult: \n at b\nCaused by: c.D: full")
    'full'
    """
    told = told.partition("=== Streaming Query ===")[0] or told
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"\w+(Error|Exception)\b", line)]
    said = [found for line in lines if (found := _said(line)) is not None]
    clear = [each for each in said if not _VAGUE.fullmatch(each)]
    return (
        python[-1]
        if python
        else [*clear, *said[-1:], *lines[-1:], "nobody knows why"][0][:_LONGEST]
    )


def _said(line: str) -> str | None:
    """Return what an exception of Java says, or its name if it says nothing; else nothing."""
    found = re.fullmatch(r"(?::|Caused by:)? ?((?:[\w$]+\.)+)([\w$]+)(?:: *(.*))?", line)
    if found is None or found[2][0].islower():
        return None
    return (found[3] or found[2]).strip()
