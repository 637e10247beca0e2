r"""JSON lines: an element is a JSON object on a line of its own.

    {"timestamp": 1000, "graph": "<http://example.org/a> <http://example.org/p> 1 ."}
    {"timestamp": "2015-01-06T20:00:22Z", "format": "jsonld", "graph": "{\"@id\": ...}"}

The timestamp is a number of milliseconds or an ISO 8601 string; the default format is Turtle. Other
members of the object and empty lines are ignored. With a template, the objects are plain JSON (see
`message_template`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rsp_engine.io.sources.batch import ElementBatch
from rsp_engine.io.sources.columns.jsonl_reader import read_json_lines
from rsp_engine.io.sources.files.blocks import Gap, lines, text_blocks
from rsp_engine.io.sources.files.json_element import UnfitError, element_in, object_in
from rsp_engine.io.sources.files.message_template import Envelope, MessageTemplate
from rsp_engine.io.sources.files.template import template_of
from rsp_engine.io.sources.inputs import InputBroken, extent_of_input, open_input
from rsp_engine.io.sources.splits import LineCount, is_splittable, part_of, split_lines
from rsp_engine.io.sources.times import TIME_UNITS
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.columns.quad_lines import ReadQuads, Rename
    from rsp_engine.io.sources.inputs import Input
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.io.sources.times import TimeUnit
    from rsp_engine.monitor.run_monitor import Extent

__all__ = ["JsonLinesSource", "line_template", "open_json", "open_jsonl"]


def open_jsonl(spec: Spec) -> JsonLinesSource:
    """Open a stream of JSON lines."""
    unit = cast("TimeUnit", spec.choice("unit", TIME_UNITS))
    return JsonLinesSource(open_input(spec.place), unit=unit)


def open_json(spec: Spec) -> JsonLinesSource:
    """Open a stream of lines of plain JSON, which a template turns into triples."""
    unit = cast("TimeUnit", spec.choice("unit", TIME_UNITS))
    return JsonLinesSource(open_input(spec.place), unit, line_template(spec))


def line_template(spec: Spec) -> MessageTemplate:
    """Return the template of lines of plain JSON that a source names."""
    path, text = template_of(spec)
    time = spec.options.get("time", "timestamp")
    return MessageTemplate(text, str(path), time, has_envelope=False)


class JsonLinesSource:
    """A stream of JSON objects, one per line."""

    blank_node_scope: BlankNodeScope = "element"
    leans_on_others = False

    def __init__(
        self, source: Input, unit: TimeUnit = "ms", template: MessageTemplate | None = None
    ) -> None:
        self._template = template
        self.name = source.name
        self._input = source
        self._lines = LineCount(source)
        self._unit = unit

    @property
    def can_be_cut(self) -> bool:
        """Return whether the input is an uncompressed file."""
        return is_splittable(self._input)

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of whole lines."""
        return split_lines(self._input, size, since, lambda _before, _after: True)

    def part(self, split: Split) -> JsonLinesSource:
        """Return the lines of a split."""
        return JsonLinesSource(part_of(self._input, split), self._unit, self._template)

    def lines_before(self, split: Split) -> int:
        """Return how many lines are before a split."""
        return self._lines.before(split.start)

    def read_columns(self, rename: Rename) -> ReadQuads | None:
        """Read the whole input at once, as columns; None if it must be read as elements."""
        try:
            data = b"".join(self._input.chunks())
        except InputBroken:
            return None
        if self._template is None:
            return read_json_lines(data, self._unit, self._read, rename)
        # It imports the functions of Arrow.
        from rsp_engine.io.sources.columns.template_lines import read_templated_lines

        return read_templated_lines(data, self._template, self._unit, self._read, rename)

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
        """Read the stream from its start, with a template a block at a time."""
        for block in text_blocks(self._input):
            if isinstance(block, Gap):
                yield block.letter
                continue
            if self._template is not None:
                from rsp_engine.io.sources.columns.template_lines import batches_of_lines

                yield from batches_of_lines(
                    self.name, block, self._template, self._unit, self._read
                )
                continue
            for number, line in lines(block):
                if line.strip():
                    yield self._read(number, line)

    def _read(self, number: int, line: bytes) -> Element | DeadLetter:
        try:
            value = object_in(line)
            if self._template is None:
                timestamp, triples = element_in(value, unit=self._unit)
            else:
                timestamp, triples = self._template.element(value, Envelope(), unit=self._unit)
        except UnfitError as error:
            return DeadLetter(self.name, number, line, str(error))
        return Element(timestamp, triples, self.name, number, line)
