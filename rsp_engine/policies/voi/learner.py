"""The learner of AT-VOI: a model of remote values, learned from refreshes only.

An evaluation calls, in this order:

    begin      with the keys of the window and their values in the replica
    told       if there is a change signal: which keys have changed since their last refresh
    fetched    with the fetched values; once for each batch

and `outlook` at any time after `begin`. The age a of a value is the number of evaluations since its
last refresh; the initial load counts as evaluation -1. A value is unchanged with probability
q = (1 - p)^a; with a change signal q is 1 or 0. In F, the first value of a key weighs 0.25, a
changed value 1, and an equal value the probability that it changed and came back:
(1-q)F / (q + (1-q)F).

(Refresh by the value of information: docs/voi.md, "What it learns".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.candidates import Outlook
from rsp_engine.policies.voi.rate import ChangeRate
from rsp_engine.policies.voi.refresh_value import horizon
from rsp_engine.policies.voi.values import Marginal, ValueHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["Learner"]

VERSION = 1
_REMEMBERED = 12
"""How many of the last values of a key make its history. (docs/voi.md, "What it learns".)"""
_FIRST = 0.25
"""The weight in F of the first value of a key."""
_UNSEEN = -2
"""Stands for no evaluation; -1 is the evaluation of the initial load."""


class Learner:
    """Learns from the refreshes of keys. Memory: 12 values and four numbers per key."""

    def __init__(self) -> None:
        self.evaluation = -1
        self.rate = ChangeRate()
        self.marginal = Marginal()
        self.past = ValueHistory()
        self._values: Floats = np.empty((0, _REMEMBERED))  # latest first; NaN: none
        self._refreshed: Integers = np.empty(0, dtype=np.int64)
        self._first: Integers = np.empty(0, dtype=np.int64)
        self._seen: Integers = np.empty(0, dtype=np.int64)
        self._is_other: Booleans = np.empty(0, dtype=np.bool_)  # changed, by the signal

    def begin(self, keys: Integers, values: Floats) -> None:
        """Begin an evaluation with the distinct keys of the window and their values (NaN: none)."""
        self.evaluation += 1
        self._grow(keys)
        is_unseen = self._first[keys] == _UNSEEN
        self._first[keys[is_unseen]] = self.evaluation
        self._seen[keys] += 1
        before = self._values[keys, 0]
        is_new = (self._refreshed[keys] == _UNSEEN) & ~np.isnan(values)
        self._meet(keys[is_new], values[is_new], -1)
        # A value that differs although it was not fetched was pushed by a change feed.
        is_other = ~is_new & (before != values) & ~(np.isnan(before) & np.isnan(values))
        self._push(keys[is_other], values[is_other])

    def _push(self, keys: Integers, values: Floats) -> None:
        """Record values that were pushed. Nothing follows from them about the change rate."""
        self._refreshed[keys] = self.evaluation
        self._is_other[keys] = False
        self._remember(keys, values)
        present = values[~np.isnan(values)]
        self.marginal.add(present, np.ones(len(present)))

    def _meet(self, keys: Integers, values: Floats, evaluation: int) -> None:
        """Record the first values of keys."""
        self._refreshed[keys] = evaluation
        self._remember(keys, values)
        self.marginal.add(values, np.full(len(values), _FIRST))

    def _remember(self, keys: Integers, values: Floats) -> None:
        self._values[keys, 1:] = self._values[keys, :-1]
        self._values[keys, 0] = values

    def observe_signal(self, keys: Integers, changed: Booleans) -> None:
        """Record which keys have changed since their last refresh; the others count as refreshed.

        A change is learned from once: the signal repeats it until the key is fetched.
        """
        self._grow(keys)
        ages = self.ages(keys)
        is_news = (ages > 0) & (self._refreshed[keys] != _UNSEEN) & ~self._is_other[keys]
        self.rate.observe(ages[is_news], changed[is_news], np.zeros(np.count_nonzero(is_news)))
        self._is_other[keys] |= changed
        self._refreshed[keys[~self._is_other[keys]]] = self.evaluation

    def fetched(self, keys: Integers, values: Floats) -> None:
        """Record fetched values of keys; NaN: the key has no value any more."""
        self._grow(keys)
        before = self._values[keys, 0]
        known, ages = ~np.isnan(before), self.ages(keys)
        is_new = ~known & ~np.isnan(values) & (self._refreshed[keys] == _UNSEEN)
        is_repeat = known & (ages > 0)
        self._learn(keys[is_repeat], before[is_repeat], values[is_repeat], ages[is_repeat])
        self._meet(keys[is_new], values[is_new], self.evaluation)
        back = ~known & ~is_new & ~np.isnan(values)  # had no value in between
        self._remember(keys[back], values[back])
        self.marginal.add(values[back], np.ones(np.count_nonzero(back)))
        self._refreshed[keys] = self.evaluation
        self._is_other[keys] = False

    def _learn(self, keys: Integers, before: Floats, values: Floats, ages: Integers) -> None:
        """Learn from refreshes of known values: the rate, F and c."""
        changed, is_signalled = before != values, self._is_other[keys]
        coincidence = self.marginal.chance(before)
        unchanged = (1 - self.rate.mean) ** ages
        back = (1 - unchanged) * coincidence
        weights = np.where(changed | is_signalled, 1.0, back / np.maximum(unchanged + back, 1e-300))
        # The signal has been learned from already, see `observe_signal`.
        self.rate.observe(ages[~is_signalled], changed[~is_signalled], coincidence[~is_signalled])
        drawn = (changed | is_signalled) & ~np.isnan(values)
        past = self.marginal.ranks(self._values[keys[drawn]])
        past[np.isnan(self._values[keys[drawn]])] = np.nan
        self.past.observe(self.marginal.ranks(values[drawn]), past)
        is_present = ~np.isnan(values)
        self.marginal.add(values[is_present], weights[is_present])
        self._remember(keys[changed], values[changed])

    def ages(self, keys: Integers) -> Integers:
        """Return the ages of keys: evaluations since their last refresh."""
        return self.evaluation - np.maximum(self._refreshed[keys], -1)

    def presence(self, keys: Integers) -> Floats:
        """Return beta: the probability that a key is in the next window too."""
        since = self.evaluation - self._first[keys]
        return np.minimum(0.98, (self._seen[keys] + 1) / (since + 3))

    def outlook(
        self,
        keys: Integers,
        scores: Floats,
        precedence: Integers,
        scored: Callable[[Floats], Floats],
    ) -> Outlook:
        """Return the distribution of the scores of keys, given their scores by the replica.

        `scored` maps remote values to a row for each key: its score at each of these values.
        """
        self._grow(keys)
        ages, is_other = self.ages(keys), self._is_other[keys]
        rate = self.rate.mean
        unchanged = np.where(is_other, 0.0, (1 - rate) ** ages)
        serves = horizon(rate, ages, self.presence(keys))
        levels = self.marginal.levels()
        if not len(levels.values):
            return Outlook(scores[:, None], np.ones((len(keys), 1)), precedence, serves)
        past = self.marginal.ranks(self._values[keys])
        past[np.isnan(self._values[keys])] = np.nan
        drawn = self.past.chances(levels, past) * (1 - unchanged)[:, None]
        return Outlook(
            np.concatenate((scores[:, None], scored(levels.values)), axis=1),
            np.concatenate((unchanged[:, None], drawn), axis=1),
            precedence,
            serves,
        )

    def _grow(self, keys: Integers) -> None:
        """Make room for keys. Arrays double in size, so growth is amortised O(1) per key."""
        old = len(self._first)
        size = int(keys.max(initial=-1)) + 1
        if size <= old:
            return
        more = max(size - old, old)
        self._values = np.pad(self._values, ((0, more), (0, 0)), constant_values=np.nan)
        self._refreshed = np.pad(self._refreshed, (0, more), constant_values=_UNSEEN)
        self._first = np.pad(self._first, (0, more), constant_values=_UNSEEN)
        self._seen = np.pad(self._seen, (0, more))
        self._is_other = np.pad(self._is_other, (0, more))

    def forget(self, keys: Integers) -> None:
        """Forget the history of keys; rate, F and c stay."""
        keys = keys[keys < len(self._first)]
        self._values[keys] = np.nan
        self._refreshed[keys] = self._first[keys] = _UNSEEN
        self._seen[keys] = 0
        self._is_other[keys] = False

    def state(self) -> dict[str, Any]:
        """Return everything learned, as plain data."""
        keys = np.flatnonzero((self._first != _UNSEEN) | (self._refreshed != _UNSEEN))
        return {
            "version": VERSION,
            "evaluation": self.evaluation,
            "rate": self.rate.state(),
            "marginal": self.marginal.state(),
            "past": self.past.state(),
            "keys": keys.tolist(),
            "values": [_values_state(row) for row in self._values[keys]],
            "refreshed": self._refreshed[keys].tolist(),
            "first": self._first[keys].tolist(),
            "seen": self._seen[keys].tolist(),
            "is_other": self._is_other[keys].tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state into a new learner."""
        if state["version"] != VERSION:
            raise ValueError(f"what was learned is of version {state['version']}, not {VERSION}")
        keys = np.array(state["keys"], dtype=np.int64)
        self._grow(keys)
        self.evaluation = state["evaluation"]
        self.rate = ChangeRate(state["rate"])
        self.marginal.restore(state["marginal"])
        self.past.restore(state["past"])
        for key, values in zip(keys.tolist(), state["values"], strict=True):
            self._values[key, : len(values)] = [np.nan if v is None else v for v in values]
        self._refreshed[keys] = state["refreshed"]
        self._first[keys] = state["first"]
        self._seen[keys] = state["seen"]
        self._is_other[keys] = state["is_other"]


def _values_state(values: Floats) -> list[float | None]:
    """Return the values of a key as plain data: None for no value, cut after the oldest value.

    >>> _values_state(np.array([np.nan, 2.0, np.nan]))
    [None, 2.0]
    """
    known = np.flatnonzero(~np.isnan(values))
    last = int(known.max(initial=-1)) + 1
    return [None if np.isnan(value) else value for value in values[:last].tolist()]
