"""Message payloads: RDF in any syntax, with a time in the payload or the time of arrival.

    jsonl                     {"timestamp": ..., "graph": "..."}; one object, or one per line
    nquads, trig              named graphs, with times as in a file
    jelly                     a complete stream of frames in each message
    turtle, ntriples, ...     one graph; its time is the object of prov:generatedAtTime

With `time=arrival` a message is one element, at the time of its arrival. An element whose time is
more than `ahead` after its arrival becomes a dead letter: it comes from a wrong clock, and would
advance the watermark past every open window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rsp_engine.io.sources.files.graph_times import GraphTimeRule, time_of
from rsp_engine.io.sources.files.json_element import UnfitError, element_in, object_in
from rsp_engine.io.sources.files.jsonl import JsonLinesSource
from rsp_engine.io.sources.files.nquads import NQuads
from rsp_engine.io.sources.files.rdf import GRAPH_FORMATS, MalformedRdfError, graph_of, quads_of
from rsp_engine.io.sources.files.trig import Trig
from rsp_engine.io.sources.inputs import InputBroken
from rsp_engine.model.durations import format_duration
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyoxigraph import RdfFormat, Triple

    from rsp_engine.io.sources.live.records import SpoolRecord
    from rsp_engine.io.sources.times import TimeUnit

__all__ = ["Payloads", "TimeFrom"]

TimeFrom = Literal["payload", "arrival"]
_QUADS = ("nquads", "trig")


@dataclass(frozen=True, slots=True)
class _Text:
    """A payload as the input of a file format."""

    name: str
    data: bytes

    def chunks(self) -> Iterator[bytes]:
        yield self.data


@dataclass(frozen=True, slots=True)
class Payloads:
    """The payload format of a source; `ahead` is in milliseconds."""

    source: str
    format: str = "jsonl"
    time: TimeFrom = "payload"
    ahead: int = 600_000
    unit: TimeUnit = "ms"
    """What a time in jsonl counts, if it is a number."""

    def elements(self, record: SpoolRecord) -> Iterator[Element | DeadLetter]:
        """Yield the elements and dead letters of a message."""
        if record.fault:
            yield self._letter(record, record.fault)
            return
        for item in self._items(record):
            if isinstance(item, DeadLetter):
                yield DeadLetter(self.source, record.number, item.raw, item.reason)
                continue
            early = item.timestamp - record.arrival
            if early > self.ahead:
                reason = f"future: its time is {format_duration(early)} ahead of its arrival"
                yield self._letter(record, reason)
            else:
                yield item._replace(source=self.source, position=record.number)

    def _items(self, record: SpoolRecord) -> Iterable[Element | DeadLetter]:
        try:
            if self.format == "jsonl":
                return self._from_json(record)
            text = _Text(self.source, record.message.payload)
            if self.format == "jelly":
                return self._from_jelly(record, text)
            if self.time == "payload" and self.format == "nquads":
                return NQuads(text, GraphTimeRule(unit=self.unit))
            if self.time == "payload" and self.format == "trig":
                return Trig(text, GraphTimeRule(unit=self.unit))
            return [self._graph(record)]
        except UnfitError as error:
            return [self._letter(record, str(error))]
        except MalformedRdfError as error:
            return [self._letter(record, f"the graph cannot be read: {error}")]

    def _from_json(self, record: SpoolRecord) -> Iterable[Element | DeadLetter]:
        payload = record.message.payload
        arrival = record.arrival if self.time == "arrival" else None
        try:
            value = object_in(payload)
        except UnfitError:
            if arrival is None and b"\n" in payload.strip():
                return JsonLinesSource(_Text(self.source, payload), unit=self.unit)
            raise
        return [self._element(record, *element_in(value, arrival, self.unit))]

    def _from_jelly(self, record: SpoolRecord, text: _Text) -> Iterable[Element | DeadLetter]:
        from rsp_engine.io.sources.files.jelly import Jelly, quads_in

        if self.time == "payload":
            return Jelly(text, GraphTimeRule(unit=self.unit))
        try:
            triples = tuple(dict.fromkeys(quad.triple for quad in quads_in(text)))
        except InputBroken as broken:
            raise UnfitError(str(broken)) from None
        return [self._element(record, record.arrival, triples)]

    def _graph(self, record: SpoolRecord) -> Element:
        syntax = GRAPH_FORMATS[self.format]
        triples = _triples(record.message.payload, syntax, self.format in _QUADS)
        if self.time == "arrival":
            return self._element(record, record.arrival, triples)
        try:
            return self._element(record, time_of(triples), triples)
        except ValueError as error:
            raise UnfitError(str(error)) from None

    def _element(self, record: SpoolRecord, time: int, triples: tuple[Triple, ...]) -> Element:
        return Element(time, triples, self.source, record.number, record.message.payload)

    def _letter(self, record: SpoolRecord, reason: str) -> DeadLetter:
        return DeadLetter(self.source, record.number, record.message.payload, reason)


def _triples(payload: bytes, syntax: RdfFormat, has_graphs: bool) -> tuple[Triple, ...]:
    if not has_graphs:
        return graph_of(payload, syntax)
    return tuple(dict.fromkeys(quad.triple for quad in quads_of(payload, syntax)))
