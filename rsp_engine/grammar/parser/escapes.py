r"""Escapes: `\u0041` anywhere in a query (SPARQL 1.1, section 19.2), `\n` in strings (19.7).

Code point escapes are undone before the text is split into tokens, in one pass: the result of an
escape never becomes part of another. Two backslashes in a row are left alone, so that `"\\u0041"`
is a backslash and five characters. `EscapeOffsets` maps offsets back to the original text.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from rsp_engine.errors import Diagnostic, Position, Span, position

__all__ = ["EscapeOffsets", "undo_codepoint_escapes", "undo_local_escapes", "undo_string_escapes"]

_CODEPOINT = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_STRING = re.compile(r"\\(.)")
_STRING_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


class EscapeOffsets:
    """The map from offsets in the parsed text to offsets in the written text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._from = [0]
        self._shift = [0]

    def moved(self, place: int, shift: int) -> None:
        """Record that from `place` on, the written text is `shift` characters ahead in total."""
        self._from.append(place)
        self._shift.append(shift)

    def written(self, start: int, end: int) -> Span:
        """Return the span in the written text of a range of the parsed text."""
        return Span(self._written(start), self._written(end))

    def position(self, place: int) -> Position:
        """Return the line and the column in the written text of an offset in the parsed text."""
        return position(self._text, self._written(place))

    def _written(self, place: int) -> int:
        return place + self._shift[bisect_right(self._from, place) - 1]


def undo_codepoint_escapes(text: str) -> tuple[str, EscapeOffsets, list[Diagnostic]]:
    r"""Replace `\uXXXX` and `\UXXXXXXXX` by their characters.

    Return the text, the offsets of the original, and an error for each escape that is no character.

    >>> undo_codepoint_escapes(r'"\u0041\\u0041"')[0]
    '"A\\\\u0041"'
    """
    places, diagnostics = EscapeOffsets(text), list[Diagnostic]()
    if "\\u" not in text and "\\U" not in text:
        return text, places, diagnostics
    pieces: list[str] = []
    done = shift = 0
    for escape in _CODEPOINT.finditer(text):
        digits = escape[1] or escape[2]
        if digits is None:
            continue
        code = int(digits, 16)
        if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            message = f"`{escape[0]}` is not a character"
            diagnostics.append(Diagnostic("syntax", message, Span(*escape.span())))
            code = 0xFFFD
        pieces += text[done : escape.start()], chr(code)
        done = escape.end()
        shift += len(escape[0]) - 1
        places.moved(done - shift, shift)
    return "".join([*pieces, text[done:]]), places, diagnostics


def undo_string_escapes(text: str) -> str:
    r"""Replace `\n` and the other escapes of a string.

    >>> undo_string_escapes(r"a\tb\"")
    'a\tb"'
    """
    return _STRING.sub(lambda m: _STRING_ESCAPES.get(m[1], m[1]), text) if "\\" in text else text


def undo_local_escapes(text: str) -> str:
    r"""Replace `\~` and the other escapes of the local part of a prefixed name.

    >>> undo_local_escapes(r"c\~z\.")
    'c~z.'
    """
    return _STRING.sub(r"\1", text) if "\\" in text else text
