"""Pattern matching over a pane: solutions, with the arrival time and the number of each.

A single pattern is matched triple by triple without a store where possible. Oxigraph evaluates
filters that are more than conditions on one variable, and numbers that are more than arithmetic, in
a store that also contains the static graphs. Several patterns are evaluated over each element
separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.columns import ColumnRows
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
    from rsp_engine.operators.joins.term_filter import TermFilter
    from rsp_engine.operators.sparql.one_pattern import OnePattern

__all__ = ["Matcher", "MatcherConfig", "PaneSolutions", "SolutionTuple", "UnreadRows"]

SolutionTuple = tuple["Term", ...]
"""The terms of the variables of the pattern. They identify the triple."""

UnreadRows = WrittenRows | ColumnRows
"""Solutions that are parsed when they are needed."""


@dataclass(frozen=True, slots=True)
class MatcherConfig:
    """The configuration of a matcher.

    `names` are the variables of the `patterns`. `store_query` is the query over triples in the
    graph of the `window`; it returns these variables, followed by the number. It is not needed if
    there is one pattern whose `filters` are conditions on one variable each, and `scoring` gives
    the number; without such conditions, `filters` is None. Several patterns are
    matched element by element, or in many elements at once by `together` (see `ElementText`). If
    solutions are `ordered` by the number, it may be any term, and the order is that of SPARQL.
    """

    window: str
    names: tuple[str, ...]
    patterns: tuple[OnePattern, ...]
    store_query: SparqlConfig
    filters: tuple[TermFilter, ...] | None
    scoring: Scoring | None
    together: SparqlConfig | None = None
    ordered: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether triples can be matched one by one, without a store."""
        return len(self.patterns) == 1 and self.filters is not None and self.scoring is not None

    @property
    def pattern(self) -> OnePattern:
        """The only pattern."""
        [only] = self.patterns
        return only


class PaneSolutions(NamedTuple):
    """The solutions of a pane, with the arrival time and the number of each: NaN without a number.

    If solutions are ordered by terms that float64 does not order, the `keys` of their terms give
    the order. If the number is a variable and float64 orders all its values, `kind` is set.
    """

    solutions: Sequence[SolutionTuple]
    times: Integers
    numbers: Floats
    keys: Sequence[str] | None = None
    kind: NumberKind | None = None

    @classmethod
    def joined(cls, parts: Sequence[PaneSolutions]) -> PaneSolutions:
        """Return the solutions of parts of a pane as one."""
        parts = [part for part in parts if part.solutions]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls([], np.empty(0, dtype=np.int64), np.empty(0))
        solutions = _concatenate([part.solutions for part in parts])
        times, numbers = ([getattr(p, name) for p in parts] for name in ("times", "numbers"))
        keys = None
        if any(part.keys is not None for part in parts):
            keys = [key for part in parts for key in part.order_keys()]
        kind = _kind_of_all([part.kind for part in parts])
        return cls(solutions, np.concatenate(times), np.concatenate(numbers), keys, kind)

    def at(self, places: Sequence[int]) -> PaneSolutions:
        """Return the solutions at some indices."""
        chosen = np.array(places, dtype=np.int64)
        rows = self.solutions
        subset: Sequence[SolutionTuple]
        subset = rows.at(places) if isinstance(rows, UnreadRows) else [rows[p] for p in places]
        keys = None if self.keys is None else [self.keys[place] for place in places]
        return PaneSolutions(subset, self.times[chosen], self.numbers[chosen], keys, self.kind)

    def order_keys(self) -> Sequence[str]:
        """Return the sort keys of all solutions."""
        return self.keys if self.keys is not None else [*map(number_key, self.numbers.tolist())]

    @property
    def width(self) -> int:
        """The number of terms of a solution; 0 if there is none."""
        rows = self.solutions
        if isinstance(rows, UnreadRows):
            return rows.width
        return len(rows[0]) if rows else 0

    def read(self) -> PaneSolutions:
        """Return the same solutions, all parsed."""
        if isinstance(self.solutions, UnreadRows):
            return self._replace(solutions=list(self.solutions))
        return self

    def texts(self) -> Sequence[str]:
        """Return the solutions as lines of text."""
        if isinstance(self.solutions, UnreadRows):
            return self.solutions.texts
        return list(map(row_text, self.solutions))

    def in_order(self, places: Sequence[int]) -> list[int]:
        """Return indices in the order of arrival; simultaneous solutions are in term order.

        >>> a, b = (ox.NamedNode("urn:a"),), (ox.NamedNode("urn:b"),)
        >>> PaneSolutions([b, a, a], np.array([5, 5, 3]), np.zeros(3)).in_order([0, 1, 2])
        [2, 1, 0]
        """
        chosen = np.asarray(places, dtype=np.int64)
        arrivals = self.times[chosen]
        order = np.argsort(arrivals, kind="stable")
        in_order: list[int] = chosen[order].tolist()
        is_later = np.diff(arrivals[order]) > 0
        edges = np.flatnonzero(np.concatenate(([True], is_later, [True])))
        simultaneous = np.flatnonzero(np.diff(edges) > 1)
        if len(simultaneous):
            rows = self.solutions
            # Making text costs more than all the rest, and only simultaneous solutions need it.
            text = rows.texts.__getitem__ if isinstance(rows, UnreadRows) else partial(_text, rows)
            for run in simultaneous.tolist():
                start, end = edges[run : run + 2].tolist()
                in_order[start:end] = sorted(in_order[start:end], key=text)
        return in_order


def _kind_of_all(kinds: Sequence[NumberKind | None]) -> NumberKind | None:
    present = [kind for kind in kinds if kind is not None]
    return reduce(NumberKind.joined, present) if len(present) == len(kinds) else None


def _numbers(terms: Sequence[Term | None]) -> tuple[Floats, NumberKind | None]:
    """Return terms as numbers, and their kind if float64 orders them."""
    exact = read_column(terms)
    return (column(terms), None) if exact is None else (exact.values, exact.kind)


def _ranks(terms: Sequence[Term | None]) -> tuple[Floats, Sequence[str] | None]:
    """Return numbers in the order of terms, or NaN and sort keys where float64 has no order."""
    exact = read_column(terms)
    if exact is not None:
        return exact.values, None
    return np.full(len(terms), np.nan), [*map(order_key, terms)]


def _text(rows: Sequence[SolutionTuple], place: int) -> str:
    return row_text(rows[place])


def _concatenate(parts: Sequence[Sequence[SolutionTuple]]) -> Sequence[SolutionTuple]:
    """Return all solutions as one sequence, unparsed if all parts are."""
    columns = [part for part in parts if isinstance(part, ColumnRows)]
    if len(columns) == len(parts):
        return ColumnRows.joined(columns)
    written = [part for part in parts if isinstance(part, WrittenRows)]
    if len(written) == len(parts):
        return WrittenRows(written[0].width, [text for part in written for text in part.texts])
    return [solution for part in parts for solution in part]


class Matcher:
    """The matcher of panes. The store contains the static graphs, and a pane during its query."""

    def __init__(self, config: MatcherConfig, store: ox.Store) -> None:
        self.config = config
        self._store = store
        self._graph = ox.NamedNode(config.window)
        self._query = SparqlQuery(config.store_query)
        self._elements: ElementQuery | None = None
        if len(config.patterns) > 1:
            text = ElementText(config.window, config.store_query, config.together)
            self._elements = ElementQuery(text, store)

    def match(
        self,
        triples: Sequence[ox.Triple],
        times: Integers,
        now: int,
        sizes: Sequence[int] | None = None,
    ) -> PaneSolutions:
        """Return the solutions of a pane, one for each arrival.

        `sizes` are the numbers of triples of the elements, within which several patterns are
        matched; without them, all triples belong to one element.
        """
        config = self.config
        if self._elements is not None:
            rows: Any = self._elements.rows(triples, sizes or [len(triples)], now)
            return self._match_elements(list(rows), times, sizes)
        if config.is_plain and config.scoring is not None:
            matching, arrivals = self._matching(triples, times)
            solutions: Any = config.pattern.solutions(matching, config.names)
            for condition in config.filters or ():
                terms = list(map(itemgetter(config.names.index(condition.variable)), solutions))
                holds = condition.decide_terms(terms)
                solutions, arrivals = list(compress(solutions, holds.tolist())), arrivals[holds]
            if config.ordered:
                ranks = self._ranks(solutions, config.scoring)
                if ranks is not None:
                    return PaneSolutions(solutions, arrivals, *ranks)
            else:
                numbers = self._scores(solutions, config.scoring)
                if numbers is not None:
                    return PaneSolutions(solutions, arrivals, numbers[0], kind=numbers[1])
        return self._match_in_store(triples, times, now)

    def _match_elements(
        self,
        rows: Sequence[tuple[int, SolutionTuple]],
        times: Integers,
        sizes: Sequence[int] | None,
    ) -> PaneSolutions:
        """Return the rows of elements, which are given by index, with their arrival times."""
        starts = np.cumsum([0, *(sizes or ())])
        places = starts[np.array([place for place, _ in rows], dtype=np.int64)]
        solutions = [row[: len(self.config.names)] for _, row in rows]
        return self._matched(solutions, times[places], [row[-1] for _, row in rows])

    def _match_in_store(
        self, triples: Sequence[ox.Triple], times: Integers, now: int
    ) -> PaneSolutions:
        """Let Oxigraph evaluate the only pattern, and the number of each solution."""
        config = self.config
        arrivals: dict[ox.Triple, set[int]] = {}
        for triple, time in zip(triples, times.tolist(), strict=True):
            arrivals.setdefault(triple, set()).add(time)
        rows = self._rows(arrivals, now)
        distinct = [row[: len(config.names)] for row in rows]
        by_row = [sorted(arrivals[config.pattern.triple(s, config.names)]) for s in distinct]
        counts = list(map(len, by_row))
        solutions = [s for s, count in zip(distinct, counts, strict=True) for _ in range(count)]
        each_time = np.array([time for times_of in by_row for time in times_of], dtype=np.int64)
        terms = [row[-1] for row, count in zip(rows, counts, strict=True) for _ in range(count)]
        return self._matched(solutions, each_time, terms)

    def _matched(
        self, solutions: Sequence[SolutionTuple], arrivals: Integers, terms: Sequence[Term | None]
    ) -> PaneSolutions:
        """Return solutions with their terms as numbers, or with the order of the terms."""
        if not self.config.ordered:
            values, kind = _numbers(terms)
            return PaneSolutions(solutions, arrivals, values, kind=kind)
        return PaneSolutions(solutions, arrivals, *_ranks(terms))

    def _matching(
        self, triples: Sequence[ox.Triple], times: Integers
    ) -> tuple[Sequence[ox.Triple], Integers]:
        matching = self.config.pattern.matching(triples)
        if len(matching) == len(triples):
            return matching, times
        ids = set(map(id, matching))
        return matching, times[[id(triple) in ids for triple in triples]]

    def _scores(
        self, solutions: Sequence[SolutionTuple], scoring: Scoring
    ) -> tuple[Floats, NumberKind | None] | None:
        """Return the number of each solution; None if float64 arithmetic is not SPARQL's here.

        A function of texts or dates may have a value, and so may a difference of dates.
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
        return evaluate(scoring, {name: column(values) for name, values in terms.items()}), None

    def _ranks(
        self, solutions: Sequence[SolutionTuple], scoring: Scoring
    ) -> tuple[Floats, Sequence[str] | None] | None:
        """Return numbers in the order of the solutions, or sort keys; None if neither is known."""
        if not solutions:
            return np.empty(0), None
        by_name = dict(zip(self.config.names, zip(*solutions, strict=True), strict=True))
        if isinstance(scoring, Variable):
            return _ranks(by_name[scoring.name])
        columns = {name: read_column(by_name[name]) for name in variables(scoring)}
        exact = {name: values for name, values in columns.items() if values is not None}
        if len(exact) < len(columns):
            return None
        numbers = exact_scores(scoring, exact, len(solutions))
        if numbers is None:
            return None
        is_number = not np.isnan(numbers).any()
        return numbers, None if is_number else [*map(number_key, numbers.tolist())]

    def _rows(self, triples: Iterable[ox.Triple], now: int) -> list[Any]:
        """Evaluate the query over some triples as the content of the window."""
        self._store.extend(
            [ox.Quad(t.subject, t.predicate, t.object, self._graph) for t in triples]
        )
        try:
            solutions = self._query.ask(self._store, now)
            assert isinstance(solutions, ox.QuerySolutions), "the query is a SELECT"  # noqa: S101
            return [tuple(solution) for solution in solutions]
        finally:
            self._store.clear_graph(self._graph)
