"""The prepared windows of a dataset, which all runs over it share: users, counts and oracle.

The score is that of AcquaTop, section 6.1,

    score = 0.7 norm(mn) + 0.3 norm(dfc)

with mn the mentions of a user in the window, and norm by the least and the largest value that occur
in the dataset. The paper does not give the weights; these are those of its program.

The oracle ranks by the dfc of every user at the close of the window. No two users of a window have
the same score, since no two values of dfc are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.datasets.dataset import STEP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.model.arrays import Floats, Integers

__all__ = [
    "WEIGHTS",
    "DatasetWindow",
    "DatasetWindows",
    "Linear",
    "WindowPart",
    "prepare",
    "ranked_users",
]

WEIGHTS = (0.7, 0.3)
"""The weights of mn and of dfc in the program of the authors."""


@dataclass(frozen=True, slots=True)
class Linear:
    """The scoring function F(mn, dfc), given the least and the largest value of each.

    >>> Linear((1, 5), (0.0, 10.0))(np.array([5.0, 3.0]), np.array([0.0, 10.0])).tolist()
    [0.7, 0.6499999999999999]
    """

    mn: tuple[int, int]
    dfc: tuple[float, float]

    def __call__(self, mn: Floats, dfc: Floats) -> Floats:
        score: Floats = WEIGHTS[0] * _norm(mn, *self.mn) + WEIGHTS[1] * _norm(dfc, *self.dfc)
        return score


def _norm(values: Floats, least: float, largest: float) -> Floats:
    """Scale values to [0, 1]."""
    # Where all values are equal, any positive divisor will do.
    return (values - least) / max(largest - least, 1e-9)


class WindowPart(NamedTuple):
    """The mentions in a part of a window; `places` index the users of the window."""

    places: NDArray[np.intp]
    mn: Floats


class DatasetWindow(NamedTuple):
    """A window: its users with their mentions, and the oracle's ranking.

    `latest` is the position in the stream of each user's last mention. `later` has the mentions so
    far of each later window that is already open. `dfc` has the value of every user of the dataset
    at the close. `oracle` has the users of the window, best first.
    """

    close: int
    users: Integers
    mn: Floats
    latest: Integers
    later: tuple[WindowPart, ...]
    dfc: Floats
    oracle: tuple[int, ...]


class DatasetWindows(NamedTuple):
    """The windows of a dataset in order, the initial dfc of the replica, and F."""

    initial: Floats
    windows: tuple[DatasetWindow, ...]
    score: Linear


def ranked_users(scores: Floats) -> NDArray[np.intp]:
    """Return the places of scores, the largest first."""
    return np.argsort(-scores, kind="stable")


def prepare(dataset: Dataset, most: int | None = None) -> DatasetWindows:
    """Return the windows of a dataset, at most `most` of them."""
    edges = dataset.windows[:most]
    counts = [dataset.mentioned(*window) for window in edges]
    largest = max((int(one.max()) for one in counts), default=1)
    every = np.concatenate((dataset.initial, dataset.changes.values))
    score = Linear((1, max(largest, 1)), (float(every.min()), float(every.max())))
    windows = []
    for (opened, close), mentioned in zip(edges, counts, strict=True):
        users = np.flatnonzero(mentioned)
        mn = mentioned[users].astype(np.float64)
        dfc = dataset.dfc_at(close)
        later = tuple(
            _part(dataset.mentioned(later_open, close)[users])
            for later_open in range(opened + STEP, close, STEP)
        )
        order = ranked_users(score(mn, dfc[users]))
        latest = dataset.last_mention(close)[users]
        windows.append(
            DatasetWindow(close, users, mn, latest, later, dfc, tuple(users[order].tolist()))
        )
    return DatasetWindows(dataset.initial, tuple(windows), score)


def _part(mentioned: Integers) -> WindowPart:
    places = np.flatnonzero(mentioned)
    return WindowPart(places, mentioned[places].astype(np.float64))
