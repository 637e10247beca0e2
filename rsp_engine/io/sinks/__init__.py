"""The room of the sinks: answers leave the engine here, and dead letters too.

A format makes text of an answer, a destination takes the text: one format, one file of this room.
The same answers always give the same bytes. A file is emptied when it is opened, written where it
stands, and flushed after every answer, so that `tail -f` follows a run.

    jsonl         one line a window: rows with rank and score, a graph, or a truth value
    csv, tsv      the tables of SPARQL 1.1, after columns for the window, the rank and the score
    sparql-json   the result documents of SPARQL 1.1, one a window: one after the other,
    sparql-xml        or each in a file of its own when the output is a folder
    nquads        graphs, each named after its query and the close of its window
    jelly         the same, in binary frames

When the reader of standard output goes away (`rsp run ... | head`), the `BrokenPipeError` passes as
it is, so that the run stops, and standard output is pointed at nothing, so that Python ends without
a complaint. Every other failure is a `SinkError` that names the output.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from rsp_engine.errors import SinkError, StateError
from rsp_engine.io.sinks.dead_letters import DeadLetterFile
from rsp_engine.io.sinks.destinations import Destination, destination_of
from rsp_engine.io.sinks.format import AnswerWriter, ContentForm, SinkFormat
from rsp_engine.io.sinks.jelly import JELLY
from rsp_engine.io.sinks.jsonl import JSONL
from rsp_engine.io.sinks.nquads import NQUADS
from rsp_engine.io.sinks.sparql_csv import SPARQL_CSV
from rsp_engine.io.sinks.sparql_json import SPARQL_JSON
from rsp_engine.io.sinks.sparql_tsv import SPARQL_TSV
from rsp_engine.io.sinks.sparql_xml import SPARQL_XML
from rsp_engine.io.sinks.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.model.answers import Answer

__all__ = [
    "DEFAULT_FORMAT",
    "FORMATS",
    "Callback",
    "ContentForm",
    "DeadLetterFile",
    "Sink",
    "SinkFormat",
    "open_sink",
]

FORMATS: Mapping[str, SinkFormat] = MappingProxyType(
    {
        each.name: each
        for each in (JSONL, SPARQL_CSV, SPARQL_TSV, SPARQL_JSON, SPARQL_XML, NQUADS, JELLY)
    }
)
"""The formats by name."""

DEFAULT_FORMAT = JSONL.name
"""The format of a run that names none: it holds everything that an answer knows."""


class Sink(Protocol):
    """Where the answers of one query go, in the order of their windows."""

    def write(self, answer: Answer) -> None:
        """Write an answer; when this returns, it has left the engine."""

    def close(self) -> None:
        """Let go of the output; a second time, nothing happens."""

    def position(self) -> Any:  # noqa: ANN401 - plain data
        """Bring everything to disk, and return how far it is, as plain data."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Forget what was written after a position; none is the start."""


class Callback(Sink):
    """A sink that calls a function with each answer.

    >>> from rsp_engine.model.answers import Answer, Boolean, Interval
    >>> heard: list[Answer] = []
    >>> Callback(heard.append).write(Answer("q", Interval(0, 5), Boolean(True), {}))
    >>> heard[0].content
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
        """Return nothing: what was told cannot be taken back."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Do nothing."""


class _Written(Sink):
    """A sink that writes text to a destination."""

    def __init__(self, format: str, writer: AnswerWriter, destination: Destination) -> None:  # noqa: A002 - the users' word
        self._manner = f"{format} to {destination.kind}"
        self._writer = writer
        self._destination = destination

    def write(self, answer: Answer) -> None:
        text = self._writer(answer)
        if text:
            self._destination.put(text, answer)

    def close(self) -> None:
        self._destination.close()

    def position(self) -> list[Any]:
        header = self._writer.header if isinstance(self._writer, Table) else None
        return [self._manner, self._destination.position(), header]

    def go_back(self, position: list[Any] | None) -> None:
        manner, where, header = position or (self._manner, None, None)
        if manner != self._manner:
            raise StateError(
                f"answers were written as {manner}, and would now be as {self._manner}",
                "write them as before, or name another folder for the checkpoint",
            )
        self._destination.go_back(where)
        if isinstance(self._writer, Table):
            self._writer.header = header


def open_sink(
    format: str,  # noqa: A002 - the users' word
    output: str | None,
    form: ContentForm,
    *,
    keep: bool = False,
) -> Sink:
    """Open an output in a format for the answers of a query of a form.

    The output is a path; nothing or `-` is standard output. A file is emptied, unless it is kept
    until `go_back` says how much of it counts. What cannot work is refused here, so before
    anything runs:

    >>> open_sink("csv", "answers.csv", "CONSTRUCT")
    Traceback (most recent call last):
    rsp_engine.errors.SinkError: csv cannot hold the graphs that a CONSTRUCT answers
      hint: take nquads or jsonl
    """
    if format not in FORMATS:
        raise SinkError(f"there is no format `{format}`", f"the formats are {', '.join(FORMATS)}")
    chosen = FORMATS[format]
    chosen.check(form)
    if keep and not chosen.can_go_back:
        message = f"{format} cannot be written on after a crash, as a checkpoint asks for"
        raise SinkError(message, "take nquads, or leave the checkpoint out")
    return _Written(format, chosen.writer(), destination_of(output, chosen.suffix, keep=keep))
