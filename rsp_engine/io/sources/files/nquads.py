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
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, cast

import pyoxigraph as ox

from rsp_engine.io.sources.batch import ElementBatch
from rsp_engine.io.sources.fast_nquads.plain_lines import PlainLines, plain_lines
from rsp_engine.io.sources.files.blocks import Gap, TextBlock, lines, text_blocks
from rsp_engine.io.sources.files.graph_times import GraphTimes, Piece, TimesBy
from rsp_engine.io.sources.files.rdf import DEEPEST_TRIPLE, MalformedRdfError, quads_of
from rsp_engine.io.sources.inputs import Broken, extent_of_input, open_input
from rsp_engine.io.sources.splits import Split, is_splittable, part_of, split_lines
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.io.sources.files.graph_times import GraphName
    from rsp_engine.io.sources.inputs import Input
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.monitor.run_monitor import Extent

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

    def __init__(self, source: Input, times_by: TimesBy = "any", first_line: int = 1) -> None:
        self.name = source.name
        self._input = source
        self._times_by = times_by
        self._first_line = first_line
        self.leans_on_others = False

    @property
    def can_be_cut(self) -> bool:
        """Tell whether it is a file of plain lines whose graphs tell their times by their names."""
        return self._times_by != "prov" and is_splittable(self._input)

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield places between whose graphs it can be cut."""
        return split_lines(self._input, size, since, _are_of_two_graphs)

    def plain_lines(self) -> PlainLines | None:
        """Read everything at once, if all lines are of the plainest form."""
        if self._times_by == "prov":
            return None
        try:
            return plain_lines(b"".join(self._input.chunks()))
        except Broken:
            return None

    def part(self, place: Split) -> NQuads:
        """Return what is in a place; the times that are said in others are not known there."""
        return NQuads(part_of(self._input, place), self._times_by, place.line)

    def extent(self) -> Extent | None:
        """Return how many bytes were read, if it is a file."""
        return extent_of_input(self._input)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the stream from its start."""
        for item in self.batches():
            if isinstance(item, ElementBatch):
                yield from item
            else:
                yield item

    def batches(self) -> Iterator[ElementBatch | Element | DeadLetter]:
        """Read the stream from its start, a block at a time."""
        times = GraphTimes(self.name, self._times_by)
        run = _Run(self.name, times)
        for block in text_blocks(self._input, self._first_line):
            if isinstance(block, Gap):
                if block.is_end:
                    yield from run.break_off()
                yield block.letter
            elif (whole := _whole(block)) is not None:
                yield from run.add_block(whole)
            else:
                for part in _line_by_line(self.name, block):
                    yield from (part,) if isinstance(part, DeadLetter) else run.add(part)
        yield from run.close()
        self.leans_on_others = times.has_memory
        yield from times.end()


class _Part(NamedTuple):
    """Neighbouring quads of one graph, in one block; of the default graph, one quad."""

    graph: GraphName | ox.DefaultGraph
    triples: list[Triple]
    line: int
    raw: bytes


class _Whole(NamedTuple):
    """A block that was parsed at once: its quads, and of each its graph, its line and where."""

    quads: list[ox.Quad]
    graphs: list[GraphName | ox.DefaultGraph]
    written: list[bytes]
    numbers: Sequence[int]

    def runs(self) -> list[int]:
        """Return where the runs of one graph begin, and at last where they all end."""
        pairs = enumerate(pairwise(self.graphs), 1)
        return [0, *(place for place, (one, other) in pairs if one != other), len(self.quads)]

    def parts(self, runs: Sequence[int]) -> Iterator[_Part]:
        """Yield runs, and quads of the default graph one by one."""
        for start, end in pairwise(runs):
            graph = self.graphs[start]
            size = 1 if graph == _DEFAULT else end - start
            for begin in range(start, end, size):
                triples = list(map(_TRIPLE, self.quads[begin : begin + size]))
                raw = b"".join(self.written[begin : begin + size])
                yield _Part(graph, triples, self.numbers[begin], raw)

    def batch(self, source: str, runs: Sequence[int], times: Sequence[int]) -> ElementBatch:
        """Return runs whose times are known as elements."""
        triples: list[Triple] = list(map(_TRIPLE, self.quads[runs[0] : runs[-1]]))
        starts: Sequence[int] = range(len(times) + 1)
        raws = self.written[runs[0] : runs[-1]]
        if len(triples) > len(times):
            cut = [slice(a - runs[0], b - runs[0]) for a, b in pairwise(runs)]
            # An element is a set of triples: each stands in it once.
            elements = [dict.fromkeys(triples[places]) for places in cut]
            triples = list(chain.from_iterable(elements))
            starts = list(accumulate(map(len, elements), initial=0))
            raws = [b"".join(raws[places]) for places in cut]
        positions = [self.numbers[run] for run in runs[:-1]]
        return ElementBatch(source, times, triples, starts, positions, raws)


class _Run:
    """The run that is being read: it can go on in the next block."""

    def __init__(self, source: str, times: GraphTimes) -> None:
        self._source = source
        self._times = times
        self._parts: list[_Part] = []

    def add_block(self, block: _Whole) -> Iterator[ElementBatch | Element | DeadLetter]:
        """Take the quads of a block.

        Its first and its last run may go on in other blocks; those between are complete, and one
        batch if their names tell their times.
        """
        runs = block.runs()
        first, between, last = runs[:2], runs[1:-1], runs[-2:]
        yield from self._add_all(block.parts(first))
        if len(between) > 1:
            yield from self.close()
            times = self._times.by_name(map(block.graphs.__getitem__, between[:-1]))
            if times is None:
                yield from self._add_all(block.parts(between))
            else:
                yield block.batch(self._source, between, times)
        if between:
            yield from self._add_all(block.parts(last))

    def _add_all(self, parts: Iterable[_Part]) -> Iterator[Element | DeadLetter]:
        for part in parts:
            yield from self.add(part)

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

    def break_off(self) -> Sequence[DeadLetter]:
        """End the run where the input breaks off: more quads may have belonged to it."""
        if not self._parts:
            return ()
        piece = self._take()
        reason = "the input breaks off in this graph, which may not be complete"
        return [DeadLetter(self._source, piece.position, piece.raw, reason)]

    def _take(self) -> Piece:
        parts, self._parts = self._parts, []
        # An element is a set of triples: each stands in it once.
        triples = tuple(dict.fromkeys(chain.from_iterable(map(_TRIPLES, parts))))
        return Piece(triples, parts[0].line, b"".join(map(_RAW, parts)))


def _whole(block: TextBlock) -> _Whole | None:
    """Parse a block at once, and return nothing if that cannot be done, or it holds no quads."""
    written = BytesIO(block.data).readlines()
    if _may_be_deep(block.data, written) or _has_lone_return(block.data):
        return None
    try:
        quads = list(ox.parse(block.data, _SYNTAX))
    except SyntaxError:
        return None
    numbers: Sequence[int] = range(block.line, block.line + len(written))
    if len(quads) != len(written):
        places = [place for place, line in enumerate(written) if not _is_blank(line)]
        written, numbers = [written[p] for p in places], [numbers[p] for p in places]
    return _Whole(quads, list(map(_GRAPH, quads)), written, numbers) if quads else None


def _line_by_line(source: str, block: TextBlock) -> Iterator[_Part | DeadLetter]:
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


def _are_of_two_graphs(one: bytes, other: bytes) -> bool:
    """Tell whether two lines are a quad each, of different graphs."""
    try:
        graphs = [[quad.graph_name for quad in quads_of(line, _SYNTAX)] for line in (one, other)]
    except MalformedRdfError:
        return False
    return [len(found) for found in graphs] == [1, 1] and graphs[0] != graphs[1]


def _is_blank(line: bytes) -> bool:
    return line.lstrip()[:1] in (b"", b"#")
