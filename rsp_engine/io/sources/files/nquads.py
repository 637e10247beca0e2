"""N-Quads: an element is a run of consecutive quads of one graph.

    <http://example.org/a> <http://example.org/p> "1" <http://example.org/g/1000> .
    <http://example.org/b> <http://example.org/p> "2" <http://example.org/g/1000> .
    <http://example.org/a> <http://example.org/p> "3" <http://example.org/g/2000> .

contains two elements, at 1000 and 2000 ms (see `graph_times`). A block of lines is parsed at once.
If that fails, it is parsed line by line, so that only the malformed lines become dead letters.
"""

from __future__ import annotations

import re
from io import BytesIO
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, cast

import pyoxigraph as ox

from rsp_engine.io.sources.batch import ElementBatch
from rsp_engine.io.sources.columns.nquads_reader import read_quads
from rsp_engine.io.sources.files.blocks import Gap, TextBlock, lines, text_blocks
from rsp_engine.io.sources.files.graph_times import GraphPiece, GraphTimeRule, GraphTimes
from rsp_engine.io.sources.files.rdf import DEEPEST_TRIPLE, MalformedRdfError, quads_of
from rsp_engine.io.sources.inputs import InputBroken, extent_of_input, open_input
from rsp_engine.io.sources.splits import LineCount, Split, is_splittable, part_of, split_lines
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.io.sources.columns.quad_lines import ReadQuads, Rename
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
    """Open a stream of N-Quads."""
    return NQuads(open_input(spec.place), GraphTimeRule.of(spec))


class NQuads:
    """A stream of N-Quads. Blank node labels have the scope of the whole stream."""

    blank_node_scope: BlankNodeScope = "stream"

    def __init__(self, source: Input, rule: GraphTimeRule | None = None) -> None:
        self.name = source.name
        self._input = source
        self._rule = rule or GraphTimeRule()
        self._lines = LineCount(source)
        self.leans_on_others = False

    @property
    def can_be_cut(self) -> bool:
        """Return whether the input is an uncompressed file and graph names may state the times."""
        return self._rule.by != "prov" and is_splittable(self._input)

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits that end between two graphs."""
        return split_lines(self._input, size, since, _have_different_graphs)

    def read_columns(self, rename: Rename) -> ReadQuads | None:
        """Read the whole input at once, as columns; None if it must be read as elements."""
        try:
            data = b"".join(self._input.chunks())
        except InputBroken:
            return None
        return read_quads(self.name, data, self._rule, rename)

    def part(self, split: Split) -> NQuads:
        """Return the quads of a split; times that other splits state are not known to it."""
        return NQuads(part_of(self._input, split), self._rule)

    def lines_before(self, split: Split) -> int:
        """Return how many lines are before a split."""
        return self._lines.before(split.start)

    def extent(self) -> Extent | None:
        """Return how many bytes were read; `None` if the input is not a file."""
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
        times = GraphTimes(self.name, self._rule)
        run = _Run(self.name, times)
        for block in text_blocks(self._input):
            if isinstance(block, Gap):
                if block.is_end:
                    yield from run.break_off()
                yield block.letter
            elif (parsed := _parsed(block)) is not None:
                yield from run.add_block(parsed)
            else:
                for part in _line_by_line(self.name, block):
                    yield from (part,) if isinstance(part, DeadLetter) else run.add(part)
        yield from run.close()
        self.leans_on_others = times.has_memory
        yield from times.end()


class _Part(NamedTuple):
    """Consecutive quads of one graph in one block; in the default graph, a single quad."""

    graph: GraphName | ox.DefaultGraph
    triples: list[Triple]
    line: int
    raw: bytes


class _ParsedBlock(NamedTuple):
    """A block that was parsed at once: per quad its graph, its line and its line number."""

    quads: list[ox.Quad]
    graphs: list[GraphName | ox.DefaultGraph]
    lines: list[bytes]
    numbers: Sequence[int]

    def runs(self) -> list[int]:
        """Return the start of each run of one graph, followed by the number of quads."""
        pairs = enumerate(pairwise(self.graphs), 1)
        return [0, *(start for start, (one, other) in pairs if one != other), len(self.quads)]

    def parts(self, runs: Sequence[int]) -> Iterator[_Part]:
        """Yield each run as one part; quads of the default graph one by one."""
        for start, end in pairwise(runs):
            graph = self.graphs[start]
            size = 1 if graph == _DEFAULT else end - start
            for begin in range(start, end, size):
                triples = list(map(_TRIPLE, self.quads[begin : begin + size]))
                raw = b"".join(self.lines[begin : begin + size])
                yield _Part(graph, triples, self.numbers[begin], raw)

    def batch(self, source: str, runs: Sequence[int], times: Sequence[int]) -> ElementBatch:
        """Return the runs as a batch of elements, given their times."""
        triples: list[Triple] = list(map(_TRIPLE, self.quads[runs[0] : runs[-1]]))
        starts: Sequence[int] = range(len(times) + 1)
        raws = self.lines[runs[0] : runs[-1]]
        if len(triples) > len(times):
            slices = [slice(a - runs[0], b - runs[0]) for a, b in pairwise(runs)]
            # An element is a set of triples: drop duplicates.
            elements = [dict.fromkeys(triples[each]) for each in slices]
            triples = list(chain.from_iterable(elements))
            starts = list(accumulate(map(len, elements), initial=0))
            raws = [b"".join(raws[each]) for each in slices]
        positions = [self.numbers[run] for run in runs[:-1]]
        return ElementBatch(source, times, triples, starts, positions, raws)


class _Run:
    """The current run, which may continue in the next block."""

    def __init__(self, source: str, times: GraphTimes) -> None:
        self._source = source
        self._times = times
        self._parts: list[_Part] = []

    def add_block(self, block: _ParsedBlock) -> Iterator[ElementBatch | Element | DeadLetter]:
        """Add the quads of a block.

        Its first and its last run may continue in other blocks. Those between are complete, and
        form a batch if their names state their times.
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
        """Add the next quads; return the elements that they complete."""
        if self._parts and self._parts[0].graph == part.graph:
            self._parts.append(part)
            return ()
        done = self.close()
        if isinstance(part.graph, ox.DefaultGraph):
            return [*done, *self._times.statement(part.triples[0], part.line, part.raw)]
        self._parts = [part]
        return done

    def close(self) -> Sequence[Element | DeadLetter]:
        """Close the run, which is complete."""
        if not self._parts:
            return ()
        return self._times.graph(cast("GraphName", self._parts[0].graph), self._take())

    def break_off(self) -> Sequence[DeadLetter]:
        """Close the run where the input breaks off: it may be incomplete."""
        if not self._parts:
            return ()
        piece = self._take()
        reason = "the input breaks off in this graph, which may not be complete"
        return [DeadLetter(self._source, piece.position, piece.raw, reason)]

    def _take(self) -> GraphPiece:
        parts, self._parts = self._parts, []
        # An element is a set of triples: drop duplicates.
        triples = tuple(dict.fromkeys(chain.from_iterable(map(_TRIPLES, parts))))
        return GraphPiece(triples, parts[0].line, b"".join(map(_RAW, parts)))


def _parsed(block: TextBlock) -> _ParsedBlock | None:
    """Parse a block at once; `None` if that fails, or the block contains no quads."""
    quad_lines = BytesIO(block.data).readlines()
    if _may_be_deep(block.data, quad_lines) or _has_lone_return(block.data):
        return None
    try:
        quads = list(ox.parse(block.data, _SYNTAX))
    except SyntaxError:
        return None
    numbers: Sequence[int] = range(block.line, block.line + len(quad_lines))
    if len(quads) != len(quad_lines):
        kept = [index for index, line in enumerate(quad_lines) if not _is_blank(line)]
        quad_lines, numbers = [quad_lines[i] for i in kept], [numbers[i] for i in kept]
    return _ParsedBlock(quads, list(map(_GRAPH, quads)), quad_lines, numbers) if quads else None


def _line_by_line(source: str, block: TextBlock) -> Iterator[_Part | DeadLetter]:
    for number, text in lines(block):
        for line in text.splitlines(keepends=True):  # a lone CR ends a line of N-Quads, too
            try:
                quads = quads_of(line, _SYNTAX)
            except MalformedRdfError as error:
                yield DeadLetter(source, number, line, f"the quad cannot be read: {error.what}")
            else:
                for quad in quads:
                    yield _Part(quad.graph_name, [quad.triple], number, line)


def _may_be_deep(data: bytes, quad_lines: list[bytes]) -> bool:
    """Return whether triple terms may be nested too deep; short lines cannot nest that deep."""
    longest = max(map(len, quad_lines))
    return longest > 2 * DEEPEST_TRIPLE and data.count(b"<<") > DEEPEST_TRIPLE


def _has_lone_return(data: bytes) -> bool:
    return b"\r" in data and _LONE_RETURN.search(data) is not None


def _have_different_graphs(one: bytes, other: bytes) -> bool:
    """Return whether two lines are one quad each, of different graphs."""
    try:
        graphs = [[quad.graph_name for quad in quads_of(line, _SYNTAX)] for line in (one, other)]
    except MalformedRdfError:
        return False
    return [len(names) for names in graphs] == [1, 1] and graphs[0] != graphs[1]


def _is_blank(line: bytes) -> bool:
    return line.lstrip()[:1] in (b"", b"#")
