"""The groups of the solutions of a window, for an aggregate that is maintained pane by pane.

The content of a window is a set of triples, so a solution counts once in it, however often it
arrives. A solution that arrives again moves to its latest pane, and is withdrawn from the earlier
one: later windows that contain the earlier pane contain the later one too.

    panes    | x     | x     |       |
    W0       (   1 - 1 + 1           ]        x counts once
    W1               (   1           ..

If both panes end with the same window, the solution is added to the later one and withdrawn from it
again, which leaves only the latest position of its group there.

Aggregates are kept in float64, which preserves the order of most values; the kinds of the values
are recorded. Where float64 may not preserve the order, the terms are aggregated as well.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.blocks import TextBlocks, rows_of
from rsp_engine.model.terms.ntriples import read_rows, row_text
from rsp_engine.model.windows import Pane
from rsp_engine.operators.aggregates.term_partials import TermPartials
from rsp_engine.operators.scoring.positions import LatestPositions, Positions
from rsp_engine.operators.scoring.value_kinds import ValueKind, column_of
from rsp_engine.operators.sparql.term_aggregates import TERM_AGGREGATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk
    from rsp_engine.operators.aggregates.pane_partials import Function, Totals
    from rsp_engine.operators.scoring.exact_scores import Column
    from rsp_engine.operators.sparql.pane_matcher import MatcherConfig, PaneSolutions, SolutionTuple

__all__ = ["Grouping", "Groups"]


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
        self._numbers: dict[SolutionTuple, int] = {}
        self._keys: dict[int, SolutionTuple] = {}
        self._key_of = _key_of(config.keys)
        # The solutions of each group, with the last window that contains each.
        self._solutions: dict[int, dict[SolutionTuple, int]] = {}
        self._ends: dict[int, list[tuple[int, SolutionTuple]]] = {}
        self._kinds: dict[int, ValueKind] = {}  # of the values, by the ends of their panes
        self._partials: TermPartials | None = None  # only while terms are in use
        self._terms_used = False
        self._next = 0
        self._positions = Positions()
        self._last_positions = LatestPositions()
        self._texts: dict[int, TextBlocks] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def numbers(self) -> list[int]:
        """Return the numbers of all groups."""
        return list(self._keys)

    def end(self, number: int) -> int:
        """Return the last window that contains a solution of a group."""
        return max(self._solutions[number].values())

    def key(self, number: int) -> SolutionTuple:
        """Return the key of a group."""
        return self._keys[number]

    def take(self, pane: Pane, matched: PaneSolutions) -> list[int]:
        """Add the solutions of a pane, and return the numbers of new groups."""
        first_new = self._next
        solutions, times = matched.solutions, matched.times.tolist()
        values = matched.numbers.tolist()
        if values:
            self._note(pane.last, ValueKind.of(matched.kind, matched.numbers))
        latest: dict[int, int] = {}
        numbers, new_values = list[int](), list[float]()
        placed = set[int]()  # groups whose latest position the pane has already
        moved: dict[int, tuple[list[int], list[float]]] = {}
        ending = self._ends.setdefault(pane.last, [])
        for place, solution in enumerate(solutions):
            number = self._number(self._key_of(solution))
            latest[number] = max(latest.get(number, times[place]), times[place])
            end = self._solutions[number].get(solution, -1)
            if end > pane.last or (end == pane.last and number in placed):
                continue
            if end >= pane.first:
                moved_numbers, moved_values = moved.setdefault(end, ([], []))
                moved_numbers.append(number)
                moved_values.append(values[place])
            if end < pane.last:
                self._solutions[number][solution] = pane.last
                ending.append((number, solution))
                self._move_term(number, solution, end, pane.last)
            placed.add(number)
            numbers.append(number)
            new_values.append(values[place])
        positions = self._place(latest)
        self._aggregates.arrive(pane, numbers, [positions[n] for n in numbers], new_values)
        for end, (moved_numbers, moved_values) in moved.items():
            self._aggregates.withdraw(Pane(pane.first, end), moved_numbers, moved_values)
        return list(range(first_new, self._next))

    def _note(self, end: int, kind: ValueKind) -> None:
        """Record the kind of values with an end."""
        known = self._kinds.get(end)
        self._kinds[end] = kind if known is None else ValueKind.joined([known, kind])

    def _move_term(self, number: int, solution: SolutionTuple, before: int, end: int) -> None:
        """Move the term of a solution to another end; a `before` of -1 means that it is new."""
        if self._partials is not None:
            term = self._value(solution)
            if before >= 0:
                self._partials.add(before, number, term, -1)
            self._partials.add(end, number, term)

    def _value(self, solution: SolutionTuple) -> Term:
        return solution[self.config.value or 0]  # a count needs no value: any term will do

    def _number(self, key: SolutionTuple) -> int:
        number = self._numbers.setdefault(key, self._next)
        if number == self._next:
            self._next += 1
            self._keys[number] = key
            self._solutions[number] = {}
        return number

    def _place(self, latest: Mapping[int, int]) -> dict[int, int]:
        """Return new positions of groups, ordered by latest time, then by key."""
        groups_at = Counter(latest.values())
        order = sorted(
            latest,
            key=lambda number: (
                latest[number],
                row_text(self._keys[number]) if groups_at[latest[number]] > 1 else "",
            ),
        )
        times = np.array([latest[number] for number in order], dtype=np.int64)
        positions = self._positions.of(
            times, lambda at: row_text(self._keys[order[at]]), self._keys_at
        ).tolist()
        self._last_positions.note(order, positions)
        return dict(zip(order, positions, strict=True))

    def _keys_at(self, times: Integers) -> Iterator[tuple[str, int]]:
        """Yield the key texts and positions of groups whose latest arrival was at some instants."""
        at_times = self._last_positions.at(times)
        return ((row_text(self._keys[number]), position) for number, position in at_times)

    def expire(self, window: int) -> list[int]:
        """Remove solutions that expire before a window; return the groups that become empty."""
        emptied = []
        self._forget(window)
        for end in sorted(end for end in self._ends if end < window):
            for number, solution in self._ends.pop(end):
                solutions = self._solutions.get(number)
                if solutions is None or solutions.get(solution) != end:
                    continue  # it arrived again
                del solutions[solution]
                if not solutions:
                    emptied.append(number)
                    self._last_positions.forget(number)
                    del self._numbers[self._keys.pop(number)], self._solutions[number]
        return emptied

    def _forget(self, window: int) -> None:
        """Remove kinds and partials that expire before a window, and partials not in use."""
        self._kinds = {end: kind for end, kind in self._kinds.items() if end >= window}
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
            for number, solutions in self._solutions.items():
                for solution, end in solutions.items():
                    self._partials.add(end, number, self._value(solution))
        terms = self._partials.terms()
        return [terms[number] for number in numbers]

    def bindings(self, numbers: Sequence[int]) -> list[Mapping[str, Term]]:
        """Return the bindings of groups of the current window: their keys, and the aggregate."""
        return [self._binding(number, self._term(number)) for number in numbers]

    def _binding(self, number: int, term: Term | None) -> dict[str, Term]:
        names = (self._names[place] for place in self.config.keys)
        keys = dict(zip(names, self._keys[number], strict=True))
        return keys if term is None else {**keys, self.config.variable: term}

    def _term(self, number: int) -> Term | None:
        solutions = self._solutions[number]
        if self.config.function == "count":
            return ox.Literal(len(solutions))
        return TERM_AGGREGATES[self.config.function.upper()]([*map(self._value, solutions)])

    def state(self) -> StateData:
        """Return the solutions by their ends as plain data, without the partials.

        A solution that arrived again is listed at its earlier end too.
        """
        self._texts = {end: self._texts.get(end) or TextBlocks() for end in sorted(self._ends)}
        ends = {
            str(end): texts.state(self._ends[end], lambda row: [row[0], row_text(row[1])])
            for end, texts in self._texts.items()
        }
        return {
            "next": self._next,
            "positions": self._positions.state(),
            "came": self._last_positions.state(),
            "size": len(ends),
            "ends": ends,
        }

    def restore(self, state: StateData) -> None:
        """Restore the groups; the operator must have been restored before."""
        self._next = state["next"]
        self._positions.restore(state["positions"])
        self._last_positions.restore(state["came"])
        if len(state["ends"]) != state["size"]:
            raise ValueError(f"the solutions of {state['size']} ends were saved")
        for end in sorted(map(int, state["ends"])):
            saved = state["ends"][str(end)]
            self._restore_end(end, rows_of(saved["rows"], saved["size"]))
        self._keys = dict(sorted(self._keys.items()))
        self._solutions = dict(sorted(self._solutions.items()))

    def _restore_end(self, end: int, rows: Sequence[Sequence[Any]]) -> None:
        solutions: list[Any] = read_rows([text for _, text in rows], len(self._names))
        self._ends[end] = [(row[0], each) for row, each in zip(rows, solutions, strict=True)]
        for number, solution in self._ends[end]:
            self._keys[number] = self._key_of(solution)
            self._numbers[self._keys[number]] = number
            self._solutions.setdefault(number, {})[solution] = end
        if rows:
            self._note(end, ValueKind.read([self._value(solution) for solution in solutions]))


def _key_of(places: tuple[int, ...]) -> Callable[[SolutionTuple], SolutionTuple]:
    if len(places) > 1:
        return itemgetter(*places)
    [place] = places
    return lambda solution: (solution[place],)
