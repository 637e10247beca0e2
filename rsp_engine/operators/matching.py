"""Matching a pane: the solutions of triple patterns, when each came, and a number of each.

The solutions of one pattern are matched one by one where that is enough; several patterns, filters,
and numbers that are more than arithmetic are asked of Oxigraph, in a store that also holds the
static graphs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.operators.asking import Asking, GeneralConfig, row_text
from rsp_engine.operators.scores import are_numbers, column
from rsp_engine.operators.scoring import Scoring, Variable, evaluate, variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.operators.asking import Term
    from rsp_engine.operators.one_pattern import OnePattern

__all__ = ["Matched", "Matcher", "Matching", "Solution"]

Solution = tuple["Term", ...]
"""The terms of the variables of the pattern: they tell which triple it is."""


@dataclass(frozen=True, slots=True)
class Matching:
    """How the solutions of a pane are found.

    `names` are the variables of the `patterns`. `asked` is asked of triples in the graph of the
    window, and gives these variables, and after them the number. It need not be asked where there
    is one pattern without filters and `scoring` gives the number. Several patterns must have their
    solutions in one element each.
    """

    window: str
    names: tuple[str, ...]
    patterns: tuple[OnePattern, ...]
    asked: GeneralConfig
    is_filtered: bool
    scoring: Scoring | None

    @property
    def is_plain(self) -> bool:
        """Whether triples can be matched one by one."""
        return len(self.patterns) == 1 and not self.is_filtered and self.scoring is not None

    @property
    def pattern(self) -> OnePattern:
        """The only pattern."""
        [only] = self.patterns
        return only


class Matched(NamedTuple):
    """The solutions of a pane, when each came, and its number: NaN where it has none."""

    solutions: list[Solution]
    times: Integers
    numbers: Floats

    def in_order(self, places: Sequence[int]) -> list[int]:
        """Return places in the order of arrival; those of one time are in term order.

        >>> a, b = (ox.NamedNode("urn:a"),), (ox.NamedNode("urn:b"),)
        >>> Matched([b, a, a], np.array([5, 5, 3]), np.zeros(3)).in_order([0, 1, 2])
        [2, 1, 0]
        """
        times = self.times.tolist()
        seen = Counter(times[place] for place in places)
        # Text is needed to tell those of one time apart, and costs more than all the rest.
        return sorted(
            places,
            key=lambda place: (
                times[place],
                row_text(self.solutions[place]) if seen[times[place]] > 1 else "",
            ),
        )


class Matcher:
    """Matches panes. The store holds the static graphs, and a pane while it is asked."""

    def __init__(self, config: Matching, store: ox.Store) -> None:
        self.config = config
        self._store = store
        self._graph = ox.NamedNode(config.window)
        self._asking = Asking(config.asked)

    def match(self, triples: Sequence[ox.Triple], times: Integers, now: int) -> Matched:
        """Return the solutions of a pane; a triple that came twice is matched twice, or once."""
        config = self.config
        if config.is_plain and config.scoring is not None:
            matching, came = self._matching(triples, times)
            solutions: Any = config.pattern.solutions(matching, config.names)
            numbers = self._scored(solutions, config.scoring)
            if numbers is not None:
                return Matched(solutions, came, numbers)
        return self._asked(triples, times, now)

    def _asked(self, triples: Sequence[ox.Triple], times: Integers, now: int) -> Matched:
        """Ask for the solutions and the number of each; of a triple that came twice, the latest."""
        config = self.config
        order = np.argsort(times, kind="stable").tolist()
        latest = {triples[place]: int(times[place]) for place in order}
        rows = self._rows(latest, now)
        solutions = [row[: len(config.names)] for row in rows]
        came = [self._came(solution, latest) for solution in solutions]
        numbers = column([row[-1] for row in rows])
        return Matched(solutions, np.array(came, dtype=np.int64), numbers)

    def _came(self, solution: Solution, latest: Mapping[ox.Triple, int]) -> int:
        """Return when a solution came: with its element, in which all its triples are.

        Some of them may have come again with other elements, but not all.
        """
        names = self.config.names
        return min(latest[pattern.triple(solution, names)] for pattern in self.config.patterns)

    def _matching(
        self, triples: Sequence[ox.Triple], times: Integers
    ) -> tuple[Sequence[ox.Triple], Integers]:
        matching = self.config.pattern.matching(triples)
        if len(matching) == len(triples):
            return matching, times
        found = set(map(id, matching))
        return matching, times[[id(triple) in found for triple in triples]]

    def _scored(self, solutions: Sequence[Solution], scoring: Scoring) -> Floats | None:
        """Return the number of each solution; nothing if arithmetic has another meaning here.

        Over texts and dates a function may have a value, and so may a difference.
        """
        if not solutions:
            return np.empty(0)
        by_name = dict(zip(self.config.names, zip(*solutions, strict=True), strict=True))
        terms = {name: by_name[name] for name in variables(scoring)}
        if not isinstance(scoring, Variable) and not all(map(are_numbers, terms.values())):
            return None
        if not terms:
            return np.full(len(solutions), evaluate(scoring, {})[0])
        return evaluate(scoring, {name: column(found) for name, found in terms.items()})

    def _rows(self, triples: Iterable[ox.Triple], now: int) -> list[Any]:
        """Ask for the solutions over some triples as if they were the window."""
        self._store.extend(
            [ox.Quad(t.subject, t.predicate, t.object, self._graph) for t in triples]
        )
        try:
            solutions = self._asking.ask(self._store, now)
            assert isinstance(solutions, ox.QuerySolutions), "only SELECT is asked"  # noqa: S101
            return [tuple(solution) for solution in solutions]
        finally:
            self._store.clear_graph(self._graph)
