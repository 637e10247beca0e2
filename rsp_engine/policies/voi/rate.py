"""How often remote values change: the chance p that one does from one evaluation to the next.

All keys have the same p. It is the posterior mean over 40 points of logit(p) from -5 to 5, all of
which are as likely at the start. A refresh after a evaluations finds

    a changed value      with the chance 1 - q, where q = (1 - p)^a
    the same value       with the chance q + (1 - q) F(value), since it may have come back

(Refresh by the value of information: docs/voi.md, "What it learns".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["ChangeRate"]

_CHANCES: Floats = 1 / (1 + np.exp(-np.linspace(-5, 5, 40)))
_LOG_SAME: Floats = np.log1p(-_CHANCES)


class ChangeRate:
    """The posterior of p.

    >>> rate = ChangeRate()
    >>> round(rate.mean, 3)
    0.5
    >>> rate.observe(np.array([1, 1, 1]), np.array([True, False, False]), np.zeros(3))
    >>> round(rate.mean, 3)
    0.337
    """

    def __init__(self, logs: Sequence[float] | None = None) -> None:
        """Begin with nothing known, or with what `state` told."""
        self._logs: Floats = np.zeros(len(_CHANCES)) if logs is None else np.array(logs)
        if self._logs.shape != _CHANCES.shape:
            raise ValueError(f"a rate has {len(_CHANCES)} points")

    @property
    def mean(self) -> float:
        """The posterior mean of p."""
        weights = np.exp(self._logs - self._logs.max())
        return float(weights @ _CHANCES / weights.sum())

    def observe(self, ages: Integers, changed: Booleans, coincidence: Floats) -> None:
        """Learn from refreshes after so many evaluations, of values that come back by so much."""
        same = np.exp(np.multiply.outer(np.maximum(ages, 1), _LOG_SAME))
        chance = np.where(changed[:, None], 1 - same, same + (1 - same) * coincidence[:, None])
        self._logs += np.log(np.maximum(chance, 1e-300)).sum(axis=0)
        self._logs -= self._logs.max()  # only differences count

    def state(self) -> list[float]:
        """Return the logarithms of the posterior at its points."""
        found: list[float] = self._logs.tolist()
        return found
