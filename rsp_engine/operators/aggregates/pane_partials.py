"""Partial aggregates of panes, from which any window that contains the panes is aggregated.

A partial is a table: for each key its count, its latest position, and its minimum, maximum or sum.
The tables of several panes merge row by row, in any order and any grouping, with a bit-identical
result. For counts, positions, minima and maxima that holds by definition.

Sums of floating-point numbers depend on the order of addition, so they are kept exactly, as
integers: see `exact_sums`. A key has a row for each place at which its values start, usually one or
two.

A partial is withdrawn by adding it with all signs negated. NaN has a place of its own; an aggregate
of values with a NaN is NaN.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rsp_engine.model.blocks import rows_of
from rsp_engine.model.windows import Pane
from rsp_engine.operators.scoring.exact_sums import MOST, pieces, rounded_sum, runs_of
from rsp_engine.operators.topk.contract import check_open, check_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData

__all__ = [
    "Function",
    "PanePartials",
    "Partials",
    "Suffixes",
    "Totals",
    "negated",
    "partials",
    "totals_of",
]

Function = Literal["count", "sum", "min", "max", "avg"]
Partials = tuple["NDArray[Any]", ...]
"""A table as columns: sorted unique codes, counts, latest positions, and the aggregated values.

A code is a key followed by 7 bits for the place of its values, which is 0 unless they are summed.
"""

_CODE_BITS = 7  # `exact_sums` has places up to 127
_BLOCK_BITS = 7  # a saved block has the rows of 128 consecutive keys
_PLACE = (1 << _CODE_BITS) - 1
_KEYS = 1 << (63 - _CODE_BITS)

_NEVER = np.iinfo(np.int64).min
_SUMS = ((np.add, 0),) * 3
_VALUE_MERGES: dict[Function, tuple[tuple[np.ufunc, float], ...]] = {
    "count": (),
    "sum": _SUMS,
    "min": ((np.minimum, np.inf),),
    "max": ((np.maximum, -np.inf),),
    "avg": _SUMS,
}


class Totals(NamedTuple):
    """The sorted keys with their aggregates, latest positions and counts."""

    keys: Integers
    positions: Integers
    values: Floats
    counts: Integers

    def take(self, chosen: NDArray[Any]) -> Totals:
        """Return the totals of some keys."""
        keys, positions, values, counts = self
        return Totals(keys[chosen], positions[chosen], values[chosen], counts[chosen])


def _merges(function: Function) -> tuple[tuple[np.ufunc, float], ...]:
    """Return the merge function of each column after the codes, and its neutral element."""
    return ((np.add, 0), (np.maximum, _NEVER), *_VALUE_MERGES[function])


def partials(function: Function, keys: Integers, positions: Integers, values: Floats) -> Partials:
    """Return the partials of arrivals; raise ValueError if a key is out of range."""
    if len(keys) and keys.min() < 0:
        raise ValueError("a key must not be negative")
    if len(keys) and keys.max() >= _KEYS:
        raise ValueError(f"a key must be less than {_KEYS}")
    codes = keys << _CODE_BITS
    counts = np.ones(len(keys), dtype=np.int64)
    aggregated: tuple[NDArray[Any], ...] = ()
    if function in {"sum", "avg"}:
        place, *sum_pieces = pieces(values)
        codes, aggregated = codes | place, tuple(sum_pieces)
    elif function != "count":
        aggregated = (values + 0.0,)  # no -0.0: min and max of -0.0 and 0.0 depend on the order
    return _reduce(function, (codes, counts, positions, *aggregated))


def negated(function: Function, rows: Partials) -> Partials:
    """Return partials that withdraw counts and sums when merged; positions are not withdrawn."""
    if function in {"min", "max"}:
        raise ValueError(f"a {function} cannot be taken back")
    codes, counts, positions, *sum_pieces = rows
    return (codes, -counts, np.full_like(positions, _NEVER), *(-piece for piece in sum_pieces))


def _merge(function: Function, parts: Sequence[Partials]) -> Partials:
    """Merge partials."""
    if len(parts) == 1:
        return parts[0]
    # A stable sort is fast on concatenated sorted parts.
    return _reduce(function, tuple(map(np.concatenate, zip(*parts, strict=True))), "stable")


def _reduce(function: Function, rows: Partials, kind: Literal["stable"] | None = None) -> Partials:
    """Sort rows by code, and merge rows of equal codes."""
    if (reduced := _reduce_by_table(function, rows)) is not None:
        return reduced
    order = rows[0].argsort(kind=kind)
    codes = rows[0][order]
    starts = _starts(codes)
    if len(starts) == len(codes):
        return (codes, *(column[order] for column in rows[1:]))
    columns = zip(rows[1:], _merges(function), strict=True)
    table = [merge.reduceat(c[order], starts) for c, (merge, _) in columns]
    kept = _nonempty_rows(function, table)
    return (codes[starts[kept]], *(column[kept] for column in table))


def _reduce_by_table(function: Function, rows: Partials) -> Partials | None:
    """Reduce rows through a dense table of all codes, or return None if that would be large."""
    if not len(rows[0]):
        return None
    keys, places = rows[0] >> _CODE_BITS, rows[0] & _PLACE
    first_key, first = int(keys.min()), int(places.min())
    span = int(places.max()) - first + 1
    size = (int(keys.max()) - first_key + 1) * span
    if size > 2 * len(keys):
        return None
    slots = (keys - first_key) * span + (places - first)
    table = []
    for column, (merge, none) in zip(rows[1:], _merges(function), strict=True):
        table.append(np.full(size, none, dtype=column.dtype))
        with np.errstate(invalid="ignore"):
            merge.at(table[-1], slots, column)
    kept = _nonempty_rows(function, table)
    codes = ((kept // span + first_key) << _CODE_BITS) | (kept % span + first)
    return (codes, *(column[kept] for column in table))


def _nonempty_rows(function: Function, table: list[NDArray[Any]]) -> NDArray[np.intp]:
    """Return the indices of rows with at least one column that is not neutral."""
    columns = zip(table, _merges(function), strict=True)
    return np.flatnonzero(np.any([column != none for column, (_, none) in columns], axis=0))


def _starts(ordered: Integers) -> NDArray[np.intp]:
    """Return the start of each run of equal values."""
    is_start = np.ones(len(ordered), dtype=bool)
    is_start[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(is_start)


def totals_of(function: Function, rows: Partials) -> Totals:
    """Return the aggregate of each key."""
    codes, counts, positions, *aggregated = rows
    keys = codes >> _CODE_BITS
    if function == "count":
        return Totals(keys, positions, counts.astype(np.float64), counts)
    if function in {"min", "max"}:
        return Totals(keys, positions, aggregated[0], counts)
    if counts.max(initial=0) > MOST:
        raise OverflowError(f"more than {MOST} arrivals of one key cannot be added up")
    starts = _starts(keys)
    values = rounded_sum(codes & _PLACE, starts, aggregated)
    if len(starts) < len(keys):
        counts, positions = np.add.reduceat(counts, starts), np.maximum.reduceat(positions, starts)
    return Totals(keys[starts], positions, values / counts if function == "avg" else values, counts)


class _RunningTotals:
    """The merged partials of the panes of one window, which follow the window as it slides.

    A pane that leaves is withdrawn: counts and sums are exact integers. A latest position stays: it
    is that of the last pane of its key, and panes leave in the order of their ends. Time for a
    slide: O(d + r), with d distinct codes, and r rows of the panes that join and leave.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self.panes: set[Pane] = set()
        self._codes, *self._columns = _empty(function)

    def add(self, rows: Partials) -> None:
        """Add the rows of a pane."""
        places = np.searchsorted(self._codes, rows[0])
        known = np.zeros(len(places), dtype=bool)
        inside = places < len(self._codes)
        known[inside] = self._codes[places[inside]] == rows[0][inside]
        if not known.all():
            merges = _merges(self._function)
            new = places[~known]
            self._codes = np.insert(self._codes, new, rows[0][~known])
            self._columns = [
                np.insert(column, new, none)
                for column, (_, none) in zip(self._columns, merges, strict=True)
            ]
            places = np.searchsorted(self._codes, rows[0])
        for column, values, (merge, _) in zip(
            self._columns, rows[1:], _merges(self._function), strict=True
        ):
            column[places] = merge(column[places], values)  # the codes of a pane are unique

    def withdraw(self, panes: Mapping[Pane, Partials]) -> None:
        """Withdraw panes that were added: all that end together, since one may correct another."""
        self.panes -= panes.keys()
        self.add(negated(self._function, _merge(self._function, list(panes.values()))))
        counts = self._columns[0]
        if 2 * np.count_nonzero(counts) < len(counts):
            kept = np.any([counts, *self._columns[2:]], axis=0)
            self._codes = self._codes[kept]
            self._columns = [column[kept] for column in self._columns]

    def rows(self) -> Partials:
        """Return the rows with arrivals."""
        is_counted = self._columns[0] > 0
        return (self._codes[is_counted], *(column[is_counted] for column in self._columns))


class PanePartials:
    """The partials of the panes of open windows.

    Time for n arrivals: O(n log n), for batches of any size. Memory: the rows.
    """

    def __init__(self, function: Function) -> None:
        self.closed = -1
        self._function = function
        self._panes: dict[Pane, list[Partials]] = {}
        self._saved: dict[Pane, tuple[Partials, dict[str, Any]]] = {}
        # Minima and maxima cannot be withdrawn: their windows are merged from all panes.
        self._running = None if function in {"min", "max"} else _RunningTotals(function)

    def add(self, pane: Pane, rows: Partials) -> None:
        """Add partials to their pane; raise ValueError if a window of the pane has closed."""
        check_open(pane, self.closed)
        if not len(rows[0]):
            return
        if self._running is not None and pane in self._running.panes:
            self._running.add(rows)
        parts = [*self._panes.get(pane, []), rows]
        # Merge only parts of similar size, so that many small batches stay cheap.
        while len(parts) > 1 and len(parts[-2][0]) <= 2 * len(parts[-1][0]):
            parts[-2:] = [_merge(self._function, parts[-2:])]
        self._panes[pane] = parts

    def of(self, first: int, last: int) -> list[tuple[int, Partials]]:
        """Return ends and rows of the panes that begin by `first` and end at `last` or later."""
        panes = [pane for pane in self._panes if pane.first <= first and pane.last >= last]
        return [(pane.last, self._whole(pane)) for pane in panes]

    def totals(self, window: int) -> Totals:
        """Return the totals of an open window so far."""
        check_order(window, self.closed)
        if self._running is not None:
            return totals_of(self._function, self._run_to(self._running, window))
        parts = [rows for _, rows in self.of(window, window)]
        return totals_of(self._function, _merge(self._function, parts or [_empty(self._function)]))

    def _run_to(self, running: _RunningTotals, window: int) -> Partials:
        """Return the rows of an open window; its panes join, and those before it leave."""
        panes = {pane for pane in self._panes if pane.first <= window <= pane.last}
        if not running.panes <= panes:  # an earlier window than the last one
            running = self._running = _RunningTotals(self._function)
        for pane in panes - running.panes:
            running.add(self._whole(pane))
        running.panes = panes
        return running.rows()

    def _whole(self, pane: Pane) -> Partials:
        self._panes[pane] = [_merge(self._function, self._panes[pane])]
        return self._panes[pane][0]

    def close(self, window: int) -> None:
        """Close a window, and remove the panes that no later window contains."""
        self.closed = window
        gone = [pane for pane in self._panes if pane.last <= window]
        if self._running is not None:
            added = {pane: self._whole(pane) for pane in gone if pane in self._running.panes}
            if added:
                self._running.withdraw(added)
        for pane in gone:
            del self._panes[pane]

    def state(self) -> StateData:
        """Return all rows as plain data, independent of how they were batched."""
        known, self._saved = self._saved, {}
        for pane in sorted(self._panes):
            rows = self._whole(pane)
            before = known.get(pane)
            self._saved[pane] = (
                before
                if before is not None and before[0] is rows
                else (rows, _blocks(rows, before))
            )
        panes = {p.name: blocks for p, (_, blocks) in self._saved.items()}
        return {"closed": self.closed, "size": len(panes), "panes": panes}

    def restore(self, state: StateData) -> None:
        """Restore the rows."""
        self.closed = state["closed"]
        kinds = [column.dtype for column in _empty(self._function)]
        if len(state["panes"]) != state["size"]:
            raise ValueError(f"{state['size']} panes were saved")
        for pane, saved in sorted((Pane.named(n), blocks) for n, blocks in state["panes"].items()):
            columns = [*zip(*rows_of(saved["rows"], saved["size"]), strict=True)]
            rows = zip(columns, kinds, strict=True)
            self._panes[pane] = [tuple(np.array(c, dtype=kind) for c, kind in rows)]

    def check(self) -> None:
        """Assert the invariants of the partials."""
        for pane, parts in self._panes.items():
            assert pane.last > self.closed, "an expired pane is kept"  # noqa: S101
            for codes, counts, *_ in parts:
                assert (np.diff(codes) > 0).all(), "rows are not in order"  # noqa: S101
                if self._function in {"min", "max"}:
                    assert (counts > 0).all(), "a row has no arrivals"  # noqa: S101


def _empty(function: Function) -> Partials:
    nothing: Integers = np.empty(0, dtype=np.int64)
    return partials(function, nothing, nothing, np.empty(0))


def _blocks(rows: Partials, before: tuple[Partials, dict[str, Any]] | None) -> dict[str, Any]:
    """Return rows as plain data in blocks of codes; reuse the blocks that have not changed."""
    known, written = _split(before[0]) if before else {}, before[1]["rows"] if before else {}
    blocks = {}
    for block, columns in _split(rows).items():
        is_same = block in known and all(map(np.array_equal, columns, known[block]))
        blocks[block] = (
            written[block]
            if is_same
            else tuple(map(list, zip(*(column.tolist() for column in columns), strict=True)))
        )
    return {"size": len(rows[0]), "rows": blocks}


def _split(rows: Partials) -> dict[str, Partials]:
    blocks, starts = np.unique(rows[0] >> (_CODE_BITS + _BLOCK_BITS), return_index=True)
    edges = [*starts.tolist(), len(rows[0])]
    return {
        str(block): tuple(column[edges[n] : edges[n + 1]] for column in rows)
        for n, block in enumerate(blocks.tolist())
    }


class Suffixes:
    """An iteration over the totals of panes by their ends, from the last end to the first.

    Each step yields an end, the indices in `keys` of the keys with values that end there, and their
    totals over all partials that end there or later. Time for a step: O(d log D + D), with d rows
    that end there and D rows in all.
    """

    def __init__(self, function: Function, parts: list[tuple[int, Partials]]) -> None:
        """Create an iteration over at least one partial, each with its end."""
        self._function = function
        self._parts = sorted(parts, key=_end, reverse=True)
        codes = np.sort(np.concatenate([rows[0] for _, rows in parts]), kind="stable")
        self._codes: Integers = codes[_starts(codes)]
        keys = self._codes >> _CODE_BITS
        starts = _starts(keys)
        self._places = runs_of(len(keys), starts)
        self.keys: Integers = keys[starts]

    def __iter__(self) -> Iterator[tuple[int, Integers, Totals]]:
        merges = _merges(self._function)
        columns = zip(self._parts[0][1][1:], merges, strict=True)
        table = [np.full(len(self._codes), none, dtype=c.dtype) for c, (_, none) in columns]
        for end, group in groupby(self._parts, key=_end):
            is_changed = np.zeros(len(self.keys), dtype=bool)
            for _, rows in group:
                places = np.searchsorted(self._codes, rows[0])
                for column, values, (merge, _) in zip(table, rows[1:], merges, strict=True):
                    column[places] = merge(column[places], values)  # codes of a part are unique
                is_changed[self._places[places]] = True
            changed = np.flatnonzero(is_changed[self._places] & (table[0] > 0))
            changed_rows = (self._codes[changed], *(column[changed] for column in table))
            places = self._places[changed]
            yield end, places[_starts(places)], totals_of(self._function, changed_rows)


def _end(part: tuple[int, Partials]) -> int:
    return part[0]
