"""Output formats: what a format declares, all formats by name, and the sinks that write in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from rsp_engine.errors import SinkError, StateError
from rsp_engine.io.sinks.destinations import Destination, destination_of
from rsp_engine.lazy_registry import LazyRegistry, importer
from rsp_engine.model.answers import Answer, Boolean, Graph, Solutions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rsp_engine.options import TimeStyle

__all__ = [
    "DEFAULT_FORMAT",
    "FORMATS",
    "AnswerWriter",
    "Callback",
    "ContentForm",
    "HeadedWriter",
    "Sink",
    "SinkFormat",
    "answer_writer",
    "checked_format",
    "graph_refusal",
    "misfit",
    "open_sink",
]

ContentForm: TypeAlias = Literal["SELECT", "CONSTRUCT", "ASK"]
"""The query forms that have answers."""

AnswerWriter: TypeAlias = Callable[[Answer], str | bytes]
"""Serializes the answers of one query, in order; empty if there is nothing to write."""


@runtime_checkable
class HeadedWriter(Protocol):
    """A writer that writes a header before the first answer."""

    header: str | None
    """The header, once it was written."""


_ANSWERS: dict[ContentForm, str] = {
    "SELECT": "the rows that a SELECT answers",
    "CONSTRUCT": "the graphs that a CONSTRUCT answers",
    "ASK": "the truth values that an ASK answers",
}
_HINTS: dict[ContentForm, str] = {
    "SELECT": "use jsonl, csv, tsv, sparql-json or sparql-xml",
    "CONSTRUCT": "use nquads or jsonl",
    "ASK": "use sparql-json, sparql-xml, jsonl, csv or tsv",
}
_FORMS: dict[type, ContentForm] = {Solutions: "SELECT", Graph: "CONSTRUCT", Boolean: "ASK"}


@dataclass(frozen=True, slots=True)
class SinkFormat:
    """An output format.

    `writer` creates a writer. `suffix` is the file suffix of the formats that can write each window
    to a file of its own.
    """

    name: str
    help: str
    forms: tuple[ContentForm, ...]
    writer: Callable[[], AnswerWriter]
    iso_writer: Callable[[], AnswerWriter] | None = None
    """Creates a writer of ISO 8601 times instead of milliseconds, if the format has them."""
    suffix: str | None = None
    media_type: str = "application/octet-stream"
    """The type of the content of a message that holds one answer."""
    with_id: Callable[[str, str], str] | None = None
    """Adds an id to a message, if the format has a place for one."""
    can_go_back: bool = True
    """Whether a file can be truncated and continued from there, as a checkpoint requires."""

    def check(self, form: ContentForm) -> None:
        """Refuse a query form that the format does not support."""
        if form not in self.forms:
            raise _refusal(self.name, form)


def misfit(name: str, content: Solutions | Graph | Boolean) -> SinkError:
    """Return the error for an answer that a format does not support."""
    return _refusal(name, _FORMS[type(content)])


def graph_refusal(form: ContentForm) -> SinkError:
    """Return the error for answers that a store of graphs cannot hold."""
    return SinkError(f"a graph store cannot hold {_ANSWERS[form]}", "write a CONSTRUCT")


def _refusal(name: str, form: ContentForm) -> SinkError:
    return SinkError(f"{name} cannot hold {_ANSWERS[form]}", _HINTS[form])


FORMATS: Mapping[str, SinkFormat] = LazyRegistry(
    {
        "jsonl": importer("rsp_engine.io.sinks.jsonl", "JSONL"),
        "csv": importer("rsp_engine.io.sinks.sparql_tables", "SPARQL_CSV"),
        "tsv": importer("rsp_engine.io.sinks.sparql_tables", "SPARQL_TSV"),
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
    chosen = checked_format(format, [form])
    if keep and not chosen.can_go_back:
        message = f"{format} cannot be resumed after a crash, as a checkpoint requires"
        raise SinkError(message, "use nquads, or run without a checkpoint")
    writer = answer_writer(chosen, times)
    return _FormattedSink(format, writer, destination_of(output, chosen.suffix, keep=keep))


def checked_format(name: str, forms: Iterable[ContentForm]) -> SinkFormat:
    """Return the format of a name; raise `SinkError` if it does not support one of the forms."""
    if name not in FORMATS:
        raise SinkError(f"there is no format `{name}`", f"the formats are {', '.join(FORMATS)}")
    chosen = FORMATS[name]
    for form in forms:
        chosen.check(form)
    return chosen


def answer_writer(chosen: SinkFormat, times: TimeStyle) -> AnswerWriter:
    """Return a new writer of a format, with times in milliseconds or in ISO 8601."""
    writer = chosen.writer if times == "ms" else chosen.iso_writer
    if writer is None:
        known = ", ".join(name for name, each in FORMATS.items() if each.iso_writer is not None)
        raise SinkError(f"{chosen.name} has no ISO times", f"these formats have: {known}")
    return writer()
