"""The contract of the top-k operators over sliding windows: types, rank order, batches.

An operator is created from a configuration, takes batches of arrivals as arrays, and returns the
ranking of a window when that window closes. Its state is plain data.

An arrival has a key (a dense integer), a position (its place in time) and a score; its pane lists
the windows that contain it. A key that arrives again replaces its earlier arrival. Objects rank by
larger score, then later position, then larger key.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from rsp_engine.model.windows import Pane, TimeFrame

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData

__all__ = [
    "Arrivals",
    "TopkAnswer",
    "TopkOperator",
    "TopkOperatorConfig",
    "as_array",
    "as_arrivals",
    "best_arrivals_first",
    "check_open",
    "check_order",
    "concatenated_arrivals",
    "in_panes",
    "rank_order",
]


@dataclass(frozen=True, slots=True)
class TopkOperatorConfig:
    """The configuration that every operator has: the size k of the answer."""

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k must be at least 1")


class Arrivals(NamedTuple):
    """A batch of arrivals: arrays of equal length."""

    keys: Integers
    positions: Integers
    scores: Floats

    def take(self, chosen: NDArray[Any]) -> Arrivals:
        """Return the arrivals that an index array or a mask selects, in its order."""
        return Arrivals(self.keys[chosen], self.positions[chosen], self.scores[chosen])

    def first(self, count: int) -> Arrivals:
        """Return the first `count` arrivals."""
        return Arrivals(self.keys[:count], self.positions[:count], self.scores[:count])


class TopkAnswer(NamedTuple):
    """The top-k of a window, best first.

    `is_exact` guarantees that it equals the answer of the oracle; `has_exact_set` guarantees the
    same set of objects, in any order.
    """

    window: int
    keys: Integers
    scores: Floats
    is_exact: bool = True
    has_exact_set: bool = True


class TopkOperator(Protocol):
    """A top-k operator whose scores are known on arrival."""

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        """Add arrivals of a pane, none of whose windows has closed."""

    def close(self, window: int) -> TopkAnswer:
        """Close a window and all earlier ones, and return its top-k."""

    def state(self) -> StateData:
        """Return the state of the operator as plain data."""


def best_arrivals_first(arrivals: Arrivals) -> Arrivals:
    """Return the latest arrival of each key, in rank order.

    >>> best = best_arrivals_first(as_arrivals([1, 2, 1], [0, 1, 2], [5.0, 7.0, 5.0]))
    >>> best.keys.tolist(), best.positions.tolist()
    ([2, 1], [1, 2])
    """
    in_order = np.sort(arrivals.keys)
    if (in_order[1:] == in_order[:-1]).any():
        # At equal positions the better score wins, so the result does not depend on batches.
        order = np.lexsort((arrivals.scores, arrivals.positions, arrivals.keys))
        is_last = np.r_[np.diff(arrivals.keys[order]) != 0, True]
        arrivals = arrivals.take(order[is_last])
    return arrivals.take(rank_order(arrivals))


def rank_order(arrivals: Arrivals) -> NDArray[np.intp]:
    """Return the indices of arrivals in rank order, best first."""
    order = np.argsort(-arrivals.scores)
    scores = arrivals.scores[order]
    if (scores[1:] == scores[:-1]).any():
        order = np.lexsort((arrivals.keys, arrivals.positions, arrivals.scores))[::-1]
    return order


def as_array(values: Any, kind: type[np.generic]) -> NDArray[Any]:  # noqa: ANN401 - array-like
    """Convert values to a one-dimensional array."""
    array = np.asarray(values, kind)
    if array.ndim != 1:
        raise ValueError("arrivals are arrays of one dimension")
    return array


def as_arrivals(keys: Any, positions: Any, scores: Any) -> Arrivals:  # noqa: ANN401 - array-like
    """Convert array-likes to a batch of arrivals; raise ValueError if they are not one."""
    batch = Arrivals(
        as_array(keys, np.int64), as_array(positions, np.int64), as_array(scores, np.float64)
    )
    if not len(batch.keys) == len(batch.positions) == len(batch.scores):
        raise ValueError("keys, positions and scores must be of equal length")
    if len(batch.scores) and isnan(np.minimum.reduce(batch.scores)):
        raise ValueError("a score must be a number")
    return batch


def concatenated_arrivals(parts: Iterable[Arrivals]) -> Arrivals:
    """Concatenate batches."""
    keys, positions, scores = zip(*parts, strict=True)
    return Arrivals(np.concatenate(keys), np.concatenate(positions), np.concatenate(scores))


def in_panes(frame: TimeFrame, positions: Integers) -> list[tuple[Pane, Integers]]:
    """Group positions by pane: return each pane, in time order, with the indices of its positions.

    Positions that are in no window are left out. This is `TimeFrame.pane` for arrays. For windows
    that count elements, positions are numbered from 0, and the bounds are `[)`.

    >>> in_panes(TimeFrame(9, 3, t0=1), np.array([2, 11, 3]))
    [(Pane(first=0, last=0), array([0, 2])), (Pane(first=1, last=3), array([1]))]
    """
    since = positions - frame.t0
    if frame.bounds == "(]":
        first, last = -((frame.range - since) // frame.step), -(-since // frame.step) - 1
    else:
        first, last = (since - frame.range) // frame.step + 1, since // frame.step
    first = np.maximum(first, 0)
    inside = np.flatnonzero(first <= last)
    if not len(inside):
        return []
    pane_ids = (first + last)[inside]  # both rise with time, so their sum identifies the pane
    order = inside[np.argsort(pane_ids, kind="stable")]
    starts = np.flatnonzero(np.diff(np.sort(pane_ids))) + 1
    return [
        (Pane(int(first[part[0]]), int(last[part[0]])), part) for part in np.split(order, starts)
    ]


def check_open(pane: Pane, closed: int) -> None:
    """Raise ValueError if a window of a pane has closed, or if the pane is in no window."""
    if pane.first <= closed:
        raise ValueError(f"window {closed} has closed, and cannot take an arrival")
    if pane.last < pane.first:
        raise ValueError(f"a pane from window {pane.first} to {pane.last} is in no window")


def check_order(window: int, closed: int) -> None:
    """Raise ValueError if a window has closed."""
    if window <= closed:
        raise ValueError(f"window {window} has closed already")
