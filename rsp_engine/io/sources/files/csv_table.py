"""CSV: an element is a row, which a template turns into triples (see `template`).

    mentions.csv?template=mentions.ttl&time=timestamp_ms

The options are `template`, a file; `time`, the column of the time (default `timestamp`), in
milliseconds, in seconds with `unit=s`, or in ISO 8601; `delimiter`, one character or `tab`; and
`columns`, the comma-separated column names of a table whose first row is data.

A quoted record can span lines. If the quotes of a record are malformed, only its first line becomes
a dead letter, and reading continues with the next line: otherwise one unclosed quote would swallow
all lines after it.

A split ends where a record does. Without quotes this is any line end; where there are quotes, the
records are read to find it.
"""

from __future__ import annotations

import csv
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.files.blocks import Gap, lines, text_blocks
from rsp_engine.io.sources.files.template import table_template, template_of
from rsp_engine.io.sources.inputs import FileInput, extent_of_input, open_input
from rsp_engine.io.sources.spec import nearest
from rsp_engine.io.sources.splits import LineCount, Split, is_splittable, part_of
from rsp_engine.io.sources.times import TIME_UNITS, from_text
from rsp_engine.model.quantities import quantity
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.io.sources.inputs import Input
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.io.sources.times import TimeUnit
    from rsp_engine.monitor.run_monitor import Extent

__all__ = ["CsvTable", "Record", "Records", "columns_of", "delimiter_of", "open_csv", "open_tsv"]

_NAMED = {"tab": "\t", "comma": ",", "semicolon": ";"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """The options of a table."""

    template: str
    template_name: str
    time: str
    delimiter: str
    unit: TimeUnit
    columns: tuple[str, ...]


def open_csv(spec: Spec) -> CsvTable:
    """Open a table whose fields are separated by commas, unless the options say otherwise."""
    return CsvTable(open_input(spec.place), _options(spec, ","))


def open_tsv(spec: Spec) -> CsvTable:
    """Open a table whose fields are separated by tabs, unless the options say otherwise."""
    return CsvTable(open_input(spec.place), _options(spec, "\t"))


class CsvTable:
    """A stream of rows. The header is read on opening, because the template refers to it."""

    blank_node_scope: BlankNodeScope = "element"
    leans_on_others = False

    def __init__(
        self,
        source: Input,
        options: CsvOptions,
        columns: Sequence[str] | None = None,
        *,
        has_header: bool = True,
    ) -> None:
        """Open a table, or a part of one whose columns are known; only the first has its header."""
        self.name = source.name
        self._input = source
        self._options = options
        self._lines = LineCount(source)
        self._opened: Records | None = None
        self._has_header = has_header and not options.columns
        if columns is None:
            self._opened = Records(source, options.delimiter)
            columns = options.columns or _header(self.name, self._opened)
        self._columns = list(columns)
        self._time = _column(self.name, self._columns, options.time)
        self._width = len(columns)
        self._template = table_template(options.template, self._columns, options.template_name)

    @property
    def can_be_cut(self) -> bool:
        """Return whether the input is an uncompressed file."""
        return is_splittable(self._input)

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of whole records."""
        start = 0 if since is None else since.end
        while start is not None and start < self._file_size():
            end = self._end(start, size)
            yield Split(start, end)
            start = end

    def part(self, split: Split) -> CsvTable:
        """Return the records of a split."""
        has_header = self._has_header and split.start == 0
        source = part_of(self._input, split)
        return CsvTable(source, self._options, self._columns, has_header=has_header)

    def lines_before(self, split: Split) -> int:
        """Return how many lines are before a split."""
        return self._lines.before(split.start)

    def extent(self) -> Extent | None:
        """Return how many bytes were read; `None` if the input is not a file."""
        return extent_of_input(self._input)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the rows from the start."""
        records, self._opened = self._opened, None
        if records is None:
            records = Records(self._input, self._options.delimiter)
            if self._has_header:
                _header(self.name, records)
        for record in records:
            yield record if isinstance(record, DeadLetter) else self._element(record)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickle what makes it: executors read splits of it."""
        return _remade, (self._input, self._options, self._columns, self._has_header)

    def _file_size(self) -> int:
        assert isinstance(self._input, FileInput), "only files are split"  # noqa: S101
        return self._input.path.stat().st_size

    def _end(self, start: int, size: int) -> int | None:
        """Return the first end of a record after `size` bytes; None for that of the file."""
        assert isinstance(self._input, FileInput), "only files are split"  # noqa: S101
        with self._input.path.open("rb") as stream:
            stream.seek(start)
            text = stream.read(size) + stream.readline()
            if b'"' in text:
                return self._record_end(stream, start, size)
            return None if _is_end(stream) else start + len(text)

    def _record_end(self, stream: BinaryIO, start: int, size: int) -> int | None:
        """Return the same where there are quotes."""
        stream.seek(start)
        at = start + len(_BYTE_ORDER_MARK) * (stream.read(3) == _BYTE_ORDER_MARK)
        records = Records(part_of(self._input, Split(start, None)), self._options.delimiter)
        for _ in records:
            if records.end is None:
                return None
            if records.end >= size:
                stream.seek(at + records.end)
                return None if _is_end(stream) else at + records.end
        return None

    def _element(self, record: Record) -> Element | DeadLetter:
        fields = record.fields
        if len(fields) != self._width:
            return self._set_aside(
                record, f"it has {quantity(len(fields), 'field')}, not {self._width}"
            )
        try:
            timestamp = from_text(fields[self._time], self._options.unit)
        except ValueError as error:
            return self._set_aside(record, f"its time {error}")
        try:
            triples = self._template.triples(fields)
        except ValueError as error:
            return self._set_aside(record, f"it does not fit into the template: {error}")
        return Element(timestamp, triples, self.name, record.position, record.raw)

    def _set_aside(self, record: Record, reason: str) -> DeadLetter:
        return DeadLetter(self.name, record.position, record.raw, reason)


def _is_end(stream: BinaryIO) -> bool:
    """Return whether no split may begin here: the file ends, or a part would drop what follows."""
    return stream.read(len(_BYTE_ORDER_MARK)) in {b"", _BYTE_ORDER_MARK}


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of one record, the number of its first line, and its bytes."""

    fields: list[str]
    position: int
    raw: bytes


class Records:
    """The records of a table."""

    def __init__(self, source: Input, delimiter: str) -> None:
        self._name = source.name
        self._delimiter = delimiter
        self._lines = _Lines(source)

    @property
    def end(self) -> int | None:
        """Where the last record that was read ends, in bytes; None if that is not known."""
        return self._lines.end

    def __iter__(self) -> Iterator[Record | DeadLetter]:
        """Continue after the last record that was read."""
        reader = self._reader()
        while True:
            record_lines = self._lines.start()
            try:
                fields = next(reader, None)
            except csv.Error as error:
                yield from self._lines.take_letters()
                number, raw = record_lines[0]
                self._lines.push_back(record_lines[1:])
                yield DeadLetter(self._name, number, raw, f"the row cannot be read: {error}")
                reader = self._reader()
                continue
            yield from self._lines.take_letters()
            if fields is None:
                return
            if fields:
                yield self._record(fields)

    def _record(self, fields: list[str]) -> Record | DeadLetter:
        record_lines = self._lines.of_record
        position, raw = record_lines[0]
        if len(record_lines) > 1:
            raw = b"".join([line for _, line in record_lines])
        if not self._lines.are_text:
            return DeadLetter(self._name, position, raw, "the row is not UTF-8")
        return Record(fields, position, raw)

    def _reader(self) -> Iterator[list[str]]:
        return csv.reader(self._lines, delimiter=self._delimiter, strict=True)


class _Lines:
    """The lines of an input, which remembers those of the current record and can take them back."""

    def __init__(self, source: Input) -> None:
        self.end: int | None = 0
        """How many bytes were returned; None if some were left out."""
        self.of_record: list[tuple[int, bytes]] = []
        self.are_text = True
        self._letters: list[DeadLetter] = []
        self._pushed_back: deque[tuple[int, bytes]] = deque()
        self._unread = self._read(source)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._pushed_back.popleft() if self._pushed_back else next(self._unread)
        self.of_record.append(line)
        self._move(len(line[1]))
        try:
            return line[1].decode()
        except UnicodeDecodeError:
            self.are_text = False
            return line[1].decode(errors="replace")

    def start(self) -> list[tuple[int, bytes]]:
        """Start a record; return the list that receives its lines."""
        self.of_record = []
        self.are_text = True
        return self.of_record

    def push_back(self, unused: list[tuple[int, bytes]]) -> None:
        """Return lines, to be read again before the unread ones."""
        self._move(-sum(len(line) for _, line in unused))
        self._pushed_back.extendleft(reversed(unused))

    def take_letters(self) -> list[DeadLetter]:
        """Return the dead letters for gaps between lines since the last call."""
        letters, self._letters = self._letters, []
        return letters

    def _move(self, size: int) -> None:
        if self.end is not None:
            self.end += size

    def _read(self, source: Input) -> Iterator[tuple[int, bytes]]:
        for block in text_blocks(source):
            if isinstance(block, Gap):
                self.end = None
                self._letters.append(block.letter)
            else:
                yield from lines(block)


def _remade(
    source: Input, options: CsvOptions, columns: Sequence[str], has_header: bool
) -> CsvTable:
    return CsvTable(source, options, columns, has_header=has_header)


def _options(spec: Spec, delimiter: str) -> CsvOptions:
    options = spec.options
    path, text = template_of(spec)
    return CsvOptions(
        template=text,
        template_name=str(path),
        time=options.get("time", "timestamp"),
        delimiter=delimiter_of(spec, delimiter),
        unit=cast("TimeUnit", spec.choice("unit", TIME_UNITS)),
        columns=columns_of(spec),
    )


def columns_of(spec: Spec) -> tuple[str, ...]:
    """Return the names of columns that the options give; none if the first row has them."""
    return tuple(spec.options["columns"].split(",")) if "columns" in spec.options else ()


def delimiter_of(spec: Spec, usual: str = ",") -> str:
    """Return the character between fields."""
    written = spec.options.get("delimiter", usual)
    delimiter = _NAMED.get(written, written)
    if len(delimiter) != 1 or delimiter in '"\r\n ':
        hint = "it is one character, such as ; or |, or the word tab"
        raise SourceError(f"{spec.name}: the option delimiter cannot be {written!r}", hint)
    return delimiter


def _header(name: str, records: Records) -> list[str]:
    for record in records:
        if isinstance(record, Record):
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
