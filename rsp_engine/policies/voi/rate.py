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

(Refresh by the value of information: docs/explanation/voi.md, "What it learns".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["ChangeRates", "RateOutlook"]

_POINTS: Floats = 1 / (1 + np.exp(-np.linspace(-5, 5, 25)))
_LOG_UNCHANGED: Floats = np.log1p(-_POINTS)
_SPREADS = (12.0, 4.0, 1.6)
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
        self._logs: Floats = np.zeros((0, len(_POINTS)))
        self._evidence: Floats = np.zeros(len(_FAMILIES))
        self._crowd: Floats | None = None  # cached until a refresh

    @property
    def crowd(self) -> Floats:
        """The distribution of the rates of all keys over the points."""
        if self._crowd is None:
            logs = _START + self._evidence
            weights = np.exp(logs - logs.max())
            self._crowd = weights @ _FAMILIES / weights.sum()
        return self._crowd

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
        before = self._logs[keys]
        after = before + np.log(np.maximum(likelihood, _LEAST))
        after -= after.max(axis=1, keepdims=True)  # only differences matter
        self._logs[keys] = after
        self._evidence += (_evidence(after) - _evidence(before)).sum(axis=0)
        self._evidence -= self._evidence.max()
        self._crowd = None

    def posterior(self, keys: Integers) -> Floats:
        """Return the distribution of the rate of each key over the points."""
        self._grow(keys)
        weights = self.crowd * np.exp(self._logs[keys])
        posterior: Floats = weights / np.maximum(weights.sum(axis=1, keepdims=True), _LEAST)
        return posterior

    def expect(self, keys: Integers, ages: Integers) -> RateOutlook:
        """Return what is expected of keys with values of some ages."""
        posterior = self.posterior(keys)
        mean = posterior @ _POINTS
        q = (posterior * _unchanged(ages)).sum(axis=1)
        changes = np.maximum(ages * mean / np.maximum(1 - q, 1e-12), 1)
        return RateOutlook(mean, np.where(ages > 0, q, 1.0), changes)  # exactly 1

    def forget(self, keys: Integers) -> None:
        """Forget what keys have shown; the crowd remembers."""
        self._logs[keys[keys < len(self._logs)]] = 0

    def _grow(self, keys: Integers) -> None:
        if (more := int(keys.max(initial=-1)) + 1 - len(self._logs)) > 0:
            self._logs = np.pad(self._logs, ((0, max(more, len(self._logs))), (0, 0)))

    def state(self) -> dict[str, Any]:
        """Return the likelihoods of keys, and the evidence for the families, as plain data."""
        keys = np.flatnonzero(self._logs.any(axis=1))
        return {
            "keys": keys.tolist(),
            "logs": self._logs[keys].tolist(),
            "evidence": self._evidence.tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state into new rates."""
        if len(state["evidence"]) != len(_FAMILIES):
            raise ValueError(f"there are {len(_FAMILIES)} families of rates")
        keys = np.array(state["keys"], dtype=np.int64)
        self._grow(keys)
        if len(keys):
            self._logs[keys] = state["logs"]
        self._evidence, self._crowd = np.array(state["evidence"]), None


def _unchanged(ages: Integers) -> Floats:
    """Return (1 - p)^a: a row for each age, a column for each point."""
    return np.exp(np.multiply.outer(ages, _LOG_UNCHANGED))


def _evidence(logs: Floats) -> Floats:
    """Return log sum_p f(p) l_u(p): a row for each key, a column for each family."""
    return np.log(np.maximum(np.exp(logs) @ _FAMILIES.T, _LEAST))
