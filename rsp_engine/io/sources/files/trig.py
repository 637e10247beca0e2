"""TriG: an element is a graph block.

    @prefix ex: <http://example.org/> .
    <http://example.org/g/1000> { ex:a ex:p 1 . ex:b ex:p 2 }
    <http://example.org/g/2000> { ex:a ex:p 3 }

holds two elements, at 1000 and 2000 ms (see `graph_times`). Each block is parsed for itself, with
the prefixes and the base that stand before it, so that a malformed one is set aside alone. At
most one statement is held in memory; one longer than `LONGEST_STATEMENT` is set aside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyoxigraph as ox

from rsp_engine.io.sources.files.blocks import Gap, text_blocks
from rsp_engine.io.sources.files.graph_times import GraphTimes, Piece
from rsp_engine.io.sources.files.rdf import MalformedRdfError, quads_of
from rsp_engine.io.sources.files.trig_statements import Statement, Statements
from rsp_engine.io.sources.inputs import extent_of_input, open_input
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.files.graph_times import GraphName, TimesBy
    from rsp_engine.io.sources.inputs import Input
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.monitor.run_monitor import Extent

__all__ = ["Trig", "open_trig"]

_SYNTAX = ox.RdfFormat.TRIG


def open_trig(spec: Spec) -> Trig:
    """Open a source of TriG."""
    by = cast("TimesBy", spec.choice("time", ("any", "iri", "prov")))
    return Trig(open_input(spec.place), by)


class Trig:
    """A stream of TriG."""

    blank_node_scope: BlankNodeScope = "element"

    def __init__(self, source: Input, times_by: TimesBy = "any") -> None:
        self.name = source.name
        self._input = source
        self._times_by = times_by

    def extent(self) -> Extent | None:
        """Return how many bytes were read, if it is a file."""
        return extent_of_input(self._input)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the stream from its start."""
        statements = Statements()
        reading = _Reading(self.name, statements, GraphTimes(self.name, self._times_by))
        for block in text_blocks(self._input):
            if isinstance(block, Gap):
                yield block.letter
            # A line that was left out is still counted.
            statements.feed(b"\n" if isinstance(block, Gap) else block.data)
            yield from reading.go_on()
        statements.end()
        yield from reading.go_on()
        yield from reading.times.end()


class _Reading:
    """What is known at one point of the text: its prologue, and the times of graphs."""

    def __init__(self, source: str, statements: Statements, times: GraphTimes) -> None:
        self.times = times
        self._source = source
        self._statements = statements
        self._prologue = b""

    def go_on(self) -> Iterator[Element | DeadLetter]:
        """Read the statements that are complete."""
        while (statement := self._statements.take()) is not None:
            try:
                found = list(self._read(statement))
            except MalformedRdfError:
                yield from self._read_what_is_good(statement)
            else:
                yield from found

    def _read_what_is_good(self, statement: Statement) -> Iterator[Element | DeadLetter]:
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
            yield from self.times.graph(graph, Piece(triples, statement.line, statement.data))

    def _name_of_empty(self, statement: Statement) -> GraphName | ox.DefaultGraph:
        """Return the name of a graph without triples, by putting one into it."""
        label = statement.data.partition(b"{")[0]
        return quads_of(self._prologue + label + b"{ <a:a> <a:a> <a:a> }", _SYNTAX)[0].graph_name


def _with_directive(prologue: bytes, directive: bytes) -> bytes:
    """Return the prologue with one more directive: no prefix twice, every IRI in full."""
    quads_of(prologue + directive, _SYNTAX)  # for the words of its errors
    parser = ox.parse(prologue + directive, _SYNTAX)
    list(parser)
    base = f"@base <{parser.base_iri}> . " if parser.base_iri else ""
    prefixes = (f"@prefix {name}: <{iri}> . " for name, iri in parser.prefixes.items())
    return (base + "".join(prefixes)).encode()
