"""Groups of solutions as ranked objects: x_S is an aggregate, maintained pane by pane.

A group has one join key, which is part of its grouping key. The list that a policy elects from is
rebuilt for each window: the top K+N of each active window, or all objects if the policy elects from
the whole window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.evaluators.acquatop.join_keys import NO_KEY, JoinKeys
from rsp_engine.evaluators.acquatop.ranked_objects import Members
from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig
from rsp_engine.operators.aggregates.dense_integers import distinct_counts
from rsp_engine.operators.aggregates.groups import Groups
from rsp_engine.operators.scoring.integer_map import IntegerMap

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
        self._keys = JoinKeys(refresh.replica.keys, len(config.key))
        self._key_of = IntegerMap()
        """The join key of each group that something remote can join."""
        self._uses = np.empty(0, dtype=np.int64)
        """How many groups each join key has."""
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

    def _join(self, groups: Integers) -> None:
        """Assign join keys to new groups, and pass on their remote values."""
        keys = self._keys.of_texts(self._groups.key_texts(groups, self.config.key))
        is_joined = keys != NO_KEY
        if not is_joined.all():
            others = groups[~is_joined]
            self._aggregates.change(others, np.full(len(others), np.nan))
        groups, keys = groups[is_joined], keys[is_joined]
        self._key_of.insert(groups, keys)
        self._count(keys, 1)
        self._update(groups, keys)

    def _count(self, keys: Integers, change: int) -> None:
        """Count the groups of join keys that come or go."""
        if (more := self._replica.keys.size - len(self._uses)) > 0:
            more = max(more, len(self._uses))
            self._uses = np.concatenate((self._uses, np.zeros(more, dtype=np.int64)))
        np.add.at(self._uses, keys, change)

    def _update(self, groups: Integers, keys: Integers) -> None:
        """Pass the remote values of groups to the operator; cold ones have none."""
        known = self._replica.is_known(keys)
        self._aggregates.change(groups[known], self._values.of(keys[known]))
        self._aggregates.forget(groups[~known])

    def settle(self, window: int) -> None:
        self._aggregates.settle(window)
        self._window, self._totals = window, None

    def change(self, keys: Integers) -> None:
        if len(keys):
            self._update(*self._groups_of(keys))

    def _groups_of(self, keys: Integers) -> tuple[Integers, Integers]:
        """Return the groups of some join keys, and the join key of each."""
        groups, keys_of_all = self._key_of.keys, self._key_of.values
        chosen = np.isin(keys_of_all, keys)
        return groups[chosen], keys_of_all[chosen]

    def refill(self, window: int) -> None:
        """Do nothing: the list is rebuilt from all groups."""

    def close(self, window: int) -> TopkAnswer:
        self._totals = self._aggregates.totals(window)
        return self._aggregates.close(window)

    def expire(self, window: int) -> Integers:
        gone = self._groups.expire(window)
        self._aggregates.forget(gone)
        joined = gone[self._key_of.has(gone)]
        keys = self._key_of.values[self._key_of.places(joined)]
        self._key_of.remove(joined)
        self._count(keys, -1)
        return distinct_counts(keys[self._uses[keys] == 0])[0]

    def holds(self, keys: Integers) -> Booleans:
        self._count(keys[:0], 0)  # the table has room for each
        return self._uses[keys] > 0

    def forget(self, keys: Integers) -> None:
        self._keys.forget(keys)

    def join_keys(self) -> Integers:
        return np.flatnonzero(self._uses)

    def keys_of(self, numbers: Sequence[int]) -> Integers:
        return self._key_of.values[self._key_of.places(np.asarray(numbers, dtype=np.int64))]

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        if not len(keys):
            return np.empty(0)
        wanted = np.asarray(keys, dtype=np.int64)
        groups, keys_of_groups = self._groups_of(wanted)
        totals = self._aggregates.totals(self._window)
        values = totals.values[np.searchsorted(totals.keys, groups)]
        known, places = np.unique(keys_of_groups, return_inverse=True)
        best = np.full(len(known), -np.inf)
        np.maximum.at(best, places, np.where(np.isnan(values), -np.inf, values))
        return best[np.searchsorted(known, wanted)]

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
        totals = totals.take(self._key_of.has(totals.keys))
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
