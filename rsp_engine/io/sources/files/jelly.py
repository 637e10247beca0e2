"""Jelly: RDF in binary frames (Sowiński et al., Jelly: a Fast and Convenient RDF Serialization).

    quads, graphs    an element is a run of consecutive quads of one graph, as in N-Quads
    triples          an element is a frame; its time is the object of prov:generatedAtTime

A frame refers to the lookup tables of earlier frames, so nothing can be read after a damaged one.
"""

from __future__ import annotations

import io
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
from pyjelly import jelly
from pyjelly.parse.decode import Adapter, Decoder
from pyjelly.parse.ioutils import get_options_and_frames

from rsp_engine.io.sources.files.graph_times import GraphPiece, GraphTimeRule, GraphTimes, time_of
from rsp_engine.io.sources.inputs import InputBroken, extent_of_input, open_input
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rsp_engine.io.sources.files.graph_times import GraphName
    from rsp_engine.io.sources.inputs import Input
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.monitor.run_monitor import Extent

    Graph = GraphName | ox.DefaultGraph

__all__ = ["Jelly", "open_jelly", "quads_in"]

_DEFAULT = ox.DefaultGraph()
_MOST_NAMES = 100_000
"""Most IRIs that are cached."""


def open_jelly(spec: Spec) -> Jelly:
    """Open a Jelly stream."""
    return Jelly(open_input(spec.place), GraphTimeRule.of(spec))


class Jelly:
    """A Jelly stream. Blank node labels have the scope of the whole stream."""

    blank_node_scope: BlankNodeScope = "stream"

    def __init__(self, source: Input, rule: GraphTimeRule | None = None) -> None:
        self.name = source.name
        self._input = source
        self._rule = rule or GraphTimeRule()

    def extent(self) -> Extent | None:
        """Return how many bytes were read; `None` if the input is not a file."""
        return extent_of_input(self._input)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the stream from its start."""
        times = GraphTimes(self.name, self._rule)
        run: list[ox.Triple] = []
        graph: Graph = _DEFAULT
        begin = frame = 0
        try:
            for frame, is_triples, rows in _frames(self._input):
                if is_triples:
                    yield self._element(frame, tuple(triple for _, triple in rows))
                    continue
                for name, quads in groupby(rows, key=itemgetter(0)):
                    triples = [triple for _, triple in quads]
                    if name != graph or name == _DEFAULT:
                        yield from _close_run(times, graph, run, begin)
                        run, graph, begin = [], name, frame
                    run += triples
            yield from _close_run(times, graph, run, begin)
        except InputBroken as broken:
            raw = _text(run)
            yield DeadLetter(self.name, frame + 1, raw, f"no more can be read: {broken}")
        yield from times.end()

    def _element(self, frame: int, triples: tuple[ox.Triple, ...]) -> Element | DeadLetter:
        try:
            time = time_of(triples)
        except ValueError as error:
            return DeadLetter(self.name, frame, _text(triples), str(error))
        return Element(time, tuple(dict.fromkeys(triples)), self.name, frame, _text(triples))


def quads_in(source: Input) -> Iterator[ox.Quad]:
    """Yield all quads of a stream; raise `InputBroken` where it breaks off."""
    for _, _, rows in _frames(source):
        for graph, triple in rows:
            yield ox.Quad(triple.subject, triple.predicate, triple.object, graph)


def _close_run(
    times: GraphTimes, graph: Graph, run: list[ox.Triple], begin: int
) -> Iterator[Element | DeadLetter]:
    if not run:
        return
    if isinstance(graph, ox.DefaultGraph):
        for triple in run:
            yield from times.statement(triple, begin, _text([triple]))
        return
    yield from times.graph(graph, GraphPiece(tuple(dict.fromkeys(run)), begin, _text(run)))


def _text(triples: Iterable[ox.Triple]) -> bytes:
    return "".join([f"{triple} .\n" for triple in triples]).encode()


def _frames(source: Input) -> Iterator[tuple[int, bool, list[tuple[Graph, ox.Triple]]]]:
    """Yield the number of each frame, whether it is a frame of triples, and its rows.

    The decoder raises many kinds of exceptions for damaged input: each of them ends the stream.
    """
    stream = io.BufferedReader(_Chunks(source))
    try:
        if not stream.peek(1):
            return
        options, frames = get_options_and_frames(stream)
        decoder = Decoder(_OxigraphAdapter(options))
        is_triples = options.stream_types.physical_type == jelly.PHYSICAL_STREAM_TYPE_TRIPLES
        for number, frame in enumerate(frames, start=1):
            rows = [row for row in decoder.iter_rows(frame) if row is not None]
            yield number, is_triples, rows
    except InputBroken:
        raise
    except Exception as error:
        raise InputBroken(f"it is not Jelly: {str(error) or type(error).__name__}") from None


class _Chunks(io.RawIOBase):
    """The chunks of an input as a raw stream."""

    def __init__(self, source: Input) -> None:
        self._chunks = source.chunks()
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


class _OxigraphAdapter(Adapter):  # type: ignore[misc]
    """Decodes rows as terms of pyoxigraph, with a cache of IRIs."""

    def __init__(self, options: Any) -> None:  # noqa: ANN401 - the library has no types
        super().__init__(options)
        self._graph: Graph = _DEFAULT
        self._names: dict[str, ox.NamedNode] = {}

    def iri(self, iri: str) -> ox.NamedNode:
        node = self._names.get(iri)
        if node is None:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            node = self._names[iri] = ox.NamedNode(iri)
        return node

    def bnode(self, bnode: str) -> ox.BlankNode:
        return ox.BlankNode(bnode)

    def default_graph(self) -> ox.DefaultGraph:
        return _DEFAULT

    def literal(
        self, lex: str, language: str | None = None, datatype: str | None = None
    ) -> ox.Literal:
        kind = None if datatype is None else self.iri(datatype)
        return ox.Literal(lex, language=language, datatype=kind)

    def quoted_triple(self, terms: Iterable[Any]) -> ox.Triple:
        return ox.Triple(*terms)

    def triple(self, terms: Iterable[Any]) -> tuple[Graph, ox.Triple]:
        return self._graph, ox.Triple(*terms)

    def quad(self, terms: Iterable[Any]) -> tuple[Graph, ox.Triple]:
        subject, predicate, value, graph = terms
        return graph, ox.Triple(subject, predicate, value)

    def graph_start(self, graph_id: Graph) -> None:
        self._graph = graph_id

    def graph_end(self) -> None:
        self._graph = _DEFAULT

    def namespace_declaration(self, name: str, iri: str) -> None:
        """Ignore prefixes: they serve only readability."""
