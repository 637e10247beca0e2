"""The objects of a window by the terms of their scores, in the order of SPARQL.

Where float64 does not tell that order, or a key has several remote solutions (see `PlainScores`),
each row has the term that the query gives it as its score, and the terms are ranked; of equal ones
the later arrival is the better, as under Topk+N. A row is an object and one of its remote
solutions. All objects of the window are looked at, so nothing is approximated but what was not
fetched. Policies elect from the same ranking: from the K+N best of each active window, or from all
of it.

A score depends on x_S and x_D alone, so only pairs that are new are asked of Oxigraph.
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
    """Rows, best first: of each its object, a number that tells its place, the end of the object.

    The end is the last window that holds the object, and the solution is a remote one of its key.
    """

    keys: Integers
    scores: Floats
    ends: Integers
    solutions: Sequence[RemoteSolution]

    def listed(self, size: int) -> tuple[Integers, Floats, Integers]:
        """Return those that are among so many best of an active window, best first."""
        chosen = dominators(self.ends) < size
        return self.keys[chosen], self.scores[chosen], self.ends[chosen]

    def best(self, k: int) -> TermRanking:
        """Return the k best, and rows of the last one's object that are equal to it."""
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
    """Ranks the objects of windows. Memory: a key for each pair of a window."""

    def __init__(self, config: AcquaTopConfig) -> None:
        self._config = config
        self._asking = None if config.scored is None else SparqlQuery(config.scored)
        self._keys: dict[Pair, str] = {}

    def rank(
        self,
        members: Members,
        streamed: Sequence[Term | None],
        solutions: Sequence[tuple[RemoteSolution, ...]],
        now: int,
    ) -> TermRanking:
        """Rank objects, with x_S and the remote solutions of each; what has none is left out."""
        joined = [(place, each) for place, found in enumerate(solutions) for each in found]
        pairs = [self._pair(streamed[place], solution) for place, solution in joined]
        self._learn(pairs, now)
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

    def _learn(self, pairs: Iterable[Pair], now: int) -> None:
        """Find the keys of pairs, and forget those of all others."""
        known = self._keys
        self._keys = {pair: known.get(pair, "") for pair in pairs}
        new = [pair for pair in self._keys if pair not in known]
        self._keys.update(zip(new, map(order_key, self._scores(new, now)), strict=True))

    def _scores(self, pairs: Sequence[Pair], now: int) -> list[Term | None]:
        if self._asking is None:
            side = 0 if self._config.remote is None else 1
            return [pair[side] for pair in pairs]
        names = (self._config.streaming, self._config.remote)
        objects = [
            {n: t for n, t in zip(names, pair, strict=True) if n is not None and t is not None}
            for pair in pairs
        ]
        return [score for [score] in ask_objects(self._asking, objects, now)]
