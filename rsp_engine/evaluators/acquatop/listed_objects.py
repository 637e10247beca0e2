"""Arrivals of which only those in the Super-MTK+N list are kept, as in the paper.

Of every other join key, only its last pane is known. If its remote value changes, it returns to the
list with a lower bound of its score, F(min.score_S, x_D), where min.score_S is the smallest x_S of
that pane. Its row then has this bound for x_S, and the answer is marked as not exact.

    table    a 9   b 7   c 5   d 2        k = 1, n = 1, score = x_S + x_D
    list     a 9   b 7                    c and d arrived in a pane with min.score_S = 2
             c changes: c has 2 + x_D, at most its score

Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data. Section 4, Algorithm 2, and Theorems 2 and 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.evaluators.acquatop.arrival_objects import Arrival, ArrivalObjects
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.acquatop.plain_scores import PlainScores, RemoteValues
    from rsp_engine.evaluators.service.refresh import Refresh
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.sparql.pane_matcher import SolutionTuple

__all__ = ["ListedObjects"]


class ListedObjects(ArrivalObjects):
    """Objects of the list. Memory: O(K+N) rows, and a few numbers for each key of open windows."""

    def __init__(
        self, config: AcquaTopConfig, refresh: Refresh, values: RemoteValues, scores: PlainScores
    ) -> None:
        self._topk = TopkN(TopkNConfig(config.k, config.n, config.is_monotone), scores)
        super().__init__(config, refresh, values, scores, self._topk)
        self._window = 0  # the current window

    @property
    def has_all(self) -> bool:
        return len(self._table) == len(self.join_keys())

    def settle(self, window: int) -> None:
        super().settle(window)
        self._window = window
        self._keep_listed()

    def change(self, keys: Integers) -> None:
        keys = keys[self.holds(keys)]
        if len(keys):
            self._topk.change(keys, self._values.of(keys))
            self._keep_listed()

    def refill(self, window: int) -> None:
        """Do nothing: the objects outside the list are forgotten."""

    def expire(self, window: int) -> Integers:
        ended = self._topk.ended(window)
        self._window = window
        self._table.expire(window)
        return ended

    def holds(self, keys: Integers) -> Booleans:
        return np.isin(keys, self.join_keys())

    def join_keys(self) -> Integers:
        return self._topk.live(self._window)

    def keys_of(self, numbers: Sequence[int]) -> Integers:
        return np.asarray(numbers, dtype=np.int64)

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        return self._topk.least_streaming(np.asarray(keys, dtype=np.int64))

    def _keep_listed(self) -> None:
        """Forget all rows but those of the list; add rows for the objects that returned to it."""
        topk = self._topk
        returned = np.isin(topk.keys, self._table.keep(topk.keys))
        for place in np.flatnonzero(returned).tolist():
            one = slice(place, place + 1)
            keys, streaming = topk.keys[one].copy(), topk.streaming[one].copy()
            row = self._row(int(keys[0]), float(streaming[0]))
            arrival = Arrival([row], keys, streaming, topk.positions[one].copy())
            self._table.join(int(topk.ends[place]), arrival)

    def _row(self, key: int, streaming: float) -> SolutionTuple:
        """Return a solution of a join key, with the lower bound of its x_S."""
        [terms] = self._replica.keys.of([key])
        solution = dict(zip((self._names[place] for place in self.config.key), terms, strict=True))
        if self.config.streaming is not None:
            solution.setdefault(self.config.streaming, self._scores.streamed_term(streaming))
        return tuple(solution[name] for name in self._names)

    def restore(self, state: StateData) -> None:
        super().restore(state)
        self._window = self._topk.closed

    def _restored_operator(self, state: StateData) -> TopkN:
        self._topk = TopkN.restored(self._topk.config, self._scores, state)
        return self._topk
