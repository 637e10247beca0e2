"""The layout of a JSON line: the text that it shares with other lines, and where its values are.

Lines that one program writes differ only in their values, so the first of them tells where those of
the others are. Each value that is a string or a whole number is a field; all else is fixed:

    {"id": "x-17", "timestamp": 1000, "format": "ntriples", "graph": "<http://a.org/b> ..."}
    ^^^^^^^^    ^^^^^^^^^^^^^^^^    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^                     ^^

A string ends at the next quote; a number, a fixed number of characters before the next quote or the
end of the line. So one comparison of each fixed text finds the fields of all lines at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.io.sources.columns.iso_times import iso_times
from rsp_engine.io.sources.columns.words import LONGEST_NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.io.sources.columns.words import Words
    from rsp_engine.model.arrays import Booleans, Integers

__all__ = ["JsonFields", "JsonLayout", "JsonText"]

_TOKEN = re.compile(
    rb'"(?P<text>(?:[^"\\]|\\["/n])*+)"(?P<colon>\s*:)?'
    rb"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    rb"|(?P<opening>[{\[])|(?P<closing>[}\]])"
)
_OTHER_ESCAPE = re.compile(rb'\\(?!["/n])')
_ZERO = ord("0")


class JsonText(NamedTuple):
    """Some lines of a text: their edges, and its quotes that are not escaped."""

    words: Words
    starts: Integers
    ends: Integers
    """Each is the place of the newline."""
    quotes: Integers
    first_quotes: Integers
    """The index of the first quote of each line."""
    controls: Integers
    """How many control characters each line has."""


class JsonFields(NamedTuple):
    """Which lines have a layout; and of these, the times and the edges of the graphs."""

    are_alike: Booleans
    times: Integers
    starts: Integers
    ends: Integers


class _Field(NamedTuple):
    key: bytes | None
    """The key of a member of the object; None if the value is deeper inside."""
    is_text: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class JsonLayout:
    """The fields of a line, and the fixed text around them."""

    fixed: tuple[bytes, ...]
    """The text before each field, and behind the last one."""
    fields: tuple[_Field, ...]
    time: bytes
    """The time of the line: those of ISO 8601 have one form."""
    has_iso_times: bool

    @classmethod
    def of(cls, line: bytes, value: Mapping[str, object]) -> JsonLayout | None:
        r"""Return the layout of a line, given its value; None if it has no plain one.

        >>> line = b'{"timestamp": 10, "graph": "<urn:a>"}'
        >>> JsonLayout.of(line, {"timestamp": 10, "graph": "<urn:a>"}).fixed
        (b'{"timestamp": ', b', "graph": "', b'"}')
        """
        time, graph = value.get("timestamp"), value.get("graph")
        if type(time) not in (int, str) or not isinstance(graph, str) or _OTHER_ESCAPE.search(line):
            return None
        scalars = list(_scalars(line))
        keys = [field.key for field in scalars]
        if any(keys.count(key) != 1 for key in (b"timestamp", b"graph")):
            return None
        varying = [
            field for field in scalars if field.is_text or line[field.start : field.end].isdigit()
        ]
        fields = list(_anchored(line, [field for field in varying if field.key != b"format"]))
        times = [field for field in fields if field.key == b"timestamp"]
        if not times:
            return None
        edges = [0, *(edge for field in fields for edge in (field.start, field.end)), len(line)]
        fixed = tuple(line[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
        [(_, is_text, start, end)] = times
        return cls(fixed, tuple(fields), line[start:end], is_text)

    def locate(self, text: JsonText) -> JsonFields:
        """Find the fields of some lines."""
        words, places = text.words, text.starts
        are_alike = text.controls == sum(byte < ord(" ") for byte in b"".join(self.fixed))
        found: dict[bytes | None, tuple[Integers, Integers]] = {}
        quotes = text.first_quotes
        for field, before, behind in zip(self.fields, self.fixed, self.fixed[1:], strict=False):
            are_alike &= words.equal(places, before)
            starts = places + len(before)
            quotes = quotes + _count_quotes(before)
            if b'"' in behind:
                nexts = text.quotes[np.minimum(quotes, len(text.quotes) - 1)]
                places = nexts - behind.index(b'"')
            else:
                places = text.ends - len(behind)
            are_alike &= places >= starts
            if not field.is_text:
                are_alike &= _are_numbers(words, starts, places)
            found[field.key] = starts, places
        are_alike &= words.equal(places, self.fixed[-1])
        are_alike &= places + len(self.fixed[-1]) == text.ends
        chosen = np.flatnonzero(are_alike)
        begins, ends = (edges[chosen] for edges in found[b"timestamp"])
        if self.has_iso_times:
            times, are_times = iso_times(words, begins, ends, self.time)
            are_alike[chosen[~are_times]] = False
            times, chosen = times[are_times], chosen[are_times]
        else:
            times, _ = words.digits(ends, ends - begins)
        graphs = found[b"graph"]
        return JsonFields(are_alike, times, *(edges[chosen] for edges in graphs))


def _scalars(line: bytes) -> Iterator[_Field]:
    """Yield the strings and numbers of a JSON object that are values."""
    depth, key = 0, b""
    for token in _TOKEN.finditer(line):
        kind = token.lastgroup
        if kind == "opening":
            depth += 1
        elif kind == "closing":
            depth -= 1
        elif kind == "colon":
            key = token["text"] if depth == 1 else key
        else:
            group = "text" if kind == "text" else "number"
            yield _Field(key if depth == 1 else None, kind == "text", *token.span(group))


def _anchored(line: bytes, fields: Sequence[_Field]) -> Iterator[_Field]:
    """Yield the fields whose ends are known: numbers without a quote behind them are fixed."""
    nexts = [field.start for field in fields[1:]]
    for field, following in zip(fields, [*nexts, len(line)], strict=True):
        is_last = following == len(line)
        if field.is_text or is_last or b'"' in line[field.end : following]:
            yield field


def _count_quotes(fixed: bytes) -> int:
    return fixed.count(b'"') - fixed.count(b'\\"')


def _are_numbers(words: Words, starts: Integers, ends: Integers) -> Booleans:
    """Return which fields are whole numbers of JSON that fit into 64 bits."""
    sizes = ends - starts
    _, are_numbers = words.digits(ends, np.clip(sizes, 0, LONGEST_NUMBER))
    are_numbers &= (sizes >= 1) & (sizes <= LONGEST_NUMBER)
    firsts = words.bytes[np.minimum(starts, len(words.bytes) - 1)]
    are_numbers &= (sizes == 1) | (firsts != _ZERO)
    return are_numbers
