"""Partial aggregates: what of each key of a pane is enough to aggregate any window that holds it.

A partial is a table: for each key its count, its latest position, and its least or largest value,
or its sum. Tables of several panes are merged row by row, in any order and any grouping, and the
result is the same to the bit. For counts, positions, least and largest values that is plain.

Sums of floating-point numbers depend on the order, so they are kept as whole numbers, exactly: see
`exact_sums`. So a key has a row for each place at which a value of it begins, mostly one or two.

A partial can be withdrawn: it is added once more, with all its signs turned. What is no number
(NaN) has a place of its own; with it, an aggregate of values is no number either.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rsp_engine.model.blocks import rows_of
from rsp_engine.model.windows import Pane
from rsp_engine.operators.scoring.exact_sums import MOST, pieces, rounded_sum, runs_of
from rsp_engine.operators.topk.pane_buffer import check_open, check_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData

__all__ = [
    "Function",
    "PanePartials",
    "Partials",
    "Suffixes",
    "Totals",
    "finished",
    "partials",
    "withdrawn",
]

Function = Literal["count", "sum", "min", "max", "avg"]
Partials = tuple["NDArray[Any]", ...]
"""Rows as columns: codes in order, each once; counts; latest positions; and what is aggregated.

A code is a key and the place at which its values begin, in the last 7 bits; without sums, 0.
"""

_CODE_BITS = 7
_BLOCK_BITS = 7
_PLACE = (1 << _CODE_BITS) - 1
_KEYS = 1 << (63 - _CODE_BITS)

_NEVER = np.iinfo(np.int64).min
_SUMS = ((np.add, 0),) * 3
_MORE: dict[Function, tuple[tuple[np.ufunc, float], ...]] = {
    "count": (),
    "sum": _SUMS,
    "min": ((np.minimum, np.inf),),
    "max": ((np.maximum, -np.inf),),
    "avg": _SUMS,
}


class Totals(NamedTuple):
    """The aggregate of each key, the keys in order, with their latest positions and counts."""

    keys: Integers
    positions: Integers
    values: Floats
    counts: Integers

    def take(self, chosen: NDArray[Any]) -> Totals:
        """Return the totals of some keys."""
        keys, positions, values, counts = self
        return Totals(keys[chosen], positions[chosen], values[chosen], counts[chosen])


def _merges(function: Function) -> tuple[tuple[np.ufunc, float], ...]:
    """Return how each column after the codes is merged, and what changes nothing in it."""
    return ((np.add, 0), (np.maximum, _NEVER), *_MORE[function])


def partials(function: Function, keys: Integers, positions: Integers, values: Floats) -> Partials:
    """Return the partials of arrivals, or raise what is wrong with them."""
    if len(keys) and keys.min() < 0:
        raise ValueError("a key must not be negative")
    if len(keys) and keys.max() >= _KEYS:
        raise ValueError(f"a key must be less than {_KEYS}")
    codes = keys << _CODE_BITS
    counts = np.ones(len(keys), dtype=np.int64)
    more: tuple[NDArray[Any], ...] = ()
    if function in {"sum", "avg"}:
        place, *more_pieces = pieces(values)
        codes, more = codes | place, tuple(more_pieces)
    elif function != "count":
        more = (values + 0.0,)  # which of -0.0 and 0.0 is less depends on the order
    return _reduced(function, (codes, counts, positions, *more))


def withdrawn(function: Function, rows: Partials) -> Partials:
    """Return what takes counts and sums of partials back; their positions are forgotten."""
    if function in {"min", "max"}:
        raise ValueError(f"a {function} cannot be taken back")
    codes, counts, positions, *more = rows
    return (codes, -counts, np.full_like(positions, _NEVER), *(-piece for piece in more))


def _merged(function: Function, parts: Sequence[Partials]) -> Partials:
    """Return several partials as one."""
    if len(parts) == 1:
        return parts[0]
    # A stable sort is fast where parts are in order already.
    return _reduced(function, tuple(map(np.concatenate, zip(*parts, strict=True))), "stable")


def _reduced(function: Function, rows: Partials, kind: Literal["stable"] | None = None) -> Partials:
    """Return rows in the order of their codes, each once."""
    if (counted := _counted(function, rows)) is not None:
        return counted
    order = rows[0].argsort(kind=kind)
    codes = rows[0][order]
    starts = _starts(codes)
    if len(starts) == len(codes):
        return (codes, *(column[order] for column in rows[1:]))
    columns = zip(rows[1:], _merges(function), strict=True)
    table = [merge.reduceat(c[order], starts) for c, (merge, _) in columns]
    found = _saying(function, table)
    return (codes[starts[found]], *(column[found] for column in table))


def _counted(function: Function, rows: Partials) -> Partials | None:
    """Return the same by means of a table with room for all codes, if that is not large."""
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
    found = _saying(function, table)
    codes = ((found // span + first_key) << _CODE_BITS) | (found % span + first)
    return (codes, *(column[found] for column in table))


def _saying(function: Function, table: list[NDArray[Any]]) -> NDArray[np.intp]:
    """Return the rows that say something, be it only when a key came last."""
    columns = zip(table, _merges(function), strict=True)
    return np.flatnonzero(np.any([column != none for column, (_, none) in columns], axis=0))


def _starts(ordered: Integers) -> NDArray[np.intp]:
    """Return where each run of equals begins."""
    is_start = np.ones(len(ordered), dtype=bool)
    is_start[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(is_start)


def finished(function: Function, rows: Partials) -> Totals:
    """Return the aggregate of each key."""
    codes, counts, positions, *more = rows
    keys = codes >> _CODE_BITS
    if function == "count":
        return Totals(keys, positions, counts.astype(np.float64), counts)
    if function in {"min", "max"}:
        return Totals(keys, positions, more[0], counts)
    if counts.max(initial=0) > MOST:
        raise OverflowError(f"more than {MOST} arrivals of one key cannot be added up")
    starts = _starts(keys)
    values = rounded_sum(codes & _PLACE, starts, more)
    if len(starts) < len(keys):
        counts, positions = np.add.reduceat(counts, starts), np.maximum.reduceat(positions, starts)
    return Totals(keys[starts], positions, values / counts if function == "avg" else values, counts)


class PanePartials:
    """The partials of panes that are in an open window.

    Time for n arrivals: O(n log n), whatever the batches. Memory: the rows.
    """

    def __init__(self, function: Function) -> None:
        self.closed = -1
        self._function = function
        self._panes: dict[Pane, list[Partials]] = {}
        self._written: dict[Pane, tuple[Partials, dict[str, Any]]] = {}

    def add(self, pane: Pane, rows: Partials) -> None:
        """Put partials into their pane; nothing of it if one of its windows has closed."""
        check_open(pane, self.closed)
        if not len(rows[0]):
            return
        parts = [*self._panes.get(pane, []), rows]
        # Small parts wait for others of their size, so that small batches cost little.
        while len(parts) > 1 and len(parts[-2][0]) <= 2 * len(parts[-1][0]):
            parts[-2:] = [_merged(self._function, parts[-2:])]
        self._panes[pane] = parts

    def of(self, first: int, last: int) -> list[tuple[int, Partials]]:
        """Return panes that begin until the first window and end from the last on, with ends."""
        panes = [pane for pane in self._panes if pane.first <= first and pane.last >= last]
        return [(pane.last, self._whole(pane)) for pane in panes]

    def totals(self, window: int) -> Totals:
        """Return the totals of an open window so far."""
        check_order(window, self.closed)
        parts = [rows for _, rows in self.of(window, window)]
        rows = _merged(self._function, parts or [_empty(self._function)])
        counting = rows[1] > 0  # of others, all that there was is withdrawn
        return finished(self._function, tuple(column[counting] for column in rows))

    def _whole(self, pane: Pane) -> Partials:
        self._panes[pane] = [_merged(self._function, self._panes[pane])]
        return self._panes[pane][0]

    def close(self, window: int) -> None:
        """Forget what is in no later window."""
        self.closed = window
        self._panes = {pane: parts for pane, parts in self._panes.items() if pane.last > window}

    def state(self) -> StateData:
        """Return all rows as plain data; the same for any batches."""
        known, self._written = self._written, {}
        for pane in sorted(self._panes):
            rows = self._whole(pane)
            before = known.get(pane)
            self._written[pane] = (
                before
                if before is not None and before[0] is rows
                else (rows, _blocks(rows, before))
            )
        panes = {p.name: blocks for p, (_, blocks) in self._written.items()}
        return {"closed": self.closed, "size": len(panes), "panes": panes}

    def restore(self, state: StateData) -> None:
        """Take the rows back."""
        self.closed = state["closed"]
        kinds = [column.dtype for column in _empty(self._function)]
        if len(state["panes"]) != state["size"]:
            raise ValueError(f"{state['size']} panes were saved")
        for pane, saved in sorted((Pane.named(n), held) for n, held in state["panes"].items()):
            columns = [*zip(*rows_of(saved["rows"], saved["size"]), strict=True)]
            rows = zip(columns, kinds, strict=True)
            self._panes[pane] = [tuple(np.array(c, dtype=kind) for c, kind in rows)]

    def check(self) -> None:
        """Assert what always holds."""
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
    """Return rows as plain data, in blocks of codes; blocks with the same rows are the same."""
    known, written = _split(before[0]) if before else {}, before[1]["rows"] if before else {}
    found = {}
    for block, columns in _split(rows).items():
        is_same = block in known and all(map(np.array_equal, columns, known[block]))
        found[block] = (
            written[block]
            if is_same
            else tuple(map(list, zip(*(column.tolist() for column in columns), strict=True)))
        )
    return {"size": len(rows[0]), "rows": found}


def _split(rows: Partials) -> dict[str, Partials]:
    blocks, starts = np.unique(rows[0] >> (_CODE_BITS + _BLOCK_BITS), return_index=True)
    edges = [*starts.tolist(), len(rows[0])]
    return {
        str(block): tuple(column[edges[n] : edges[n + 1]] for column in rows)
        for n, block in enumerate(blocks.tolist())
    }


class Suffixes:
    """Totals of partials that end one after the other, from the last end to the first.

    Each step gives the end, the keys whose totals are new there, as places in `keys`, and their
    totals over all partials that live until that end. Time for a step: O(d log D), with d rows that
    end there and D rows in all, and a glance at each of the D.
    """

    def __init__(self, function: Function, parts: list[tuple[int, Partials]]) -> None:
        """Take at least one partial, each with its end."""
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
            is_new = np.zeros(len(self.keys), dtype=bool)
            for _, rows in group:
                places = np.searchsorted(self._codes, rows[0])
                for column, more, (merge, _) in zip(table, rows[1:], merges, strict=True):
                    column[places] = merge(column[places], more)  # a code comes once in a part
                is_new[self._places[places]] = True
            found = np.flatnonzero(is_new[self._places] & (table[0] > 0))
            new = (self._codes[found], *(column[found] for column in table))
            places = self._places[found]
            yield end, places[_starts(places)], finished(self._function, new)


def _end(part: tuple[int, Partials]) -> int:
    return part[0]
