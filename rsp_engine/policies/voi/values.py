"""What remote values are like: F, which all keys share, and F_u, which leans on a key's own past.

F weighs each value by what was seen of it. F_u puts more weight on values that are, by their rank
in F, within 0.15 of a value that the key had before:

    F_u(v)  ~  F(v) (c + sum_h k(rank v, rank h)) / (c + m)     over the key's last m <= 12 values h

with k one over the length of the interval rank h +- 0.15, cut at 0 and 1, inside of it, and 0
outside. How much the past tells, c, is the one of 1, 3, 10 and infinity that foretold the values so
far best; infinity, under which it tells nothing, has an advantage of 2 at the start.

(Refresh by the value of information: docs/voi.md, "What it learns".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.model.arrays import Floats

__all__ = ["Levels", "Marginal", "ValueHistory", "group_levels"]

MOST_LEVELS = 40
_MOST_VALUES = 4096
"""Beyond so many different values, neighbours are counted as one."""
_REACH = 0.15


class Levels(NamedTuple):
    """F as a few values that rise, and their chances."""

    values: Floats
    chances: Floats

    @property
    def ranks(self) -> Floats:
        """The chance of a smaller value, and half the chance of the same."""
        found: Floats = np.cumsum(self.chances) - self.chances / 2
        return found


def group_levels(values: Floats, weights: Floats, most: int) -> tuple[Floats, Floats]:
    """Put values that rise into at most so many groups of about equal weight, neighbours together.

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
    """F: different values in order, each with its weight."""

    def __init__(self) -> None:
        self._values: Floats = np.empty(0)
        self._weights: Floats = np.empty(0)

    def __len__(self) -> int:
        return len(self._values)

    def add(self, values: Floats, weights: Floats) -> None:
        """Count values that were seen, each by its weight."""
        found, places = np.unique(np.concatenate((self._values, values)), return_inverse=True)
        every = np.concatenate((self._weights, weights))
        added: Floats = np.bincount(places, every, len(found)).astype(np.float64)
        self._values, self._weights = found, added
        if len(found) > _MOST_VALUES:
            self._values, self._weights = group_levels(found, added, _MOST_VALUES // 2)

    def chance(self, values: Floats) -> Floats:
        """Return F of each value: how likely a new value is to be just this one."""
        places = np.minimum(np.searchsorted(self._values, values), max(len(self) - 1, 0))
        if not len(self):
            return np.zeros(len(values))
        same = self._values[places] == values
        return np.where(same, self._weights[places] / self._weights.sum(), 0.0)

    def ranks(self, values: Floats) -> Floats:
        """Return the rank of each value, from 0 to 1: half way through those that are equal."""
        if not len(self):
            return np.full(values.shape, 0.5)
        sums = np.concatenate(([0.0], np.cumsum(self._weights)))
        below = sums[np.searchsorted(self._values, values, side="left")]
        until = sums[np.searchsorted(self._values, values, side="right")]
        ranks: Floats = (below + until) / (2 * sums[-1])
        return ranks

    def levels(self) -> Levels:
        """Return F by at most 40 values."""
        values, weights = group_levels(self._values, self._weights, MOST_LEVELS)
        return Levels(values, weights / weights.sum() if len(weights) else weights)

    def state(self) -> dict[str, Any]:
        """Return the values and their weights."""
        return {"values": self._values.tolist(), "weights": self._weights.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what was saved."""
        self._values, self._weights = np.array(state["values"]), np.array(state["weights"])
        if self._values.shape != self._weights.shape:
            raise ValueError("each value has a weight")


class ValueHistory:
    """What the past values of a key tell of its next: which c foretells best."""

    CHOICES = (1.0, 3.0, 10.0, np.inf)

    def __init__(self) -> None:
        self._logs: Floats = np.array([0.0, 0.0, 0.0, 2.0])

    @property
    def c(self) -> float:
        """The c that foretold the values so far best."""
        return self.CHOICES[int(np.argmax(self._logs))]

    def observe(self, ranks: Floats, past: Floats) -> None:
        """Learn from changed values: their ranks, and in a row each those before (NaN: none)."""
        for place, c in enumerate(self.CHOICES[:-1]):
            self._logs[place] += np.log(_lean(ranks[:, None], past, c)).sum()
        self._logs -= self._logs.max()

    def chances(self, levels: Levels, past: Floats) -> Floats:
        """Return F_u over the levels: a row for each key, of whom the past ranks are a row too."""
        leaned = levels.chances * _lean(levels.ranks[None, :], past, self.c)
        found: Floats = leaned / leaned.sum(axis=1, keepdims=True)
        return found

    def state(self) -> list[float]:
        """Return how well each c foretold."""
        found: list[float] = self._logs.tolist()
        return found

    def restore(self, state: list[float]) -> None:
        """Take up what was saved."""
        if len(state) != len(self.CHOICES):
            raise ValueError(f"there are {len(self.CHOICES)} choices of c")
        self._logs = np.array(state)


def _lean(ranks: Floats, past: Floats, c: float) -> Floats:
    """Return (c + sum_h k(rank, h)) / (c + m), for ranks in rows that belong to those of the past.

    >>> _lean(np.array([[0.5, 0.9]]), np.array([[0.5, np.nan]]), 1.0)
    array([[2.16666667, 0.5       ]])
    """
    if not past.shape[1] or np.isinf(c):
        return np.ones((len(past), ranks.shape[1]))
    known = ~np.isnan(past)
    held = np.where(known, past, 0.0)
    weight = known / (np.minimum(held + _REACH, 1) - np.maximum(held - _REACH, 0))
    found = np.full((len(past), ranks.shape[1]), c)
    for h in range(past.shape[1]):
        near = np.abs(ranks - held[:, h : h + 1]) <= _REACH
        found += near * weight[:, h : h + 1]
    total: Floats = found / (c + known.sum(axis=1))[:, None]
    return total
