"""Objects that are arrivals: of each join key the latest, or each arrival by itself.

They go to Topk+N, or to an operator that keeps the whole window where the policy looks at all of
it.
"""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.written import WrittenRows
from rsp_engine.operators.topk import Ranking, TopkConfig
from rsp_engine.operators.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.whole_window import WholeWindow
from rsp_engine.runtime.join_keys import JoinKeys
from rsp_engine.runtime.objects import Members
from rsp_engine.runtime.population import Came, Population

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.asking import Term
    from rsp_engine.operators.matching import Matched, Solution
    from rsp_engine.operators.state import State
    from rsp_engine.plan.joined import JoinedConfig
    from rsp_engine.runtime.refresh import Refresh
    from rsp_engine.runtime.remote_values import RemoteValues

__all__ = ["Arrived"]

_LOG = logging.getLogger(__name__)


class Arrived:
    """Memory: the objects of open windows."""

    def __init__(self, config: JoinedConfig, refresh: Refresh, values: RemoteValues) -> None:
        assert config.matching is not None, "the planner says what to match"  # noqa: S101
        self.config = config
        self._names = config.matching.names
        self._replica = refresh.replica
        self._values = values
        self._population = Population(config.arrivals)
        self._keys = JoinKeys(refresh.replica.keys, config.key, config.arrivals)
        self._operator: TopkN | WholeWindow
        if refresh.plan.policy.proposer == "list":
            topk = TopkNConfig(config.k, config.n, config.is_monotone)
            self._operator = TopkN(topk, config.scores)
        else:
            self._operator = WholeWindow(TopkConfig(config.k), config.scores)
        self._count = 0
        self._has_warned = False

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
        streaming = self._streaming(matched, places)
        positions = np.arange(self._count, self._count + len(places))
        self._count += len(places)
        rows = matched.solutions
        solutions = rows.texts if isinstance(rows, WrittenRows) else rows
        came = Came([solutions[place] for place in places.tolist()], keys, streaming, positions)
        objects = self._population.join(pane.last, came)
        remote = self._values.of(keys)
        self._operator.arrive(pane, objects, positions, streaming, remote)
        # A key that is known to have no value is not one that is unknown.
        none = objects[np.isnan(remote) & self._replica.is_known(keys)]
        if len(none):
            self._operator.change(none, np.full(len(none), np.nan))

    def _streaming(self, matched: Matched, places: Integers) -> Floats:
        """Return x_S of arrivals: what has no number ranks last."""
        streaming = matched.numbers[places]
        is_none = np.isnan(streaming)
        if is_none.any():
            self._warn(matched.solutions[int(places[np.argmax(is_none)])])
            streaming = np.where(is_none, -inf, streaming)
        return streaming

    def _warn(self, solution: Solution) -> None:
        """Say, once, that what has no number ranks last."""
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "?%s is no number in %s, so it ranks last", self.config.streaming, solution
            )

    def settle(self, window: int) -> None:
        self._operator.settle(window)

    def change(self, keys: Integers) -> None:
        objects = self._population.of_keys(keys)
        if len(objects):
            values = self._values.of(self._population.keys_of(objects))
            self._operator.change(objects, values, self._population.streaming(objects))

    def close(self, window: int) -> Ranking:
        return self._operator.close(window)

    def expire(self, window: int) -> None:
        self._population.expire(window)

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

    def members(self) -> Members:
        found = self._population
        numbers = found.numbers()
        return Members(
            numbers, found.keys_of(numbers), found.streaming(numbers), found.positions(numbers)
        )

    def state(self) -> State:
        return {
            "population": self._population.state(),
            "operator": self._operator.state(),
            "count": self._count,
        }

    def restore(self, state: State) -> None:
        self._population.restore(state["population"], len(self._names))
        self._count = state["count"]
        scores, operator = self.config.scores, self._operator
        self._operator = (
            TopkN.restored(operator.config, scores, state["operator"])
            if isinstance(operator, TopkN)
            else WholeWindow.restored(operator.config, scores, state["operator"])
        )
