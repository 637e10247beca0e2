r"""Plain lines of N-Quads or triples, located in a text without a parser, all lines at once.

Most lines of most streams have this form: http IRIs of letters, digits and `._/-`, perhaps with a
fragment; an object that is such an IRI, or a literal without escapes; a graph name that ends in its
time; and single spaces.

    <http://a.org/b> <http://a.org/p> "1"^^<http://...#integer> <http://a.org/g/7> .

Spaces and newlines give the edges of the terms, and what follows the last quote of a literal is one
of a few suffixes. IRIs begin with a prefix that most of them have in common, and go on with plain
characters. Texts that are no numbers have no quote, or escapes that are valid; these are read when
they are needed. Any other line is left to the parser, by itself.
"""

from __future__ import annotations

import re
from bisect import bisect
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.io.sources.columns.line_frames import frame_lines
from rsp_engine.io.sources.columns.quad_lines import NO_NUMBER, UNREAD, Objects, QuadLines
from rsp_engine.io.sources.columns.words import LONGEST_NUMBER
from rsp_engine.model.terms.columns import DECIMAL_KIND, DOUBLE_KIND, INTEGER_KIND, MOST_DIGITS
from rsp_engine.model.terms.numerals import SURE

if TYPE_CHECKING:
    from rsp_engine.io.sources.columns.line_frames import LineFrames
    from rsp_engine.io.sources.columns.words import Words
    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["QUADS", "TRIPLES", "TURTLE_TRIPLES", "LineForm", "Located", "locate"]

_MOST_SUFFIXES = 16  # each costs a pass: lines with further ones are left to the parser
_SAMPLES = 8  # so many IRIs tell the prefix that most have in common
_QUOTE, _HASH, _DOT, _ZERO, _NINE, _MINUS, _SLASH, _CLOSE = b'"#.09-/>'
_SPECIALS = b'"\\\x7f'  # in a text, these need a look; control characters are no blanks
_HTTP, _HTTPS = b"<http://", b"<https://"
_PREFIX = re.compile(rb"<https?://(?:[\w./-]*(?:/|[\w.-]#))?")
_TEXT = rb'[^"\\\x00-\x1f\x7f]*'
_ESCAPE = rb"""\\(?:[tbnrf"'\\]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})"""
_ESCAPED = re.compile(rb'^"' + _TEXT + rb"(?:" + _ESCAPE + _TEXT + rb')*"$', re.MULTILINE)
_XSD = b"^^<http://www.w3.org/2001/XMLSchema#"
_KINDS = {
    b"": NO_NUMBER,
    _XSD + b"integer>": INTEGER_KIND,
    _XSD + b"decimal>": DECIMAL_KIND,
    _XSD + b"double>": DOUBLE_KIND,
}


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
    if len(data) < len(_HTTP):
        count = data.count(b"\n")
        return Located(QuadLines.none(), np.empty(0, dtype=np.int64), _lines(data, range(count)))
    frames = frame_lines(data, form.terms, respaces=form == QUADS)
    found = _Lines(frames, form)
    are_plain = found.are_plain()
    if frames.are_all_as_written() and are_plain.all():
        return Located(found.lines(None), frames.rows, [])
    plain = np.flatnonzero(are_plain)
    plain = plain[np.argsort(frames.rows[plain], kind="stable")]
    rows = frames.rows[plain]
    return Located(found.lines(plain), rows, [*frames.others(rows)])


def _lines(data: bytes, numbers: range) -> list[tuple[int, int, int]]:
    ends = [0]
    for line in data.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    return [(number, ends[number], ends[number + 1]) for number in numbers]


class _Iris(NamedTuple):
    """Which terms are plain IRIs, and which of them follow a prefix of some bytes."""

    are_iris: Booleans
    follow: Booleans
    prefix: int


class _Lines:
    """Lines with the blanks and the dot of plain ones."""

    def __init__(self, frames: LineFrames, form: LineForm) -> None:
        self._data = frames.data
        self._form = form
        self._words = words = frames.words
        self._edges = edges = frames.edges
        starts = edges.predicates + 1
        self._are_literals = words.bytes[starts] == _QUOTE
        self._closes = np.full(len(starts), -1)  # the closing quotes of literals
        self._kinds = np.full(len(starts), NO_NUMBER)
        self._find_suffixes(starts, edges.objects)
        self._values = np.full(len(starts), np.nan)
        self._read_numbers(starts)
        self._are_iris = ~self._are_literals  # the objects, if they are plain
        if form.has_bare_numbers:
            self._read_bare_numbers(starts, edges.objects)
        self._times = np.zeros(len(starts), dtype=np.int64)
        if form == QUADS:
            self._times, self._digits = words.trailing_digits(edges.graphs - 1)
        self._have_hash = False  # some IRI has a hash behind its prefix
        self._subjects = self._iris(edges.starts, edges.subjects)

    def lines(self, chosen: Integers | None) -> QuadLines:
        """Return the quads of some of the lines, or of all of them."""
        edges, times, values, kinds = self._edges, self._times, self._values, self._kinds
        subjects = self._subjects
        if chosen is not None:
            edges, times = edges.at(chosen), times[chosen]
            values, kinds = values[chosen], kinds[chosen]
            subjects = subjects._replace(follow=subjects.follow[chosen])
        prefix = subjects.prefix if subjects.follow.all() else 0
        return QuadLines.of(self._data, edges, times, Objects(values, kinds), prefix)

    def are_plain(self) -> Booleans:
        """Return which lines are plain."""
        edges = self._edges
        are_plain: Booleans = (
            self._subjects.are_iris
            & self._iris(edges.subjects + 1, edges.predicates).are_iris
            & (~self._are_literals | (self._closes >= 0))
        )
        if self._form == QUADS:
            are_plain &= self._iris(edges.objects + 1, edges.graphs).are_iris
            are_plain &= (self._digits > 0) & (self._digits <= LONGEST_NUMBER)
        are_objects = np.flatnonzero(self._are_iris)
        if len(are_objects):
            starts, ends = edges.predicates[are_objects] + 1, edges.objects[are_objects]
            are_plain[are_objects] &= self._iris(starts, ends).are_iris
        if self._have_hash:
            are_plain &= self._have_one_hash()
        are_plain &= self._have_plain_texts(are_plain)
        return are_plain

    def _iris(self, starts: Integers, ends: Integers) -> _Iris:
        """Return which terms are plain IRIs; their hashes are counted apart."""
        prefix = self._common_prefix(starts, ends)
        follow = self._follow(prefix, starts, ends)
        if follow.all():
            return _Iris(follow, follow, len(prefix))
        are_iris = follow.copy()
        for other in (_HTTP, _HTTPS):
            left = np.flatnonzero(~are_iris)
            are_iris[left] = self._follow(other, starts[left], ends[left])
        return _Iris(are_iris, follow, len(prefix))

    def _common_prefix(self, starts: Integers, ends: Integers) -> bytes:
        """Return the prefix of some IRIs, up to a slash or a hash."""
        if not len(starts):
            return _HTTP
        each = len(starts) // _SAMPLES + 1
        samples = zip(starts[::each].tolist(), ends[::each].tolist(), strict=True)
        texts = [self._data[start:end] for start, end in samples]
        least, most = min(texts), max(texts)
        size = bisect(range(len(least)), 0, key=lambda last: not most.startswith(least[: last + 1]))
        found = _PREFIX.match(least[:size])
        return found[0] if found else _HTTP

    def _follow(self, prefix: bytes, starts: Integers, ends: Integers) -> Booleans:
        """Return which terms begin with a prefix, and go on as plain IRIs."""
        least = len(_HTTPS if prefix.startswith(_HTTPS) else _HTTP) + 1
        are_iris: Booleans = (
            self._words.equal(starts, prefix)
            & (self._words.bytes[ends - 1] == _CLOSE)
            & (ends - starts > least)
        )
        rows = slice(None) if are_iris.all() else np.flatnonzero(are_iris)
        are_plain, have_hash = self._words.plain(starts[rows] + len(prefix), ends[rows] - 1)
        self._have_hash |= bool(have_hash.any())
        are_iris[rows] &= are_plain
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
        are_digits = (firsts >= _ZERO) & (firsts <= _NINE)
        chosen = np.flatnonzero(are_digits | (firsts == _MINUS))
        for kind, read in ((INTEGER_KIND, _integers), (DECIMAL_KIND, _decimals)):
            values, are_canonical = read(self._words, starts[chosen], ends[chosen])
            found = chosen[are_canonical]
            self._values[found], self._kinds[found] = values[are_canonical], kind
            self._are_iris[found] = False
            chosen = chosen[~are_canonical]

    def _have_plain_texts(self, are_plain: Booleans) -> Booleans:
        """Return which of the plain lines have no literal, a number, or a text that is valid.

        Texts with escapes become unread.
        """
        rows = np.flatnonzero(are_plain & self._are_literals & np.isnan(self._values))
        have_plain = np.ones(len(are_plain), dtype=np.bool_)
        if not len(rows):
            return have_plain
        starts, closes = self._edges.predicates[rows] + 2, self._closes[rows]
        odd = rows[self._words.contain(starts, closes, _SPECIALS)]
        if not len(odd):
            return have_plain
        edges = zip(self._edges.predicates[odd].tolist(), self._closes[odd].tolist(), strict=True)
        texts = [self._data[before + 1 : close + 1] for before, close in edges]
        if len(_ESCAPED.findall(b"\n".join(texts))) < len(texts):
            have_plain[odd] = [_ESCAPED.fullmatch(each) is not None for each in texts]
        self._kinds[odd] = UNREAD
        return have_plain

    def _have_one_hash(self) -> Booleans:
        """Return which lines have at most one hash in each IRI."""
        edges = self._edges
        have_one = np.ones(len(edges.starts), dtype=np.bool_)
        places = np.flatnonzero(self._words.bytes == _HASH)
        rows = np.maximum(np.searchsorted(edges.starts, places, side="right") - 1, 0)
        terms = sum((places > end[rows]).astype(np.int64) for end in edges[1:])
        zones = rows * len(edges) + terms
        is_repeated = np.zeros(len(places), dtype=np.bool_)
        is_repeated[1:] = zones[1:] == zones[:-1]
        is_repeated |= self._words.bytes[places - 1] == _SLASH  # perhaps of an empty authority
        is_repeated &= ~(self._are_literals[rows] & (terms == 2))
        is_repeated &= places < edges.graphs[rows]  # else of a line without a frame
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
