"""The learner of AT-VOI: a model of remote values, learned from refreshes only.

An evaluation calls, in this order:

    begin            with the keys of the window and their values in the replica
    observe_signal   if there is a change signal: which keys have changed since their last refresh
    fetched          with the fetched values; once for each batch

and `outlook` at any time after `begin`. The age a of a value is the number of evaluations since its
last refresh; the initial load counts as evaluation -1. A value is unchanged with probability q, the
mean of (1 - p)^a over the rates of its key (see `rate`). With a change signal, q is 1 if it reports
no change, and else the share f of false alarms: (same + 0.05) / (fetched + 1) over the values that
were fetched after a signal. One that was the same counts f / (f + (1-f) w F), since it may have
changed and come back; w is the weight of values that are redrawn. A changed value is distributed as
`changed_value` predicts. In F, the first value of a key weighs 0.25, a changed value 1, and an
equal value the probability that it changed and came back, (1-q) w F / (q + (1-q) w F).

(Refresh by the value of information: docs/explanation/voi.md, "What it learns".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.candidates import Outlook
from rsp_engine.policies.voi.changed_value import MODELS, ChangedValue, Predicted
from rsp_engine.policies.voi.rate import ChangeRates
from rsp_engine.policies.voi.refresh_value import horizon, signalled_horizon
from rsp_engine.policies.voi.values import Marginal, ValueHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["Learner"]

VERSION = 3
_REMEMBERED = 12
"""How many of the last values of a key are kept. (docs/explanation/voi.md, "What it learns".)"""
_FIRST = 0.25
"""The weight in F of the first value of a key."""
_FALSE_ALARMS = (0.05, 1.0)
"""What the share of false alarms starts from: as if of one signal, a twentieth had been false."""
_UNSEEN = -2
"""Stands for no evaluation; -1 is the evaluation of the initial load."""


class Learner:
    """Learns from the refreshes of keys. Memory: 12 values and some 30 numbers per key."""

    def __init__(self) -> None:
        self.evaluation = -1
        self.rates = ChangeRates()
        self.changed_value = ChangedValue()
        self.marginal = Marginal()
        self.past = ValueHistory()
        self._alarms: tuple[float, float] = (0.0, 0.0)  # the false ones, and all that were fetched
        self._values: Floats = np.empty((0, _REMEMBERED))  # latest first; NaN: none
        self._refreshed: Integers = np.empty(0, dtype=np.int64)
        self._first: Integers = np.empty(0, dtype=np.int64)
        self._seen: Integers = np.empty(0, dtype=np.int64)
        self._is_other: Booleans = np.empty(0, dtype=np.bool_)  # changed, by the signal
        self._is_signalled: Booleans = np.empty(0, dtype=np.bool_)  # the signal covers the key

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
        nothing = np.zeros(np.count_nonzero(is_news))
        self.rates.observe(keys[is_news], ages[is_news], changed[is_news], nothing)
        self._is_signalled[keys] = True
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
        """Learn from refreshes of known values: the rates, F, c and how values change."""
        changed, is_signalled = before != values, self._is_other[keys]
        coincidence = self.changed_value.weights[0] * self.marginal.chance(before)
        expected = self.rates.expect(keys, ages)
        unchanged = self._unchanged(keys, expected.unchanged)
        back = (1 - unchanged) * coincidence
        weights = np.where(changed, 1.0, back / np.maximum(unchanged + back, 1e-300))
        false = np.where(changed, 0.0, 1 - weights)[is_signalled]
        self._alarms = (self._alarms[0] + float(false.sum()), self._alarms[1] + len(false))
        with np.errstate(over="ignore", invalid="ignore"):
            drawn = changed & np.isfinite(values - before)  # other steps teach nothing
        if drawn.any():
            self._learn_changes(keys[drawn], before[drawn], values[drawn], expected.changes[drawn])
        # The signal has been learned from already, see `observe_signal`.
        news = ~is_signalled
        self.rates.observe(keys[news], ages[news], changed[news], coincidence[news])
        is_present = ~np.isnan(values)
        self.marginal.add(values[is_present], weights[is_present])
        self._remember(keys[changed], values[changed])

    def _learn_changes(
        self, keys: Integers, before: Floats, values: Floats, changes: Floats
    ) -> None:
        """Learn from changed values: how much the past of a key tells, and which model predicts."""
        redrawn = self._redrawn(keys)
        self.changed_value.observe(
            keys, values, before, self._means(keys), changes, redrawn, self.marginal.span
        )
        self.past.observe(self.marginal.ranks(values), self._past_ranks(keys))

    def _redrawn(self, keys: Integers) -> Predicted:
        """Return F_u of each key, over the levels of F."""
        levels, past = self.marginal.levels(), self._past_ranks(keys)
        past[self._is_other[keys], 0] = np.nan  # the value is another now
        values = np.broadcast_to(levels.values, (len(keys), len(levels.values)))
        return Predicted(values, self.past.chances(levels, past))

    def _past_ranks(self, keys: Integers) -> Floats:
        """Return the ranks of the last values of each key; NaN: none."""
        past = self._values[keys]
        ranks = self.marginal.ranks(past)
        ranks[np.isnan(past)] = np.nan
        return ranks

    def _means(self, keys: Integers) -> Floats:
        """Return the mean of the last values of each key, 0 without one."""
        past = self._values[keys]
        known = np.isfinite(past)
        count = np.maximum(known.sum(axis=1), 1)[:, None]
        means: Floats = np.where(known, past / count, 0.0).sum(axis=1)
        return means

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

        `scored` maps remote values, a row for each key, to the scores of the key at these values.
        """
        self._grow(keys)
        ages = self.ages(keys)
        expected = self.rates.expect(keys, ages)
        unchanged = self._unchanged(keys, expected.unchanged)
        serves = self._horizon(keys, expected.mean, ages)
        if not len(self.marginal):
            return Outlook(scores[:, None], np.ones((len(keys), 1)), precedence, serves)
        old, means = self._values[keys, 0], self._means(keys)
        old = np.where(np.isfinite(old), old, means)
        redrawn = self._redrawn(keys)
        found = self.changed_value.predict(keys, old, means, expected.changes, redrawn)
        return Outlook(
            np.concatenate((scores[:, None], scored(found.values)), axis=1),
            np.concatenate((unchanged[:, None], found.chances * (1 - unchanged)[:, None]), axis=1),
            precedence,
            serves,
        )

    @property
    def false_alarms(self) -> float:
        """The share of signalled changes whose values are the same."""
        false, every = self._alarms
        return (false + _FALSE_ALARMS[0]) / (every + _FALSE_ALARMS[1])

    def _unchanged(self, keys: Integers, q: Floats) -> Floats:
        """Return q of each key: by its age, as given, or by the signal."""
        return np.where(self._is_other[keys], self.false_alarms, q)

    def _horizon(self, keys: Integers, rates: Floats, ages: Integers) -> Floats:
        """Return H of each key, by its age, or by its rate alone where a signal tells changes."""
        beta = self.presence(keys)
        is_signalled = self._is_signalled[keys]
        if not is_signalled.any():
            return horizon(rates, ages, beta)
        aged = horizon(rates, ages, beta)
        return np.where(is_signalled, signalled_horizon(rates, beta), aged)

    def belief(self) -> dict[str, Any]:
        """Return what the learner believes of remote values, as plain numbers.

        The probability that a value is redrawn, that it moves by steps and that it returns to a
        mean; how many changes say so; the share of false alarms of the signal, None before the
        first; how long the rate of a key is remembered; and the rates of change per evaluation that
        a tenth, half and nine tenths of the keys do not exceed.
        """
        weights = self.changed_value.weights.tolist()
        models = (name.replace(" ", "_") for name in MODELS)
        return {
            "models": {m: round(weight, 3) for m, weight in zip(models, weights, strict=True)},
            "changes": self.changed_value.seen,
            "false_alarms": round(self.false_alarms, 3) if self._alarms[1] else None,
            "memory": self.rates.memory,
            "rates": [round(self.rates.quantile(share), 3) for share in (0.1, 0.5, 0.9)],
        }

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
        self._is_signalled = np.pad(self._is_signalled, (0, more))

    def forget(self, keys: Integers) -> None:
        """Forget the history of keys; what holds for all keys stays."""
        keys = keys[keys < len(self._first)]
        self._values[keys] = np.nan
        self._refreshed[keys] = self._first[keys] = _UNSEEN
        self._seen[keys] = 0
        self._is_other[keys] = self._is_signalled[keys] = False
        self.rates.forget(keys)
        self.changed_value.forget(keys)

    def state(self) -> dict[str, Any]:
        """Return everything learned, as plain data."""
        keys = np.flatnonzero((self._first != _UNSEEN) | (self._refreshed != _UNSEEN))
        return {
            "version": VERSION,
            "evaluation": self.evaluation,
            "rates": self.rates.state(),
            "changed_value": self.changed_value.state(),
            "alarms": [*self._alarms],
            "marginal": self.marginal.state(),
            "past": self.past.state(),
            "keys": keys.tolist(),
            "values": [_values_state(row) for row in self._values[keys]],
            "refreshed": self._refreshed[keys].tolist(),
            "first": self._first[keys].tolist(),
            "seen": self._seen[keys].tolist(),
            "is_other": self._is_other[keys].tolist(),
            "is_signalled": self._is_signalled[keys].tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state into a new learner."""
        if state["version"] != VERSION:
            raise ValueError(f"what was learned is of version {state['version']}, not {VERSION}")
        keys = np.array(state["keys"], dtype=np.int64)
        self._grow(keys)
        self.evaluation = state["evaluation"]
        self.rates.restore(state["rates"])
        self.changed_value.restore(state["changed_value"])
        self._alarms = tuple(state["alarms"])
        self.marginal.restore(state["marginal"])
        self.past.restore(state["past"])
        for key, values in zip(keys.tolist(), state["values"], strict=True):
            self._values[key, : len(values)] = [np.nan if v is None else v for v in values]
        self._refreshed[keys] = state["refreshed"]
        self._first[keys] = state["first"]
        self._seen[keys] = state["seen"]
        self._is_other[keys] = state["is_other"]
        self._is_signalled[keys] = state["is_signalled"]


def _values_state(values: Floats) -> list[float | None]:
    """Return the values of a key as plain data: None for no value, cut after the oldest value.

    >>> _values_state(np.array([np.nan, 2.0, np.nan]))
    [None, 2.0]
    """
    known = np.flatnonzero(~np.isnan(values))
    last = int(known.max(initial=-1)) + 1
    return [None if np.isnan(value) else value for value in values[:last].tolist()]
