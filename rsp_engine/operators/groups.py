"""The groups of the solutions of a window, for an aggregate that is kept pane by pane.

The content of a window is a set of triples, so a solution counts once in it, however often it
comes. One that comes again moves to its latest pane, and is withdrawn from the one before: windows
to come that hold the earlier pane hold the later one as well.

    panes    | x     | x     |       |
    W0       (   1 - 1 + 1           ]        x counts once
    W1               (   1           ..

Where both panes end with the same window, it counts in the later one and is withdrawn from it: all
that is left of it there is when its group came last.

An aggregate is ranked as a number of 64 bits. The term that is told is SPARQL's own: a count is
known, and for any other Oxigraph is asked over the triples of the few groups of an answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.ntriples import read_rows, row_text
from rsp_engine.model.windows import Pane
from rsp_engine.operators.asking import Asking
from rsp_engine.operators.scores import are_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.aggregates import Aggregates
    from rsp_engine.operators.asking import GeneralConfig, Term
    from rsp_engine.operators.matching import Matched, Matching, Solution
    from rsp_engine.operators.pane_partials import Function
    from rsp_engine.operators.state import State

__all__ = ["Grouping", "Groups"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_TIMES = {_XSD + kind for kind in ("dateTime", "date", "duration", "dayTimeDuration")}


@dataclass(frozen=True, slots=True)
class Grouping:
    """How solutions are put together.

    `keys` are the places of the key among the variables of a solution, and `value` is that of what
    is aggregated; a count needs none. `asked` gives the key of each group and then the aggregate;
    a count need not be asked for. The aggregate is known as `variable` to what makes rows.
    """

    function: Function
    keys: tuple[int, ...]
    value: int | None
    variable: str
    asked: GeneralConfig | None


class Groups:
    """Tells an operator what of each pane counts. Memory: the solutions of open windows."""

    def __init__(self, config: Grouping, matching: Matching, aggregates: Aggregates) -> None:
        self.config = config
        self._names = matching.names
        self._pattern = matching.pattern
        self._graph = ox.NamedNode(matching.window)
        self._aggregates = aggregates
        self._asking = None if config.asked is None else Asking(config.asked)
        self._numbers: dict[Solution, int] = {}
        self._keys: dict[int, Solution] = {}
        self._key_of = _key_of(config.keys)
        # Of each group its solutions, with the last window that holds each.
        self._solutions: dict[int, dict[Solution, int]] = {}
        self._ends: dict[int, list[tuple[int, Solution]]] = {}
        # A sum of doubles depends on the order: of each solution its panes, by number, with ends.
        self._panes: dict[Solution, list[tuple[int, int]]] | None = (
            {} if config.function in {"sum", "avg"} else None
        )
        self._window = 0
        self._taken = 0
        self._next = 0
        self._count = 0

    def __len__(self) -> int:
        return len(self._keys)

    def numbers(self) -> list[int]:
        """Return the numbers of all groups."""
        return list(self._keys)

    def key(self, number: int) -> Solution:
        """Return the key of a group."""
        return self._keys[number]

    def take(self, pane: Pane, matched: Matched) -> list[int]:
        """Take the solutions of a pane, and return the groups that were not there before."""
        first_new = self._next
        self._taken += 1
        solutions, times = matched.solutions, matched.times.tolist()
        values = self._values(matched).tolist()
        latest: dict[int, int] = {}
        numbers, arrived = list[int](), list[float]()
        told = set[int]()
        moved: dict[int, tuple[list[int], list[float]]] = {}
        ending = self._ends.setdefault(pane.last, [])
        for place, solution in enumerate(solutions):
            number = self._number(self._key_of(solution))
            latest[number] = max(latest.get(number, times[place]), times[place])
            if self._panes is not None:
                self._stands(solution, pane)
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
            told.add(number)
            numbers.append(number)
            arrived.append(values[place])
        positions = self._positions(latest)
        self._aggregates.arrive(pane, numbers, [positions[n] for n in numbers], arrived)
        for end, (again_numbers, again_values) in moved.items():
            self._aggregates.withdraw(Pane(pane.first, end), again_numbers, again_values)
        return list(range(first_new, self._next))

    def _stands(self, solution: Solution, pane: Pane) -> None:
        """Note that a solution stands in the pane that is taken."""
        assert self._panes is not None, "the order of solutions matters"  # noqa: S101
        before = [p for p in self._panes.get(solution, ()) if p[1] >= pane.first]
        if not before or before[-1][0] != self._taken:
            self._panes[solution] = [*before, (self._taken, pane.last)]

    def _values(self, matched: Matched) -> Floats:
        """Return what is aggregated; NaN where that is no number. Dates cannot be added up."""
        at = self.config.value
        if self.config.function not in {"sum", "avg"} or at is None:
            return matched.numbers
        terms = [solution[at] for solution in matched.solutions]
        if are_numbers(terms):
            return matched.numbers
        return np.where([_is_time(term) for term in terms], np.nan, matched.numbers)

    def _number(self, key: Solution) -> int:
        number = self._numbers.setdefault(key, self._next)
        if number == self._next:
            self._next += 1
            self._keys[number] = key
            self._solutions[number] = {}
        return number

    def _positions(self, latest: Mapping[int, int]) -> dict[int, int]:
        """Return when groups came last: by time, and then in the order of their keys."""
        seen = Counter(latest.values())
        order = sorted(
            latest,
            key=lambda number: (
                latest[number],
                row_text(self._keys[number]) if seen[latest[number]] > 1 else "",
            ),
        )
        self._count += len(order)
        return {number: place for place, number in enumerate(order, self._count - len(order))}

    def expire(self, window: int) -> list[int]:
        """Forget solutions that do not live until a window, and return the groups that go."""
        gone = []
        self._window = window
        for end in sorted(end for end in self._ends if end < window):
            for number, solution in self._ends.pop(end):
                held = self._solutions.get(number)
                if held is None or held.get(solution) != end:
                    continue  # it came again
                del held[solution]
                if self._panes is not None:
                    del self._panes[solution]
                if not held:
                    gone.append(number)
                    del self._numbers[self._keys.pop(number)], self._solutions[number]
        return gone

    def bindings(self, numbers: Sequence[int], now: int) -> list[Mapping[str, Term]]:
        """Return the variables of groups of the window at hand: their keys, and the aggregate."""
        terms = self._terms(numbers, now)
        return [self._known(number, terms[self._keys[number]]) for number in numbers]

    def _known(self, number: int, term: Term | None) -> dict[str, Term]:
        names = (self._names[place] for place in self.config.keys)
        known = dict(zip(names, self._keys[number], strict=True))
        return known if term is None else {**known, self.config.variable: term}

    def _terms(self, numbers: Sequence[int], now: int) -> dict[Solution, Term | None]:
        """Return the aggregates of groups, by their keys."""
        if self._asking is None:
            return {self._keys[n]: ox.Literal(len(self._solutions[n])) for n in numbers}
        store = ox.Store()
        triples = [
            self._pattern.triple(solution, self._names)
            for number in numbers
            for solution in self._in_order(number)
        ]
        store.extend([ox.Quad(t.subject, t.predicate, t.object, self._graph) for t in triples])
        solutions = self._asking.ask(store, now)
        assert isinstance(solutions, ox.QuerySolutions), "only SELECT is asked"  # noqa: S101
        rows: list[Any] = [tuple(solution) for solution in solutions]
        return {row[:-1]: row[-1] for row in rows}

    def _in_order(self, number: int) -> Sequence[Solution]:
        """Return the solutions of a group as the general path has them: pane by pane, by text."""
        held, panes = list(self._solutions[number]), self._panes
        if panes is None:
            return held
        first = {s: next(n for n, end in panes[s] if end >= self._window) for s in held}
        return sorted(held, key=lambda solution: (first[solution], row_text(solution)))

    def state(self) -> State:
        """Return all there is to know beside the partials, as plain data."""
        found = [(n, s, end) for n, held in self._solutions.items() for s, end in held.items()]
        return {
            "window": self._window,
            "taken": self._taken,
            "next": self._next,
            "count": self._count,
            "groups": [number for number, _, _ in found],
            "solutions": [row_text(solution) for _, solution, _ in found],
            "ends": [end for _, _, end in found],
            "panes": None if self._panes is None else [self._panes[s] for _, s, _ in found],
        }

    def restore(self, state: State) -> None:
        """Go on from a state; the operator is restored already."""
        self._window, self._taken = state["window"], state["taken"]
        self._next, self._count = state["next"], state["count"]
        solutions: list[Any] = read_rows(state["solutions"], len(self._names))
        for number, solution, end in zip(state["groups"], solutions, state["ends"], strict=True):
            self._keys[number] = self._key_of(solution)
            self._numbers[self._keys[number]] = number
            self._solutions.setdefault(number, {})[solution] = end
            self._ends.setdefault(end, []).append((number, solution))
        panes = state["panes"]
        if self._panes is not None:
            told = [[(number, end) for number, end in found] for found in panes]
            self._panes = dict(zip(solutions, told, strict=True))


def _key_of(places: tuple[int, ...]) -> Callable[[Solution], Solution]:
    if len(places) > 1:
        return itemgetter(*places)
    [place] = places
    return lambda solution: (solution[place],)


def _is_time(term: Term) -> bool:
    return isinstance(term, ox.Literal) and term.datatype.value in _TIMES
