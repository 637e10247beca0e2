r"""Plain N-Quads lines, located in a byte array without a parser.

Most lines of most streams have this form: http IRIs of letters, digits and `._/-`; an object that
is such an IRI, a canonical number or a simple string; a graph name that ends in its time; and
single spaces.

    <http://a.org/b> <http://a.org/p> "1"^^<http://...#integer> <http://a.org/g/7> .

Such lines are valid N-Quads, and their terms are spelled as the engine spells them. All lines are
processed together, as one array of bytes. The shape of a line is the sequence of its structural
characters: brackets, quotes, colons, hashes and spaces.

    <:> <:> ""^^<:#> <:> \n

A text has few shapes. If any line has another form, the whole text is left to the parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rsp_engine.io.sources.fast_nquads.plain_numbers import plain_numbers, trailing_digits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Floats, Integers

    Bytes = NDArray[np.uint8]

__all__ = ["PlainLines", "plain_lines"]

_MOST_SHAPES = 16  # each shape costs a pass: a text with more of them is left to the parser
_SHAPE = re.compile(rb'<:> <:(#?)> (<:>|""(?:\^\^<:#>)?) <:> \n')
INTEGER, DECIMAL, DOUBLE = 1, 2, 3
_KINDS = {
    kind: f"^^<http://www.w3.org/2001/XMLSchema#{kind}>".encode()
    for kind in ("integer", "decimal", "double")
}
_ORDINARY, _SHAPING, _ODD = b"\0\1\2"
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-"
_CLASSES = bytes(
    _SHAPING if byte in b'<>":^# \n' else _ORDINARY if byte in _PLAIN else _ODD
    for byte in range(256)
)


@dataclass(frozen=True, slots=True)
class PlainLines:
    """The positions of the terms of all lines in a text, and the time of each line."""

    text: str
    edges: Integers
    """Per line: its start, and the positions of the spaces after each of its four terms."""
    times: Integers
    begins: Booleans
    """Per line: whether it is the first of an element."""
    values: Floats
    """Per line: the object as a number; NaN if it is not a number."""
    kinds: Integers
    """Per line: the datatype of that number: `INTEGER`, `DECIMAL`, `DOUBLE`, or 0."""

    def __len__(self) -> int:
        return len(self.times)

    def matching(self, predicate: bytes) -> Integers:
        """Return the indices of the lines with a predicate."""
        starts, ends = self.edges[:, 1] + 1, self.edges[:, 2]
        places = np.flatnonzero(ends - starts == len(predicate))
        text = np.frombuffer(self.text.encode(), dtype=np.uint8)
        return places[_have(text, starts[places], predicate)]

    def subjects(self, places: Integers) -> list[str]:
        """Return the subjects of some lines, as N-Quads text."""
        return self._between(self.edges[places, 0], self.edges[places, 1])

    def objects(self, places: Integers) -> list[str]:
        """Return the objects of some lines, as N-Quads text."""
        return self._between(self.edges[places, 2] + 1, self.edges[places, 3])

    def triples(self, places: Integers) -> list[str]:
        """Return the triples of some lines, as N-Quads text."""
        return self._between(self.edges[places, 0], self.edges[places, 3])

    def rows(self, places: Integers) -> list[str]:
        """Return the subjects and objects of some lines, as tab-separated rows."""
        pairs = zip(self.subjects(places), self.objects(places), strict=True)
        return [f"{subject}\t{value}" for subject, value in pairs]

    def _between(self, starts: Integers, ends: Integers) -> list[str]:
        text = self.text
        return [text[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]


def plain_lines(data: bytes) -> PlainLines | None:
    r"""Locate the terms of all lines; `None` if one is not plain, or repeated in its element.

    >>> line = b'<http://a.org/b> <http://a.org/p> "c" <http://a.org/g/7> .\n'
    >>> plain_lines(line).times, plain_lines(line + b"#\n")
    (array([7]), None)
    """
    if not data.endswith(b"\n"):
        return None if data else _no_lines()
    classes = data.translate(_CLASSES)
    if _ODD in classes:
        return None
    text = np.frombuffer(data, dtype=np.uint8)
    marks = np.flatnonzero(np.frombuffer(classes, dtype=np.bool_))
    shapes = _shapes(text[marks], marks)
    if shapes is None:
        return None
    parts = [part for shape in shapes if (part := _lines_of(text, shape)) is not None]
    if len(parts) < len(shapes):
        return None
    lines = np.concatenate([shape.lines for shape in shapes])
    order = np.argsort(lines, kind="stable") if len(shapes) > 1 else slice(None)
    edges, times, values, kinds = (np.concatenate(each)[order] for each in zip(*parts, strict=True))
    begins = _begins(text, edges, times)
    if not begins.all() and len(set(data.splitlines())) < len(times):
        return None
    return PlainLines(data.decode(), edges, times, begins, values, kinds)


def _no_lines() -> PlainLines:
    return PlainLines(
        "",
        np.empty((0, 5), dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.bool_),
        np.empty(0),
        np.empty(0, dtype=np.int64),
    )


class _Shape(NamedTuple):
    """Lines of one shape: their indices, their starts, and their structural characters."""

    text: bytes
    lines: Integers
    starts: Integers
    marks: Integers


def _shapes(kinds: Bytes, marks: Integers) -> list[_Shape] | None:
    """Group lines by shape; `None` if there are too many shapes."""
    ends = np.flatnonzero(kinds == ord("\n"))
    firsts = np.r_[0, ends[:-1] + 1]
    starts = np.r_[0, marks[ends[:-1]] + 1]
    counts = ends - firsts + 1
    shapes: list[_Shape] = []
    left = np.arange(len(ends))
    while len(left):
        if len(shapes) == _MOST_SHAPES:
            return None
        first, count = firsts[left[0]], counts[left[0]]
        shape = kinds[first : first + count].tobytes()
        alike = left[counts[left] == count]
        alike = alike[_have(kinds, firsts[alike], shape)]
        positions = marks[firsts[alike][:, np.newaxis] + np.arange(count)]
        shapes.append(_Shape(shape, alike, starts[alike], positions))
        left = np.setdiff1d(left, alike, assume_unique=True) if len(alike) < len(left) else left[:0]
    return shapes


def _lines_of(text: Bytes, shape: _Shape) -> tuple[Integers, Integers, Floats, Integers] | None:
    """Return edges, times, numbers and types of lines of one shape; `None` if one is not plain."""
    known = _SHAPE.fullmatch(shape.text)
    if known is None:
        return None
    starts, marks = shape.starts, shape.marks
    spaces = [n for n, mark in enumerate(shape.text) if mark == ord(" ")]
    edges = np.column_stack([starts, *(marks[:, n] for n in spaces)])
    is_name = [
        _are_names(text, marks[:, :3], starts, edges[:, 1]),
        _are_names(text, marks[:, 4 : spaces[1]], edges[:, 1] + 1, edges[:, 2]),
        _are_names(text, marks[:, spaces[2] + 1 : spaces[3]], edges[:, 3] + 1, edges[:, 4]),
        _have(text, edges[:, 4] + 1, b".\n"),
    ]
    if not all(each.all() for each in is_name):
        return None
    times = trailing_digits(text, edges[:, 4] - 1)
    values = _objects(text, known[2], marks[:, spaces[1] + 1 : spaces[2]], edges)
    return None if times is None or values is None else (edges, times, *values)


def _are_names(text: Bytes, marks: Integers, starts: Integers, ends: Integers) -> Booleans:
    """Return which IRIs are plain, given their brackets, colons and hashes."""
    scheme, last = marks[:, 1], marks[:, -1]
    path_ends = marks[:, 2]  # the `#` of a fragment, or the closing bracket
    is_secure = scheme - starts == len(b"<https")
    is_http = (scheme - starts == len(b"<http")) | (
        is_secure & (text[np.where(is_secure, scheme - 1, scheme)] == ord("s"))
    )
    are_names: Booleans = (
        (marks[:, 0] == starts)
        & (last == ends - 1)
        & is_http
        & _have(text, starts, b"<http")
        & _have(text, scheme + 1, b"//")
        & (path_ends > scheme + len(b"://"))
    )
    return are_names


def _objects(
    text: Bytes, shape: bytes, marks: Integers, edges: Integers
) -> tuple[Floats, Integers] | None:
    """Return numbers and types of objects of one shape; `None` if one is not plain."""
    starts, ends = edges[:, 2] + 1, edges[:, 3]
    values, kinds = np.full(len(edges), np.nan), np.zeros(len(edges), dtype=np.int64)
    none = values, kinds
    if shape.startswith(b"<"):
        return none if _are_names(text, marks, starts, ends).all() else None
    quote = marks[:, 1]
    if not (marks[:, 0] == starts).all():
        return None
    if shape == b'""':
        return none if (quote == ends - 1).all() else None
    is_left = np.ones(len(edges), dtype=np.bool_)
    for number, (kind, suffix) in enumerate(_KINDS.items(), INTEGER):
        chosen = np.flatnonzero(is_left & (ends - quote - 1 == len(suffix)))
        chosen = chosen[_have(text, quote[chosen] + 1, suffix)]
        if not len(chosen):
            continue
        of_kind = plain_numbers(text, starts[chosen] + 1, quote[chosen], is_whole=kind == "integer")
        if of_kind is None:
            return None
        values[chosen], kinds[chosen], is_left[chosen] = of_kind, number, False
    return None if is_left.any() else none


def _begins(text: Bytes, edges: Integers, times: Integers) -> Booleans:
    """Return which lines have another graph than the line before."""
    starts = edges[:, 3] + 1
    sizes = edges[:, 4] - starts
    begins = np.ones(len(times), dtype=np.bool_)
    begins[1:] = (times[1:] != times[:-1]) | (sizes[1:] != sizes[:-1])
    alike = np.flatnonzero(~begins)
    for size in np.unique(sizes[alike]).tolist():
        places = alike[sizes[alike] == size]
        here, before = (
            text[starts[p][:, np.newaxis] + np.arange(size)] for p in (places, places - 1)
        )
        begins[places] = (here != before).any(axis=1)
    return begins


def _have(text: Bytes, starts: Integers, wanted: bytes) -> Booleans:
    """Return at which of `starts` the text equals `wanted`."""
    size = len(wanted)
    if not len(starts) or len(text) < size:
        return np.zeros(len(starts), dtype=np.bool_)
    fits = starts <= len(text) - size
    windows = sliding_window_view(text, size)[np.where(fits, starts, 0)]
    same: Booleans = (windows.view(f"S{size}").ravel() == wanted) & fits
    return same
