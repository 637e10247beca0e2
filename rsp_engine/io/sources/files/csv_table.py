"""CSV: an element is a row, and a template says which triples it becomes (see `csv_template`).

    mentions.csv?template=mentions.ttl&time=timestamp_ms

The options: `template`, a file; `time`, the column of the time, `timestamp` unless given, in
milliseconds, in seconds with `unit=s`, or in ISO 8601; `delimiter`, one character, or `tab`; and
`columns`, the names of the columns, joined by commas, for a table whose first row is data.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.files.csv_rows import CsvRecord, CsvRecords
from rsp_engine.io.sources.files.csv_template import CsvTemplate
from rsp_engine.io.sources.inputs import extent_of_input, open_input
from rsp_engine.io.sources.spec import nearest
from rsp_engine.io.sources.times import from_text
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.inputs import Input
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.io.sources.times import TimeUnit
    from rsp_engine.monitor.run_monitor import Extent

__all__ = ["CsvTable", "open_csv", "open_tsv"]

_LARGEST_TEMPLATE = 2 << 20
_NAMED = {"tab": "\t", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How a table is read: its template and the options of the user."""

    template: Path
    time: str
    delimiter: str
    unit: TimeUnit
    columns: tuple[str, ...]


def open_csv(spec: Spec) -> CsvTable:
    """Open a table whose fields are separated by commas, or as the options say."""
    return CsvTable(open_input(spec.place), _options(spec, ","))


def open_tsv(spec: Spec) -> CsvTable:
    """Open a table whose fields are separated by tabs, or as the options say."""
    return CsvTable(open_input(spec.place), _options(spec, "\t"))


class CsvTable:
    """A stream of rows. The header is read at once, since the template speaks of it."""

    blank_node_scope: BlankNodeScope = "element"

    def __init__(self, source: Input, options: CsvOptions) -> None:
        self.name = source.name
        self._input = source
        self._options = options
        self._opened: CsvRecords | None = CsvRecords(source, options.delimiter)
        columns = list(options.columns) or _header(self.name, self._opened)
        self._time = _column(self.name, columns, options.time)
        self._width = len(columns)
        self._template = CsvTemplate(_text_of(options.template), columns, str(options.template))

    def extent(self) -> Extent | None:
        """Return how many bytes were read, if it is a file."""
        return extent_of_input(self._input)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the rows; from the start again, if they were read before."""
        records, self._opened = self._opened, None
        if records is None:
            records = CsvRecords(self._input, self._options.delimiter)
            if not self._options.columns:
                _header(self.name, records)
        for record in records:
            yield record if isinstance(record, DeadLetter) else self._element(record)

    def _element(self, record: CsvRecord) -> Element | DeadLetter:
        fields = record.fields
        if len(fields) != self._width:
            return self._set_aside(record, f"it has {len(fields)} fields, not {self._width}")
        try:
            timestamp = from_text(fields[self._time], self._options.unit)
        except ValueError as error:
            return self._set_aside(record, f"its time {error}")
        try:
            triples = self._template.triples(fields)
        except ValueError as error:
            return self._set_aside(record, f"it does not fit into the template: {error}")
        return Element(timestamp, triples, self.name, record.position, record.raw)

    def _set_aside(self, record: CsvRecord, reason: str) -> DeadLetter:
        return DeadLetter(self.name, record.position, record.raw, reason)


def _options(spec: Spec, delimiter: str) -> CsvOptions:
    options = spec.options
    if "template" not in options:
        hint = "add ?template=FILE, a Turtle text with {column} where the value of a column goes"
        raise SourceError(f"{spec.name}: a table needs a template", hint)
    return CsvOptions(
        template=Path(options["template"]),
        time=options.get("time", "timestamp"),
        delimiter=_delimiter(spec, options.get("delimiter", delimiter)),
        unit=cast("TimeUnit", spec.choice("unit", ("ms", "s"))),
        columns=tuple(options["columns"].split(",")) if "columns" in options else (),
    )


def _delimiter(spec: Spec, written: str) -> str:
    delimiter = _NAMED.get(written, written)
    if len(delimiter) != 1 or delimiter in '"\r\n ':
        hint = "it is one character, such as ; or |, or the word tab"
        raise SourceError(f"{spec.name}: the option delimiter cannot be {written!r}", hint)
    return delimiter


def _header(name: str, records: CsvRecords) -> list[str]:
    for record in records:
        if isinstance(record, CsvRecord):
            return [field.strip() for field in record.fields]
        raise SourceError(f"{name}: its header cannot be read: {record.reason}")
    raise SourceError(f"{name}: it is empty", "the first row names the columns")


def _column(name: str, columns: list[str], column: str) -> int:
    if columns.count(column) == 1:
        return columns.index(column)
    if column in columns:
        raise SourceError(f"{name}: it has several columns {column}", "name each column once")
    hint = nearest(column, columns) or f"the columns are: {', '.join(columns)}"
    message = f"{name}: it has no column {column} for the time"
    raise SourceError(message, f"{hint}; choose with the option time=")


def _text_of(template: Path) -> str:
    try:
        with template.open("rb") as stream:
            data = stream.read(_LARGEST_TEMPLATE + 1)
        if len(data) > _LARGEST_TEMPLATE:
            raise SourceError(f"{template}: a template cannot be larger than 2 MB")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{template}: the template is not UTF-8", "save it as UTF-8") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise SourceError(f"{template}: the template cannot be read: {reason}") from None
