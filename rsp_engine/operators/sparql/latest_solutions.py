"""The latest solution of each join key in a window, where Oxigraph evaluates the whole window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rsp_engine.model.terms.ntriples import row_text
from rsp_engine.operators.sparql.sparql_query import SparqlQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyoxigraph as ox

    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.sparql.one_pattern import OnePattern
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.arrival_times import ArrivalTimes

__all__ = ["LatestConfig", "LatestSolutions"]


@dataclass(frozen=True, slots=True)
class LatestConfig:
    """The query for the solutions of a window, and how to read them.

    `store_query` returns the variables `names` of the patterns; `key` are the indices of the join
    key among them. The window is that of a `scan`. A solution arrives with the last of its triples.
    Without `patterns`, a solution is that of an element, and its node follows the names.
    """

    store_query: SparqlConfig
    names: tuple[str, ...]
    patterns: tuple[OnePattern, ...]
    key: tuple[int, ...]
    scan: int


class LatestSolutions:
    """The latest solution of each key; ties go to the larger text. Time: O(window)."""

    def __init__(self, config: LatestConfig, times: ArrivalTimes) -> None:
        self._config = config
        self._times = times
        self._query = SparqlQuery(config.store_query)
        self._latest: set[str] = set()

    def move(self, store: ox.Store, now: int) -> None:
        """Find the latest solutions of the window in a store."""
        latest: dict[tuple[Term | None, ...], tuple[int, str]] = {}
        rows: Any = self._query.ask(store, now)
        for terms in map(tuple, rows):
            key = tuple(terms[place] for place in self._config.key)
            rank = self._arrival(terms), row_text(terms[: len(self._config.names)])
            latest[key] = max(rank, latest.get(key, rank))
        self._latest = {text for _, text in latest.values()}

    def _arrival(self, terms: Sequence[Any]) -> int:
        config = self._config
        triples = [pattern.triple(terms, config.names) for pattern in config.patterns]
        arrival = self._times.of(triples or terms[-1:])
        assert arrival is not None, "the solution is of this window"  # noqa: S101
        return arrival

    def holds(self, terms: Sequence[Term]) -> bool:
        """Return whether a solution is the latest of its key."""
        return row_text(terms) in self._latest
