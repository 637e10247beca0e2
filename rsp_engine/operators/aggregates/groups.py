"""The groups of the solutions of a window, for an aggregate that is maintained pane by pane.

The content of a window is a set of triples, so a solution counts once in it, however often it
arrives. A solution that arrives again moves to its latest pane, and is withdrawn from the earlier
one: later windows that contain the earlier pane contain the later one too.

    panes    | x     | x     |       |
    W0       (   1 - 1 + 1           ]        x counts once
    W1               (   1           ..

If both panes end with the same window, the solution is added to the later one and withdrawn from it
again, which leaves only the latest position of its group there.

Solutions are rows of integers: the number of the group, and of each other variable a code and a
kind. The code of a number is its bits, that of any other term its number in a dictionary.

Aggregates are kept in float64, which preserves the order of most values; the kinds of the values
are recorded. Where float64 may not preserve the order, the terms are aggregated as well.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.columns import (
    INTEGER_KIND,
    ColumnRows,
    NumberColumn,
    TermColumn,
    number_in,
    number_text,
)
from rsp_engine.model.terms.ntriples import read_rows, read_terms
from rsp_engine.model.terms.numerals import SURE
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.model.windows import Pane
from rsp_engine.operators.aggregates.dense_integers import are_distinct, distinct_places
from rsp_engine.operators.aggregates.solution_table import GONE, SolutionTable
from rsp_engine.operators.aggregates.term_partials import TermPartials
from rsp_engine.operators.aggregates.text_numbers import TextNumbers
from rsp_engine.operators.scoring.positions import LatestPositions, Positions
from rsp_engine.operators.scoring.value_kinds import ValueKind, column_of
from rsp_engine.operators.sparql.term_aggregates import TERM_AGGREGATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.columns import TermsColumn
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk
    from rsp_engine.operators.aggregates.pane_partials import Function, Totals
    from rsp_engine.operators.scoring.exact_scores import Column
    from rsp_engine.operators.sparql.pane_matcher import MatcherConfig, PaneSolutions

__all__ = ["Grouping", "Groups"]

_INTEGER = ox.NamedNode(XSD + "integer")
_TEXT_KIND = 0  # of a code that is the number of a text
_MOST = 10.0**SURE


@dataclass(frozen=True, slots=True)
class Grouping:
    """The GROUP BY key and the aggregate of a query.

    `keys` are the indices of the key variables in a solution, and `value` is the index of the
    aggregated variable, or None for a count. `variable` names the aggregate in result rows.
    """

    function: Function
    keys: tuple[int, ...]
    value: int | None
    variable: str


class Groups:
    """The groups of open windows, which feed an operator. Memory: the solutions of open windows."""

    def __init__(
        self, config: Grouping, matching: MatcherConfig, aggregates: AggregateTopk
    ) -> None:
        self.config = config
        self._names = matching.names
        self._aggregates = aggregates
        self._keys = TextNumbers()
        self._others = tuple(n for n in range(len(self._names)) if n not in config.keys)
        self._texts = TextNumbers()  # of the terms outside the keys that are not numbers
        # Columns: the group, and the code and the kind of each other variable.
        self._table = SolutionTable(1 + 2 * len(self._others))
        self._ends: dict[int, list[_Chunk]] = {}
        self._kinds: dict[int, ValueKind] = {}  # of the values, by the ends of their panes
        self._other_values: set[int] = set()  # ends with values that are not integers
        self._partials: TermPartials | None = None  # only while terms are in use
        self._terms_used = False
        self._positions = Positions()
        self._last_positions = LatestPositions()

    def __len__(self) -> int:
        return len(self._keys.texts)

    def numbers(self) -> Integers:
        """Return the numbers of all groups, in order."""
        return self._keys.numbers

    def ends(self, numbers: Integers) -> Integers:
        """Return the last windows that contain a solution of each of some groups."""
        live = np.flatnonzero(self._table.ends != GONE)
        groups = self._table.column(0)[live]
        order = np.argsort(groups, kind="stable")
        distinct, starts = np.unique(groups[order], return_index=True)
        ends = np.maximum.reduceat(self._table.ends[live[order]], starts)
        found: Integers = ends[np.searchsorted(distinct, numbers)]
        return found

    def key_text(self, number: int) -> str:
        """Return the key of a group as text."""
        return self._keys.texts[number]

    def key_texts(self, numbers: Integers, places: tuple[int, ...]) -> list[str]:
        """Return the terms at some places of a solution, all in the key, as text for each group."""
        every = [self._keys.texts[number] for number in numbers.tolist()]
        if places == self.config.keys:
            return every
        chosen = [self.config.keys.index(place) for place in places]
        rows = (text.split("\t") for text in every)
        return ["\t".join([row[place] for place in chosen]) for row in rows]

    def take(self, pane: Pane, matched: PaneSolutions) -> Integers:
        """Add the solutions of a pane, and return the numbers of new groups."""
        first_new = self._keys.next
        if not len(matched.times):
            return np.empty(0, dtype=np.int64)
        self._note(pane.last, ValueKind.of(matched.kind, matched.numbers))
        columns = _columns(matched)
        groups = self._groups(columns)
        self._note_others(pane.last, columns)
        codes = [code for place in self._others for code in self._codes(columns[place])]
        rows, firsts = _distinct_rows(self._table.rows([groups, *codes]))
        distinct, places = distinct_places(groups)
        positions = self._place(distinct, places, matched.times)
        groups, places, values = groups[firsts], places[firsts], matched.numbers[firsts]
        ends = self._table.ends[rows]
        is_earlier = ends < pane.last
        has_earlier = np.zeros(len(distinct), dtype=np.bool_)
        has_earlier[places[is_earlier]] = True
        # A group whose solutions all count in this pane already moves to its latest position.
        is_same = (ends == pane.last) & ~has_earlier[places]
        chosen = np.flatnonzero(is_earlier | is_same)
        at = positions[places[chosen]]
        self._aggregates.arrive(pane, groups[chosen], at, values[chosen])
        moved = chosen[ends[chosen] >= pane.first]
        for end in np.unique(ends[moved]).tolist():
            again = moved[ends[moved] == end]
            self._aggregates.withdraw(Pane(pane.first, end), groups[again], values[again])
        self._extend(rows[is_earlier], pane.last)
        return np.arange(first_new, self._keys.next)

    def _extend(self, rows: Integers, end: int) -> None:
        """Let solutions count until an end, which is later than theirs."""
        if self._partials is not None:
            self._move_terms(rows, end)
        new = rows[self._table.ends[rows] == GONE]
        self._keys.use(self._table.column(0)[new])
        self._texts.use(self._texts_of(new))
        self._table.extend(rows, end)
        self._ends.setdefault(end, []).append(_Chunk(rows))

    def _groups(self, columns: Sequence[TermsColumn]) -> Integers:
        """Return the number of the group of each solution."""
        keys = [columns[place] for place in self.config.keys]
        if len(keys) > 1 or isinstance(keys[0], NumberColumn):
            return self._keys.of(ColumnRows(tuple(keys)).texts)
        texts, places = _distinct(keys[0])
        return self._keys.of(texts)[places]

    def _codes(self, column: TermsColumn) -> tuple[Integers, Integers]:
        """Return the code and the kind of each term."""
        if isinstance(column, NumberColumn):
            return column.values.view(np.int64), column.kinds
        texts, places = _distinct(column)
        found = [number_in(text) for text in texts]
        kinds = np.array([_TEXT_KIND if each is None else each[1] for each in found])
        codes = np.array([0.0 if each is None else each[0] for each in found]).view(np.int64)
        are_texts = kinds == _TEXT_KIND
        chosen = np.flatnonzero(are_texts).tolist()
        codes[are_texts] = self._texts.of([texts[place] for place in chosen])
        return codes[places], kinds[places]

    def _texts_of(self, rows: Integers) -> Integers:
        """Return the numbers of the texts that solutions have outside their keys."""
        numbers = []
        for place in range(1, 1 + 2 * len(self._others), 2):
            codes, kinds = (self._table.column(at)[rows] for at in (place, place + 1))
            numbers.append(codes[kinds == _TEXT_KIND])
        return np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)

    def _note(self, end: int, kind: ValueKind) -> None:
        """Record the kind of values with an end."""
        known = self._kinds.get(end)
        self._kinds[end] = kind if known is None else ValueKind.joined([known, kind])

    def _note_others(self, end: int, columns: Sequence[TermsColumn]) -> None:
        """Record whether values with an end are all integers."""
        if self.config.value is not None:
            column = columns[self.config.value]
            if not isinstance(column, NumberColumn) or (column.kinds != INTEGER_KIND).any():
                self._other_values.add(end)

    def _move_terms(self, rows: Integers, end: int) -> None:
        """Move the terms of solutions to a later end."""
        assert self._partials is not None, "terms are in use"  # noqa: S101
        groups, ends = self._table.column(0)[rows].tolist(), self._table.ends[rows].tolist()
        for number, before, term in zip(groups, ends, self._values(rows), strict=True):
            if before != GONE:
                self._partials.add(before, number, term, -1)
            self._partials.add(end, number, term)

    def _values(self, rows: Integers) -> list[Term]:
        """Return the terms that solutions give to the aggregate."""
        value = self.config.value or 0  # a count needs no value: any term will do
        if value in self.config.keys:
            place = self.config.keys.index(value)
            groups = self._table.column(0)[rows].tolist()
            return read_terms([self._keys.texts[group].split("\t")[place] for group in groups])
        at = 1 + 2 * self._others.index(value)
        codes, kinds = (self._table.column(number)[rows] for number in (at, at + 1))
        numbers, texts = codes.view(np.float64).tolist(), self._texts.texts
        return read_terms(
            [
                texts[code] if kind == _TEXT_KIND else number_text(numbers[place], kind)
                for place, (code, kind) in enumerate(
                    zip(codes.tolist(), kinds.tolist(), strict=True)
                )
            ]
        )

    def _place(self, distinct: Integers, places: Integers, times: Integers) -> Integers:
        """Return the positions of the latest arrivals of groups: in the order of times, then keys.

        The arrival at each time is that of the group at a place.
        """
        latest = np.full(len(distinct), times.min())
        np.maximum.at(latest, places, times)
        by_time = np.lexsort((self._keys.ranks(distinct), latest))
        numbers = distinct[by_time]
        positions = self._positions.of(
            latest[by_time], lambda at: self._keys.texts[int(numbers[at])], self._keys_at
        )
        self._last_positions.note(numbers, positions)
        placed = np.empty_like(positions)
        placed[by_time] = positions
        return placed

    def _keys_at(self, times: Integers) -> Iterator[tuple[str, int]]:
        """Yield the key texts and positions of groups whose latest arrival was at some instants."""
        at_times = self._last_positions.at(times)
        return ((self._keys.texts[number], position) for number, position in at_times)

    def expire(self, window: int) -> Integers:
        """Remove solutions that expire before a window; return the groups that become empty."""
        emptied = [np.empty(0, dtype=np.int64)]
        self._forget(window)
        for end in sorted(end for end in self._ends if end < window):
            rows = np.concatenate([chunk.rows for chunk in self._ends.pop(end)])
            rows = rows[self._table.ends[rows] == end]  # the others arrived again
            self._texts.drop(self._texts_of(rows))
            self._table.drop(rows)
            empty = self._keys.drop(self._table.column(0)[rows])
            self._last_positions.forget(empty)
            emptied.append(empty)
        numbers = self._table.compact()
        if numbers is not None:
            for chunk in (chunk for chunks in self._ends.values() for chunk in chunks):
                chunk.rows = numbers[chunk.rows]
        return np.concatenate(emptied)

    def _forget(self, window: int) -> None:
        """Remove kinds and partials that expire before a window, and partials not in use."""
        self._kinds = {end: kind for end, kind in self._kinds.items() if end >= window}
        self._other_values = {end for end in self._other_values if end >= window}
        if not self._terms_used:
            self._partials = None
        if self._partials is not None:
            self._partials.expire(window)
        self._terms_used = False

    def column(self, totals: Totals) -> Column | None:
        """Return the aggregates of groups, or None if float64 may not preserve their order."""
        return column_of(self.config.function, ValueKind.joined(self._kinds.values()), totals)

    def terms(self, numbers: Sequence[int]) -> list[Term | None]:
        """Return the aggregates of groups of the current window as terms."""
        self._terms_used = True
        if self._partials is None:
            self._partials = TermPartials(self.config.function)
            live = np.flatnonzero(self._table.ends != GONE)
            groups, ends = self._table.column(0)[live].tolist(), self._table.ends[live].tolist()
            for number, end, term in zip(groups, ends, self._values(live), strict=True):
                self._partials.add(end, number, term)
        terms = self._partials.terms()
        return [terms[number] for number in numbers]

    def bindings(self, numbers: Sequence[int], totals: Totals) -> list[Mapping[str, Term]]:
        """Return the bindings of groups of the current window: their keys, and the aggregate.

        `totals` are those of the window.
        """
        keys = read_rows([self._keys.texts[number] for number in numbers], len(self.config.keys))
        names = [self._names[place] for place in self.config.keys]
        found = list[dict[str, Any]]()
        for key, term in zip(keys, self._aggregate_terms(numbers, totals), strict=True):
            binding = dict(zip(names, key, strict=True))
            found.append(binding if term is None else {**binding, self.config.variable: term})
        return found  # type: ignore[return-value]

    def _aggregate_terms(self, numbers: Sequence[int], totals: Totals) -> list[Term | None]:
        function = self.config.function
        if function == "count":
            return [ox.Literal(self._keys.count(number)) for number in numbers]
        if function != "avg" and not self._other_values:
            values = totals.values[np.searchsorted(totals.keys, numbers)]
            if (np.abs(values) < _MOST).all():  # integers of less digits are exact in float64
                return [ox.Literal(int(value)) for value in values.tolist()]
        is_live = self._table.ends != GONE
        groups = self._table.column(0)
        of_each = (np.flatnonzero(is_live & (groups == number)) for number in numbers)
        return [TERM_AGGREGATES[function.upper()](self._values(rows)) for rows in of_each]

    def state(self) -> StateData:
        """Return the solutions by their ends as plain data, without the partials.

        A solution that arrived again is listed at its earlier end too.
        """
        ends = {
            str(end): {str(n): chunk.written(self._table) for n, chunk in enumerate(chunks)}
            for end, chunks in sorted(self._ends.items())
        }
        return {
            "keys": self._keys.state(),
            "texts": self._texts.state(),
            "positions": self._positions.state(),
            "came": self._last_positions.state(),
            "size": sum(map(len, ends.values())),
            "ends": ends,
        }

    def restore(self, state: StateData) -> None:
        """Restore the groups; the operator must have been restored before."""
        self._keys.restore(state["keys"])
        self._texts.restore(state["texts"])
        self._positions.restore(state["positions"])
        self._last_positions.restore(state["came"])
        if sum(map(len, state["ends"].values())) != state["size"]:
            raise ValueError(f"{state['size']} batches of solutions were saved")
        for end in sorted(map(int, state["ends"])):
            chunks = state["ends"][str(end)]
            for number in sorted(map(int, chunks)):
                self._restore_chunk(end, chunks[str(number)])

    def _restore_chunk(self, end: int, saved: Sequence[str]) -> None:
        columns = [np.frombuffer(b64decode(column), dtype="<i8") for column in saved]
        rows = self._table.rows([column.astype(np.int64) for column in columns])
        self._extend(rows, end)
        terms = self._values(rows)
        self._note(end, ValueKind.read(terms))
        if any(getattr(term, "datatype", None) != _INTEGER for term in terms):
            self._other_values.add(end)


def _columns(matched: PaneSolutions) -> Sequence[TermsColumn]:
    """Return solutions as columns."""
    if isinstance(matched.solutions, ColumnRows):
        return matched.solutions.columns
    every = np.arange(len(matched.times))
    rows = [text.split("\t") for text in matched.texts()]
    return [TermColumn(every, texts) for texts in zip(*rows, strict=True)]


def _distinct(column: TermColumn) -> tuple[list[str], Integers]:
    """Return the texts in use, in the order of their first use, and the index of each term."""
    count = len(column.codes)
    firsts = np.full(len(column.texts), count)
    np.minimum.at(firsts, column.codes, np.arange(count))
    order = np.argsort(firsts)[: np.count_nonzero(firsts < count)]
    ranks = np.empty(len(firsts), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return [column.texts[code] for code in order.tolist()], ranks[column.codes]


def _distinct_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Return the distinct rows, and the index of the first occurrence of each."""
    if are_distinct(rows):
        return rows, np.arange(len(rows))
    return np.unique(rows, return_index=True)


class _Chunk:
    """Solutions that were given an end together."""

    __slots__ = ("_written", "rows")

    def __init__(self, rows: Integers) -> None:
        self.rows = rows
        self._written: tuple[str, ...] | None = None

    def written(self, table: SolutionTable) -> tuple[str, ...]:
        """Return the solutions as plain data, the same object each time: one text per column."""
        if self._written is None:
            columns = (table.column(number)[self.rows] for number in range(table.width))
            self._written = tuple(b64encode(c.astype("<i8").tobytes()).decode() for c in columns)
        return self._written
