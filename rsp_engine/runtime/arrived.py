"""Objects that are arrivals: of each join key the latest, or each arrival by itself.

They go to Topk+N, or to an operator that keeps the whole window where the policy looks at all of
it.
"""

from __future__ import annotations

import logging
from math import inf, isnan
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.topk import Ranking, TopkConfig
from rsp_engine.operators.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.whole_window import WholeWindow
from rsp_engine.replica.asking import unaskable
from rsp_engine.runtime.objects import Members
from rsp_engine.runtime.population import Member, Population

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
        members = list(self._members(pane, matched))
        if not members:
            return
        objects = self._population.join(members)
        keys = np.array([member.key for member in members], dtype=np.int64)
        remote = self._values.of(keys)
        self._operator.arrive(
            pane,
            objects,
            [member.position for member in members],
            [member.streaming for member in members],
            remote,
        )
        # A key that is known to have no value is not one that is unknown.
        none = objects[np.isnan(remote) & self._replica.is_known(keys)]
        if len(none):
            self._operator.change(none, np.full(len(none), np.nan))

    def _members(self, pane: Pane, matched: Matched) -> Iterator[Member]:
        """Yield the objects of a pane in the order of their arrival, each at its own position."""
        numbers = matched.numbers.tolist()
        for key, place in self._arrivals(matched):
            solution, streaming = matched.solutions[place], numbers[place]
            if isnan(streaming):
                self._warn(solution)
                streaming = -inf
            yield Member(solution, key, streaming, self._count, pane.last)
            self._count += 1

    def _arrivals(self, matched: Matched) -> Iterable[tuple[int, int]]:
        """Return the join key and the place of each arrival that counts, in order."""
        known = self._replica.keys
        found = []
        for place in matched.in_order(range(len(matched.solutions))):
            solution = matched.solutions[place]
            key = tuple([solution[at] for at in self.config.key])
            # A blank node is no other than itself, so nothing remote joins it.
            if key in known or unaskable(key) is None:
                found.append((known.number(key), place))
        if self.config.arrivals == "all":
            return found
        latest: dict[int, int] = {}
        for number, place in reversed(found):
            latest.setdefault(number, place)
        return reversed(latest.items())

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
        objects = self._population.of_keys(keys.tolist())
        if objects:
            members = [self._population[number] for number in objects]
            values = self._values.of(np.array([member.key for member in members], dtype=np.int64))
            self._operator.change(objects, values, [member.streaming for member in members])

    def close(self, window: int) -> Ranking:
        return self._operator.close(window)

    def expire(self, window: int) -> None:
        self._population.expire(window)

    def join_keys(self) -> Integers:
        return self._population.keys()

    def keys_of(self, numbers: Sequence[int]) -> list[int]:
        return self._population.keys_of(numbers)

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        return self._population.best_streaming(keys)

    def streamed(self, numbers: Integers) -> tuple[Floats, Integers]:
        members = [self._population[number] for number in numbers.tolist()]
        return (
            np.array([member.streaming for member in members], dtype=np.float64),
            np.array([member.position for member in members], dtype=np.int64),
        )

    def bindings(self, numbers: Sequence[int], now: int) -> list[Mapping[str, Term]]:
        solutions = (self._population[number].solution for number in numbers)
        return [dict(zip(self._names, solution, strict=True)) for solution in solutions]

    def members(self) -> Members:
        numbers = self._population.numbers()
        members = [self._population[number] for number in numbers.tolist()]
        return Members(
            numbers,
            np.array([member.key for member in members], dtype=np.int64),
            np.array([member.streaming for member in members], dtype=np.float64),
            np.array([member.position for member in members], dtype=np.int64),
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
