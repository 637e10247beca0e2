"""Everything that can go wrong, and how it is told.

    RspError                    anything the engine refuses: a message and, if one helps, a hint
    ├── QueryFileError          a query file cannot be read: missing, a folder, too large
    ├── QueryError              the text of a query is wrong; holds every diagnostic, with its place
    │   ├── QuerySyntaxError    ... by the SPARQL 1.1 grammar, its notes, or the clauses of RSP-QL
    │   ├── QuerySemanticError  ... by the rules of RSP-QL: it can be read, but has no meaning
    │   └── PlanError           ... by what the engine can do: it has a meaning, but no way to run
    ├── BindingError            a stream or graph of a query has no source, or a source no use
    ├── SourceError             a source cannot be opened: missing, unreadable, of unknown format
    ├── SinkError               answers cannot be written: a bad path, a format of another form
    ├── ServiceError            a service cannot be asked: a bad address, one that is not allowed
    ├── SuiteError              a suite of experiments cannot be run: a key is unknown or wrong
    ├── StateError              a saved state does not fit: of another version or configuration
    └── DriverError             what runs the queries fails: no Java, a folder that is full, Spark

A `Diagnostic` is one thing that is wrong, or suspicious, at one place of a query.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BindingError",
    "Diagnostic",
    "DriverError",
    "PlanError",
    "Position",
    "QueryError",
    "QueryFileError",
    "QuerySemanticError",
    "QuerySyntaxError",
    "RspError",
    "ServiceError",
    "SinkError",
    "SourceError",
    "Span",
    "StateError",
    "SuiteError",
    "position",
    "render",
]

_LINE_END = re.compile(r"\r\n|\n|\r")
_SHOWN = 100
_MARK = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text: the characters from `start` up to, not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text as people count: lines and columns from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong or suspicious in a query, where it is, and a way out."""

    kind: Literal["syntax", "semantic"]
    message: str
    span: Span
    hint: str | None = None


class RspError(Exception):
    """Anything that the engine refuses."""

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
    """The text of a query is wrong. The first diagnostic gives the message and the hint."""

    def __init__(self, diagnostics: Sequence[Diagnostic], text: str, source: str) -> None:
        super().__init__(diagnostics[0].message, diagnostics[0].hint)
        self.diagnostics = tuple(diagnostics)
        self.text = text
        self.source = source

    def __str__(self) -> str:
        return "\n".join(render(d, self.text, self.source) for d in self.diagnostics)


class QuerySyntaxError(QueryError):
    """The text is not RSP-QL."""


class QuerySemanticError(QueryError):
    """The text is RSP-QL, but what it says cannot be."""


class PlanError(QueryError):
    """The query is good, but the engine has no way to run it."""


class BindingError(RspError):
    """A query and what it is bound to do not fit."""


class SourceError(RspError):
    """A source cannot be opened."""


class SinkError(RspError):
    """Answers cannot be written."""


class ServiceError(RspError):
    """A service cannot be asked as it is configured."""


class SuiteError(RspError):
    """A suite of experiments cannot be run as it is written."""


class StateError(RspError):
    """A saved state cannot be taken up."""


class DriverError(RspError):
    """What runs the queries cannot start, or cannot go on."""


def position(text: str, offset: int) -> Position:
    r"""Return the line and the column of a character; LF, CRLF and CR end a line.

    >>> position("SELECT *\r\n{ }", 11)
    Position(line=2, column=2)
    """
    ends = [end.end() for end in _LINE_END.finditer(text, 0, offset)]
    # The two characters of a CRLF belong to the line that they end.
    if ends and text[ends[-1] - 1 : ends[-1] + 1] == "\r\n":
        ends.pop()
    return Position(len(ends) + 1, offset - (ends[-1] if ends else 0) + 1)


def render(diagnostic: Diagnostic, text: str, source: str, label: str = "error") -> str:
    """Show a diagnostic with its line, a caret under the place, and the hint.

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
    """Return the line around a span and the carets under it; a long line is cut around them."""
    line_start = span.start - place.column + 1
    end_match = _LINE_END.search(text, span.start)
    line_end = end_match.start() if end_match else len(text)
    start = line_start
    if line_end - line_start > _SHOWN:
        start = max(line_start, min(span.start - _SHOWN // 2, line_end - _SHOWN))
    end = min(line_end, start + _SHOWN)
    before = _visible(text[start : span.start])
    marked = _visible(text[span.start : max(span.start, min(span.end, end))])
    after = _visible(text[span.start : end])[len(marked) :]
    lead = "… " if start > line_start else ""
    tail = " …" if end < line_end else ""
    caret = " " * _width(lead + before) + "^" * max(1, _width(marked))
    return lead + before + marked + after + tail, caret


def _visible(text: str) -> str:
    """Replace what would move the cursor: a tab by four blanks, other controls by a mark."""
    return "".join("    " if c == "\t" else _MARK if _is_control(c) else c for c in text)


def _is_control(character: str) -> bool:
    return unicodedata.category(character).startswith("C")


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(
        0
        if unicodedata.category(c) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(c) in "FW"
        else 1
        for c in text
    )
