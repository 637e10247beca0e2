"""The groups of the solutions of a window, for an aggregate that is kept pane by pane.

The content of a window is a set of triples, so a solution counts once in it, however often it
comes. One that comes again moves to its latest pane, and is withdrawn from the one before: windows
to come that hold the earlier pane hold the later one as well.

    panes    | x     | x     |       |
    W0       (   1 - 1 + 1           ]        x counts once
    W1               (   1           ..

Where both panes end with the same window, it counts in the later one and is withdrawn from it: all
that is left of it there is when its group came last.

Aggregates are kept in float64, which tells their order for most values; of which kind these are is
noted. Where float64 does not tell, the terms are aggregated pane by pane as well.
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
    from rsp_engine.operators.sparql.pane_matcher import Matched, Matching, SolutionTuple

__all__ = ["Grouping", "Groups"]


@dataclass(frozen=True, slots=True)
class Grouping:
    """How solutions are put together.

    `keys` are the places of the key among the variables of a solution, and `value` is that of what
    is aggregated; a count needs none. The aggregate is known as `variable` to what makes rows.
    """

    function: Function
    keys: tuple[int, ...]
    value: int | None
    variable: str


class Groups:
    """Tells an operator what of each pane counts. Memory: the solutions of open windows."""

    def __init__(self, config: Grouping, matching: Matching, aggregates: AggregateTopk) -> None:
        self.config = config
        self._names = matching.names
        self._aggregates = aggregates
        self._numbers: dict[SolutionTuple, int] = {}
        self._keys: dict[int, SolutionTuple] = {}
        self._key_of = _key_of(config.keys)
        # Of each group its solutions, with the last window that holds each.
        self._solutions: dict[int, dict[SolutionTuple, int]] = {}
        self._ends: dict[int, list[tuple[int, SolutionTuple]]] = {}
        self._kinds: dict[int, ValueKind] = {}  # of the values of panes, by their ends
        self._partials: TermPartials | None = None  # of terms, while these are asked for
        self._are_asked = False
        self._next = 0
        self._positions = Positions()
        self._came = LatestPositions()
        self._texts: dict[int, TextBlocks] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def numbers(self) -> list[int]:
        """Return the numbers of all groups."""
        return list(self._keys)

    def end(self, number: int) -> int:
        """Return the last window that holds a solution of a group."""
        return max(self._solutions[number].values())

    def key(self, number: int) -> SolutionTuple:
        """Return the key of a group."""
        return self._keys[number]

    def take(self, pane: Pane, matched: Matched) -> list[int]:
        """Take the solutions of a pane, and return the groups that were not there before."""
        first_new = self._next
        solutions, times = matched.solutions, matched.times.tolist()
        values = matched.numbers.tolist()
        if values:
            self._note(pane.last, ValueKind.of(matched.kind, matched.numbers))
        latest: dict[int, int] = {}
        numbers, arrived = list[int](), list[float]()
        told = set[int]()
        moved: dict[int, tuple[list[int], list[float]]] = {}
        ending = self._ends.setdefault(pane.last, [])
        for place, solution in enumerate(solutions):
            number = self._number(self._key_of(solution))
            latest[number] = max(latest.get(number, times[place]), times[place])
            end = self._solutions[number].get(solution, -1)
            if end > pane.last or (end == pane.last and number in told):
                continue
            if end >= pane.first:
                again = moved.setdefault(end, ([], []))
                again[0].append(number)
                again[1].append(values[place])
            if end < pane.last:
                self._solutions[number][solution] = pane.last
                ending.append((number, solution))
                self._move(number, solution, end, pane.last)
            told.add(number)
            numbers.append(number)
            arrived.append(values[place])
        positions = self._placed(latest)
        self._aggregates.arrive(pane, numbers, [positions[n] for n in numbers], arrived)
        for end, (again_numbers, again_values) in moved.items():
            self._aggregates.withdraw(Pane(pane.first, end), again_numbers, again_values)
        return list(range(first_new, self._next))

    def _note(self, end: int, kind: ValueKind) -> None:
        """Note of which kind values are that live until an end."""
        known = self._kinds.get(end)
        self._kinds[end] = kind if known is None else ValueKind.joined([known, kind])

    def _move(self, number: int, solution: SolutionTuple, before: int, end: int) -> None:
        """Let a solution live until another end; it may be new."""
        if self._partials is not None:
            term = self._value(solution)
            if before >= 0:
                self._partials.add(before, number, term, -1)
            self._partials.add(end, number, term)

    def _value(self, solution: SolutionTuple) -> Term:
        return solution[self.config.value or 0]  # any term will do where solutions are counted

    def _number(self, key: SolutionTuple) -> int:
        number = self._numbers.setdefault(key, self._next)
        if number == self._next:
            self._next += 1
            self._keys[number] = key
            self._solutions[number] = {}
        return number

    def _placed(self, latest: Mapping[int, int]) -> dict[int, int]:
        """Return when groups came last: by time, and then in the order of their keys."""
        seen = Counter(latest.values())
        order = sorted(
            latest,
            key=lambda number: (
                latest[number],
                row_text(self._keys[number]) if seen[latest[number]] > 1 else "",
            ),
        )
        times = np.array([latest[number] for number in order], dtype=np.int64)
        found = self._positions.of(times, lambda at: row_text(self._keys[order[at]]), self._at)
        self._came.note(order, found.tolist())
        return dict(zip(order, found.tolist(), strict=True))

    def _at(self, times: Integers) -> Iterator[tuple[str, int]]:
        """Yield the keys, as text, and the positions of groups that came last at some instants."""
        return ((row_text(self._keys[number]), came) for number, came in self._came.at(times))

    def expire(self, window: int) -> list[int]:
        """Forget solutions that do not live until a window, and return the groups that go."""
        gone = []
        self._forget(window)
        for end in sorted(end for end in self._ends if end < window):
            for number, solution in self._ends.pop(end):
                held = self._solutions.get(number)
                if held is None or held.get(solution) != end:
                    continue  # it came again
                del held[solution]
                if not held:
                    gone.append(number)
                    self._came.forget(number)
                    del self._numbers[self._keys.pop(number)], self._solutions[number]
        return gone

    def _forget(self, window: int) -> None:
        """Forget what is known of values that do not live until a window."""
        self._kinds = {end: kind for end, kind in self._kinds.items() if end >= window}
        if not self._are_asked:
            self._partials = None
        if self._partials is not None:
            self._partials.expire(window)
        self._are_asked = False

    def column(self, totals: Totals) -> Column | None:
        """Return the aggregates of groups; nothing if float64 may not tell their order."""
        return column_of(self.config.function, ValueKind.joined(self._kinds.values()), totals)

    def terms(self, numbers: Sequence[int]) -> list[Term | None]:
        """Return the aggregates of groups of the window at hand, as terms."""
        self._are_asked = True
        if self._partials is None:
            self._partials = TermPartials(self.config.function)
            for number, held in self._solutions.items():
                for solution, end in held.items():
                    self._partials.add(end, number, self._value(solution))
        found = self._partials.terms()
        return [found[number] for number in numbers]

    def bindings(self, numbers: Sequence[int]) -> list[Mapping[str, Term]]:
        """Return the variables of groups of the window at hand: their keys, and the aggregate."""
        return [self._known(number, self._term(number)) for number in numbers]

    def _known(self, number: int, term: Term | None) -> dict[str, Term]:
        names = (self._names[place] for place in self.config.keys)
        known = dict(zip(names, self._keys[number], strict=True))
        return known if term is None else {**known, self.config.variable: term}

    def _term(self, number: int) -> Term | None:
        solutions = self._solutions[number]
        if self.config.function == "count":
            return ox.Literal(len(solutions))
        return TERM_AGGREGATES[self.config.function.upper()]([*map(self._value, solutions)])

    def state(self) -> StateData:
        """Return all there is to know beside the partials, as plain data.

        By the end of each solution; one that came again stands at its earlier end as well.
        """
        self._texts = {end: self._texts.get(end) or TextBlocks() for end in sorted(self._ends)}
        ends = {
            str(end): texts.state(self._ends[end], lambda held: [held[0], row_text(held[1])])
            for end, texts in self._texts.items()
        }
        return {
            "next": self._next,
            "positions": self._positions.state(),
            "came": self._came.state(),
            "size": len(ends),
            "ends": ends,
        }

    def restore(self, state: StateData) -> None:
        """Go on from a state; the operator is restored already."""
        self._next = state["next"]
        self._positions.restore(state["positions"])
        self._came.restore(state["came"])
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
