"""Matching a pane: the solutions of triple patterns, when each came, and a number of each.

The solutions of one pattern are matched one by one where that is enough; filters, and numbers that
are more than arithmetic, are asked of Oxigraph, in a store that also holds the static graphs.
Several patterns are asked of each element by itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.lazy_text import WrittenRows
from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.model.terms.term_order import number_key, order_key
from rsp_engine.operators.scoring.exact_scores import NumberKind, exact_scores, read_column
from rsp_engine.operators.scoring.scoring_function import Scoring, Variable, evaluate, variables
from rsp_engine.operators.scoring.term_scores import are_numbers, column
from rsp_engine.operators.sparql.element_query import ElementQuery, ElementText
from rsp_engine.operators.sparql.sparql_query import SparqlConfig, SparqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.sparql.one_pattern import OnePattern

__all__ = ["Matched", "Matcher", "Matching", "SolutionTuple"]

SolutionTuple = tuple["Term", ...]
"""The terms of the variables of the pattern: they tell which triple it is."""


@dataclass(frozen=True, slots=True)
class Matching:
    """How the solutions of a pane are found.

    `names` are the variables of the `patterns`. `asked` is asked of triples in the graph of the
    window, and gives these variables, and after them the number. It need not be asked where there
    is one pattern without filters and `scoring` gives the number. Several patterns are matched in
    one element at a time, or in many by `together`: see `ElementText`. Where solutions are
    `ordered` by the number, which may then be any term, their order is that of SPARQL.
    """

    window: str
    names: tuple[str, ...]
    patterns: tuple[OnePattern, ...]
    asked: SparqlConfig
    is_filtered: bool
    scoring: Scoring | None
    together: SparqlConfig | None = None
    ordered: bool = False

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
    """The solutions of a pane, when each came, and its number: NaN where it has none.

    Where solutions are ordered and the numbers do not tell how, the `keys` of their terms do. Where
    the number is a variable, and float64 has the order of all of them, their `kind` is known.
    """

    solutions: Sequence[SolutionTuple]
    times: Integers
    numbers: Floats
    keys: Sequence[str] | None = None
    kind: NumberKind | None = None

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
        keys = None
        if any(part.keys is not None for part in parts):
            keys = [key for part in parts for key in part.order_keys()]
        kind = _kind_of_all([part.kind for part in parts])
        return cls(solutions, np.concatenate(times), np.concatenate(numbers), keys, kind)

    def at(self, places: Sequence[int]) -> Matched:
        """Return some of the solutions."""
        chosen = np.array(places, dtype=np.int64)
        rows = self.solutions
        found = rows.at(places) if isinstance(rows, WrittenRows) else [rows[p] for p in places]
        keys = None if self.keys is None else [self.keys[place] for place in places]
        return Matched(found, self.times[chosen], self.numbers[chosen], keys, self.kind)

    def order_keys(self) -> Sequence[str]:
        """Return the keys of all solutions."""
        return self.keys if self.keys is not None else [*map(number_key, self.numbers.tolist())]

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


def _kind_of_all(kinds: Sequence[NumberKind | None]) -> NumberKind | None:
    known = [kind for kind in kinds if kind is not None]
    return reduce(NumberKind.joined, known) if len(known) == len(kinds) else None


def _numbers(terms: Sequence[Term | None]) -> tuple[Floats, NumberKind | None]:
    """Return terms as numbers, and their kind if float64 has their order."""
    found = read_column(terms)
    return (column(terms), None) if found is None else (found.values, found.kind)


def _in_order(terms: Sequence[Term | None]) -> tuple[Floats, Sequence[str] | None]:
    """Return numbers in the order of terms; and the keys of these, where numbers do not tell."""
    found = read_column(terms)
    if found is not None:
        return found.values, None
    return np.full(len(terms), np.nan), [*map(order_key, terms)]


def _text(rows: Sequence[SolutionTuple], place: int) -> str:
    return row_text(rows[place])


def _joined(parts: Sequence[Sequence[SolutionTuple]]) -> Sequence[SolutionTuple]:
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
        self._asking = SparqlQuery(config.asked)
        self._elements: ElementQuery | None = None
        if len(config.patterns) > 1:
            text = ElementText(config.window, config.asked, config.together)
            self._elements = ElementQuery(text, store)

    def match(
        self,
        triples: Sequence[ox.Triple],
        times: Integers,
        now: int,
        sizes: Sequence[int] | None = None,
    ) -> Matched:
        """Return the solutions of a pane; one that came several times is there each time.

        Several patterns are matched in each element by itself: elements have these `sizes`, and all
        triples are of one element if there are none.
        """
        config = self.config
        if self._elements is not None:
            found: Any = self._elements.rows(triples, sizes or [len(triples)], now)
            return self._by_element(list(found), times, sizes)
        if config.is_plain and config.scoring is not None:
            matching, came = self._matching(triples, times)
            solutions: Any = config.pattern.solutions(matching, config.names)
            if config.ordered:
                found = self._ordered(solutions, config.scoring)
                if found is not None:
                    return Matched(solutions, came, *found)
            else:
                numbers = self._scored(solutions, config.scoring)
                if numbers is not None:
                    return Matched(solutions, came, numbers[0], kind=numbers[1])
        return self._asked(triples, times, now)

    def _by_element(
        self,
        found: Sequence[tuple[int, SolutionTuple]],
        times: Integers,
        sizes: Sequence[int] | None,
    ) -> Matched:
        """Return solutions that came with the places of their elements, and when these came."""
        starts = np.cumsum([0, *(sizes or ())])
        places = starts[np.array([place for place, _ in found], dtype=np.int64)]
        solutions = [row[: len(self.config.names)] for _, row in found]
        return self._matched(solutions, times[places], [row[-1] for _, row in found])

    def _asked(self, triples: Sequence[ox.Triple], times: Integers, now: int) -> Matched:
        """Ask for the solutions of the only pattern, and the number of each."""
        config = self.config
        came: dict[ox.Triple, set[int]] = {}
        for triple, time in zip(triples, times.tolist(), strict=True):
            came.setdefault(triple, set()).add(time)
        rows = self._rows(came, now)
        found = [row[: len(config.names)] for row in rows]
        arrivals = [sorted(came[config.pattern.triple(each, config.names)]) for each in found]
        counts = list(map(len, arrivals))
        solutions = [each for each, count in zip(found, counts, strict=True) for _ in range(count)]
        came_at = np.array([time for each in arrivals for time in each], dtype=np.int64)
        terms = [row[-1] for row, count in zip(rows, counts, strict=True) for _ in range(count)]
        return self._matched(solutions, came_at, terms)

    def _matched(
        self, solutions: Sequence[SolutionTuple], came: Integers, terms: Sequence[Term | None]
    ) -> Matched:
        """Return solutions with the numbers that terms are, or with their order."""
        if not self.config.ordered:
            values, kind = _numbers(terms)
            return Matched(solutions, came, values, kind=kind)
        return Matched(solutions, came, *_in_order(terms))

    def _matching(
        self, triples: Sequence[ox.Triple], times: Integers
    ) -> tuple[Sequence[ox.Triple], Integers]:
        matching = self.config.pattern.matching(triples)
        if len(matching) == len(triples):
            return matching, times
        found = set(map(id, matching))
        return matching, times[[id(triple) in found for triple in triples]]

    def _scored(
        self, solutions: Sequence[SolutionTuple], scoring: Scoring
    ) -> tuple[Floats, NumberKind | None] | None:
        """Return the number of each solution; nothing if arithmetic has another meaning here.

        Over texts and dates a function may have a value, and so may a difference.
        """
        if not solutions:
            return np.empty(0), None
        by_name = dict(zip(self.config.names, zip(*solutions, strict=True), strict=True))
        if isinstance(scoring, Variable):
            return _numbers(by_name[scoring.name])
        terms = {name: by_name[name] for name in variables(scoring)}
        if not all(map(are_numbers, terms.values())):
            return None
        if not terms:
            return np.full(len(solutions), evaluate(scoring, {})[0]), None
        return evaluate(scoring, {name: column(found) for name, found in terms.items()}), None

    def _ordered(
        self, solutions: Sequence[SolutionTuple], scoring: Scoring
    ) -> tuple[Floats, Sequence[str] | None] | None:
        """Return numbers in the order of the solutions, or keys; nothing if neither is known."""
        if not solutions:
            return np.empty(0), None
        by_name = dict(zip(self.config.names, zip(*solutions, strict=True), strict=True))
        if isinstance(scoring, Variable):
            return _in_order(by_name[scoring.name])
        columns = {name: read_column(by_name[name]) for name in variables(scoring)}
        known = {name: found for name, found in columns.items() if found is not None}
        if len(known) < len(columns):
            return None
        numbers = exact_scores(scoring, known, len(solutions))
        if numbers is None:
            return None
        is_number = not np.isnan(numbers).any()
        return numbers, None if is_number else [*map(number_key, numbers.tolist())]

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
