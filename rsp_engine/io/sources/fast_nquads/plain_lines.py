r"""Plain N-Quads lines, located in a text without a parser, all lines at once.

Most lines of most streams have this form: http IRIs of letters, digits and `._/-`, perhaps with a
fragment; an object that is such an IRI, or a literal without escapes; a graph name that ends in its
time; and single spaces.

    <http://a.org/b> <http://a.org/p> "1"^^<http://...#integer> <http://a.org/g/7> .

Spaces and newlines give the edges of the terms, and what follows the last quote of a literal is one
of a few suffixes. Within these edges, each character must be one of the plain ones. If as many
characters are special as the forms of the lines require, no other one can be; only if there are
more, they are looked for. Any other line is left to the parser, by itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.io.sources.fast_nquads.quad_lines import (
    NO_NUMBER,
    UNREAD,
    LineEdges,
    Objects,
    QuadLines,
)
from rsp_engine.io.sources.fast_nquads.words import LONGEST_NUMBER, Words
from rsp_engine.model.terms.columns import DECIMAL_KIND, DOUBLE_KIND, INTEGER_KIND, MOST_DIGITS
from rsp_engine.model.terms.numerals import SURE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["TRIPLES", "TURTLE_TRIPLES", "LineForm", "Located", "is_utf8", "locate"]

_MOST_SUFFIXES = 16  # each costs a pass: lines with further ones are left to the parser
_NEWLINE, _SPACE, _QUOTE, _HASH, _DOT, _ZERO, _NINE, _MINUS, _SLASH, _CLOSE = b'\n "#.09-/>'
_HTTP, _HTTPS = (np.uint64(int.from_bytes(start, "little")) for start in (b"<http://", b"<https:/"))
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-"
_LAST_ASCII = 0x7F
_NOT_IN_IRI, _NOT_IN_TEXT = 1, 2
_CLASSES = bytes(
    _NOT_IN_IRI * (byte not in _PLAIN + b" \n#")
    + _NOT_IN_TEXT * (byte in b'"\\' or (byte < _SPACE and byte != _NEWLINE) or byte == _LAST_ASCII)
    for byte in range(256)
)
_XSD = b"^^<http://www.w3.org/2001/XMLSchema#"
_KINDS = {
    b"": NO_NUMBER,
    _XSD + b"integer>": INTEGER_KIND,
    _XSD + b"decimal>": DECIMAL_KIND,
    _XSD + b"double>": DOUBLE_KIND,
}
# Special characters: of an IRI; of a literal, without its suffix.
_IN_IRI, _IN_LITERAL = 3, 2


class LineForm(NamedTuple):
    """What the lines of a text state."""

    terms: int
    """How many terms a line has: four with the name of a graph, which ends in its time."""
    has_bare_numbers: bool = False
    """Whether numbers may have no quotes, as in Turtle."""


QUADS, TRIPLES, TURTLE_TRIPLES = LineForm(4), LineForm(3), LineForm(3, has_bare_numbers=True)


class Located(NamedTuple):
    """The plain lines of a text, with their numbers, and the edges of the other lines."""

    lines: QuadLines
    numbers: Integers
    others: list[tuple[int, int, int]]
    """The number, the start and the end of each line that is not plain."""


def locate(data: bytes, form: LineForm = QUADS) -> Located:
    r"""Locate the terms of the plain lines of a text, all of whose lines end with a newline.

    >>> line = b'<http://a.org/b> <http://a.org/p> "c" <http://a.org/g/7> .\n'
    >>> located = locate(line + b"# <urn:a>\n" + line)
    >>> located.lines.times, located.numbers, located.others
    (array([7, 7]), array([0, 2]), [(1, 59, 69)])
    """
    if len(data) < len(b"<http://"):
        count = data.count(b"\n")
        return Located(QuadLines.none(), np.empty(0, dtype=np.int64), _lines(data, range(count)))
    words = Words(data)
    text = words.bytes
    marks = np.flatnonzero(text <= _SPACE)
    kinds = text[marks]
    last = np.flatnonzero(kinds == _NEWLINE)
    first = np.r_[0, last[:-1] + 1]
    starts = np.r_[0, marks[last[:-1]] + 1]
    rows = np.flatnonzero(last - first >= form.terms)
    edges = LineEdges(
        starts[rows],
        *(marks[first[rows] + number] for number in (0, 1)),
        *(marks[last[rows] - number] for number in (form.terms - 2, 1)),
    )
    found = _Lines(data, words, edges, marks[last[rows]], form)
    are_plain = found.are_plain(data.translate(_CLASSES), are_all=len(rows) == len(last))
    if not data.isascii() and not is_utf8(data):
        broken = np.searchsorted(marks[last], np.flatnonzero(text > _LAST_ASCII))
        are_plain &= ~np.isin(rows, broken)
    are_blank = (kinds == _SPACE) | (kinds == _NEWLINE)
    if not are_blank.all():
        broken = np.searchsorted(last, np.flatnonzero(~are_blank))
        are_plain &= ~np.isin(rows, broken)
    if are_plain.all() and len(rows) == len(last):
        return Located(found.lines(None), rows, [])
    rows = rows[are_plain]
    others = np.setdiff1d(np.arange(len(last)), rows, assume_unique=True)
    ends = (marks[last[others]] + 1).tolist()
    edges_of = zip(others.tolist(), starts[others].tolist(), ends, strict=True)
    return Located(found.lines(are_plain), rows, list(edges_of))


def is_utf8(data: bytes) -> bool:
    """Return whether a text is valid."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _lines(data: bytes, numbers: range) -> list[tuple[int, int, int]]:
    ends = [0]
    for line in data.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    return [(number, ends[number], ends[number + 1]) for number in numbers]


class _Lines:
    """Lines with five blanks or more, which may be plain."""

    def __init__(
        self, data: bytes, words: Words, edges: LineEdges, ends: Integers, form: LineForm
    ) -> None:
        self._data = data
        self._form = form
        self._words = words
        self._edges = edges
        self._ends = ends
        text, starts = words.bytes, edges.predicates + 1
        self._are_literals = text[starts] == _QUOTE
        self._closes = np.full(len(starts), -1)  # the closing quotes of literals
        self._kinds = np.full(len(starts), NO_NUMBER)
        self._hashes = np.zeros(len(starts), dtype=np.int64)  # in the suffixes of literals
        # Special characters of the lines: an object is an IRI, a literal or a bare number.
        iris = (form.terms - 1) * _IN_IRI
        self._specials = np.where(self._are_literals, iris + _IN_LITERAL, iris + _IN_IRI)
        self._find_suffixes(starts, edges.objects)
        self._values = np.full(len(starts), np.nan)
        self._read_numbers(starts)
        self._are_bare = np.zeros(len(starts), dtype=np.bool_)
        if form.has_bare_numbers:
            self._read_bare_numbers(starts, edges.objects)
            self._specials[self._are_bare] = iris
        if form == QUADS:
            self._times, self._digits = words.trailing_digits(edges.graphs - 1)
        else:
            self._times, self._digits = np.zeros_like(starts), np.ones_like(starts)

    def lines(self, chosen: Booleans | None) -> QuadLines:
        """Return the quads of some of the lines, or of all of them."""
        edges, times, values, kinds = self._edges, self._times, self._values, self._kinds
        if chosen is not None:
            edges, times = edges.at(chosen), times[chosen]
            values, kinds = values[chosen], kinds[chosen]
        return QuadLines.of(self._data, edges, times, Objects(values, kinds))

    def are_plain(self, translated: bytes, *, are_all: bool) -> Booleans:
        """Return which lines are plain, given the class of each character.

        `are_all` tells whether these are all lines of the text.
        """
        text, edges = self._words.bytes, self._edges
        are_plain: Booleans = (
            (self._ends == edges.graphs + 2)
            & (text[edges.graphs + 1] == _DOT)
            & self._are_iris(edges.starts, edges.subjects)
            & self._are_iris(edges.subjects + 1, edges.predicates)
            & (self._digits > 0)
            & (self._digits <= LONGEST_NUMBER)
        )
        if self._form == QUADS:
            are_plain &= self._are_iris(edges.objects + 1, edges.graphs)
        if self._are_literals.all():
            are_plain &= self._closes >= 0
        else:
            are_iris = self._are_iris(edges.predicates + 1, edges.objects)
            are_iris |= self._are_bare
            are_plain &= np.where(self._are_literals, self._closes >= 0, are_iris)
        classes = np.frombuffer(translated, dtype=np.uint8)
        are_all = are_all and bool(are_plain.all())
        if not are_all or np.count_nonzero(classes) != self._specials.sum():
            are_plain &= self._have_plain_characters(classes)
        are_hashes = text == _HASH
        if not are_all or np.count_nonzero(are_hashes) != self._hashes.sum():
            are_plain &= self._have_one_hash(np.flatnonzero(are_hashes))
        return are_plain

    def _are_iris(self, starts: Integers, ends: Integers) -> Booleans:
        """Return which terms begin and end as http IRIs with an authority."""
        text, words = self._words.bytes, self._words.at(starts)
        is_secure = words == _HTTPS
        are_iris: Booleans = words == _HTTP
        after = starts + len(b"<http://")
        if is_secure.any():
            are_iris |= is_secure & (text[np.minimum(after, len(text) - 1)] == _SLASH)
            after = after + is_secure
        are_iris &= (text[ends - 1] == _CLOSE) & (ends - 1 > after)
        return are_iris

    def _find_suffixes(self, starts: Integers, ends: Integers) -> None:
        """Find the closing quotes of literals, and the kinds of their suffixes."""
        left = np.flatnonzero(self._are_literals & (ends > starts + 1))
        for _ in range(_MOST_SUFFIXES):
            if not len(left):
                break
            start, end = int(starts[left[0]]), int(ends[left[0]])
            suffix = self._data[self._data.rindex(b'"', start, end) : end]
            kind = _kind(suffix[1:])
            closes = ends[left] - len(suffix)
            are_equal = self._words.equal(closes, suffix) & (closes > starts[left])
            are_all = bool(are_equal.all()) and len(left) == len(starts)
            equal = slice(None) if are_all else left[are_equal]
            if kind is not None:
                self._closes[equal] = closes if are_all else closes[are_equal]
                self._kinds[equal] = kind
                self._specials[equal] += sum(map(bool, suffix[1:].translate(_CLASSES)))
                self._hashes[equal] = suffix.count(b"#")
            are_equal[0] = True  # also if the literal has no second quote
            left = left[~are_equal]

    def _read_numbers(self, starts: Integers) -> None:
        """Set the values of numbers; those that may have another form are not read."""
        for kind in (INTEGER_KIND, DECIMAL_KIND, DOUBLE_KIND):
            chosen = np.flatnonzero(self._kinds == kind)
            if not len(chosen):
                continue
            read = _integers if kind == INTEGER_KIND else _decimals
            values, are_canonical = read(self._words, starts[chosen] + 1, self._closes[chosen])
            self._values[chosen] = np.where(are_canonical, values, np.nan)
            self._kinds[chosen[~are_canonical]] = UNREAD

    def _read_bare_numbers(self, starts: Integers, ends: Integers) -> None:
        """Find numbers without quotes, and set their values; other forms are not plain."""
        firsts = self._words.bytes[starts]
        digits = (firsts >= _ZERO) & (firsts <= _NINE)
        chosen = np.flatnonzero(digits | (firsts == _MINUS))
        for kind, read in ((INTEGER_KIND, _integers), (DECIMAL_KIND, _decimals)):
            values, are_canonical = read(self._words, starts[chosen], ends[chosen])
            found = chosen[are_canonical]
            self._values[found], self._kinds[found] = values[are_canonical], kind
            self._are_bare[found] = True
            chosen = chosen[~are_canonical]

    def _have_plain_characters(self, classes: NDArray[np.uint8]) -> Booleans:
        """Return which lines have only plain characters in IRIs, and no escapes in literals."""
        edges, size = self._edges, len(b"<http://")
        in_object = edges.predicates + 1
        are_literals, closes = self._are_literals, self._closes
        begins = in_object + np.where(are_literals, 1, np.where(self._are_bare, 0, size))
        ends = np.where(are_literals & (closes >= 0), closes, edges.objects - 1)
        zones = np.column_stack(
            [
                *(edges.starts + size, edges.subjects - 1),
                *(edges.subjects + 1 + size, edges.predicates - 1),
                *(begins, np.maximum(ends, begins)),
                *((edges.objects + 1 + size, edges.graphs - 1) if self._form == QUADS else ()),
            ]
        )
        if not len(zones):
            return np.empty(0, dtype=np.bool_)
        zones = np.minimum(zones, len(classes) - 1)
        found = np.bitwise_or.reduceat(classes, zones.ravel())[::2]
        found = found.reshape(-1, self._form.terms)
        # A zone without characters gives the class of the one behind it.
        forbidden = np.where(are_literals, _NOT_IN_TEXT, _NOT_IN_IRI)
        in_objects = np.where(begins == ends, 0, found[:, 2] & forbidden)
        in_iris = np.bitwise_or.reduce(np.delete(found, 2, axis=1), axis=1) & _NOT_IN_IRI
        are_plain: Booleans = (in_iris | in_objects) == 0
        return are_plain

    def _have_one_hash(self, places: Integers) -> Booleans:
        """Return which lines have at most one hash in each IRI, given the places of all."""
        edges = self._edges
        have_one = np.ones(len(edges.starts), dtype=np.bool_)
        if not len(have_one):
            return have_one
        rows = np.maximum(np.searchsorted(edges.starts, places, side="right") - 1, 0)
        terms = sum((places > end[rows]).astype(np.int64) for end in edges[1:4])
        zones = rows * 4 + terms
        is_repeated = np.zeros(len(places), dtype=np.bool_)
        is_repeated[1:] = zones[1:] == zones[:-1]
        is_repeated |= self._words.bytes[places - 1] == _SLASH  # perhaps of an empty authority
        is_repeated &= ~(self._are_literals[rows] & (terms == 2))
        have_one[rows[is_repeated]] = False
        return have_one


@lru_cache(maxsize=256)
def _kind(suffix: bytes) -> int | None:
    """Return the kind of literals with a suffix; None if it is not valid."""
    if (kind := _KINDS.get(suffix)) is not None:
        return kind
    if not suffix.isascii():
        return None
    try:
        [triple] = ox.parse(b'<urn:s> <urn:p> ""' + suffix + b" .", ox.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError):
        return None
    is_same = str(triple.object) == '""' + suffix.decode()
    return NO_NUMBER if is_same and suffix.startswith(b"@") else UNREAD


def _integers(words: Words, starts: Integers, ends: Integers) -> tuple[Floats, Booleans]:
    """Return integers, and which of them are canonical and have at most 14 digits."""
    text = words.bytes
    is_negative = text[starts] == _MINUS
    starts = starts + is_negative
    sizes = ends - starts
    numbers, are_digits = words.digits(ends, np.minimum(sizes, SURE - 1))
    are_canonical = (
        are_digits
        & (sizes >= 1)
        & (sizes < SURE)
        & ((sizes == 1) | (text[starts] != _ZERO))
        & ~(is_negative & (numbers == 0))
    )
    return np.where(is_negative, -numbers, numbers).astype(np.float64), are_canonical


def _decimals(words: Words, starts: Integers, ends: Integers) -> tuple[Floats, Booleans]:
    """Return decimals, and which of them are canonical and have few digits on either side."""
    text = words.bytes
    is_negative = text[starts] == _MINUS
    starts = starts + is_negative
    fractions = np.zeros(len(starts), dtype=np.int64)
    for digits in range(MOST_DIGITS, 0, -1):
        fractions[(text[ends - 1 - digits] == _DOT) & (ends - 1 - digits >= starts)] = digits
    has_point = fractions > 0
    wholes = ends - starts - fractions - has_point
    sizes = np.clip(wholes, 0, MOST_DIGITS)
    whole, are_whole = words.digits(ends - fractions - has_point, sizes)
    fraction, are_digits = words.digits(ends, fractions)
    scale = 10**fractions
    are_canonical = (
        are_whole
        & are_digits
        & (wholes == sizes)
        & (wholes >= 1)
        & ((wholes == 1) | (text[starts] != _ZERO))
        & ~(is_negative & (whole == 0) & (fraction == 0))
        & ~(has_point & (text[ends - 1] == _ZERO))
    )
    values = (whole * scale + fraction) / scale
    return np.where(is_negative, -values, values), are_canonical
