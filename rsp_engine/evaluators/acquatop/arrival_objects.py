"""Objects that are arrivals: of each join key the latest, or each arrival by itself.

They go to Topk+N, or to an operator that keeps the whole window where the policy looks at all of
it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.evaluators.acquatop.join_keys import JoinKeys
from rsp_engine.evaluators.acquatop.object_table import Arrival, ObjectTable, as_text
from rsp_engine.evaluators.acquatop.ranked_objects import Members
from rsp_engine.model.terms.lazy_text import WrittenRows
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.acquatop.whole_window import WholeWindow
from rsp_engine.operators.scoring.positions import Positions
from rsp_engine.operators.topk.contract import TopkAnswer, TopkOperatorConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.acquatop.plain_scores import PlainScores
    from rsp_engine.evaluators.acquatop.remote_values import RemoteValues
    from rsp_engine.evaluators.service.refresh import Refresh
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.sparql.pane_matcher import Matched

__all__ = ["ArrivalObjects"]


class ArrivalObjects:
    """Memory: the objects of open windows."""

    def __init__(
        self, config: AcquaTopConfig, refresh: Refresh, values: RemoteValues, scores: PlainScores
    ) -> None:
        assert config.matching is not None, "the planner says what to match"  # noqa: S101
        self.config = config
        self._names = config.matching.names
        self._replica = refresh.replica
        self._values = values
        self._scores = scores
        self._population = ObjectTable(config.arrivals)
        self._keys = JoinKeys(refresh.replica.keys, config.key, config.arrivals)
        self._operator: TopkN | WholeWindow
        if refresh.plan.policy.proposer == "list":
            topk = TopkNConfig(config.k, config.n, config.is_monotone)
            self._operator = TopkN(topk, scores)
        else:
            self._operator = WholeWindow(TopkOperatorConfig(config.k), scores)
        self._positions = Positions()

    @property
    def keys(self) -> Integers:
        return self._operator.keys

    @property
    def scores(self) -> Floats:
        return self._operator.scores

    @property
    def ends(self) -> Integers:
        return self._operator.ends

    def take(self, pane: Pane, matched: Matched) -> None:
        keys, places = self._keys.arrivals(matched)
        if not len(places):
            return
        self._scores.stream(matched.kind)
        numbers = matched.numbers[places]
        streaming = np.where(np.isnan(numbers), -inf, numbers)
        rows = matched.solutions
        chosen = rows.texts if isinstance(rows, WrittenRows) else rows
        solutions = [chosen[place] for place in places.tolist()]
        positions = self._positions.of(
            matched.times[places], lambda place: as_text(solutions[place]), self._population.at
        )
        came = Arrival(solutions, keys, streaming, positions)
        objects = self._population.join(pane.last, came)
        remote = self._values.of(keys)
        self._operator.arrive(pane, objects, positions, streaming, remote)
        # A key that is known to have no value is not one that is unknown.
        none = objects[np.isnan(remote) & self._replica.is_known(keys)]
        if len(none):
            self._operator.change(none, np.full(len(none), np.nan))

    def settle(self, window: int) -> None:
        self._operator.settle(window)

    def change(self, keys: Integers) -> None:
        objects = self._population.of_keys(keys)
        if len(objects):
            values = self._values.of(self._population.keys_of(objects))
            self._operator.change(objects, values, self._population.streaming(objects))

    def close(self, window: int) -> TopkAnswer:
        return self._operator.close(window)

    def expire(self, window: int) -> Integers:
        return self._population.expire(window)

    def holds(self, keys: Integers) -> Booleans:
        return self._population.holds(keys)

    def forget(self, keys: Integers) -> None:
        self._keys.forget(keys)

    def join_keys(self) -> Integers:
        return self._population.keys()

    def keys_of(self, numbers: Sequence[int]) -> Integers:
        return self._population.keys_of(numbers)

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        return self._population.best_streaming(keys)

    def streamed(self, numbers: Integers) -> tuple[Floats, Integers]:
        return self._population.streaming(numbers), self._population.positions(numbers)

    def bindings(self, numbers: Sequence[int], now: int) -> list[Mapping[str, Term]]:
        solutions = self._population.solutions(numbers, len(self._names))
        return [dict(zip(self._names, solution, strict=True)) for solution in solutions]

    def terms(self, numbers: Sequence[int], now: int) -> Sequence[Term | None]:
        if self.config.streaming is None:
            return [None] * len(numbers)
        place = self._names.index(self.config.streaming)
        return [row[place] for row in self._population.solutions(numbers, len(self._names))]

    def members(self) -> Members:
        found = self._population
        numbers = found.numbers()
        keys, positions = found.keys_of(numbers), found.positions(numbers)
        return Members(numbers, keys, found.streaming(numbers), positions, found.ends(numbers))

    def state(self) -> StateData:
        return {
            "population": self._population.state(),
            "operator": self._operator.state(),
            "positions": self._positions.state(),
        }

    def restore(self, state: StateData) -> None:
        self._population.restore(state["population"], len(self._names))
        self._positions.restore(state["positions"])
        scores, operator = self._scores, self._operator
        self._operator = (
            TopkN.restored(operator.config, scores, state["operator"])
            if isinstance(operator, TopkN)
            else WholeWindow.restored(operator.config, scores, state["operator"])
        )
