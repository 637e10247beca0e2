"""The latest solution of each join key in a window, on the general path."""

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
    """`asked` gives the solutions of the window: the `names` of its patterns; `key` the join key.

    The window is that of a `scan`. A solution came with the last of its triples. Where there are no
    `patterns`, it is one of an element, and its node follows the names.
    """

    asked: SparqlConfig
    names: tuple[str, ...]
    patterns: tuple[OnePattern, ...]
    key: tuple[int, ...]
    scan: int


class LatestSolutions:
    """Finds the latest solutions; of two at once the one with the larger text. Time: O(window)."""

    def __init__(self, config: LatestConfig, times: ArrivalTimes) -> None:
        self._config = config
        self._times = times
        self._asking = SparqlQuery(config.asked)
        self._latest: set[str] = set()

    def move(self, store: ox.Store, now: int) -> None:
        """Look at the window that a store holds."""
        best: dict[tuple[Term | None, ...], tuple[int, str]] = {}
        rows: Any = self._asking.ask(store, now)
        for terms in map(tuple, rows):
            key = tuple(terms[place] for place in self._config.key)
            found = self._came(terms), row_text(terms[: len(self._config.names)])
            best[key] = max(found, best.get(key, found))
        self._latest = {text for _, text in best.values()}

    def _came(self, terms: Sequence[Any]) -> int:
        config = self._config
        triples = [pattern.triple(terms, config.names) for pattern in config.patterns]
        came = self._times.of(triples or terms[-1:])
        assert came is not None, "a solution is of the window"  # noqa: S101
        return came

    def holds(self, terms: Sequence[Term]) -> bool:
        """Tell whether a solution is the latest of its key."""
        return row_text(terms) in self._latest
