"""The change rate p: the probability that a remote value changes between two evaluations.

All keys share one p: the posterior mean over 40 points of logit(p) in [-5, 5], with a flat prior.
A refresh after `a` evaluations finds

    a changed value      with probability 1 - q, where q = (1 - p)^a
    an equal value       with probability q + (1 - q) F(value): it may have changed back

(Refresh by the value of information: docs/voi.md, "What it learns".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["ChangeRate"]

_POINTS: Floats = 1 / (1 + np.exp(-np.linspace(-5, 5, 40)))
_LOG_UNCHANGED: Floats = np.log1p(-_POINTS)


class ChangeRate:
    """The posterior distribution of p.

    >>> rate = ChangeRate()
    >>> round(rate.mean, 3)
    0.5
    >>> rate.observe(np.array([1, 1, 1]), np.array([True, False, False]), np.zeros(3))
    >>> round(rate.mean, 3)
    0.337
    """

    def __init__(self, logs: Sequence[float] | None = None) -> None:
        """Start from the flat prior, or from the `logs` that `state` returned."""
        self._logs: Floats = np.zeros(len(_POINTS)) if logs is None else np.array(logs)
        if self._logs.shape != _POINTS.shape:
            raise ValueError(f"a rate has {len(_POINTS)} points")

    @property
    def mean(self) -> float:
        """The posterior mean of p."""
        weights = np.exp(self._logs - self._logs.max())
        return float(weights @ _POINTS / weights.sum())

    def observe(self, ages: Integers, changed: Booleans, coincidence: Floats) -> None:
        """Learn from refreshes.

        Each has an age in evaluations, whether the value changed, and F of the old value: the
        probability that a changed value equals it by coincidence.
        """
        unchanged = np.exp(np.multiply.outer(np.maximum(ages, 1), _LOG_UNCHANGED))
        equal = unchanged + (1 - unchanged) * coincidence[:, None]
        likelihood = np.where(changed[:, None], 1 - unchanged, equal)
        self._logs += np.log(np.maximum(likelihood, 1e-300)).sum(axis=0)
        self._logs -= self._logs.max()  # only differences matter; this keeps exp in range

    def state(self) -> list[float]:
        """Return the log-posterior at its points."""
        logs: list[float] = self._logs.tolist()
        return logs
