r"""TriG text, as it arrives, into its top-level statements.

    @prefix ex: <http://example.org/> .        a directive
    ex:g prov:generatedAtTime 1000 .           triples outside any graph
    ex:g { ex:a ex:p "}" }                     a graph block

Only the tokens are looked at that decide where a statement ends: strings, IRIs, comments, braces
and dots. A statement that turns out to be malformed may have swallowed its neighbours (a brace
or a long string that nobody closed): `cut_short` ends it before the next line that starts
like a graph block or a directive, and reading goes on there.
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
    """One top-level statement: how it was written, and the line where it starts.

    One without an end is what is left of the text, or as much as is looked at.
    """

    data: bytes
    line: int
    is_directive: bool
    has_end: bool


class Statements:
    """Takes text, whole lines at a time, and gives the statements that are complete.

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
        self._at = 0  # up to where the text is known
        self._start: int | None = None  # where the statement starts that is being read
        self._first_word = b""
        self._in_block = False
        self._missing: bytes | None = None  # the quotes that a long string still lacks
        self._counted, self._line = 0, 1  # a place in the text, and its line
        self._is_end = False

    def feed(self, data: bytes) -> None:
        """Take the next lines of the text."""
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
        """Know that no more text comes."""
        self._is_end = True

    def take(self) -> Statement | None:
        """Return the next statement, or nothing if more text is needed."""
        if self._missing is not None and not self._is_last_chance():
            return None
        while (token := _TOKEN.match(self._text, self._at)) is not None:
            if token.lastgroup == "unclosed" and not self._is_last_chance():
                self._missing = token[0]
                return None
            self._at = token.end()
            if token.lastgroup != "space" and self._is_last(token):
                return self._taken(has_end=True)
        if self._start is not None and self._is_last_chance():
            return self._taken(has_end=False)
        return None

    def cut_short(self, statement: Statement) -> Statement | None:
        """End the statement just taken where a line starts another one; nothing if none does.

        That other one is the next to be taken.
        """
        restart = _RESTART.search(statement.data, 1)
        if restart is None:
            return None
        kept = statement.data[: restart.start()]
        self._at -= len(statement.data) - len(kept)
        return Statement(kept.rstrip(), statement.line, statement.is_directive, has_end=True)

    def _is_last(self, token: re.Match[bytes]) -> bool:
        """Take a token; tell whether it is the last one of its statement."""
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

    def _taken(self, has_end: bool) -> Statement:
        start = 0 if self._start is None else self._start
        self._count_lines(start)
        is_directive = self._first_word in _DIRECTIVES and not self._in_block
        data = bytes(self._text[start : self._at])
        self._start = self._missing = None
        return Statement(data, self._line, is_directive, has_end)

    def _count_lines(self, place: int) -> None:
        self._line += self._text.count(b"\n", self._counted, place)
        self._counted = place

    def _is_last_chance(self) -> bool:
        """Tell whether the statement has to end with the text that is here."""
        start = self._at if self._start is None else self._start
        return self._is_end or len(self._text) - start > LONGEST_STATEMENT
