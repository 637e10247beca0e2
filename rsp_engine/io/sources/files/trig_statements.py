r"""An incremental splitter of TriG text into its top-level statements.

    @prefix ex: <http://example.org/> .        a directive
    ex:g prov:generatedAtTime 1000 .           triples outside any graph
    ex:g { ex:a ex:p "}" }                     a graph block

Only tokens that decide where a statement ends are distinguished: strings, IRIs, comments, braces
and dots. A malformed statement may have swallowed its successors (an unclosed brace or a long
string): `cut_short` ends it before the next line that starts like a graph block or a directive, and
reading continues there. The splitter does not parse RDF; `trig` parses each statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["LONGEST_STATEMENT", "Statement", "Statements"]

LONGEST_STATEMENT = 16 << 20
"""The longest statement, in bytes."""

_WORD = rb"""(?:\\.|[^\x00-\x20<>"'{}()\[\];,#.\\|])"""
_TOKEN = re.compile(
    rb"""
      (?P<space> [\x00-\x20]+ | \#[^\r\n]* )
    | (?P<string> \"\"\" (?: [^"\\]++ | \\. | "(?!"") )*+ \"\"\"
                | ''' (?: [^'\\]++ | \\. | '(?!'') )*+ '''
                | "(?!"") (?: [^"\\\r\n]++ | \\[^\r\n] )*+ "
                | '(?!'') (?: [^'\\\r\n]++ | \\[^\r\n] )*+ ' )
    | (?P<unclosed> \"\"\" | ''' )
    | (?P<iri> <[^<>"\r\n]*> )
    | (?P<annotation> \{\| | \|\} )
    | (?P<open> \{ )
    | (?P<close> \} )
    | (?P<word> (?: \.(?=[0-9]) )? %(word)s+ (?: \.+ %(word)s+ )* )
    | (?P<dot> \. )
    | (?P<other> . )
    """
    % {b"word": _WORD},
    re.VERBOSE | re.DOTALL,
)
_LABEL = rb"""(?:<[^<>\s]*>|_:[\w.-]+|[\w.-]*:[^\s{}<>"']*|\[[ \t]*\])"""
_RESTART = re.compile(
    rb"^[ \t]*(?:(?:GRAPH\s+)?%(label)s\s*\{(?!\|)|@prefix\b|@base\b|PREFIX\b|BASE\b)"
    % {b"label": _LABEL},
    re.MULTILINE | re.IGNORECASE,
)
_ENDED_BY = {b"prefix": "iri", b"base": "iri", b"version": "string"}
_DIRECTIVES = {*_ENDED_BY, b"@prefix", b"@base", b"@version"}


@dataclass(frozen=True, slots=True)
class Statement:
    """One top-level statement: its text, and the line on which it starts.

    A statement without an end is the rest of the text, or its first `LONGEST_STATEMENT` bytes.
    """

    data: bytes
    line: int
    is_directive: bool
    has_end: bool


class Statements:
    """Splits text, which is fed in whole lines, into complete statements.

    >>> statements = Statements()
    >>> statements.feed(b"<http://example.org/g> {")
    >>> statements.take() is None
    True
    >>> statements.feed(b" }")
    >>> statements.take().data
    b'<http://example.org/g> { }'
    """

    def __init__(self) -> None:
        self._text = bytearray()
        self._at = 0  # the end of the tokens read so far
        self._start: int | None = None  # the start of the current statement
        self._first_word = b""
        self._in_block = False
        self._missing: bytes | None = None  # the closing quotes of an open long string
        self._counted, self._line = 0, 1  # a position in the text, and its line number
        self._is_end = False

    def feed(self, data: bytes) -> None:
        """Add the next lines of the text."""
        done = self._at if self._start is None else self._start
        self._count_lines(done)
        del self._text[:done]
        self._text += data
        if self._missing is not None and self._missing in data:
            self._missing = None
        self._at -= done
        self._counted = 0
        self._start = None if self._start is None else 0

    def end(self) -> None:
        """Mark the end of the text."""
        self._is_end = True

    def take(self) -> Statement | None:
        """Return the next statement; `None` if more text is needed."""
        if self._missing is not None and not self._is_last_chance():
            return None
        while (token := _TOKEN.match(self._text, self._at)) is not None:
            if token.lastgroup == "unclosed" and not self._is_last_chance():
                self._missing = token[0]
                return None
            self._at = token.end()
            if token.lastgroup != "space" and self._is_last(token):
                return self._statement(has_end=True)
        if self._start is not None and self._is_last_chance():
            return self._statement(has_end=False)
        return None

    def cut_short(self, statement: Statement) -> Statement | None:
        """End the last statement before a line that starts another one; `None` if no line does.

        The other statement is the next one that `take` returns.
        """
        restart = _RESTART.search(statement.data, 1)
        if restart is None:
            return None
        kept = statement.data[: restart.start()]
        self._at -= len(statement.data) - len(kept)
        return Statement(kept.rstrip(), statement.line, statement.is_directive, has_end=True)

    def _is_last(self, token: re.Match[bytes]) -> bool:
        """Add a token; return whether it is the last one of its statement."""
        kind = token.lastgroup
        if self._start is None:
            self._start = token.start()
            self._first_word = token[0].lower() if kind == "word" else b""
            self._in_block = False
        self._in_block = self._in_block or kind == "open"
        if self._in_block:
            return kind == "close"
        if self._first_word in _ENDED_BY:
            return kind == _ENDED_BY[self._first_word]
        return kind in ("dot", "close")

    def _statement(self, has_end: bool) -> Statement:
        start = 0 if self._start is None else self._start
        self._count_lines(start)
        is_directive = self._first_word in _DIRECTIVES and not self._in_block
        data = bytes(self._text[start : self._at])
        self._start = self._missing = None
        return Statement(data, self._line, is_directive, has_end)

    def _count_lines(self, end: int) -> None:
        self._line += self._text.count(b"\n", self._counted, end)
        self._counted = end

    def _is_last_chance(self) -> bool:
        """Return whether the statement must end with the available text."""
        start = self._at if self._start is None else self._start
        return self._is_end or len(self._text) - start > LONGEST_STATEMENT
