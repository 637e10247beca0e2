"""The distribution of a changed value: a mixture of three models, weighed by how well they predict.

    redrawn       a draw from F_u, see `values`
    innovation    the old value + N mu + s_u sqrt(N) z: a random walk of about N steps
    own mean      the mean of the last values of the key + r: it reverts

N is the number of changes that is expected, given that there is one. z and r are the medians of 16
groups of the last 300 that occurred, mirrored unless there is a drift mu: the mean step, if it is
beyond 2.5 standard errors. The scale s_u of a key is that of its own steps, drawn towards 1:
(4 + sum min(4, |z| / median |z|) / 1.2) / (4 + m) over its m steps.

The weights w of the models are the mean over the 15 points of the simplex with a grid of 1/4, each
by its predictive likelihood: a change to y multiplies it by sum_k w_k (m_k + 0.002), where m_k is
the mass of model k near y. Before 5 changes, values are taken to be redrawn.

(Refresh by the value of information: docs/explanation/voi.md, "What it learns".)
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["MODELS", "ChangedValue", "Predicted"]

MODELS = ("redrawn", "innovation", "own mean")
_GROUPS = 16
_SHARES: Floats = (np.arange(_GROUPS) + 0.5) / _GROUPS
_REMEMBERED = 300
_FEWEST = 5
"""With fewer changes, values are taken to be redrawn."""
_DRIFT = 2.5
"""Standard errors beyond which a drift is believed."""
_WIDTH = 0.08
"""How near is near: the half-width of a triangle, in units of the span of F from 10 % to 90 %."""
_FLOOR = 0.002
_NEGLIGIBLE = 0.01
_GRID: Floats = np.array([w for w in product(range(5), repeat=3) if sum(w) == 4]) / 4
_START: Floats = np.select(
    [_GRID[:, 0] == 1, _GRID[:, 1] == 1, _GRID[:, 2] == 1], [2.0, 0.0, -0.5], -1.5
)


class Predicted(NamedTuple):
    """Possible values of each key (row), with their probabilities."""

    values: Floats
    chances: Floats


class _Shape(NamedTuple):
    """What the last changes tell: the drift mu, and the groups of z and of r."""

    drift: float
    z: Floats
    r: Floats


class ChangedValue:
    """Learns how values change. Memory: 300 changes, and two numbers per key."""

    def __init__(self) -> None:
        self._logs: Floats = _START.copy()
        self._steps: Floats = np.empty((0, 3))  # new - old, N, new - mean of the last values
        self._jumps: Floats = np.zeros((0, 2))  # of each key: how many, and the sum of their sizes
        self._shape: _Shape | None = None  # cached until a change occurs

    @property
    def weights(self) -> Floats:
        """The weights of the models."""
        if len(self._steps) < _FEWEST:
            return np.array([1.0, 0.0, 0.0])
        mixtures = np.exp(self._logs - self._logs.max())
        mean = mixtures @ _GRID / mixtures.sum()
        used: Floats = np.where(mean < _NEGLIGIBLE, 0.0, mean)
        weights: Floats = used / used.sum()
        return weights

    @property
    def seen(self) -> int:
        """The number of changes that the weights follow from, at most 300."""
        return len(self._steps)

    @property
    def drift(self) -> float:
        """The mean step mu, 0 unless it is beyond chance."""
        delta, n = self._steps[:, 0], self._steps[:, 1]
        if len(delta) < _FEWEST:
            return 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            mean = delta.sum() / n.sum()
            error = np.sqrt(((delta - n * mean) ** 2).sum()) / n.sum()
        return float(mean) if abs(mean) > _DRIFT * error else 0.0

    def predict(
        self, keys: Integers, old: Floats, means: Floats, n: Floats, redrawn: Predicted
    ) -> Predicted:
        """Return the distribution of the changed values of keys.

        Each has an old value, the mean of its last values, the number N of expected changes, and
        a row of `redrawn`.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [redrawn, *self._others(keys, old, means, n)]
        used = [(part, w) for part, w in zip(parts, self.weights, strict=False) if w > 0]
        values = np.concatenate([part.values for part, _ in used], axis=1)
        return Predicted(
            np.where(np.isfinite(values), values, old[:, None]),  # beyond float64
            np.concatenate([part.chances * w for part, w in used], axis=1),
        )

    def _others(self, keys: Integers, old: Floats, means: Floats, n: Floats) -> list[Predicted]:
        """Return the predictions of the innovation and of the own mean."""
        if len(self._steps) < _FEWEST:
            return []
        if self._shape is None:
            drift = self.drift
            groups = (_groups(values, drift) for values in (self._z(drift), self._steps[:, 2]))
            self._shape = _Shape(drift, *groups)
        drift, z, r = self._shape
        spread = (self._scale(keys) * np.sqrt(n))[:, None]
        innovation = (old + n * drift)[:, None] + spread * z
        own = means[:, None] + r
        chances = np.full((len(keys), _GROUPS), 1 / _GROUPS)
        return [Predicted(innovation, chances), Predicted(own, chances)]

    def _z(self, drift: float) -> Floats:
        delta, n = self._steps[:, 0], self._steps[:, 1]
        z: Floats = (delta - n * drift) / np.sqrt(n)
        return z

    def _scale(self, keys: Integers) -> Floats:
        """Return s_u."""
        self._grow(keys)
        count, sizes = self._jumps[keys].T
        scale: Floats = (4 + sizes / 1.2) / (4 + count)
        return scale

    @np.errstate(over="ignore", invalid="ignore")
    def observe(  # noqa: PLR0913, PLR0917 - a change has these parts
        self,
        keys: Integers,
        new: Floats,
        old: Floats,
        means: Floats,
        n: Floats,
        redrawn: Predicted,
        span: float,
    ) -> None:
        """Learn from changes of distinct keys; `span` is that of F."""
        if not len(keys):
            return
        parts = [redrawn, *self._others(keys, old, means, n)]
        if len(parts) == len(MODELS):
            near = np.stack([_mass(part, new, _WIDTH * span) for part in parts], axis=1)
            self._logs += np.log((near + _FLOOR) @ _GRID.T).sum(axis=0)
            self._logs -= self._logs.max()
        steps = np.stack((new - old, n, new - means), axis=1)
        self._steps, self._shape = np.concatenate((self._steps, steps))[-_REMEMBERED:], None
        self._grow(keys)
        sizes = np.abs(self._z(self.drift))
        typical = max(float(np.median(sizes)), 1e-300)
        self._jumps[keys, 0] += 1
        self._jumps[keys, 1] += np.minimum(4, sizes[-len(keys) :] / typical)

    def forget(self, keys: Integers) -> None:
        """Forget the scale of keys."""
        self._jumps[keys[keys < len(self._jumps)]] = 0

    def _grow(self, keys: Integers) -> None:
        if (more := int(keys.max(initial=-1)) + 1 - len(self._jumps)) > 0:
            self._jumps = np.pad(self._jumps, ((0, max(more, len(self._jumps))), (0, 0)))

    def state(self) -> dict[str, Any]:
        """Return the likelihoods, the last changes and the scales as plain data."""
        keys = np.flatnonzero(self._jumps[:, 0])
        return {
            "logs": self._logs.tolist(),
            "steps": self._steps.tolist(),
            "keys": keys.tolist(),
            "jumps": self._jumps[keys].tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state into a new model."""
        if len(state["logs"]) != len(_GRID):
            raise ValueError(f"there are {len(_GRID)} mixtures of models")
        self._logs = np.array(state["logs"])
        self._steps, self._shape = np.array(state["steps"]).reshape(-1, 3), None
        keys = np.array(state["keys"], dtype=np.int64)
        self._grow(keys)
        if len(keys):
            self._jumps[keys] = state["jumps"]


def _groups(values: Floats, drift: float) -> Floats:
    """Return the medians of 16 groups of values, mirrored unless there is a drift.

    >>> _groups(np.array([1.0, 2.0, 3.0]), 0.0)[[0, 7, 8, 15]].round(2).tolist()
    [-2.84, -0.31, 0.31, 2.84]
    """
    if not drift:
        values = np.concatenate((values, -values))
    places = _SHARES * (len(values) - 1)
    groups: Floats = np.interp(places, np.arange(len(values)), np.sort(values))
    return groups


def _mass(part: Predicted, new: Floats, width: float) -> Floats:
    """Return the mass of each row near its new value.

    >>> part = Predicted(np.array([[1.0, 2.0]]), np.array([[0.25, 0.75]]))
    >>> _mass(part, np.array([1.5]), 1.0).tolist(), _mass(part, np.array([2.0]), 0.0).tolist()
    ([0.5], [0.75])
    """
    distances = np.abs(part.values - new[:, None])
    near = np.maximum(0.0, 1 - distances / width) if width > 0 else (distances == 0)
    mass: Floats = (part.chances * near).sum(axis=1)
    return mass
