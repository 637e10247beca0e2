"""The change rate of each key: the probability that its value changes between two evaluations.

A rate is one of 25 points of logit(p) in [-5, 5]. A refresh after `a` evaluations finds

    a changed value      with probability 1 - q, where q = (1 - p)^a
    an equal value       with probability q + (1 - q) F(value): it may have changed back

which gives each key u a likelihood l_u(p). A key with few refreshes borrows from the crowd: its
prior is the distribution of rates among all keys, a mixture of families of which each says how
alike the keys are:

    one rate for all     a point of the grid, which starts with +1
    unequal rates        p^(m s) (1-p)^((1-m) s), for each m of the grid and s = 12, 4, 1.6

The weight of a family f is proportional to exp(start + sum over u of log sum_p f(p) l_u(p)).

Rates may themselves change: a key is busy for a while, and then hardly changes. So with a memory of
m below 1, what a refresh has shown counts m^s after s evaluations: l_u(p)^(m^s) stands for l_u(p),
and a key that was not refreshed for long is again as the crowd is. Of m = 1, 0.95 and 0.85, each
with its own crowd, the one is used that has best predicted what each refresh found; 1 starts with
+8.

(Refresh by the value of information: docs/explanation/voi.md, "What it learns".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["MEMORIES", "ChangeRates", "RateOutlook"]

_POINTS: Floats = 1 / (1 + np.exp(-np.linspace(-5, 5, 25)))
_LOG_UNCHANGED: Floats = np.log1p(-_POINTS)
_SPREADS = (12.0, 4.0, 1.6)
MEMORIES = (1.0, 0.95, 0.85)
_MEMORIES: Floats = np.array(MEMORIES)
_MEMORY_START: Floats = np.array([8.0, 0.0, 0.0])
_LEAST = 1e-300
"""A likelihood above 0, so that its logarithm is finite."""


def _families() -> Floats:
    """Return the families, a row for each: its distribution over the points."""
    shapes = [
        np.exp(s * (mean * np.log(_POINTS) + (1 - mean) * _LOG_UNCHANGED))
        for s in _SPREADS
        for mean in _POINTS
    ]
    return np.array([*np.eye(len(_POINTS)), *(shape / shape.sum() for shape in shapes)])


_FAMILIES = _families()
_START: Floats = np.where(np.arange(len(_FAMILIES)) < len(_POINTS), 1.0, 0.0)


class RateOutlook(NamedTuple):
    """What is expected of keys: the mean rate, q, and N.

    q is the probability that the value has not changed within its age, and N the number of changes
    within it, if there is at least one.
    """

    mean: Floats
    unchanged: Floats
    changes: Floats


class ChangeRates:
    """The posterior distribution of the rate of each key. Keys are dense numbers.

    >>> rates = ChangeRates()
    >>> keys, never = np.array([0, 1, 2]), np.zeros(3)
    >>> rates.expect(keys, np.ones(3)).mean.round(2).tolist()
    [0.5, 0.5, 0.5]
    >>> for _ in range(9):
    ...     rates.observe(keys, np.array([1, 1, 1]), np.array([True, False, False]), never)
    >>> rates.expect(keys, np.ones(3)).mean.round(2).tolist()
    [0.91, 0.05, 0.05]
    """

    def __init__(self) -> None:
        # One table for each memory: a row for each key, as of its last refresh.
        self._logs: Floats = np.zeros((len(MEMORIES), 0, len(_POINTS)))
        self._evidence: Floats = np.zeros((len(MEMORIES), len(_FAMILIES)))
        self._predicted: Floats = _MEMORY_START.copy()  # the log-likelihood of each memory
        self._crowds: Floats | None = None  # cached until a refresh

    @property
    def memory(self) -> float:
        """The memory that has predicted best."""
        return MEMORIES[self._best]

    @property
    def _best(self) -> int:
        return int(np.argmax(self._predicted))

    @property
    def crowd(self) -> Floats:
        """The distribution of the rates of all keys over the points."""
        crowd: Floats = self._all_crowds()[self._best]
        return crowd

    def _all_crowds(self) -> Floats:
        """Return the crowd of each memory."""
        if self._crowds is None:
            logs = _START + self._evidence
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            self._crowds = weights @ _FAMILIES / weights.sum(axis=1, keepdims=True)
        return self._crowds

    def quantile(self, share: float) -> float:
        """Return the rate that a share of all keys does not exceed."""
        place = np.searchsorted(np.cumsum(self.crowd), share)
        return float(_POINTS[min(int(place), len(_POINTS) - 1)])

    def observe(
        self, keys: Integers, ages: Integers, changed: Booleans, coincidence: Floats
    ) -> None:
        """Learn from refreshes of distinct keys.

        Each has an age in evaluations, whether the value changed, and the probability that a
        changed value equals the old one by coincidence.
        """
        if not len(keys):
            return
        self._grow(keys)
        unchanged = _unchanged(np.maximum(ages, 1))
        equal = unchanged + (1 - unchanged) * coincidence[:, None]
        likelihood = np.where(changed[:, None], 1 - unchanged, equal)
        kept = _MEMORIES[:, None] ** np.maximum(ages, 1)
        before = self._logs[:, keys] * kept[:, :, None]
        prior = _normalised(self._all_crowds()[:, None, :] * np.exp(before))
        found = np.log(np.maximum((prior * likelihood).sum(axis=2), _LEAST))
        self._predicted += found.sum(axis=1)
        self._predicted -= self._predicted.max()
        after = before + np.log(np.maximum(likelihood, _LEAST))
        after -= after.max(axis=2, keepdims=True)  # only differences matter
        self._logs[:, keys] = after
        self._evidence += (_evidence(after) - _evidence(before)).sum(axis=1)
        self._evidence -= self._evidence.max(axis=1, keepdims=True)
        self._crowds = None

    def posterior(self, keys: Integers, ages: Integers) -> Floats:
        """Return the distribution of the rate of each key over the points.

        Each was refreshed so many evaluations ago.
        """
        self._grow(keys)
        logs = self._logs[self._best, keys]
        if self.memory < 1:
            logs = logs * (self.memory ** np.maximum(ages, 0))[:, None]
        return _normalised(self.crowd * np.exp(logs))

    def expect(self, keys: Integers, ages: Integers) -> RateOutlook:
        """Return what is expected of keys with values of some ages."""
        posterior = self.posterior(keys, ages)
        mean = posterior @ _POINTS
        q = (posterior * _unchanged(ages)).sum(axis=1)
        changes = np.maximum(ages * mean / np.maximum(1 - q, 1e-12), 1)
        return RateOutlook(mean, np.where(ages > 0, q, 1.0), changes)  # exactly 1

    def forget(self, keys: Integers) -> None:
        """Forget what keys have shown; the crowd remembers."""
        self._logs[:, keys[keys < self._logs.shape[1]]] = 0

    def _grow(self, keys: Integers) -> None:
        size = self._logs.shape[1]
        if (more := int(keys.max(initial=-1)) + 1 - size) > 0:
            self._logs = np.pad(self._logs, ((0, 0), (0, max(more, size)), (0, 0)))

    def state(self) -> dict[str, Any]:
        """Return the likelihoods of keys, and the evidence for the families, as plain data."""
        keys = np.flatnonzero(self._logs.any(axis=(0, 2)))
        return {
            "keys": keys.tolist(),
            "logs": self._logs[:, keys].tolist(),
            "evidence": self._evidence.tolist(),
            "predicted": self._predicted.tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state into new rates."""
        evidence = np.array(state["evidence"])
        if evidence.shape != self._evidence.shape:
            raise ValueError(f"there are {len(MEMORIES)} memories of {len(_FAMILIES)} families")
        keys = np.array(state["keys"], dtype=np.int64)
        self._grow(keys)
        if len(keys):
            self._logs[:, keys] = state["logs"]
        self._evidence, self._crowds = evidence, None
        self._predicted = np.array(state["predicted"])


def _normalised(weights: Floats) -> Floats:
    """Return weights whose last axis sums to 1."""
    normalised: Floats = weights / np.maximum(weights.sum(axis=-1, keepdims=True), _LEAST)
    return normalised


def _unchanged(ages: Integers) -> Floats:
    """Return (1 - p)^a: a row for each age, a column for each point."""
    return np.exp(np.multiply.outer(ages, _LOG_UNCHANGED))


def _evidence(logs: Floats) -> Floats:
    """Return log sum_p f(p) l_u(p) for each family, given rows of log l_u."""
    return np.log(np.maximum(np.exp(logs) @ _FAMILIES.T, _LEAST))
