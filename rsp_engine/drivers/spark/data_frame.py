"""DataFrames of Spark as streams, and answers as a DataFrame.

Spark writes each row as a line of JSON, in the order of the times, and the engine reads these lines
as it reads any others: executors take splits of them. A row is an element.

    a template                          the row as plain JSON, which the template turns into triples
    subject, predicate, object, time    the triple of the row, as N-Triples in a line of jsonl

The rows of a batch DataFrame are in a file, so a resumed run reads what the first one read. Those
of a streaming DataFrame are messages of a spool. Spark repeats a micro-batch that was broken off,
with the same rows: the number of the micro-batch and of the row identify them.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as the documents of Spark do
from pyspark.sql import types as T  # noqa: N812

from rsp_engine.drivers.spark.session import start_session
from rsp_engine.errors import BindingError, SourceError
from rsp_engine.io.sources.files.jsonl import JsonLinesSource, line_template
from rsp_engine.io.sources.inputs import FileInput
from rsp_engine.io.sources.live.receiver import GROUP, SenderUnreachable
from rsp_engine.io.sources.live.records import Message
from rsp_engine.io.sources.live.schemes import PUSH, payloads_of
from rsp_engine.io.sources.live.spooled import SpooledSource
from rsp_engine.io.sources.spec import Spec, nearest
from rsp_engine.io.sources.times import TIME_UNITS
from rsp_engine.model.results import as_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import Column, DataFrame

    from rsp_engine.io.sources import ElementSource
    from rsp_engine.io.sources.live.receiver import Inbox
    from rsp_engine.io.sources.times import TimeUnit
    from rsp_engine.model.answers import Answer

    Frame: TypeAlias = DataFrame

__all__ = ["FrameOptions", "as_spark", "open_frame"]

_TRIPLE = ("subject", "predicate", "object")
_XSD = "http://www.w3.org/2001/XMLSchema#"
_DATATYPES = {
    T.BooleanType: "boolean",
    T.ByteType: "integer",
    T.ShortType: "integer",
    T.IntegerType: "integer",
    T.LongType: "integer",
    T.DecimalType: "decimal",
    T.FloatType: "double",
    T.DoubleType: "double",
}
_LINE, _ORDER = "rsp_line", "rsp_time"


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """How the rows of a DataFrame are read."""

    template: str | None = None
    """The file of a template; None if the columns are those of a triple."""
    time: str | None = None
    """The column of the time, or the path of a field in it."""
    unit: TimeUnit = "ms"

    @property
    def time_column(self) -> str:
        """The column of the time: `timestamp` with a template, and `time` without, by default."""
        return self.time or ("time" if self.template is None else "timestamp")

    def spec(self, place: str) -> Spec:
        """Return the specification of the lines of JSON."""
        options = {"unit": self.unit}
        if self.template is None:
            return Spec(place, {**options, "format": "jsonl"})
        named = {"template": self.template, "time": self.time_column}
        return Spec(place, {**options, **named, "format": "json"})


def open_frame(
    frame: DataFrame, options: FrameOptions, folder: Path, number: int, *, is_kept: bool
) -> ElementSource:
    """Return the rows of a DataFrame as a source; those of a batch are written to a folder.

    `number` tells apart DataFrames with the same columns; `is_kept` says whether the folder is that
    of a checkpoint, which all executors can reach.
    """
    name = f"DataFrame {number} ({', '.join(frame.columns)})"
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        hint = "write it to Parquet, and bind that; or use a session without Connect"
        raise BindingError(f"{name}: it belongs to a session of Spark Connect", hint)
    lines, spec = _lines(frame, options, name), options.spec(name)
    if frame.isStreaming:
        payloads = payloads_of(spec, PUSH)
        return SpooledSource(payloads, lambda spool, _is_kept: FrameLink(lines, spool))
    unit = cast("TimeUnit", spec.choice("unit", TIME_UNITS))
    template = None if options.template is None else line_template(spec)
    path = folder / f"{number}.json"
    master = str(frame.sparkSession.sparkContext.master)
    if not is_kept and not master.startswith("local"):
        hint = "name a checkpoint in a folder that all can reach"
        raise BindingError(f"{name}: the executors of {master} share no temporary folder", hint)
    if not path.exists():  # else a run is resumed
        _write(lines, path, name)
    return JsonLinesSource(FileInput(name, path), unit, template)


def _lines(frame: DataFrame, options: FrameOptions, name: str) -> DataFrame:
    """Return the rows as lines of JSON, with their times."""
    _check_columns(frame, options, name)
    time = F.col(options.time_column)
    if options.template is not None:
        body = F.struct("*")
    else:
        graph = F.concat_ws(" ", *map(_iri, _TRIPLE[:2]), _object(frame), F.lit("."))
        is_whole = F.expr(" AND ".join(f"{column} IS NOT NULL" for column in _TRIPLE))
        body = F.struct(
            time.alias("timestamp"),
            F.lit("ntriples").alias("format"),
            F.when(is_whole, graph).alias("graph"),
        )
    line = F.to_json(body, {"ignoreNullFields": "false"})
    return frame.select(line.alias(_LINE), time.alias(_ORDER))


def _check_columns(frame: DataFrame, options: FrameOptions, name: str) -> None:
    if options.template is None:
        for column in _TRIPLE:
            if column not in frame.columns:
                hint = (
                    "name a template=..., or give the columns subject, predicate, object and time"
                )
                raise BindingError(f"{name}: it has no column {column}", hint)
    column = options.time_column.partition(".")[0]
    if column not in frame.columns:
        hint = nearest(column, frame.columns) or 'name the column of the time: time="..."'
        raise BindingError(f"{name}: it has no column {column} with the times", hint)


def _iri(column: str) -> Column:
    """Return an IRI, which may be written without its brackets, or a blank node."""
    text = F.col(column).cast("string")
    is_term = text.startswith("<") | text.startswith("_:")
    return F.when(is_term, text).otherwise(F.concat(F.lit("<"), text, F.lit(">")))


def _object(frame: DataFrame) -> Column:
    """Return the object as a term: a text is one in the syntax of N-Triples."""
    kind = frame.schema["object"].dataType
    text = F.col("object").cast("string")
    datatype = next((d for known, d in _DATATYPES.items() if isinstance(kind, known)), None)
    if datatype is None:
        return text
    return F.concat(F.lit('"'), text, F.lit(f'"^^<{_XSD}{datatype}>'))


def _write(lines: DataFrame, path: Path, name: str) -> None:
    """Write lines to a file, in the order of their times."""
    parts, draft = path.with_suffix(".parts"), path.with_suffix(".draft")
    try:
        shutil.rmtree(parts, ignore_errors=True)
        lines.orderBy(_ORDER, _LINE).select(_LINE).write.text(parts.absolute().as_uri())
        with draft.open("wb") as file:
            for part in sorted(parts.glob("part-*")):
                with part.open("rb") as stream:
                    shutil.copyfileobj(stream, file)
        draft.rename(path)
        shutil.rmtree(parts, ignore_errors=True)
    except PySparkException as error:
        raise SourceError(f"{name}: it cannot be evaluated: {_reason(error)}") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise SourceError(f"{name}: its rows cannot be written: {reason}") from None


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]


class FrameLink:
    """The rows of a streaming DataFrame, as messages."""

    def __init__(self, lines: DataFrame, folder: Path) -> None:
        """Set the lines, and the folder where Spark notes how far it has read."""
        self._lines = lines
        self._folder = folder / "frame"

    def listen(self, inbox: Inbox) -> None:
        """Run the query of Spark until it ends, or the inbox is closed."""

        def take(batch: DataFrame, number: int) -> None:
            group: list[Message] = []
            ordered = batch.orderBy(_ORDER, _LINE).select(_LINE)
            for row, (line,) in enumerate(ordered.toLocalIterator()):
                group.append(Message(cast("str", line).encode(), id=f"{number}/{row}"))
                if len(group) == GROUP:
                    inbox.put(group)
                    group = []
            inbox.put(group)

        writer = self._lines.writeStream.foreachBatch(take)
        try:
            place = self._folder.absolute().as_uri()
            query = writer.option("checkpointLocation", place).start()
        except PySparkException as error:
            raise SenderUnreachable(f"Spark does not start its query: {_reason(error)}") from None
        inbox.is_well()
        try:
            while not inbox.is_closed and not query.awaitTermination(1):
                pass
        except PySparkException as error:
            if not inbox.is_closed:
                raise SenderUnreachable(f"the query of Spark failed: {_reason(error)}") from None
        finally:
            query.stop()


def as_spark(answers: Iterable[Answer]) -> DataFrame:
    """Return the rows of SELECT answers as one DataFrame of Spark, with the columns of `as_arrow`.

    The session is that of the program; it is started if there is none.

    Args:
        answers: The answers of one or several queries.

    Raises:
        DriverError: If Spark cannot start.
    """
    return start_session().createDataFrame(as_arrow(answers))
