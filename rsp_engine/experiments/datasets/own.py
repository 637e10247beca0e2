"""A user's own data: a table of mentions and a table of values, as a dataset.

    mentions    a row for each time at which a key occurs in the stream
    history     a row for each time at which the value of a key was seen; `rsp record` writes one

A table is a CSV file, or a Parquet file by its ending `.parquet`. Its columns have any names. Times
are whole milliseconds or ISO 8601; rows may be in any order. Keys are any text; an IRI in angle
brackets is the same key without them. A row of the history that repeats the value is no change. A
row without a value is left out: the key keeps its value. Before its first row, it has the value of
that row.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rsp_engine.errors import SourceError
from rsp_engine.experiments.datasets.dataset import RANGE, STEP, Dataset, EventTable
from rsp_engine.io.sources.times import from_text
from rsp_engine.model.windows import TimeFrame
from rsp_engine.replica.store.terms import read_term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["OwnTables", "read_own", "stretch_of"]

_LARGEST = 1e300
"""Values are normalised, so that the difference of two of them must be finite."""


@dataclass(frozen=True, slots=True)
class OwnTables:
    """The files of a user, the names of their columns, and the window in milliseconds.

    With `has_differences`, the value of a row is its difference to that of the row before.
    """

    mentions: str
    history: str
    mention_columns: tuple[str, str] = ("time", "key")
    history_columns: tuple[str, str, str] = ("time", "key", "value")
    range: int = RANGE
    step: int = STEP
    has_differences: bool = False


def read_own(tables: OwnTables) -> Dataset:
    """Read the tables; raise a `SourceError` that names the file, the row and the column at fault.

    The dataset begins a millisecond before the first mention, as that of the recorded traces, but
    not before the first value.
    """
    mentions, history = Path(tables.mentions), Path(tables.history)
    mention_rows, mention_times, mention_keys, _ = _read(mentions, tables.mention_columns)
    rows, times, keys, values = _read(history, tables.history_columns)
    names = sorted(set(keys))
    numbers = {name: number for number, name in enumerate(names)}
    for row, key in sorted(zip(mention_rows, mention_keys, strict=True)):
        if key not in numbers:
            raise SourceError(
                f"{history} has no value of {key!r}, which row {row} of {mentions} mentions",
                "add its value, or remove its mentions",
            )
    start = max(mention_times[0], times[0]) - 1
    users = np.array([numbers[key] for key in keys], dtype=np.int64)
    since_start = np.array(times) - start
    initial, changes = _changes(
        history, rows, since_start, users, np.array(values), tables.has_differences
    )
    since = np.array(mention_times) - start
    is_inside = since > 0
    return Dataset(
        f"{mentions.name}, {history.name}",
        start,
        max(mention_times[-1], times[-1]) - start,
        np.arange(len(names)),
        since[is_inside],
        np.array([numbers[key] for key in mention_keys], dtype=np.int64)[is_inside],
        initial,
        changes,
        *np.unique(since_start, return_counts=True),
        TimeFrame(tables.range, tables.step),
        most_windows=None,
        is_whole=False,
    )


def stretch_of(dataset: Dataset, number: int, windows: int) -> Dataset:
    """Return the `number`-th stretch of so many windows, counted from 1, as a dataset."""
    edges = dataset.windows[(number - 1) * windows : number * windows]
    opened, closed = edges[0][0], edges[-1][1]
    has_mention = (opened < dataset.mention_times) & (dataset.mention_times <= closed)
    times, users, values = dataset.changes
    is_change = (opened < times) & (times <= closed)
    is_invocation = (opened < dataset.invocations) & (dataset.invocations <= closed)
    return Dataset(
        f"{dataset.name}, part {number}",
        dataset.start + opened,
        closed - opened,
        dataset.names,
        dataset.mention_times[has_mention] - opened,
        dataset.mention_users[has_mention],
        dataset.dfc_at(opened),
        EventTable(times[is_change] - opened, users[is_change], values[is_change]),
        dataset.invocations[is_invocation] - opened,
        dataset.reported_users[is_invocation],
        dataset.frame,
        windows,
        dataset.is_whole,
    )


def _changes(  # noqa: PLR0913, PLR0917 - the columns of a table
    path: Path,
    rows: Sequence[int],
    times: Integers,
    users: Integers,
    values: Floats,
    has_differences: bool,
) -> tuple[Floats, EventTable]:
    """Return the values at the start, and the later rows in which the value of a key changes."""
    order = np.lexsort((times, users))
    of_user, at, value = users[order], times[order], values[order]
    follows = np.r_[False, of_user[1:] == of_user[:-1]]
    again = follows & (np.r_[1, np.diff(at)] == 0)
    if (twice := np.flatnonzero(again & (value != np.r_[np.nan, value[:-1]]))).size:
        row = rows[order[twice[0]]]
        raise SourceError(f"row {row} of {path}: the key has another value of the same time")
    of_user, at, value, follows = (each[~again] for each in (of_user, at, value, follows))
    if has_differences:
        value = np.where(follows, np.r_[0.0, np.diff(value)], 0.0)
    first = np.flatnonzero(~follows)
    before = follows & (at <= 0)
    initial = value[first].copy()
    # Of the rows up to the start, the last one holds.
    initial[of_user[before]] = value[before]
    is_later = follows & (at > 0)
    is_change = is_later & (value != np.r_[np.nan, value[:-1]])
    by_time = np.argsort(at[is_change], kind="stable")
    columns = (part[is_change][by_time] for part in (at, of_user, value))
    return initial, EventTable(*columns)


class _Columns(NamedTuple):
    """The number of each row of a table, from 1, and its cells; in the order of the times."""

    rows: list[int]
    times: list[int]
    keys: list[str]
    values: list[float]


def _read(path: Path, columns: Sequence[str]) -> _Columns:
    """Read the times, the keys and, where a third column is named, the values of a table."""
    found: list[tuple[int, int, str, float]] = []
    for row, cells in enumerate(_rows(path, columns), 1):
        try:
            time = from_text(str(cells[0]).strip(), "ms")
        except ValueError as error:
            raise _wrong(path, row, columns[0], f"its time {error}") from None
        if not cells[1]:
            raise _wrong(path, row, columns[1], "there is no key")
        value = 0.0
        if len(columns) > 2:
            if cells[2] is None or not str(cells[2]).strip():
                continue
            value = _value(path, row, columns[2], cells[2])
        found.append((row, time, _key(str(cells[1])), value))
    if not found:
        raise SourceError(f"{path} has no rows")
    found.sort(key=itemgetter(1))
    return _Columns(*map(list, zip(*found, strict=True)))


def _key(text: str) -> str:
    return text[1:-1] if text.startswith("<") and text.endswith(">") else text


def _value(path: Path, row: int, column: str, cell: object) -> float:
    try:
        # `rsp record` writes numbers of other types than XPath's three as typed literals.
        text = str(cell)
        value = float(getattr(read_term(text), "value", "") if text.startswith('"') else text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise _wrong(path, row, column, f"expected a number, not {str(cell)!r}")
    if abs(value) > _LARGEST:
        raise _wrong(path, row, column, f"{value} is beyond {_LARGEST}, the largest number here")
    return value


def _wrong(path: Path, row: int, column: str, problem: str) -> SourceError:
    return SourceError(f"row {row} of {path}, column {column}: {problem}")


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Yield the named cells of each row."""
    return _parquet(path, columns) if path.suffix == ".parquet" else _csv(path, columns)


def _csv(path: Path, columns: Sequence[str]) -> Iterator[tuple[object, ...]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            places = [_place(path, header, name) for name in columns]
            for number, row in enumerate(rows, 1):
                if len(row) != len(header):
                    has = f"it has {len(row)} cells, and the first line {len(header)}"
                    raise SourceError(f"row {number} of {path}: {has}")
                yield tuple(row[place] for place in places)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path} is no CSV file: {error}") from None


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[tuple[object, ...]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        for name in columns:
            _place(path, file.schema_arrow.names, name)
        for batch in file.iter_batches(columns=list(columns)):
            cells = (_plain(batch.column(name)).to_pylist() for name in columns)
            yield from zip(*cells, strict=True)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None
    except pa.ArrowInvalid as error:
        raise SourceError(f"{path} is no Parquet file: {error}") from None


def _plain(column: Any) -> Any:  # noqa: ANN401 - an array of pyarrow, which has no types
    """Return a column with its timestamps as whole milliseconds since 1970."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    return column


def _place(path: Path, header: Sequence[str], name: str) -> int:
    if name not in header:
        raise SourceError(f"{path} has no column {name!r}", f"it has {', '.join(header)}")
    return header.index(name)
