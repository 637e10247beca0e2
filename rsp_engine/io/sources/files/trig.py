"""TriG: an element is a graph block.

    @prefix ex: <http://example.org/> .
    <http://example.org/g/1000> { ex:a ex:p 1 . ex:b ex:p 2 }
    <http://example.org/g/2000> { ex:a ex:p 3 }

contains two elements, at 1000 and 2000 ms (see `graph_times`). Each block is parsed on its own,
with the prefixes and the base that precede it, so that only a malformed block becomes a dead
letter. At most one statement is in memory; one longer than `LONGEST_STATEMENT` becomes a dead
letter, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.io.sources.files.blocks import Gap, text_blocks
from rsp_engine.io.sources.files.graph_times import GraphPiece, GraphTimeRule, GraphTimes
from rsp_engine.io.sources.files.rdf import MalformedRdfError, quads_of
from rsp_engine.io.sources.files.trig_statements import Statement, Statements
from rsp_engine.io.sources.inputs import extent_of_input, open_input
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.files.graph_times import GraphName
    from rsp_engine.io.sources.inputs import Input
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.monitor.run_monitor import Extent

__all__ = ["Trig", "open_trig"]

_SYNTAX = ox.RdfFormat.TRIG


def open_trig(spec: Spec) -> Trig:
    """Open a stream of TriG."""
    return Trig(open_input(spec.place), GraphTimeRule.of(spec))


class Trig:
    """A stream of TriG."""

    blank_node_scope: BlankNodeScope = "element"

    def __init__(self, source: Input, rule: GraphTimeRule | None = None) -> None:
        self.name = source.name
        self._input = source
        self._rule = rule or GraphTimeRule()

    def extent(self) -> Extent | None:
        """Return how many bytes were read; `None` if the input is not a file."""
        return extent_of_input(self._input)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the stream from its start."""
        statements = Statements()
        reader = _StatementReader(self.name, statements, GraphTimes(self.name, self._rule))
        for block in text_blocks(self._input):
            if isinstance(block, Gap):
                yield block.letter
            # A line that is too long is skipped, but still counted.
            statements.feed(b"\n" if isinstance(block, Gap) else block.data)
            yield from reader.read_complete()
        statements.end()
        yield from reader.read_complete()
        yield from reader.times.end()


class _StatementReader:
    """The state of reading: the prologue so far, and the times of graphs."""

    def __init__(self, source: str, statements: Statements, times: GraphTimes) -> None:
        self.times = times
        self._source = source
        self._statements = statements
        self._prologue = b""

    def read_complete(self) -> Iterator[Element | DeadLetter]:
        """Read all complete statements."""
        while (statement := self._statements.take()) is not None:
            try:
                items = list(self._read(statement))
            except MalformedRdfError:
                yield from self._recover(statement)
            else:
                yield from items

    def _recover(self, statement: Statement) -> Iterator[Element | DeadLetter]:
        """Read a malformed statement up to where the next one starts in it."""
        shorter = self._statements.cut_short(statement) or statement
        try:
            yield from self._read(shorter)
        except MalformedRdfError as error:
            reason = f"the TriG cannot be read: {error.what}"
            yield DeadLetter(self._source, shorter.line, shorter.data, reason)

    def _read(self, statement: Statement) -> Iterator[Element | DeadLetter]:
        if not statement.has_end:
            raise MalformedRdfError("the statement has no end")
        if statement.is_directive:
            self._prologue = _with_directive(self._prologue, statement.data)
            return
        quads = quads_of(self._prologue + statement.data, _SYNTAX)
        graph = quads[0].graph_name if quads else self._name_of_empty(statement)
        if isinstance(graph, ox.DefaultGraph):
            for quad in quads:
                yield from self.times.statement(quad.triple, statement.line, statement.data)
        else:
            triples = tuple(dict.fromkeys(quad.triple for quad in quads))
            yield from self.times.graph(graph, GraphPiece(triples, statement.line, statement.data))

    def _name_of_empty(self, statement: Statement) -> GraphName | ox.DefaultGraph:
        """Return the name of an empty graph, by parsing it with a triple added."""
        label = statement.data.partition(b"{")[0]
        return quads_of(self._prologue + label + b"{ <a:a> <a:a> <a:a> }", _SYNTAX)[0].graph_name


def _with_directive(prologue: bytes, directive: bytes) -> bytes:
    """Return the prologue with a directive added, each prefix once and every IRI absolute."""
    quads_of(prologue + directive, _SYNTAX)  # for its readable errors
    parser = ox.parse(prologue + directive, _SYNTAX)
    list(parser)
    base = f"@base <{parser.base_iri}> . " if parser.base_iri else ""
    prefixes = (f"@prefix {name}: <{iri}> . " for name, iri in parser.prefixes.items())
    return (base + "".join(prefixes)).encode()
