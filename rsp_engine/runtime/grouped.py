"""Objects that are groups of solutions: x_S is an aggregate, kept pane by pane.

A group has one join key, which is part of what solutions are grouped by. The list among which a
policy elects is rebuilt for each window: the K+N best of each active window, or all objects where
the policy looks at the whole window.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf, isnan
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.aggregates import AggregateConfig, Aggregates
from rsp_engine.operators.groups import Groups
from rsp_engine.replica.asking import unaskable
from rsp_engine.runtime.objects import Members

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.asking import Term
    from rsp_engine.operators.groups import Grouping
    from rsp_engine.operators.matching import Matched, Matching
    from rsp_engine.operators.pane_partials import Totals
    from rsp_engine.operators.state import State
    from rsp_engine.operators.topk import Ranking
    from rsp_engine.plan.joined import JoinedConfig
    from rsp_engine.runtime.refresh import Refresh
    from rsp_engine.runtime.remote_values import RemoteValues

__all__ = ["Grouped"]

_ALL = 1 << 62
"""So many stand by that none is left out."""


class Grouped:
    """Memory: the solutions of open windows, and partials of their panes."""

    def __init__(self, config: JoinedConfig, refresh: Refresh, values: RemoteValues) -> None:
        assert config.matching is not None, "the planner says what to match"  # noqa: S101
        assert config.grouping is not None, "the planner says how to group"  # noqa: S101
        self.config = config
        self._matching: Matching = config.matching
        self._grouping: Grouping = config.grouping
        self._replica = refresh.replica
        self._values = values
        is_listed = refresh.plan.policy.proposer == "list"
        asked = AggregateConfig(config.k, config.n if is_listed else _ALL, self._grouping.function)
        self._aggregates = Aggregates(asked, config.scores)
        self._groups = Groups(self._grouping, self._matching, self._aggregates)
        # The join key of a group, and the groups of a join key; what cannot be joined has none.
        self._key_of: dict[int, int] = {}
        self._of_key: defaultdict[int, list[int]] = defaultdict(list)
        self._window = 0
        self._totals: Totals | None = None  # of the window that was closed last

    @property
    def keys(self) -> Integers:
        return self._aggregates.keys

    @property
    def scores(self) -> Floats:
        return self._aggregates.scores

    @property
    def ends(self) -> Integers:
        return self._aggregates.ends

    def take(self, pane: Pane, matched: Matched) -> None:
        self._meet(self._groups.take(pane, matched.read()))

    def _meet(self, groups: Sequence[int]) -> None:
        """Tell the remote values of new groups, so far as they are known."""
        for group in groups:
            key = self._join_key(group)
            if key in self._replica.keys or unaskable(key) is None:
                number = self._replica.keys.number(key)
                self._key_of[group] = number
                self._of_key[number].append(group)
            else:
                self._aggregates.change([group], [np.nan])  # nothing remote joins a blank node
        self._tell([group for group in groups if group in self._key_of])

    def _tell(self, joined: Sequence[int]) -> None:
        """Tell the remote values of groups; what is not known, or not any more, is forgotten."""
        keys = self.keys_of(joined)
        groups, known = np.array(joined, dtype=np.int64), self._replica.is_known(keys)
        self._aggregates.change(groups[known], self._values.of(keys[known]))
        self._aggregates.forget(groups[~known])

    def _join_key(self, group: int) -> tuple[Term, ...]:
        terms = dict(zip(self._grouping.keys, self._groups.key(group), strict=True))
        return tuple(terms[place] for place in self.config.key)

    def settle(self, window: int) -> None:
        self._aggregates.settle(window)
        self._window = window

    def change(self, keys: Integers) -> None:
        groups = [group for key in keys.tolist() for group in self._of_key.get(key, ())]
        self._tell(groups)

    def close(self, window: int) -> Ranking:
        self._totals = self._aggregates.totals(window)
        return self._aggregates.close(window)

    def expire(self, window: int) -> None:
        gone = self._groups.expire(window)
        self._aggregates.forget(gone)
        for group in gone:
            key = self._key_of.pop(group, None)
            if key is None:
                continue
            self._of_key[key].remove(group)
            if not self._of_key[key]:
                del self._of_key[key]

    def join_keys(self) -> Integers:
        return np.array(sorted(self._of_key), dtype=np.int64)

    def keys_of(self, numbers: Sequence[int]) -> Integers:
        return np.array([self._key_of[number] for number in numbers], dtype=np.int64)

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        found = self._aggregates.totals(self._window)
        streamed = dict(zip(found.keys.tolist(), found.values.tolist(), strict=True))
        best = [max(_last_if_none(streamed[g]) for g in self._of_key[key]) for key in keys]
        return np.array(best, dtype=np.float64)

    def streamed(self, numbers: Integers) -> tuple[Floats, Integers]:
        found = self._aggregates.totals(self._window)
        places = np.searchsorted(found.keys, numbers)
        return found.values[places], found.positions[places]

    def bindings(self, numbers: Sequence[int], now: int) -> list[Mapping[str, Term]]:
        return self._groups.bindings(numbers, now)

    def members(self) -> Members:
        assert self._totals is not None, "a window was closed"  # noqa: S101
        groups, positions, values = self._totals
        joined = np.array([group in self._key_of for group in groups.tolist()], dtype=bool)
        keys = self.keys_of(groups[joined].tolist())
        return Members(groups[joined], keys, values[joined], positions[joined])

    def state(self) -> State:
        return {"groups": self._groups.state(), "aggregates": self._aggregates.state()}

    def restore(self, state: State) -> None:
        config = self._aggregates.config
        scores = self.config.scores
        self._aggregates = Aggregates.restored(config, state["aggregates"], scores)
        self._groups = Groups(self._grouping, self._matching, self._aggregates)
        self._groups.restore(state["groups"])
        self._meet(self._groups.numbers())


def _last_if_none(value: float) -> float:
    return -inf if isnan(value) else value
