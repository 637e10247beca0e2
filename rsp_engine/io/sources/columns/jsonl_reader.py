r"""The reader of JSON lines as columns: the graphs of plain lines become lines of triples.

    {"timestamp": 7, "graph": "<http://a.org/b> <http://a.org/p> \"c\" .\n<http://a.org/b> ..."}

is located in three steps. Its layout tells where its time and its graph are. The graphs of all
lines, without their escapes, become a text of one triple a line. And the terms of this text are
located as those of N-Quads. A line with a triple that is not plain is parsed by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.io.sources.columns.json_layout import JsonLayout, JsonText
from rsp_engine.io.sources.columns.line_frames import is_utf8
from rsp_engine.io.sources.columns.numbered_quads import NumberedQuads, with_parsed_lines
from rsp_engine.io.sources.columns.plain_lines import TRIPLES, TURTLE_TRIPLES
from rsp_engine.io.sources.columns.words import Words
from rsp_engine.io.sources.files.blocks import LONGEST
from rsp_engine.io.sources.files.json_element import UnfitError, object_in, syntax_of
from rsp_engine.io.sources.times import in_milliseconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.io.sources.columns.json_layout import JsonFields
    from rsp_engine.io.sources.columns.numbered_quads import ParseLine
    from rsp_engine.io.sources.columns.plain_lines import LineForm
    from rsp_engine.io.sources.columns.quad_lines import ReadQuads, Rename
    from rsp_engine.io.sources.times import TimeUnit
    from rsp_engine.model.arrays import Integers

__all__ = ["read_json_lines"]

_MOST_LAYOUTS = 8  # each costs a pass: lines with further ones are left to the parser
_SHORTEST = 8  # bytes that are read at a time
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FORMS = {ox.RdfFormat.TURTLE: TURTLE_TRIPLES, ox.RdfFormat.N_TRIPLES: TRIPLES}
_NEWLINE, _SPACE, _QUOTE, _SLASH, _BACKSLASH, _N = b'\n "/\\n'
_LAST_ASCII = 0x7F


class _Learned(NamedTuple):
    """What a line tells about others."""

    layout: JsonLayout
    form: LineForm


def read_json_lines(
    data: bytes, unit: TimeUnit, parse: ParseLine, rename: Rename
) -> ReadQuads | None:
    """Read a text of whole lines; None if it must be read as elements.

    `parse` reads a line that is not plain, given its number.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    text = data if data.endswith(b"\n") else data + b"\n"
    if len(text) < _SHORTEST:
        return None
    lines = _Lines(text)
    if lines.longest > LONGEST:
        return None

    def line_of(number: int) -> bytes:
        return data[lines.starts[number] : lines.ends[number] + 1]

    return with_parsed_lines(lines.plain(unit), len(lines.ends), line_of, parse, rename)


class _Lines:
    """The lines of a text."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._words = Words(text)
        source = self._words.bytes
        controls = np.flatnonzero(source < _SPACE)
        are_ends = source[controls] == _NEWLINE
        self.ends = controls[are_ends]
        self.starts = np.r_[0, self.ends[:-1] + 1]
        self._controls = np.zeros_like(self.ends)
        if len(controls) > len(self.ends):
            np.add.at(self._controls, self._rows(controls[~are_ends]), 1)
        self._escapes = np.flatnonzero(source == _BACKSLASH)
        self._broken = self._find_broken(source)

    @property
    def longest(self) -> int:
        """The length of the longest line."""
        return int((self.ends - self.starts).max()) + 1

    def plain(self, unit: TimeUnit) -> NumberedQuads:
        """Return the quads of the plain lines, each triple of a line once."""
        found = NumberedQuads.none()
        source = self._words.bytes
        quotes = np.flatnonzero(source == _QUOTE)
        quotes = quotes[source[quotes - 1] != _BACKSLASH]
        is_left = self.ends > self.starts
        is_left[self._broken] = False
        left = np.flatnonzero(is_left)
        for _ in range(_MOST_LAYOUTS):
            if not len(left):
                break
            first = int(left[0])
            learned = _learn(self._text[int(self.starts[first]) : int(self.ends[first])])
            if learned is None:
                left = left[1:]
                continue
            fields = learned.layout.locate(self._at(left, quotes))
            graphs = self._read(fields, learned, unit)
            numbers = left[fields.are_alike][graphs.numbers]
            found = found.joined(NumberedQuads(graphs.lines, numbers))
            fields.are_alike[0] = True  # also if its time is not valid
            left = left[~fields.are_alike]
        return found

    def _at(self, rows: Integers, quotes: Integers) -> JsonText:
        starts, ends = self.starts[rows], self.ends[rows]
        firsts = np.searchsorted(quotes, starts)
        return JsonText(self._words, starts, ends, quotes, firsts, self._controls[rows])

    def _read(self, fields: JsonFields, learned: _Learned, unit: TimeUnit) -> NumberedQuads:
        """Return the quads of graphs without others than plain triples."""
        has_iso = learned.layout.has_iso_times
        times = fields.times if has_iso else in_milliseconds(fields.times, unit)
        if times is None:
            return NumberedQuads.none()
        text, counts = self._unescape(fields)
        return NumberedQuads.of_graphs(text, counts, times, learned.form)

    def _unescape(self, fields: JsonFields) -> tuple[bytes, Integers]:
        """Return the text of graphs, and how many lines each has."""
        source, starts = self._words.bytes, fields.starts
        ends = fields.ends
        is_last = (source[ends - 2] == _BACKSLASH) & (source[ends - 1] == _N) & (ends - starts > 1)
        ends = ends - 2 * is_last  # the last triple may end with a newline, too
        breaks = self._escapes[source[self._escapes + 1] == _N]
        edges = np.column_stack((starts, ends + 1)).ravel()
        lengths = np.diff(edges, prepend=0, append=len(source))
        is_kept = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
        is_kept[self._escapes] = False
        is_kept[ends] = True
        text = source.copy()
        text[ends] = _NEWLINE
        text[breaks + 1] = _NEWLINE
        counts = 1 + np.searchsorted(breaks, ends) - np.searchsorted(breaks, starts)
        return text[is_kept].tobytes(), counts

    def _rows(self, places: Integers) -> Integers:
        return np.searchsorted(self.ends, places)

    def _find_broken(self, source: NDArray[np.uint8]) -> Integers:
        """Return lines that cannot be plain: with other escapes, or not in UTF-8."""
        behind = source[self._escapes + 1]
        is_simple = (behind == _QUOTE) | (behind == _N) | (behind == _SLASH)
        broken = [self._escapes[~is_simple]]
        if not self._text.isascii() and not is_utf8(self._text):
            broken.append(np.flatnonzero(source > _LAST_ASCII))
        return self._rows(np.concatenate(broken))


def _learn(line: bytes) -> _Learned | None:
    """Return what a line tells about others; None if it has no plain layout."""
    try:
        value = object_in(line)
        form = _FORMS.get(syntax_of(value.get("format", "turtle")))
    except UnfitError:
        return None
    layout = JsonLayout.of(line, value)
    return None if form is None or layout is None else _Learned(layout, form)
