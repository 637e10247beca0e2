"""Groups of solutions as ranked objects: x_S is an aggregate, maintained pane by pane.

A group has one join key, which is part of its grouping key. The list that a policy elects from is
rebuilt for each window: the top K+N of each active window, or all objects if the policy elects from
the whole window.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf, isnan
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.evaluators.acquatop.ranked_objects import Members
from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig
from rsp_engine.operators.aggregates.groups import Groups
from rsp_engine.replica.sparql_client.request_text import key_fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.acquatop.plain_scores import PlainScores, RemoteValues
    from rsp_engine.evaluators.service.refresh import Refresh
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.aggregates.groups import Grouping
    from rsp_engine.operators.aggregates.pane_partials import Totals
    from rsp_engine.operators.sparql.pane_matcher import PaneSolutions
    from rsp_engine.operators.topk.contract import TopkAnswer

__all__ = ["GroupObjects"]

_ALL = 1 << 62
"""An N so large that the list holds every object."""


class GroupObjects:
    """Objects that are groups. Memory: the solutions of open windows, partials of their panes."""

    def __init__(
        self,
        config: AcquaTopConfig,
        grouping: Grouping,
        refresh: Refresh,
        values: RemoteValues,
        scores: PlainScores,
    ) -> None:
        self.config = config
        self._grouping = grouping
        self._replica = refresh.replica
        self._values = values
        self._scores = scores
        is_listed = refresh.plan.policy.proposer == "list"
        topk = AggregateTopkConfig(config.k, config.n if is_listed else _ALL, grouping.function)
        self._aggregates = AggregateTopk(topk, scores, streaming=self._exact)
        self._groups = Groups(grouping, config.matching, self._aggregates)
        # The join key of each group, and the groups of each join key. A group that nothing remote
        # can join is in neither.
        self._key_of: dict[int, int] = {}
        self._of_key: defaultdict[int, list[int]] = defaultdict(list)
        self._window = 0
        self._totals: Totals | None = None  # of the last settled window

    @property
    def keys(self) -> Integers:
        return self._aggregates.keys

    @property
    def scores(self) -> Floats:
        return self._aggregates.scores

    @property
    def ends(self) -> Integers:
        return self._aggregates.ends

    @property
    def has_all(self) -> bool:
        return True

    def take(self, pane: Pane, matched: PaneSolutions) -> None:
        self._join(self._groups.take(pane, matched))

    def _exact(self, totals: Totals) -> Floats:
        """Return x_S of groups, and record the kind of its numbers."""
        if not len(totals.keys):
            return totals.values
        column = self._groups.column(totals)
        self._scores.stream(None if column is None else column.kind)
        return totals.values if column is None else column.values

    def _join(self, groups: Sequence[int]) -> None:
        """Assign join keys to new groups, and pass on their remote values."""
        for group in groups:
            key = self._join_key(group)
            if key in self._replica.keys or key_fault(key) is None:
                number = self._replica.keys.number(key)
                self._key_of[group] = number
                self._of_key[number].append(group)
            else:
                self._aggregates.change([group], [np.nan])  # nothing remote can join it
        self._update([group for group in groups if group in self._key_of])

    def _update(self, joined: Sequence[int]) -> None:
        """Pass the remote values of groups to the operator; cold ones have none."""
        keys = self.keys_of(joined)
        groups, known = np.array(joined, dtype=np.int64), self._replica.is_known(keys)
        self._aggregates.change(groups[known], self._values.of(keys[known]))
        self._aggregates.forget(groups[~known])

    def _join_key(self, group: int) -> tuple[Term, ...]:
        terms = dict(zip(self._grouping.keys, self._groups.key(group), strict=True))
        return tuple(terms[place] for place in self.config.key)

    def settle(self, window: int) -> None:
        self._aggregates.settle(window)
        self._window, self._totals = window, None

    def change(self, keys: Integers) -> None:
        groups = [group for key in keys.tolist() for group in self._of_key.get(key, ())]
        self._update(groups)

    def refill(self, window: int) -> None:
        """Do nothing: the list is rebuilt from all groups."""

    def close(self, window: int) -> TopkAnswer:
        self._totals = self._aggregates.totals(window)
        return self._aggregates.close(window)

    def expire(self, window: int) -> Integers:
        gone = self._groups.expire(window)
        self._aggregates.forget(gone)
        left = []
        for group in gone:
            key = self._key_of.pop(group, None)
            if key is None:
                continue
            self._of_key[key].remove(group)
            if not self._of_key[key]:
                del self._of_key[key]
                left.append(key)
        return np.array(left, dtype=np.int64)

    def holds(self, keys: Integers) -> Booleans:
        return np.array([key in self._of_key for key in keys.tolist()], dtype=np.bool_)

    def forget(self, keys: Integers) -> None:
        """Do nothing: `expire` has removed the join keys without groups."""

    def join_keys(self) -> Integers:
        return np.array(sorted(self._of_key), dtype=np.int64)

    def keys_of(self, numbers: Sequence[int]) -> Integers:
        return np.array([self._key_of[number] for number in numbers], dtype=np.int64)

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        totals = self._aggregates.totals(self._window)
        streamed = dict(zip(totals.keys.tolist(), totals.values.tolist(), strict=True))
        best = [max(_last_if_none(streamed[g]) for g in self._of_key[key]) for key in keys]
        return np.array(best, dtype=np.float64)

    def streamed(self, numbers: Integers) -> tuple[Floats, Integers]:
        totals = self._aggregates.totals(self._window)
        totals = totals.take(np.searchsorted(totals.keys, numbers))
        return self._exact(totals), totals.positions

    def bindings(self, numbers: Sequence[int], now: int) -> list[Mapping[str, Term]]:
        return self._groups.bindings(numbers, self._window_totals())

    def terms(self, numbers: Sequence[int], now: int) -> Sequence[Term | None]:
        return self._groups.terms(numbers)

    def members(self) -> Members:
        totals = self._window_totals()
        joined = np.array([group in self._key_of for group in totals.keys.tolist()], dtype=bool)
        totals = totals.take(joined)
        groups, positions, values = totals.keys, totals.positions, self._exact(totals)
        ends = self._groups.ends(groups)
        return Members(groups, self.keys_of(groups.tolist()), values, positions, ends)

    def _window_totals(self) -> Totals:
        return self._totals or self._aggregates.totals(self._window)

    def state(self) -> StateData:
        return {"groups": self._groups.state(), "aggregates": self._aggregates.state()}

    def restore(self, state: StateData) -> None:
        config = self._aggregates.config
        self._aggregates = AggregateTopk.restored(
            config, state["aggregates"], self._scores, streaming=self._exact
        )
        self._groups = Groups(self._grouping, self.config.matching, self._aggregates)
        self._groups.restore(state["groups"])
        self._join(self._groups.numbers())


def _last_if_none(value: float) -> float:
    return -inf if isnan(value) else value
