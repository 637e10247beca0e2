r"""JSON lines: an element is a JSON object on a line of its own.

    {"timestamp": 1000, "graph": "<http://example.org/a> <http://example.org/p> 1 ."}
    {"timestamp": "2015-01-06T20:00:22Z", "format": "jsonld", "graph": "{\"@id\": ...}"}

The timestamp is a number of milliseconds or an ISO 8601 string; the default format is Turtle. Other
members of the object and empty lines are ignored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from rsp_engine.io.sources.files.blocks import Gap, lines, text_blocks
from rsp_engine.io.sources.files.rdf import GRAPH_FORMATS, MalformedRdfError, graph_of
from rsp_engine.io.sources.inputs import extent_of_input, open_input
from rsp_engine.io.sources.splits import is_splittable, part_of, split_lines
from rsp_engine.io.sources.times import TIME_UNITS, from_json
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyoxigraph as ox

    from rsp_engine.io.sources.inputs import Input
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.io.sources.splits import Split
    from rsp_engine.io.sources.times import TimeUnit
    from rsp_engine.monitor.run_monitor import Extent

__all__ = ["JsonLinesSource", "UnfitError", "element_in", "object_in", "open_jsonl"]


def open_jsonl(spec: Spec) -> JsonLinesSource:
    """Open a stream of JSON lines."""
    unit = cast("TimeUnit", spec.choice("unit", TIME_UNITS))
    return JsonLinesSource(open_input(spec.place), unit=unit)


class JsonLinesSource:
    """A stream of JSON objects, one per line."""

    blank_node_scope: BlankNodeScope = "element"
    leans_on_others = False

    def __init__(self, source: Input, first_line: int = 1, unit: TimeUnit = "ms") -> None:
        self.name = source.name
        self._input = source
        self._first_line = first_line
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
        return JsonLinesSource(part_of(self._input, split), split.line, self._unit)

    def extent(self) -> Extent | None:
        """Return how many bytes were read; `None` if the input is not a file."""
        return extent_of_input(self._input)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the stream from its start."""
        for block in text_blocks(self._input, self._first_line):
            if isinstance(block, Gap):
                yield block.letter
                continue
            for number, line in lines(block):
                if line.strip():
                    yield self._read(number, line)

    def _read(self, number: int, line: bytes) -> Element | DeadLetter:
        try:
            timestamp, triples = element_in(object_in(line), unit=self._unit)
        except UnfitError as error:
            return DeadLetter(self.name, number, line, str(error))
        return Element(timestamp, triples, self.name, number, line)


class UnfitError(ValueError):
    """An object is not a valid element; the message is the reason."""


def object_in(line: bytes) -> dict[str, object]:
    """Parse a JSON object; raise `UnfitError` if the text is something else."""
    try:
        value = json.loads(line.decode())
    except UnicodeDecodeError:
        raise UnfitError("the line is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise UnfitError(f"the line is not JSON: {error.msg}, column {error.colno}") from None
    except (RecursionError, ValueError):  # a number with too many digits, or deep nesting
        raise UnfitError("the line is JSON that is too long or too deep to read") from None
    if not isinstance(value, dict):
        raise UnfitError("the line is JSON, but not an object")
    return value


def element_in(
    value: dict[str, object], arrival: int | None = None, unit: TimeUnit = "ms"
) -> tuple[int, tuple[ox.Triple, ...]]:
    """Return the timestamp and the triples of an object; `arrival` replaces its timestamp.

    >>> element_in({"timestamp": 5, "graph": ""}), element_in({"graph": ""}, arrival=7)
    ((5, ()), (7, ()))
    """
    for key in ("timestamp", "graph") if arrival is None else ("graph",):
        if key not in value:
            raise UnfitError(f'the object has no "{key}"')
    try:
        timestamp = from_json(value["timestamp"], unit) if arrival is None else arrival
    except ValueError as error:
        raise UnfitError(f"its time {error}") from None
    graph = value["graph"]
    if not isinstance(graph, str):
        raise UnfitError("its graph is not a string of RDF text")
    try:
        return timestamp, graph_of(graph.encode(), _syntax_of(value.get("format", "turtle")))
    except UnicodeEncodeError:
        raise UnfitError("its graph holds half a character: a lone surrogate") from None
    except MalformedRdfError as error:
        raise UnfitError(f"its graph cannot be read: {error}") from None


def _syntax_of(name: object) -> ox.RdfFormat:
    if not isinstance(name, str):
        raise UnfitError("its format is not a string")
    syntax = GRAPH_FORMATS.get(name.partition(";")[0].strip().lower())
    if syntax is None:
        raise UnfitError(f"its format {name[:40]!r} is not known; turtle is one that is")
    return syntax
