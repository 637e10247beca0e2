r"""The frames of lines: where their terms begin and end, as the blanks tell, for all lines at once.

A line with a frame has a single space behind each term, and ends with a dot. Other lines of N-Quads
are written again with single spaces, behind the text; those of no more than five parts, up to a
comment, then have a frame too:

    <urn:a>\t<urn:b>  "c" <urn:g/7>  . # by hand      <urn:a> <urn:b> "c" <urn:g/7> . # by hand
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.io.sources.columns.quad_lines import LineEdges
from rsp_engine.io.sources.columns.words import WIDTH, Words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Booleans, Integers

__all__ = ["LineFrames", "frame_lines", "is_utf8"]

_NEWLINE, _RETURN, _SPACE, _HASH, _DOT = b"\n\r #."
_TABS_TO_SPACES = bytes.maketrans(b"\t", b" ")
_LAST_ASCII = 0x7F


class LineFrames(NamedTuple):
    """The lines of a text, of which some have a frame."""

    data: bytes
    """The text, and behind it the lines that were written again."""
    words: Words
    rows: Integers
    """The numbers of the lines with a frame, in the order of their edges."""
    edges: LineEdges
    """The edges of their terms."""
    starts: Integers
    ends: Integers
    """The start and the end of each line of the text."""

    def are_all_as_written(self) -> bool:
        """Return whether each line of the text has a frame, and none was written again."""
        return len(self.starts) == len(self.rows) and len(self.data) == int(self.ends[-1])

    def others(self, rows: Integers) -> Iterator[tuple[int, int, int]]:
        """Yield the number, the start and the end of each line but some."""
        is_other = np.ones(len(self.starts), dtype=np.bool_)
        is_other[rows] = False
        others = np.flatnonzero(is_other)
        columns = (others, self.starts[others], self.ends[others])
        return zip(*(column.tolist() for column in columns), strict=True)


def frame_lines(data: bytes, terms: int, *, respaces: bool) -> LineFrames:
    """Return the frames of a text of at least eight bytes, all of whose lines end with a newline.

    Lines have so many terms. Lines of four may be written again.
    """
    frames = _frames(data, terms)
    if not respaces or len(frames.rows) == len(frames.starts):
        return frames
    odd = [*frames.others(frames.rows)]
    text = _with_single_blanks(b"".join([data[start:end] for _, start, end in odd]))
    if len(text) < WIDTH:
        return frames
    more = _frames(text, terms, has_single_blanks=True)
    numbers = np.array([number for number, *_ in odd], dtype=np.int64)
    rows = np.concatenate((frames.rows, numbers[more.rows]))
    edges = frames.edges.joined(more.edges, len(data))
    data += text
    return frames._replace(data=data, words=Words(data), rows=rows, edges=edges)


def is_utf8(data: bytes) -> bool:
    """Return whether a text is valid."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _frames(data: bytes, terms: int, *, has_single_blanks: bool = False) -> LineFrames:
    """Return the frames of the lines of a text, as they are.

    In a text that was written again with single blanks, terms have none.
    """
    words = Words(data)
    text = words.bytes
    marks = np.flatnonzero(text <= _SPACE)
    kinds = text[marks]
    newlines = last = np.flatnonzero(kinds == _NEWLINE)
    first, starts = np.zeros_like(last), np.zeros_like(last)
    first[1:] = last[:-1] + 1
    ends = marks[last]
    starts[1:] = ends[:-1] + 1
    have_return = text[ends - 1] == _RETURN
    if have_return.any():
        last = last - have_return
        kinds[last] = _NEWLINE
    have_frame = last - first >= terms
    behind = np.minimum(first + terms, last) if has_single_blanks else last  # the dot
    have_frame &= marks[behind - 1] == marks[behind] - 2
    have_frame &= text[marks[behind] - 1] == _DOT
    if has_single_blanks:
        comments = text[np.minimum(marks[behind] + 1, len(text) - 1)]
        have_frame &= (behind == last) | (comments == _HASH) | (comments < _SPACE)
    if not data.isascii() and not is_utf8(data):
        have_frame[np.searchsorted(ends, np.flatnonzero(text > _LAST_ASCII))] = False
    are_others = (kinds != _SPACE) & (kinds != _NEWLINE)
    if are_others.any():
        have_frame[np.searchsorted(newlines, np.flatnonzero(are_others))] = False

    def edges_of(rows: Integers) -> LineEdges:
        return LineEdges(
            starts[rows],
            *(marks[first[rows] + number] for number in (0, 1)),
            *(marks[behind[rows] - number] for number in (terms - 2, 1)),
        )

    pairs = np.flatnonzero(marks[1:] == marks[:-1] + 1)
    if len(pairs):  # perhaps within a text
        rows = np.unique(np.searchsorted(newlines, pairs + 1))
        rows = rows[have_frame[rows]]
        have_frame[rows] = ~_are_beside_blanks(text, edges_of(rows))
    rows = np.flatnonzero(have_frame)
    return LineFrames(data, words, rows, edges_of(rows), starts, ends + 1)


def _are_beside_blanks(text: NDArray[np.uint8], edges: LineEdges) -> Booleans:
    """Return in which lines the blank behind a term is not the only one."""
    are_beside: Booleans = text[edges.starts] <= _SPACE
    for behind in (edges.subjects + 1, edges.predicates + 1, edges.objects - 1, edges.graphs - 1):
        are_beside |= text[behind] <= _SPACE
    return are_beside


def _with_single_blanks(text: bytes) -> bytes:
    r"""Return a text with a single space for adjacent blanks, and none where a line begins.

    >>> _with_single_blanks(b"<a>\t<b>  <c> <d>  . # e\n <a> .\n")
    b'<a> <b> <c> <d> . # e\n<a> .\n'
    """
    chars = np.frombuffer(text.translate(_TABS_TO_SPACES), dtype=np.uint8)
    are_kept = chars != _SPACE
    are_kept[1:] |= (chars[:-1] != _SPACE) & (chars[:-1] != _NEWLINE)
    kept: NDArray[np.uint8] = chars[are_kept]
    return kept.tobytes()
