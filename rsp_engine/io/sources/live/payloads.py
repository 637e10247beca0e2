"""Message payloads: RDF in any syntax, with a time in the payload or the time of arrival.

    jsonl                     {"timestamp": ..., "graph": "..."}; one object, or one per line
    nquads, trig              named graphs, with times as in a file
    jelly                     a complete stream of frames in each message
    turtle, ntriples, ...     one graph; its time is the object of prov:generatedAtTime
    json                      plain JSON, an object or an array of some, by a template
    csv                       rows, by a template; the first has the names, unless they are given

With another time than that of the payload, a message is one element: at the time of its arrival, or
of its key or a header. An element whose time is more than `ahead` after its arrival becomes a dead
letter: it comes from a wrong clock, and would advance the watermark past every open window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.io.sources.columns.jsonl_reader import read_json_lines
from rsp_engine.io.sources.files.csv_table import Records
from rsp_engine.io.sources.files.graph_times import GraphTimeRule, time_of
from rsp_engine.io.sources.files.json_element import (
    UnfitError,
    element_in,
    object_in,
    value_in,
)
from rsp_engine.io.sources.files.jsonl import JsonLinesSource
from rsp_engine.io.sources.files.message_template import Envelope
from rsp_engine.io.sources.files.nquads import NQuads
from rsp_engine.io.sources.files.rdf import GRAPH_FORMATS, MalformedRdfError, graph_of, quads_of
from rsp_engine.io.sources.files.trig import Trig
from rsp_engine.io.sources.inputs import InputBroken
from rsp_engine.io.sources.times import from_text
from rsp_engine.model.quantities import format_duration, quantity
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import RdfFormat, Triple

    from rsp_engine.io.sources.columns.quad_lines import ReadQuads, Rename
    from rsp_engine.io.sources.files.message_template import MessageTemplate
    from rsp_engine.io.sources.live.records import SpoolRecord
    from rsp_engine.io.sources.times import TimeUnit

__all__ = ["Payloads"]

_QUADS = ("nquads", "trig")
_IN_LINES = ("jsonl", "json")
"""The formats whose messages are lines of a file."""


class _SeveralItemsError(Exception):
    """A message has no element, or several."""


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
    time: str = "payload"
    """`payload`, `arrival`, `key`, or `header:` and a name."""
    ahead: int = 600_000
    unit: TimeUnit = "ms"
    """What a time in jsonl, a template, a key or a header counts, if it is a number."""
    template: MessageTemplate | None = None
    """The template of plain JSON and of rows."""
    delimiter: str = ","
    columns: tuple[str, ...] = ()
    """The names of the columns of rows; if there are none, the first row has them."""

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

    def read_columns(self, records: Sequence[SpoolRecord], rename: Rename) -> ReadQuads | None:
        """Read messages of one object of JSON each as columns; None if that takes more."""
        if self.time != "payload" or self.format not in _IN_LINES or not records:
            return None
        lines = [record.message.payload for record in records]
        text = b"\n".join(lines)
        if any(each.fault for each in records) or text.count(b"\n") >= len(lines):
            return None
        if not all(map(bytes.strip, lines)):
            return None

        def parse(number: int, _line: bytes) -> Element | DeadLetter:
            items = [*self.elements(records[number - 1])]
            if len(items) != 1:
                raise _SeveralItemsError
            return items[0]

        try:
            if self.template is None:
                read = read_json_lines(text, self.unit, parse, rename)
            else:
                # It imports the functions of Arrow.
                from rsp_engine.io.sources.columns.template_lines import read_templated_lines

                read = read_templated_lines(text, self.template, self.unit, parse, rename)
        except _SeveralItemsError:
            return None
        if read is None or not len(read.lines):
            return None
        first = min(record.arrival for record in records)
        is_early = int(read.lines.times.max()) - first > self.ahead
        return None if is_early else read

    def _items(self, record: SpoolRecord) -> Iterable[Element | DeadLetter]:
        try:
            if self.template is not None:
                return self._from_template(record, self.template)
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
        given = self._given_time(record)
        try:
            value = object_in(payload)
        except UnfitError:
            if given is None and b"\n" in payload.strip():
                return JsonLinesSource(_Text(self.source, payload), unit=self.unit)
            raise
        return [self._element(record, *element_in(value, given, self.unit))]

    def _from_template(
        self, record: SpoolRecord, template: MessageTemplate
    ) -> Iterator[Element | DeadLetter]:
        """Yield the elements of plain JSON, or of rows, each with what does not fit."""
        message = record.message
        envelope = Envelope(message.topic, message.key, message.headers)
        try:
            given = self._given_time(record)
            for body in self._bodies(message.payload):
                if isinstance(body, DeadLetter):
                    yield body
                    continue
                try:
                    element = template.element(body, envelope, given, self.unit)
                except UnfitError as error:
                    yield self._letter(record, str(error))
                else:
                    yield self._element(record, *element)
        except UnfitError as error:
            yield self._letter(record, str(error))

    def _bodies(self, payload: bytes) -> Iterator[object]:
        if self.format == "json":
            value = value_in(payload)
            yield from value if isinstance(value, list) else (value,)
            return
        names = self.columns
        for row in Records(_Text(self.source, payload), self.delimiter):
            if isinstance(row, DeadLetter):
                yield row
            elif not names:
                names = tuple(name.strip() for name in row.fields)
            elif len(row.fields) != len(names):
                count = quantity(len(row.fields), "field")
                raise UnfitError(f"row {row.position} has {count}, not {len(names)}")
            else:
                yield dict(zip(names, row.fields, strict=True))

    def _from_jelly(self, record: SpoolRecord, text: _Text) -> Iterable[Element | DeadLetter]:
        from rsp_engine.io.sources.files.jelly import Jelly, quads_in

        given = self._given_time(record)
        if given is None:
            return Jelly(text, GraphTimeRule(unit=self.unit))
        try:
            triples = tuple(dict.fromkeys(quad.triple for quad in quads_in(text)))
        except InputBroken as broken:
            raise UnfitError(str(broken)) from None
        return [self._element(record, given, triples)]

    def _graph(self, record: SpoolRecord) -> Element:
        syntax = GRAPH_FORMATS[self.format]
        triples = _triples(record.message.payload, syntax, self.format in _QUADS)
        given = self._given_time(record)
        if given is not None:
            return self._element(record, given, triples)
        try:
            return self._element(record, time_of(triples), triples)
        except ValueError as error:
            raise UnfitError(str(error)) from None

    def _given_time(self, record: SpoolRecord) -> int | None:
        """Return the time that a message has outside its payload; None if it is in the payload."""
        match self.time:
            case "payload":
                return None
            case "arrival":
                return record.arrival
            case "key":
                return self._time_in(record.message.key, "key")
            case _:
                name = self.time.removeprefix("header:")
                return self._time_in(dict(record.message.headers).get(name), f"header {name}")

    def _time_in(self, text: bytes | None, place: str) -> int:
        if text is None:
            raise UnfitError(f"the message has no {place}")
        try:
            return from_text(text.decode(errors="replace"), self.unit)
        except ValueError as error:
            raise UnfitError(f"the time in its {place} {error}") from None

    def _element(self, record: SpoolRecord, time: int, triples: tuple[Triple, ...]) -> Element:
        return Element(time, triples, self.source, record.number, record.message.payload)

    def _letter(self, record: SpoolRecord, reason: str) -> DeadLetter:
        return DeadLetter(self.source, record.number, record.message.payload, reason)


def _triples(payload: bytes, syntax: RdfFormat, has_graphs: bool) -> tuple[Triple, ...]:
    if not has_graphs:
        return graph_of(payload, syntax)
    return tuple(dict.fromkeys(quad.triple for quad in quads_of(payload, syntax)))
