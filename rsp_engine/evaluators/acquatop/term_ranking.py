"""The ranking of a window by the terms of its scores, in the order of SPARQL.

It is used where float64 does not preserve that order, or a key has several remote solutions (see
`PlainScores`). A row is an object and one of its remote solutions. Its score is the term that the
query gives it; of equal terms the later arrival ranks first, as under Topk+N. All objects of the
window are ranked, so only values that were not fetched make the answer approximate. Policies elect
from the same ranking: from the top K+N of each active window, or from the whole ranking.

A score depends on x_S and x_D only, so Oxigraph evaluates only new pairs of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.model.terms.term_order import order_key
from rsp_engine.operators.aggregates.group_scores import ranks_of
from rsp_engine.operators.sparql.projector import ask_objects
from rsp_engine.operators.sparql.sparql_query import SparqlQuery
from rsp_engine.operators.topk.contract import Arrivals, rank_order
from rsp_engine.operators.topk.dominance import dominators

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.acquatop.ranked_objects import Members
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.pattern import RemoteSolution

__all__ = ["ByTerms", "TermRanking"]

Pair = tuple["Term | None", "Term | None"]
"""x_S and x_D."""


class TermRanking(NamedTuple):
    """Rows, best first, as columns: object, rank score, end of the object, remote solution.

    Equal terms have equal rank scores. The end is the last window that holds the object.
    """

    keys: Integers
    scores: Floats
    ends: Integers
    solutions: Sequence[RemoteSolution]

    def listed(self, size: int) -> tuple[Integers, Floats, Integers]:
        """Return the rows in the top `size` of any active window, best first."""
        chosen = dominators(self.ends) < size
        return self.keys[chosen], self.scores[chosen], self.ends[chosen]

    def best(self, k: int) -> TermRanking:
        """Return the top k rows, and further rows of the last object that tie with its last row."""
        end = min(k, len(self.keys))
        while 0 < end < len(self.keys) and self._is_same(end - 1, end):
            end += 1
        return TermRanking(
            self.keys[:end], self.scores[:end], self.ends[:end], self.solutions[:end]
        )

    def _is_same(self, one: int, other: int) -> bool:
        is_equal = self.scores[one] == self.scores[other]
        return bool(is_equal and self.keys[one] == self.keys[other])


class ByTerms:
    """Ranks objects by terms. Memory: a sort key for each pair of the last window."""

    def __init__(self, config: AcquaTopConfig) -> None:
        self._config = config
        self._query = None if config.scored is None else SparqlQuery(config.scored)
        self._keys: dict[Pair, str] = {}

    def rank(
        self,
        members: Members,
        streamed: Sequence[Term | None],
        solutions: Sequence[tuple[RemoteSolution, ...]],
        now: int,
    ) -> TermRanking:
        """Rank objects by x_S and their remote solutions; skip objects without solutions."""
        joined = [(place, one) for place, several in enumerate(solutions) for one in several]
        pairs = [self._pair(streamed[place], solution) for place, solution in joined]
        self._update_keys(pairs, now)
        places = np.array([place for place, _ in joined], dtype=np.int64)
        keys = [self._keys[pair] for pair in pairs]
        ranks = ranks_of(keys, descending=self._config.descending)
        rows = Arrivals(members.numbers[places], members.positions[places], ranks)
        order = rank_order(rows)
        in_order = [joined[n][1] for n in order.tolist()]
        return TermRanking(
            rows.keys[order], rows.scores[order], members.ends[places[order]], in_order
        )

    def _pair(self, term: Term | None, solution: RemoteSolution) -> Pair:
        remote = self._config.remote
        return term, None if remote is None else solution.get(remote)

    def _update_keys(self, pairs: Iterable[Pair], now: int) -> None:
        """Compute the sort keys of new pairs, and forget those of all other pairs."""
        known = self._keys
        self._keys = {pair: known.get(pair, "") for pair in pairs}
        new = [pair for pair in self._keys if pair not in known]
        self._keys.update(zip(new, map(order_key, self._scores(new, now)), strict=True))

    def _scores(self, pairs: Sequence[Pair], now: int) -> list[Term | None]:
        if self._query is None:
            side = 0 if self._config.remote is None else 1
            return [pair[side] for pair in pairs]
        names = (self._config.streaming, self._config.remote)
        objects = [
            {n: t for n, t in zip(names, pair, strict=True) if n is not None and t is not None}
            for pair in pairs
        ]
        return [score for [score] in ask_objects(self._query, objects, now)]
