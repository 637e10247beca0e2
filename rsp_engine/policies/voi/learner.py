"""What is learned of remote values by looking at what each refresh brings.

In an evaluation the learner is told, in this order:

    begin      which keys are in the window, and what the replica says of them
    told       if the remote side can tell: which keys have changed since they were last refreshed
    fetched    what was fetched; once for each batch

and gives the outlook of the candidates whenever it is asked for. The age of a value is the number
of evaluations since its last refresh; what was loaded at first counts as loaded one evaluation
before the first. With a as its age, a value is still the same with the chance q = (1 - p)^a; if the
remote side tells, q is 1 or 0. What a key had first weighs 0.25 in F, each changed value 1, and one
that is the same again as much as it is likely to have come back: (1-q)F / (q + (1-q)F).

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
"""So many of the last values of a key count."""
_FIRST = 0.25
"""The weight of the first value of a key."""
_UNSEEN = -2
"""The evaluation of what did not happen; -1 is that of the first load."""


class Learner:
    """Memory: for each key that is not forgotten its last 12 values and five numbers."""

    def __init__(self) -> None:
        self.evaluation = -1
        self.rate = ChangeRate()
        self.marginal = Marginal()
        self.past = ValueHistory()
        self._values: Floats = np.empty((0, _REMEMBERED))  # the last one first; NaN: none
        self._refreshed: Integers = np.empty(0, dtype=np.int64)
        self._first: Integers = np.empty(0, dtype=np.int64)
        self._seen: Integers = np.empty(0, dtype=np.int64)
        self._is_other: Booleans = np.empty(0, dtype=np.bool_)  # told to have changed

    def begin(self, keys: Integers, values: Floats) -> None:
        """Begin an evaluation: keys of the window, each once, and their values (NaN: none)."""
        self.evaluation += 1
        self._grow(keys)
        new = self._first[keys] == _UNSEEN
        self._first[keys[new]] = self.evaluation
        self._seen[keys] += 1
        before = self._values[keys, 0]
        is_new = (self._refreshed[keys] == _UNSEEN) & ~np.isnan(values)
        self._meet(keys[is_new], values[is_new], -1)
        # What is another value all the same was not asked for: it was pushed.
        is_other = ~is_new & (before != values) & ~(np.isnan(before) & np.isnan(values))
        self._push(keys[is_other], values[is_other])

    def _push(self, keys: Integers, values: Floats) -> None:
        """Take in values that came by themselves. They do not tell how often others change."""
        self._refreshed[keys] = self.evaluation
        self._is_other[keys] = False
        self._remember(keys, values)
        there = values[~np.isnan(values)]
        self.marginal.add(there, np.ones(len(there)))

    def _meet(self, keys: Integers, values: Floats, evaluation: int) -> None:
        """Take in the first values of keys."""
        self._refreshed[keys] = evaluation
        self._remember(keys, values)
        self.marginal.add(values, np.full(len(values), _FIRST))

    def _remember(self, keys: Integers, values: Floats) -> None:
        self._values[keys, 1:] = self._values[keys, :-1]
        self._values[keys, 0] = values

    def told(self, keys: Integers, changed: Booleans) -> None:
        """Take in which keys have changed since their last refresh; the others are as if fetched.

        What has changed is news once, until it is fetched.
        """
        self._grow(keys)
        ages = self.ages(keys)
        news = (ages > 0) & (self._refreshed[keys] != _UNSEEN) & ~self._is_other[keys]
        self.rate.observe(ages[news], changed[news], np.zeros(np.count_nonzero(news)))
        self._is_other[keys] |= changed
        self._refreshed[keys[~self._is_other[keys]]] = self.evaluation

    def fetched(self, keys: Integers, values: Floats) -> None:
        """Take in the values of keys that were fetched; NaN: there is none any more."""
        self._grow(keys)
        before = self._values[keys, 0]
        known, ages = ~np.isnan(before), self.ages(keys)
        is_new = ~known & ~np.isnan(values) & (self._refreshed[keys] == _UNSEEN)
        tells = known & (ages > 0)
        self._learn(keys[tells], before[tells], values[tells], ages[tells])
        self._meet(keys[is_new], values[is_new], self.evaluation)
        back = ~known & ~is_new & ~np.isnan(values)  # there was none for a while
        self._remember(keys[back], values[back])
        self.marginal.add(values[back], np.ones(np.count_nonzero(back)))
        self._refreshed[keys] = self.evaluation
        self._is_other[keys] = False

    def _learn(self, keys: Integers, before: Floats, values: Floats, ages: Integers) -> None:
        """Learn from values that were known before."""
        changed, is_told = before != values, self._is_other[keys]
        coincidence = self.marginal.chance(before)
        same = (1 - self.rate.mean) ** ages
        back = (1 - same) * coincidence
        weights = np.where(changed | is_told, 1.0, back / np.maximum(same + back, 1e-300))
        self.rate.observe(ages[~is_told], changed[~is_told], coincidence[~is_told])
        drawn = (changed | is_told) & ~np.isnan(values)
        past = self.marginal.ranks(self._values[keys[drawn]])
        past[np.isnan(self._values[keys[drawn]])] = np.nan
        self.past.observe(self.marginal.ranks(values[drawn]), past)
        counts = ~np.isnan(values)
        self.marginal.add(values[counts], weights[counts])
        self._remember(keys[changed], values[changed])

    def ages(self, keys: Integers) -> Integers:
        """Return how many evaluations ago keys were last refreshed."""
        return self.evaluation - np.maximum(self._refreshed[keys], -1)

    def presence(self, keys: Integers) -> Floats:
        """Return beta: how likely keys are to be in the next window as well."""
        since = self.evaluation - self._first[keys]
        return np.minimum(0.98, (self._seen[keys] + 1) / (since + 3))

    def outlook(
        self,
        keys: Integers,
        scores: Floats,
        precedence: Integers,
        scored: Callable[[Floats], Floats],
    ) -> Outlook:
        """Return what the scores of keys may be, given those by the replica.

        `scored` gives a row for each key: its score for each of some remote values.
        """
        self._grow(keys)
        ages, is_other = self.ages(keys), self._is_other[keys]
        rate = self.rate.mean
        same = np.where(is_other, 0.0, (1 - rate) ** ages)
        serves = horizon(rate, ages, self.presence(keys))
        levels = self.marginal.levels()
        if not len(levels.values):
            return Outlook(scores[:, None], np.ones((len(keys), 1)), precedence, serves)
        past = self.marginal.ranks(self._values[keys])
        past[np.isnan(self._values[keys])] = np.nan
        drawn = self.past.chances(levels, past) * (1 - same)[:, None]
        return Outlook(
            np.concatenate((scores[:, None], scored(levels.values)), axis=1),
            np.concatenate((same[:, None], drawn), axis=1),
            precedence,
            serves,
        )

    def _grow(self, keys: Integers) -> None:
        """Make room for keys; the arrays double, so this costs little."""
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
        """Forget what was seen of keys; what all keys share stays."""
        keys = keys[keys < len(self._first)]
        self._values[keys] = np.nan
        self._refreshed[keys] = self._first[keys] = _UNSEEN
        self._seen[keys] = 0
        self._is_other[keys] = False

    def state(self) -> dict[str, Any]:
        """Return all that is learned, as plain data."""
        keys = np.flatnonzero((self._first != _UNSEEN) | (self._refreshed != _UNSEEN))
        return {
            "version": VERSION,
            "evaluation": self.evaluation,
            "rate": self.rate.state(),
            "marginal": self.marginal.state(),
            "past": self.past.state(),
            "keys": keys.tolist(),
            "values": [_written(row) for row in self._values[keys]],
            "refreshed": self._refreshed[keys].tolist(),
            "first": self._first[keys].tolist(),
            "seen": self._seen[keys].tolist(),
            "is_other": self._is_other[keys].tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what was saved, before anything is learned here."""
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


def _written(values: Floats) -> list[float | None]:
    """Return the values of a key; one that is none stands as nothing, those before the first not.

    >>> _written(np.array([np.nan, 2.0, np.nan]))
    [None, 2.0]
    """
    known = np.flatnonzero(~np.isnan(values))
    last = int(known.max(initial=-1)) + 1
    return [None if np.isnan(value) else value for value in values[:last].tolist()]
