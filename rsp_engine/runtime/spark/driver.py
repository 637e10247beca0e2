"""The Spark driver: micro-batches of Structured Streaming, and the answers of the local driver.

Spark calls back for every batch, in a thread of its own. The answers of a batch are handed to the
one who iterates over the run; when all of them were taken, and written by whoever takes them, the
batch is committed. So an answer has left the engine before the state that comes of it is written,
and what services answered is written before the answer leaves.
"""

from __future__ import annotations

import queue
import re
import tempfile
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.errors import DriverError, RspError
from rsp_engine.runtime.placed_driver import PlacedDriver
from rsp_engine.runtime.spark import rows
from rsp_engine.runtime.spark.executing import written
from rsp_engine.runtime.spark.place_source import MOST_PLACES, NAME, Next, PlaceSource
from rsp_engine.runtime.spark.session import check_java, session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from rsp_engine.model.answers import Answer
    from rsp_engine.runtime.commits import Kept
    from rsp_engine.runtime.placed import PlacedRun

__all__ = ["SparkDriver", "SparkOptions"]

_POLL_S = 0.1
_READ_HERE = 20_000
"""So many items of sources that are read on the driver are taken in one batch."""
_WAITING = 1_000
"""So many answers at most wait to be taken."""
_LONGEST = 300


class SparkOptions(NamedTuple):
    """How a run uses Spark."""

    master: str = "local[*]"
    place_bytes: int = 4 << 20
    """How many bytes one task reads, about."""
    places: int = MOST_PLACES
    """How many places of a source one batch reads, for each core."""


class _Stopped(Exception):  # noqa: N818 - nothing went wrong
    """Nobody takes the answers any more."""


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


class SparkDriver(PlacedDriver):
    """Runs queries over sources on Spark until these end."""

    def __init__(
        self, run: PlacedRun, kept: Kept | None = None, *, options: SparkOptions | None = None
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
            spark = session(self._options.master)
            query = self._started(spark, self._commits.folder or Path(temporary))
            try:
                yield from self._answers(query)
            finally:
                self._is_over = True
                self._handover.close()
                with suppress(Exception):
                    query.stop()

    def _started(self, spark: SparkSession, folder: Path) -> StreamingQuery:
        self._next = Next(folder)
        self._places = self._options.places * spark.sparkContext.defaultParallelism
        self._plan_next(waits=False)
        spark.dataSource.register(PlaceSource)
        return (
            spark.readStream.format(NAME)
            .option("folder", str(folder))
            .option("work", written(self._run.tasks))
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
                raise self._failure(query) from self._error
            if thing is None:
                return
            if isinstance(thing, threading.Event):
                thing.set()
            else:
                yield thing

    def _failure(self, query: StreamingQuery) -> Exception:
        """Return why a run ended before its end."""
        if isinstance(self._error, RspError):
            return self._error
        told = str(self._error or query.exception() or "nobody knows why").strip()
        return DriverError(f"Spark stopped: {_cause(told)}", "the state before this batch is kept")

    def _take(self, batch: DataFrame, number: int) -> None:
        """Take a batch: answer what is due, and commit."""
        if number <= self._commits.last:
            return  # it was committed, and Spark was stopped before it knew
        try:
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
        self._next.write(self._commits.last + 2, places)


def _cause(told: str) -> str:
    r"""Return the line of a trace that says what happened: what Python says of it, if it does.

    >>> _cause("org.apache.SparkException: Job aborted:\n at a.b\n OSError: no such file\n at c.d")
    'OSError: no such file'
    >>> _cause("An error occurred.\n: org.apache.SparkException: the worker exited\n at a.b")
    'the worker exited'
    >>> _cause("no worker connected back\n=== Streaming Query ===\nThread State: RUNNABLE")
    'no worker connected back'
    """
    told = told.partition("=== Streaming Query ===")[0] or told
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"\w+(Error|Exception)\b", line)]
    java = [line for line in lines if re.match(r":? ?(\w+\.)+\w+(Error|Exception): ", line)]
    said = re.sub(r"^:? ?(\w+\.)+\w+: ", "", java[0]) if java else lines[-1]
    return python[-1] if python else said[:_LONGEST]
