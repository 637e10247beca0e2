"""The distribution of remote values: F, shared by all keys, and F_u, given the history of key u.

F weighs each value by its observations. F_u gives more weight to values whose rank in F is within
0.15 of the rank of an earlier value of the key:

    F_u(v)  ~  F(v) (c + sum_h k(rank v, rank h)) / (c + m)     over the key's last m <= 12 values h

where k is a uniform kernel: one over the length of the interval rank h +- 0.15, clipped to [0, 1],
inside the interval, and 0 outside. c is the one of 1, 3, 10 and infinity with the best predictive
log-likelihood so far. Infinity, under which the history predicts nothing, starts with +2.

(Refresh by the value of information: docs/explanation/voi.md, "What it learns".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["Levels", "Marginal", "ValueHistory", "group_levels"]

MOST_LEVELS = 40
"""The number of values by which F is approximated. (docs/explanation/voi.md, "What it learns".)"""
_MOST_VALUES = 4096
"""The number of distinct values above which neighbours are merged. Bounds memory."""
_REACH = 0.15
"""The half-width of the kernel, in ranks."""


class Levels(NamedTuple):
    """F approximated by a few ascending values and their probabilities."""

    values: Floats
    chances: Floats

    @property
    def ranks(self) -> Floats:
        """The probability of a smaller value plus half that of the same value."""
        ranks: Floats = np.cumsum(self.chances) - self.chances / 2
        return ranks


def group_levels(values: Floats, weights: Floats, most: int) -> tuple[Floats, Floats]:
    """Merge neighbours among ascending values into at most `most` groups of similar weight.

    >>> group_levels(np.array([1.0, 2.0, 4.0, 9.0]), np.array([1.0, 1.0, 1.0, 3.0]), 2)
    (array([2.33333333, 9.        ]), array([3., 3.]))
    """
    if len(values) <= most:
        return values, weights
    middles = np.cumsum(weights) - weights / 2
    group = np.minimum((middles * most / weights.sum()).astype(np.int64), most - 1)
    total: Floats = np.bincount(group, weights).astype(np.float64)
    kept = total > 0
    return (np.bincount(group, weights * values)[kept] / total[kept]), total[kept]


class Marginal:
    """F: distinct values, ascending, each with its weight."""

    def __init__(self) -> None:
        self._values: Floats = np.empty(0)
        self._weights: Floats = np.empty(0)
        self._levels: Levels | None = None  # cached until a value is added

    def __len__(self) -> int:
        return len(self._values)

    def add(self, values: Floats, weights: Floats) -> None:
        """Add observed values with their weights."""
        if not len(values):
            return
        distinct, places = np.unique(np.concatenate((self._values, values)), return_inverse=True)
        addends = np.concatenate((self._weights, weights))
        sums: Floats = np.bincount(places, addends, len(distinct)).astype(np.float64)
        self._values, self._weights, self._levels = distinct, sums, None
        if len(distinct) > _MOST_VALUES:
            self._values, self._weights = group_levels(distinct, sums, _MOST_VALUES // 2)

    def chance(self, values: Floats) -> Floats:
        """Return F of each value: the probability that a new value equals it."""
        places = np.minimum(np.searchsorted(self._values, values), max(len(self) - 1, 0))
        if not len(self):
            return np.zeros(len(values))
        is_known = self._values[places] == values
        return np.where(is_known, self._weights[places] / self._weights.sum(), 0.0)

    def ranks(self, values: Floats) -> Floats:
        """Return the mid-rank of each value in F, from 0 to 1."""
        if not len(self):
            return np.full(values.shape, 0.5)
        sums = np.concatenate(([0.0], np.cumsum(self._weights)))
        below = sums[np.searchsorted(self._values, values, side="left")]
        until = sums[np.searchsorted(self._values, values, side="right")]
        ranks: Floats = (below + until) / (2 * sums[-1])
        return ranks

    @property
    def span(self) -> float:
        """The distance from the 10 % to the 90 % quantile; of the extremes, if that is 0."""
        if not len(self):
            return 0.0
        shares = np.cumsum(self._weights) / self._weights.sum()
        low, high = self._values[np.minimum(np.searchsorted(shares, (0.1, 0.9)), len(self) - 1)]
        with np.errstate(over="ignore", invalid="ignore"):  # infinite values
            span = (high - low) or (self._values[-1] - self._values[0])
        return float(np.nan_to_num(span))

    def levels(self) -> Levels:
        """Return F approximated by at most 40 values."""
        if self._levels is None:
            values, weights = group_levels(self._values, self._weights, MOST_LEVELS)
            self._levels = Levels(values, weights / weights.sum() if len(weights) else weights)
        return self._levels

    def state(self) -> dict[str, Any]:
        """Return the values and their weights as plain data."""
        return {"values": self._values.tolist(), "weights": self._weights.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self._values, self._weights = np.array(state["values"]), np.array(state["weights"])
        self._levels = None
        if self._values.shape != self._weights.shape:
            raise ValueError("each value has a weight")


class ValueHistory:
    """How well the past values of keys predict the next: selects c."""

    CHOICES = (1.0, 3.0, 10.0, np.inf)

    def __init__(self) -> None:
        self._logs: Floats = np.array([0.0, 0.0, 0.0, 2.0])

    @property
    def c(self) -> float:
        """The c with the best predictive log-likelihood so far."""
        return self.CHOICES[int(np.argmax(self._logs))]

    def observe(self, ranks: Floats, past: Floats) -> None:
        """Learn from changed values: their ranks, and a row of past ranks for each (NaN: none)."""
        near, known = _near(ranks[:, None], past)
        for place, c in enumerate(self.CHOICES[:-1]):
            self._logs[place] += np.log((c + near[:, 0]) / (c + known)).sum()
        self._logs -= self._logs.max()

    def chances(self, levels: Levels, past: Floats) -> Floats:
        """Return F_u over the levels, a row for each key, given a row of past ranks for each."""
        if np.isinf(self.c):
            return np.broadcast_to(levels.chances, (len(past), len(levels.chances)))
        near, _ = _near(levels.ranks[None, :], past)
        weights = levels.chances * (self.c + near)
        chances: Floats = weights / weights.sum(axis=1, keepdims=True)
        return chances

    def state(self) -> list[float]:
        """Return the predictive log-likelihood of each c."""
        logs: list[float] = self._logs.tolist()
        return logs

    def restore(self, state: list[float]) -> None:
        """Restore a saved state."""
        if len(state) != len(self.CHOICES):
            raise ValueError(f"there are {len(self.CHOICES)} choices of c")
        self._logs = np.array(state)


def _near(ranks: Floats, past: Floats) -> tuple[Floats, Integers]:
    """Return sum_h k(rank, h) at each rank, given the past ranks in the same row, and their number.

    >>> _near(np.array([[0.5, 0.9]]), np.array([[0.5, np.nan]]))
    (array([[3.33333333, 0.        ]]), array([1]))
    """
    known = ~np.isnan(past)
    used = int(np.flatnonzero(known.any(axis=0)).max(initial=-1)) + 1  # the latest come first
    centres = np.where(known, past, 0.0)[:, :used]
    weight = known[:, :used] / (np.minimum(centres + _REACH, 1) - np.maximum(centres - _REACH, 0))
    is_near = np.abs(ranks[:, :, None] - centres[:, None, :]) <= _REACH
    near: Floats = np.einsum("nlh,nh->nl", is_near.astype(np.float64), weight)
    return near, known.sum(axis=1)
