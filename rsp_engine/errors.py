"""The errors of the engine, and how they are shown.

    RspError                    base class: a message and, where one helps, a hint
    ├── QueryFileError          a query file cannot be read: missing, a folder, too large
    ├── QueryError              a query is wrong; carries every diagnostic with its span
    │   ├── QuerySyntaxError    ... by the SPARQL 1.1 grammar, its notes, or the clauses of RSP-QL
    │   ├── QuerySemanticError  ... by the rules of RSP-QL: it parses, but has no meaning
    │   └── PlanError           ... by what the engine supports: it is valid, but cannot be run
    ├── BindingError            a stream or graph has no source, or a source is never read
    ├── SourceError             a source cannot be opened: missing, unreadable, unknown format
    ├── SinkError               answers cannot be written: bad path, format of another query form
    │   └── UndeliveredError    ... to another program: it has not acknowledged them in time
    ├── ServiceError            a service cannot be queried: bad address, or not allowed
    ├── CaseError               a case of the test kit cannot be read: a section, a line, a table
    ├── SuiteError              an experiment suite cannot be run: a key is unknown or wrong
    ├── StateError              a saved state does not fit: another version or configuration
    ├── DriverError             a driver cannot start or go on: no Java, disk full, Spark failure
    └── ServerError             `rsp serve` refuses a request, or cannot be reached

A `Diagnostic` is one error or warning at one place of a query.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BindingError",
    "CaseError",
    "Diagnostic",
    "DriverError",
    "PlanError",
    "Position",
    "QueryError",
    "QueryFileError",
    "QuerySemanticError",
    "QuerySyntaxError",
    "RspError",
    "ServerError",
    "ServiceError",
    "SinkError",
    "SourceError",
    "Span",
    "StateError",
    "SuiteError",
    "UndeliveredError",
    "position",
    "render",
]

_LINE_END = re.compile(r"\r\n|\n|\r")
_EXCERPT_LENGTH = 100  # the most characters that are shown of the line of a diagnostic
_MARK = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters in a text: `start` included, `end` excluded."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Position:
    """A line and a column in a text, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning in a query: its message, its span and, where one helps, a hint."""

    kind: Literal["syntax", "semantic"]
    message: str
    span: Span
    hint: str | None = None


class RspError(Exception):
    """The base class of all errors that the engine raises on purpose."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"


class QueryFileError(RspError):
    """A query file cannot be read."""

    def __init__(self, message: str, hint: str | None = None, path: str = "") -> None:
        super().__init__(message, hint)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {super().__str__()}"


class QueryError(RspError):
    """A query is wrong; the message and the hint are those of the first diagnostic."""

    def __init__(self, diagnostics: Sequence[Diagnostic], text: str, source: str) -> None:
        super().__init__(diagnostics[0].message, diagnostics[0].hint)
        self.diagnostics = tuple(diagnostics)
        self.text = text
        self.source = source

    def __str__(self) -> str:
        return "\n".join(render(d, self.text, self.source) for d in self.diagnostics)


class QuerySyntaxError(QueryError):
    """A query does not parse as RSP-QL."""


class QuerySemanticError(QueryError):
    """A query parses, but breaks a rule of RSP-QL."""


class PlanError(QueryError):
    """A query is valid, but the engine cannot run it."""


class BindingError(RspError):
    """A query does not fit the streams, graphs, services or functions it is bound to."""


class SourceError(RspError):
    """A source cannot be opened."""


class SinkError(RspError):
    """Answers cannot be written."""


class UndeliveredError(SinkError):
    """Answers were not delivered to another program before the run ended."""


class ServiceError(RspError):
    """A service cannot be queried as it is configured."""


class CaseError(RspError):
    """A test of the test kit cannot be run as it is written."""


class SuiteError(RspError):
    """An experiment suite cannot be run as it is written."""


class StateError(RspError):
    """A saved state cannot be restored."""


class DriverError(RspError):
    """A driver cannot start, or cannot go on."""


class ServerError(RspError):
    """A server refuses a request, or cannot be reached."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.diagnostics: list[dict[str, Any]] = []
        """What is wrong with the text of a query, as the server says it."""


def position(text: str, offset: int) -> Position:
    r"""Return the line and the column of an offset; LF, CRLF and CR each end a line.

    >>> position("SELECT *\r\n{ }", 11)
    Position(line=2, column=2)
    """
    ends = [end.end() for end in _LINE_END.finditer(text, 0, offset)]
    # The two characters of a CRLF belong to the line that they end.
    if ends and text[ends[-1] - 1 : ends[-1] + 1] == "\r\n":
        ends.pop()
    return Position(len(ends) + 1, offset - (ends[-1] if ends else 0) + 1)


def render(diagnostic: Diagnostic, text: str, source: str, label: str = "error") -> str:
    """Format a diagnostic with its line, carets under its span, and its hint.

    >>> wrong = Diagnostic("syntax", "expected `}`", Span(9, 10), "close it")
    >>> print(render(wrong, "SELECT * ?", "q"))
    q:1:10: error: expected `}`
      |
    1 | SELECT * ?
      |          ^
      = hint: close it
    """
    place = position(text, diagnostic.span.start)
    line, caret = _excerpt(text, diagnostic.span, place)
    number = str(place.line)
    gutter = " " * len(number)
    shown = [
        f"{source}:{place.line}:{place.column}: {label}: {diagnostic.message}",
        f"{gutter} |",
        f"{number} | {line}".rstrip(),
        f"{gutter} | {caret}",
    ]
    if diagnostic.hint is not None:
        shown.append(f"{gutter} = hint: {diagnostic.hint}")
    return "\n".join(shown)


def _excerpt(text: str, span: Span, place: Position) -> tuple[str, str]:
    """Return the line of a span and the carets under it; cut a long line around the span."""
    line_start = span.start - place.column + 1
    end_match = _LINE_END.search(text, span.start)
    line_end = end_match.start() if end_match else len(text)
    start = line_start
    if line_end - line_start > _EXCERPT_LENGTH:
        centred = span.start - _EXCERPT_LENGTH // 2
        start = max(line_start, min(centred, line_end - _EXCERPT_LENGTH))
    end = min(line_end, start + _EXCERPT_LENGTH)
    before = _visible(text[start : span.start])
    marked = _visible(text[span.start : max(span.start, min(span.end, end))])
    after = _visible(text[span.start : end])[len(marked) :]
    lead = "… " if start > line_start else ""
    tail = " …" if end < line_end else ""
    caret = " " * _width(lead + before) + "^" * max(1, _width(marked))
    return lead + before + marked + after + tail, caret


def _visible(text: str) -> str:
    """Replace characters that move the cursor: a tab by four blanks, other controls by U+FFFD."""
    return "".join("    " if c == "\t" else _MARK if _is_control(c) else c for c in text)


def _is_control(character: str) -> bool:
    return unicodedata.category(character).startswith("C")


def _width(text: str) -> int:
    """Return the width of a text in terminal columns: 0 for combining marks, 2 for wide ones."""
    return sum(
        0
        if unicodedata.category(c) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(c) in "FW"
        else 1
        for c in text
    )
