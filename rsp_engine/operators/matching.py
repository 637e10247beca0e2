"""Matching a pane: the solutions of triple patterns, when each came, and a number of each.

The solutions of one pattern are matched one by one where that is enough; several patterns, filters,
and numbers that are more than arithmetic are asked of Oxigraph, in a store that also holds the
static graphs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.written import WrittenRows
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

    solutions: Sequence[Solution]
    times: Integers
    numbers: Floats

    @classmethod
    def joined(cls, parts: Sequence[Matched]) -> Matched:
        """Return the solutions of parts of a pane as one."""
        parts = [part for part in parts if part.solutions]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls([], np.empty(0, dtype=np.int64), np.empty(0))
        solutions = _joined([part.solutions for part in parts])
        times, numbers = ([getattr(p, name) for p in parts] for name in ("times", "numbers"))
        return cls(solutions, np.concatenate(times), np.concatenate(numbers))

    def at(self, places: Sequence[int]) -> Matched:
        """Return some of the solutions."""
        chosen = np.array(places, dtype=np.int64)
        solutions = self.solutions
        if isinstance(solutions, WrittenRows):
            return Matched(solutions.at(places), self.times[chosen], self.numbers[chosen])
        found = [solutions[place] for place in places]
        return Matched(found, self.times[chosen], self.numbers[chosen])

    @property
    def width(self) -> int:
        """How many terms a solution has, if there is one."""
        rows = self.solutions
        if isinstance(rows, WrittenRows):
            return rows.width
        return len(rows[0]) if rows else 0

    def read(self) -> Matched:
        """Return the same, with all solutions at hand."""
        if isinstance(self.solutions, WrittenRows):
            return self._replace(solutions=list(self.solutions))
        return self

    def texts(self) -> Sequence[str]:
        """Return the solutions as lines of text."""
        if isinstance(self.solutions, WrittenRows):
            return self.solutions.texts
        return list(map(row_text, self.solutions))

    def in_order(self, places: Sequence[int]) -> list[int]:
        """Return places in the order of arrival; those of one time are in term order.

        >>> a, b = (ox.NamedNode("urn:a"),), (ox.NamedNode("urn:b"),)
        >>> Matched([b, a, a], np.array([5, 5, 3]), np.zeros(3)).in_order([0, 1, 2])
        [2, 1, 0]
        """
        chosen = np.asarray(places, dtype=np.int64)
        came = self.times[chosen]
        order = np.argsort(came, kind="stable")
        if (np.diff(came[order]) > 0).all():
            in_order: list[int] = chosen[order].tolist()
            return in_order
        times = self.times.tolist()
        seen = Counter(times[place] for place in places)
        rows = self.solutions
        text = rows.texts.__getitem__ if isinstance(rows, WrittenRows) else partial(_text, rows)
        # Text is needed to tell those of one time apart, and costs more than all the rest.
        return sorted(
            places,
            key=lambda place: (times[place], text(place) if seen[times[place]] > 1 else ""),
        )


def _text(rows: Sequence[Solution], place: int) -> str:
    return row_text(rows[place])


def _joined(parts: Sequence[Sequence[Solution]]) -> Sequence[Solution]:
    """Return solutions as one sequence: as text, if that is what all of them are."""
    written = [part for part in parts if isinstance(part, WrittenRows)]
    if len(written) == len(parts):
        return WrittenRows(written[0].width, [text for part in written for text in part.texts])
    return [solution for part in parts for solution in part]


class Matcher:
    """Matches panes. The store holds the static graphs, and a pane while it is asked."""

    def __init__(self, config: Matching, store: ox.Store) -> None:
        self.config = config
        self._store = store
        self._graph = ox.NamedNode(config.window)
        self._asking = Asking(config.asked)

    def match(self, triples: Sequence[ox.Triple], times: Integers, now: int) -> Matched:
        """Return the solutions of a pane; one that came several times is there each time."""
        config = self.config
        if config.is_plain and config.scoring is not None:
            matching, came = self._matching(triples, times)
            solutions: Any = config.pattern.solutions(matching, config.names)
            numbers = self._scored(solutions, config.scoring)
            if numbers is not None:
                return Matched(solutions, came, numbers)
        return self._asked(triples, times, now)

    def _asked(self, triples: Sequence[ox.Triple], times: Integers, now: int) -> Matched:
        """Ask for the solutions and the number of each."""
        config = self.config
        came: dict[ox.Triple, set[int]] = {}
        for triple, time in zip(triples, times.tolist(), strict=True):
            came.setdefault(triple, set()).add(time)
        rows = self._rows(came, now)
        arrivals = [self._arrivals(row, came) for row in rows]
        solutions = [
            row[: len(config.names)]
            for row, found in zip(rows, arrivals, strict=True)
            for _ in range(len(found))
        ]
        numbers = column([row[-1] for row in rows])
        return Matched(
            solutions,
            np.array([time for found in arrivals for time in found], dtype=np.int64),
            np.repeat(numbers, [len(found) for found in arrivals]),
        )

    def _arrivals(self, row: Solution, came: Mapping[ox.Triple, set[int]]) -> Sequence[int]:
        """Return when a solution came: with each element that has all its triples."""
        names = self.config.names
        solution = row[: len(names)]
        times = [came[pattern.triple(solution, names)] for pattern in self.config.patterns]
        return sorted(set.intersection(*times)) or [min(map(max, times))]

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
