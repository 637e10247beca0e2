"""The context of a syntax error: the token, the tokens before it, and what was expected."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, cast

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from rsp_engine.errors import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark import Lark, Token

    from rsp_engine.grammar.parser.escapes import EscapeOffsets

__all__ = ["END", "Failure"]

END = "$END"
_CLOSES = {"}": "{", ")": "(", "]": "["}


@dataclass(frozen=True, slots=True)
class Failure:
    """The place where the parser stops. `text` has its code point escapes undone.

    `found` is the type of the token there: a terminal of the grammar, `$END`, or `None` if the
    characters are no token. `before` lists the tokens before it, and `opened` the unclosed brackets
    among them.
    """

    text: str
    places: EscapeOffsets
    span: Span
    found: str | None
    expected: frozenset[str]
    before: tuple[Token, ...]
    opened: tuple[Token, ...]

    @classmethod
    def of(cls, error: UnexpectedInput, text: str, places: EscapeOffsets, parser: Lark) -> Failure:
        """Return the context of an error that Lark raised."""
        token = error.token if isinstance(error, UnexpectedToken) else None
        found = None if token is None else token.type
        start = len(text) if found == END else cast("int", error.pos_in_stream)
        before = list(takewhile(lambda t: (t.start_pos or 0) < start, _tokens(parser, text)))
        if found == END and before:
            start = before[-1].end_pos or 0
        span = Span(start, start + (1 if token is None else len(token)))
        return cls(text, places, span, found, _expected(error), tuple(before), _opened(before))

    @property
    def value(self) -> str:
        """The text of the token where the parser stops."""
        return self.text[self.span.start : self.span.end]

    def previous(self, back: int = 1) -> str:
        """Return the text of a previous token in capitals; empty if there is none."""
        return str(self.before[-back]).upper() if len(self.before) >= back else ""


def _tokens(parser: Lark, text: str) -> Iterator[Token]:
    with contextlib.suppress(UnexpectedCharacters):
        yield from parser.lex(text)


def _expected(error: UnexpectedInput) -> frozenset[str]:
    parser = getattr(error, "interactive_parser", None)
    return frozenset() if parser is None else frozenset(parser.accepts())


def _opened(tokens: list[Token]) -> tuple[Token, ...]:
    opened: list[Token] = []
    for token in tokens:
        if token in _CLOSES.values():
            opened.append(token)
        elif token in _CLOSES and opened and opened[-1] == _CLOSES[token]:
            opened.pop()
    return tuple(opened)
