"""The reader of N-Quads as columns: plain lines are located, and only the others are parsed.

A parsed line is written again in the form of the engine, so that all quads have their terms in one
text. A malformed line becomes a dead letter by itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.io.canonical_literals import canonical_triples
from rsp_engine.io.sources.columns.plain_lines import locate
from rsp_engine.io.sources.columns.quad_lines import QuadLines, ReadQuads
from rsp_engine.io.sources.columns.written_quads import write_quads
from rsp_engine.io.sources.files.graph_times import GraphTimeRule
from rsp_engine.io.sources.files.rdf import MalformedRdfError, quads_of
from rsp_engine.io.sources.times import in_milliseconds
from rsp_engine.model.streams import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.io.sources.columns.quad_lines import Rename
    from rsp_engine.model.arrays import Integers

__all__ = ["read_quads"]

_SYNTAX = ox.RdfFormat.N_QUADS
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DIGITS = GraphTimeRule()
_MOST_OTHERS = 0.3  # of the lines: to parse all lines at once is then cheaper
# What needs the parser of whole blocks: lone returns end lines, and triple terms may be deep.
_NEEDS_BLOCKS = re.compile(rb"\r(?!\n)|<<")


class _Quads(NamedTuple):
    """Parsed quads with the numbers of their lines, and dead letters with theirs."""

    numbers: list[int]
    quads: list[ox.Quad]
    letters: list[tuple[int, DeadLetter]]


def read_quads(name: str, data: bytes, rule: GraphTimeRule, rename: Rename) -> ReadQuads | None:
    """Read a text of whole elements; None if it must be parsed in order, by blocks.

    The names of graphs must state their times. Blank nodes have the scope of the whole stream.
    """
    if rule.by == "prov" or data.startswith(_BYTE_ORDER_MARK):
        return None
    text = data if data.endswith(b"\n") or not data else data + b"\n"
    lines, numbers, others = locate(text)
    letters: list[tuple[int, DeadLetter]] = []
    raws = [(number, data[start:end]) for number, start, end in others]
    if len(raws) > _MOST_OTHERS * (len(lines) + len(raws)):
        return None
    if raws:
        parsed = _parse(name, raws)
        written = None if parsed is None else _write(parsed.quads, rename)
        if parsed is None or written is None:
            return None
        letters = parsed.letters
        written_numbers = np.array(parsed.numbers, dtype=np.int64)
        lines = lines.and_quads(numbers, written, written_numbers)
        numbers = np.sort(np.concatenate((numbers, written_numbers)))
    lines = lines.by_graph()
    kept = lines.distinct()
    if kept is not None:
        lines, numbers = lines.at(kept), numbers[kept]
    if rule.unit != "ms":
        times = in_milliseconds(lines.times, rule.unit)
        if times is None:
            return None
        lines = lines.with_times(times)
    return ReadQuads(lines, [(_index(lines, numbers, at), letter) for at, letter in letters])


def _index(lines: QuadLines, numbers: Integers, line: int) -> int:
    """Return the first quad of the element that is open at a line: a letter goes before it."""
    before = int(np.searchsorted(numbers, line))
    return int(np.flatnonzero(lines.begins[:before])[-1]) if before else 0


def _parse(name: str, raws: Sequence[tuple[int, bytes]]) -> _Quads | None:
    """Parse lines; None if blocks are needed."""
    text = b"".join(raw for _, raw in raws)
    if _NEEDS_BLOCKS.search(text):
        return None
    if not any(raw.lstrip()[:1] in {b"", b"#"} for _, raw in raws):
        try:
            quads = list(ox.parse(text, _SYNTAX))
        except SyntaxError:
            pass
        else:
            if len(quads) == len(raws):
                return _Quads([number for number, _ in raws], quads, [])
    found = _Quads([], [], [])
    for number, raw in raws:
        try:
            quads = list(quads_of(raw, _SYNTAX))
        except MalformedRdfError as error:
            reason = f"the quad cannot be read: {error.what}"
            found.letters.append((number, DeadLetter(name, 1 + number, raw, reason)))
        else:
            found.numbers.extend([number] * len(quads))
            found.quads.extend(quads)
    return found


def _write(quads: Sequence[ox.Quad], rename: Rename) -> QuadLines | None:
    """Write quads in the form of the engine; None if the name of a graph states no time."""
    times: list[int] = []
    for quad in quads:
        time = _DIGITS.time_by_name(quad.graph_name)
        if time is None:
            return None
        times.append(time)
    triples = canonical_triples([quad.triple for quad in quads])
    # Their labels have the scope of the whole stream, so any time is right.
    return write_quads(rename(0, triples), times, [str(quad.graph_name) for quad in quads])
