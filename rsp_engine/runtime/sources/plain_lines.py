r"""Lines of N-Quads in their plainest form, taken apart without a parser.

Most lines of most streams look like this: three IRIs of http without anything odd in them, a number
in its canonical form or a simple word, a graph that ends in its time, single blanks between.

    <http://a.org/b> <http://a.org/p> "1"^^<http://...#integer> <http://a.org/g/7> .

Such lines are surely N-Quads, and their terms are written as the engine writes them; to know that
takes a fraction of the time that a parser takes. If any line of a text has another form, the whole
text is left to the parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import ne
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["PlainLines", "plain_lines"]

_TOKENS = 5  # of a line: four terms and the dot
_IRI = rb"<https?://[A-Za-z0-9._/-]+>"
_XSD = rb"<http://www\.w3\.org/2001/XMLSchema#"
_INTEGER = rb'"(?:0|-?[1-9][0-9]{0,17})"\^\^' + _XSD + rb"integer>"
_FRACTION = (
    rb'"(?:0|-?0\.[0-9]{0,5}[1-9]|-?[1-9][0-9]{0,5}(?:\.[0-9]{0,5}[1-9])?)"\^\^'
    + _XSD
    + rb"(?:decimal|double)>"
)
_WORD = rb'"[A-Za-z0-9._/-]*"'
_ANY_NAME = rb"<https?://[A-Za-z0-9._/-]+(?:#[A-Za-z0-9._/-]*)?>"
_ARE_IRIS = re.compile(rb"(?:" + _IRI + rb"\n)*")
_ARE_OBJECTS = re.compile(rb"(?:(?:" + rb"|".join((_INTEGER, _IRI, _FRACTION, _WORD)) + rb")\n)*")
_IS_NAME = re.compile(_ANY_NAME)
_TIMES = re.compile(rb"(?<![0-9])([0-9]{1,18})>\n")
_QUOTED = b'"'


@dataclass(frozen=True, slots=True)
class PlainLines:
    """The terms of lines, as they are written, and the time of each."""

    subjects: list[bytes]
    predicates: list[bytes]
    objects: list[bytes]
    times: Integers
    begins: Booleans
    """Whether an element begins with a line."""

    def __len__(self) -> int:
        return len(self.subjects)

    def numbers(self, places: Sequence[int]) -> Floats | None:
        """Return the numbers that some objects are; nothing if one of them is something else."""
        objects = [self.objects[place] for place in places]
        if not all(b"^^" in text for text in objects):
            return None
        values = [text.split(_QUOTED, 2)[1] for text in objects]
        return np.array(values, dtype=np.bytes_).astype(np.float64) if values else np.empty(0)


def plain_lines(data: bytes) -> PlainLines | None:
    r"""Take lines apart; nothing if one of them is not plain, or stands twice in its element.

    >>> line = b'<http://a.org/b> <http://a.org/p> "c" <http://a.org/g/7> .\n'
    >>> plain_lines(line).times, plain_lines(line + b"#\n")
    (array([7]), None)
    """
    tokens = data.split()
    count, rest = divmod(len(tokens), _TOKENS)
    is_regular = (
        not rest
        and data.count(b" .\n") == data.count(b"\n") == count
        and data.count(b" ") == (_TOKENS - 1) * count
        and tokens[4::_TOKENS].count(b".") == count
    )
    if not is_regular or b"\r" in data:
        return None
    subjects, predicates, objects, graphs = (tokens[n::_TOKENS] for n in range(4))
    if not all(map(_IS_NAME.fullmatch, set(predicates))):
        return None
    if not _ARE_IRIS.fullmatch(_lines(subjects)) or not _ARE_OBJECTS.fullmatch(_lines(objects)):
        return None
    named = _lines(graphs)
    times = _TIMES.findall(named)
    if len(times) != count or not _ARE_IRIS.fullmatch(named):
        return None
    begins = np.ones(count, dtype=np.bool_)
    begins[1:] = list(map(ne, graphs[1:], graphs))
    if not begins.all() and len(set(zip(*(tokens[n::5] for n in range(4)), strict=True))) < count:
        return None
    return PlainLines(subjects, predicates, objects, np.array(times, dtype=np.int64), begins)


def _lines(tokens: list[bytes]) -> bytes:
    return b"\n".join([*tokens, b""])
