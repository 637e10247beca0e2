"""The remote values of a ranked query: one number for each key of the replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.scores import number

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.plan.joined import JoinedConfig
    from rsp_engine.replica.pattern import Solution
    from rsp_engine.replica.store import Replica

__all__ = ["RemoteValues"]


class RemoteValues:
    """A number for each key. Of a key with several solutions the one with the best score counts.

    NaN is the number of a key that is not known, or has no value. In a query whose score needs no
    remote value, it is 0 where there is a solution.
    """

    def __init__(self, replica: Replica, config: JoinedConfig) -> None:
        self._replica = replica
        self._config = config
        self._values: Floats = np.empty(0)
        self._are_several: Booleans = np.empty(0, dtype=np.bool_)
        self.renew(np.arange(len(replica.keys)))

    def renew(self, keys: Integers) -> None:
        """Read keys again whose solutions are others than before."""
        self._grow()
        found = self._replica.values(keys)
        self._values[keys] = [self._best(solutions)[0] for solutions in found]
        self._are_several[keys] = [len(solutions) > 1 for solutions in found]

    def of(self, keys: Integers) -> Floats:
        """Return the value of each key."""
        self._grow()
        return self._values[keys]

    def _grow(self) -> None:
        if (more := len(self._replica.keys) - len(self._values)) > 0:
            more = max(more, len(self._values))
            self._values = np.concatenate((self._values, np.full(more, np.nan)))
            self._are_several = np.concatenate((self._are_several, np.zeros(more, dtype=np.bool_)))

    def solution(self, key: int) -> Solution:
        """Return the remote solution of a key that has one."""
        [solutions] = self._replica.values([key])
        return self._best(solutions)[1]

    def several(self, keys: Integers) -> int:
        """Return how many keys have more than one solution."""
        self._grow()
        return int(np.count_nonzero(self._are_several[keys]))

    def _best(self, solutions: tuple[Solution, ...]) -> tuple[float, Solution]:
        valued = [(self._value(solution), solution) for solution in solutions]
        known = [(value, solution) for value, solution in valued if not np.isnan(value)]
        if not known:
            return np.nan, {}
        if len(known) == 1:
            return known[0]
        values = np.array([value for value, _ in known])
        scores = self._config.scores(np.zeros(len(values)), values)
        return known[int(np.argmax(scores))]

    def _value(self, solution: Solution) -> float:
        if self._config.remote is None:
            return 0.0
        value = number(solution.get(self._config.remote))
        return np.nan if value is None else value
