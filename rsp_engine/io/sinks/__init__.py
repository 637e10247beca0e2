"""Sinks: the output of answers and dead letters.

A format serializes an answer, and a destination stores the bytes. Each format has a module of its
own. Equal answers give equal bytes. A file is truncated when it is opened, written in place, and
flushed after every answer, so that `tail -f` follows a run.

    jsonl         one line per window: rows with rank and score, a graph, or a boolean
    csv, tsv      SPARQL 1.1 tables, preceded by columns for the window, the rank and the score
    sparql-json   SPARQL 1.1 result documents, one per window: one after the other,
    sparql-xml        or each in a file of its own if the output is a folder
    nquads        graphs, each named after its query and the close of its window
    jelly         the same graphs, in binary frames

If the reader of standard output exits (`rsp run ... | head`), the `BrokenPipeError` is not caught,
so that the run stops; standard output is redirected to the null device, so that Python exits
without a message. Every other failure is a `SinkError` that names the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rsp_engine.errors import SinkError, StateError
from rsp_engine.io.sinks.dead_letters import DeadLetterFile
from rsp_engine.io.sinks.destinations import Destination, destination_of
from rsp_engine.io.sinks.format import HeadedWriter
from rsp_engine.lazy_registry import LazyRegistry, importer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.io.sinks.format import AnswerWriter, ContentForm, SinkFormat
    from rsp_engine.model.answers import Answer
    from rsp_engine.options import TimeStyle

__all__ = [
    "DEFAULT_FORMAT",
    "FORMATS",
    "Callback",
    "DeadLetterFile",
    "Sink",
    "open_sink",
]

FORMATS: Mapping[str, SinkFormat] = LazyRegistry(
    {
        "jsonl": importer("rsp_engine.io.sinks.jsonl", "JSONL"),
        "csv": importer("rsp_engine.io.sinks.sparql_csv", "SPARQL_CSV"),
        "tsv": importer("rsp_engine.io.sinks.sparql_tsv", "SPARQL_TSV"),
        "sparql-json": importer("rsp_engine.io.sinks.sparql_json", "SPARQL_JSON"),
        "sparql-xml": importer("rsp_engine.io.sinks.sparql_xml", "SPARQL_XML"),
        "nquads": importer("rsp_engine.io.sinks.nquads", "NQUADS"),
        "jelly": importer("rsp_engine.io.sinks.jelly", "JELLY"),
    }
)
"""All output formats, by name."""

DEFAULT_FORMAT = "jsonl"
"""The default format: the only one that writes every field of an answer."""


class Sink(Protocol):
    """The output of one query: it receives the answers in the order of their windows."""

    def write(self, answer: Answer) -> None:
        """Write an answer and flush it."""

    def close(self) -> None:
        """Close the output; closing it again has no effect."""

    def position(self) -> Any:  # noqa: ANN401 - plain data
        """Sync the output to disk, and return the current position as plain data."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Discard what was written after a position; `None` is the start of the output."""


class Callback(Sink):
    """A sink that calls a function with each answer.

    >>> from rsp_engine.model.answers import Answer, Boolean, Interval
    >>> answers: list[Answer] = []
    >>> Callback(answers.append).write(Answer("q", Interval(0, 5), Boolean(True), {}))
    >>> answers[0].content
    Boolean(value=True)
    """

    def __init__(self, function: Callable[[Answer], object]) -> None:
        self._function = function

    def write(self, answer: Answer) -> None:
        """Call the function."""
        self._function(answer)

    def close(self) -> None:
        """Do nothing."""

    def position(self) -> None:
        """Return `None`: a call cannot be undone."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Do nothing."""


class _FormattedSink(Sink):
    """A sink that serializes answers in a format and writes them to a destination."""

    def __init__(self, format: str, writer: AnswerWriter, destination: Destination) -> None:  # noqa: A002 - the users' word
        self._kind = f"{format} to {destination.kind}"
        self._writer = writer
        self._headed = _with_header(writer)
        self._destination = destination

    def write(self, answer: Answer) -> None:
        text = self._writer(answer)
        if text:
            self._destination.put(text, answer)

    def close(self) -> None:
        self._destination.close()

    def position(self) -> list[Any]:
        header = None if self._headed is None else self._headed.header
        return [self._kind, self._destination.position(), header]

    def go_back(self, position: list[Any] | None) -> None:
        kind, start, header = position or (self._kind, None, None)
        if kind != self._kind:
            raise StateError(
                f"answers were written as {kind}, and would now be as {self._kind}",
                "write them as before, or name another folder for the checkpoint",
            )
        self._destination.go_back(start)
        if self._headed is not None:
            self._headed.header = header


def _with_header(writer: object) -> HeadedWriter | None:
    return writer if isinstance(writer, HeadedWriter) else None


def open_sink(
    format: str,  # noqa: A002 - the users' word
    output: str | None,
    form: ContentForm,
    *,
    keep: bool = False,
    times: TimeStyle = "ms",
) -> Sink:
    """Open an output in a format, for the answers of a query of the given form.

    `times` are milliseconds since 1970, or ISO 8601. `output` is a path; `None` or `-` is standard
    output. A file is truncated, unless `keep` is set: `go_back` then truncates it to the position
    of a checkpoint. Invalid combinations are refused here, before the run starts:

    >>> open_sink("csv", "answers.csv", "CONSTRUCT")
    Traceback (most recent call last):
    rsp_engine.errors.SinkError: csv cannot hold the graphs that a CONSTRUCT answers
      hint: use nquads or jsonl
    """
    if format not in FORMATS:
        raise SinkError(f"there is no format `{format}`", f"the formats are {', '.join(FORMATS)}")
    chosen = FORMATS[format]
    chosen.check(form)
    if keep and not chosen.can_go_back:
        message = f"{format} cannot be resumed after a crash, as a checkpoint requires"
        raise SinkError(message, "use nquads, or run without a checkpoint")
    writer = chosen.writer if times == "ms" else chosen.iso_writer
    if writer is None:
        known = ", ".join(name for name, each in FORMATS.items() if each.iso_writer is not None)
        raise SinkError(f"{format} has no ISO times", f"these formats have: {known}")
    return _FormattedSink(format, writer(), destination_of(output, chosen.suffix, keep=keep))
