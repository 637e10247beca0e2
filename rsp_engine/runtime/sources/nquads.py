"""N-Quads: an element is a run of neighbouring quads of one graph.

    <http://example.org/a> <http://example.org/p> "1" <http://example.org/g/1000> .
    <http://example.org/b> <http://example.org/p> "2" <http://example.org/g/1000> .
    <http://example.org/a> <http://example.org/p> "3" <http://example.org/g/2000> .

holds two elements, at 1000 and 2000 ms (see `graph_times`). A block of lines is parsed at once;
only if something in it is wrong, line by line, so that nothing but the wrong lines is set aside.
"""

from __future__ import annotations

import re
from io import BytesIO
from itertools import accumulate, chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, cast

import pyoxigraph as ox

from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.runtime.sources.blocks import Block, Gap, blocks, lines
from rsp_engine.runtime.sources.graph_times import GraphTimes, Piece, TimesBy
from rsp_engine.runtime.sources.inputs import open_input
from rsp_engine.runtime.sources.rdf import DEEPEST_TRIPLE, MalformedRdfError, quads_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.runtime.sources.graph_times import GraphName
    from rsp_engine.runtime.sources.inputs import Input
    from rsp_engine.runtime.sources.source import BlankNodeScope
    from rsp_engine.runtime.sources.spec import Spec

__all__ = ["NQuads", "open_nquads"]

_SYNTAX = ox.RdfFormat.N_QUADS
_DEFAULT = ox.DefaultGraph()
_GRAPH = attrgetter("graph_name")
_TRIPLES = attrgetter("triples")
_RAW = attrgetter("raw")
_TRIPLE = attrgetter("triple")
_LONE_RETURN = re.compile(rb"\r(?!\n)")


def open_nquads(spec: Spec) -> NQuads:
    """Open a source of N-Quads."""
    by = cast("TimesBy", spec.choice("time", ("any", "iri", "prov")))
    return NQuads(open_input(spec.place), by)


class NQuads:
    """A stream of N-Quads. Blank nodes keep their labels, which hold for the whole stream."""

    blank_node_scope: BlankNodeScope = "stream"

    def __init__(self, source: Input, times_by: TimesBy = "any") -> None:
        self.name = source.name
        self._input = source
        self._times_by = times_by

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the stream from its start."""
        times = GraphTimes(self.name, self._times_by)
        run = _Run(times)
        for block in blocks(self._input):
            if isinstance(block, Gap):
                if block.is_end:
                    yield from run.break_off(self.name)
                yield block.letter
                continue
            for part in _parts(self.name, block):
                if isinstance(part, DeadLetter):
                    yield part
                else:
                    yield from run.add(part)
        yield from run.close()
        yield from times.end()


class _Part(NamedTuple):
    """Neighbouring quads of one graph, in one block; of the default graph, one quad."""

    graph: GraphName | ox.DefaultGraph
    triples: list[Triple]
    line: int
    raw: bytes


class _Run:
    """The run that is being read: it can go on in the next block."""

    def __init__(self, times: GraphTimes) -> None:
        self._times = times
        self._parts: list[_Part] = []

    def add(self, part: _Part) -> Sequence[Element | DeadLetter]:
        """Take the next quads; return the elements that this completes."""
        if self._parts and self._parts[0].graph == part.graph:
            self._parts.append(part)
            return ()
        done = self.close()
        if isinstance(part.graph, ox.DefaultGraph):
            return [*done, *self._times.statement(part.triples[0], part.line, part.raw)]
        self._parts = [part]
        return done

    def close(self) -> Sequence[Element | DeadLetter]:
        """End the run: no more quads belong to it."""
        if not self._parts:
            return ()
        return self._times.graph(cast("GraphName", self._parts[0].graph), self._take())

    def break_off(self, source: str) -> Sequence[DeadLetter]:
        """End the run where the input breaks off: more quads may have belonged to it."""
        if not self._parts:
            return ()
        piece = self._take()
        reason = "the input breaks off in this graph, which may not be complete"
        return [DeadLetter(source, piece.position, piece.raw, reason)]

    def _take(self) -> Piece:
        parts, self._parts = self._parts, []
        if len(parts) == 1 and len(parts[0].triples) == 1:
            return Piece(tuple(parts[0].triples), parts[0].line, parts[0].raw)
        # An element is a set of triples: each stands in it once.
        triples = tuple(dict.fromkeys(chain.from_iterable(map(_TRIPLES, parts))))
        return Piece(triples, parts[0].line, b"".join(map(_RAW, parts)))


def _parts(source: str, block: Block) -> Iterator[_Part | DeadLetter]:
    return _whole(block) or _line_by_line(source, block)


def _whole(block: Block) -> Iterator[_Part] | None:
    """Parse a block at once, and return nothing if that cannot be done."""
    written = BytesIO(block.data).readlines()
    if _may_be_deep(block.data, written) or _has_lone_return(block.data):
        return None
    try:
        quads = list(ox.parse(block.data, _SYNTAX))
    except SyntaxError:
        return None
    places: Sequence[int] = range(len(written))
    if len(quads) != len(written):
        places = [place for place, line in enumerate(written) if not _is_blank(line)]
    return _cut(block, quads, written, places)


def _cut(
    block: Block, quads: list[ox.Quad], written: list[bytes], places: Sequence[int]
) -> Iterator[_Part]:
    """Cut a block into runs; the places of its quads among its lines give the bytes of each."""
    starts = list(accumulate(map(len, written), initial=0))
    done = 0
    for graph, run in groupby(quads, _GRAPH):
        triples = list(map(_TRIPLE, run))
        if len(triples) == 1:
            place = places[done]
            done += 1
            yield _Part(graph, triples, block.line + place, written[place])
            continue
        at = places[done : done + len(triples)]
        done += len(triples)
        if graph == _DEFAULT:
            for place, triple in zip(at, triples, strict=True):
                yield _Part(graph, [triple], block.line + place, written[place])
        else:
            raw = block.data[starts[at[0]] : starts[at[-1] + 1]]
            if at[-1] - at[0] >= len(at):  # comments and empty lines stand between
                raw = b"".join([written[place] for place in at])
            yield _Part(graph, triples, block.line + at[0], raw)


def _line_by_line(source: str, block: Block) -> Iterator[_Part | DeadLetter]:
    for number, written in lines(block):
        for line in written.splitlines(keepends=True):  # a lone CR ends a line of N-Quads too
            try:
                quads = quads_of(line, _SYNTAX)
            except MalformedRdfError as error:
                yield DeadLetter(source, number, line, f"the quad cannot be read: {error.what}")
            else:
                for quad in quads:
                    yield _Part(quad.graph_name, [quad.triple], number, line)


def _may_be_deep(data: bytes, written: list[bytes]) -> bool:
    """Tell whether triples may stand in triples too deep; a short line has no room for that."""
    longest = max(map(len, written))
    return longest > 2 * DEEPEST_TRIPLE and data.count(b"<<") > DEEPEST_TRIPLE


def _has_lone_return(data: bytes) -> bool:
    return b"\r" in data and _LONE_RETURN.search(data) is not None


def _is_blank(line: bytes) -> bool:
    return line.lstrip()[:1] in (b"", b"#")
