"""Parquet: an element is a row, which a template turns into triples (see `message_template`).

    readings.parquet?template=readings.ttl&time=measured.at

Structures and lists are objects and arrays; times are ISO 8601. A split is some row groups: its
offsets count the bytes of the groups before, uncompressed.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.files.json_element import UnfitError
from rsp_engine.io.sources.files.jsonl import line_template
from rsp_engine.io.sources.files.message_template import Envelope
from rsp_engine.io.sources.inputs import local_path
from rsp_engine.io.sources.splits import Split
from rsp_engine.io.sources.times import TIME_UNITS
from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.monitor.run_monitor import Extent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rsp_engine.io.sources.files.message_template import MessageTemplate
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.io.sources.times import TimeUnit

__all__ = ["ParquetRows", "open_parquet"]

_ROWS = 4_096
"""How many rows are taken together."""


def open_parquet(spec: Spec) -> ParquetRows:
    """Open a file of Parquet."""
    path = local_path(spec.place)
    if path is None:
        raise SourceError(f"{spec.name}: Parquet is read from files only", "download it first")
    template = line_template(spec)
    unit = cast("TimeUnit", spec.choice("unit", TIME_UNITS))
    return ParquetRows(spec.place, path, template, unit)


class ParquetRows:
    """A stream of rows."""

    blank_node_scope: BlankNodeScope = "element"
    leans_on_others = False
    can_be_cut = True

    def __init__(
        self,
        name: str,
        path: Path,
        template: MessageTemplate,
        unit: TimeUnit,
        split: Split | None = None,
    ) -> None:
        """Open a file, or a split of it."""
        self.name = name
        self._path = path
        self._template = template
        self._unit = unit
        with self._file() as file:
            groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        self._rows = [group.num_rows for group in groups]
        self._starts = [0, *accumulate(group.total_byte_size for group in groups)]
        """Where each row group starts, and where the last one ends."""
        self._groups = self._within(split or Split(0, None))
        self._done = 0

    def _file(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._path)
        except (OSError, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or "it is not Parquet"
            raise SourceError(
                f"{self.name}: it cannot be read: {reason}", "check the file"
            ) from None

    def _within(self, split: Split) -> list[int]:
        """Return the numbers of the row groups of a split."""
        return [
            number
            for number, start in enumerate(self._starts[:-1])
            if start >= split.start and (split.end is None or start < split.end)
        ]

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of whole row groups."""
        start = 0 if since is None else since.end
        for end in self._starts[1:]:
            if start is None or end < start + size:
                continue
            is_last = end == self._starts[-1]
            yield Split(start, None if is_last else end)
            start = None if is_last else end
        if start is not None and start < self._starts[-1]:
            yield Split(start, None)

    def part(self, split: Split) -> ParquetRows:
        """Return the row groups of a split."""
        return ParquetRows(self.name, self._path, self._template, self._unit, split)

    def lines_before(self, split: Split) -> int:
        """Return how many rows are before a split."""
        pairs = zip(self._starts[:-1], self._rows, strict=True)
        return sum(rows for start, rows in pairs if start < split.start)

    def extent(self) -> Extent:
        """Return how many bytes were read."""
        return Extent(self._done, self._starts[-1])

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the rows from the start."""
        number = 0
        with self._file() as file:
            for group in self._groups:
                for batch in file.iter_batches(_ROWS, row_groups=[group]):
                    for row in batch.to_pylist():
                        number += 1
                        yield self._read(number, row)
                self._done = self._starts[group + 1]

    def _read(self, number: int, row: dict[str, object]) -> Element | DeadLetter:
        body = _plain(row)
        raw = json.dumps(body, default=str).encode()
        try:
            timestamp, triples = self._template.element(body, Envelope(), unit=self._unit)
        except UnfitError as error:
            return DeadLetter(self.name, number, raw, str(error))
        return Element(timestamp, triples, self.name, number, raw)


def _plain(value: object) -> object:
    """Return a value as JSON has it; times as ISO 8601."""
    match value:
        case str() | int() | float() | None:
            return value
        case dict():
            return {name: _plain(member) for name, member in value.items()}
        case list():
            items: Sequence[object] = value
            return [_plain(item) for item in items]
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)
