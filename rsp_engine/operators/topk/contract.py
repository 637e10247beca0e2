"""Top-k over sliding windows: what the operators of the family share.

An operator is made from a configuration, takes arrivals a batch at a time as arrays, is told which
window closes, and answers with the ranking of that window. Its state is plain data.

An arrival is a key (a dense integer), a position (when it came) and a score; its pane says which
windows hold it. A key that arrives again replaces its earlier arrival. The order is: larger score,
then later arrival, then larger key.
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
    "concatenated_arrivals",
    "in_panes",
    "rank_order",
]


@dataclass(frozen=True, slots=True)
class TopkOperatorConfig:
    """The k best of each window."""

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k must be at least 1")


class Arrivals(NamedTuple):
    """Arrivals as arrays of equal length."""

    keys: Integers
    positions: Integers
    scores: Floats

    def take(self, chosen: NDArray[Any]) -> Arrivals:
        """Return some of the arrivals, in the order given."""
        return Arrivals(self.keys[chosen], self.positions[chosen], self.scores[chosen])

    def first(self, count: int) -> Arrivals:
        """Return so many from the front."""
        return Arrivals(self.keys[:count], self.positions[:count], self.scores[:count])


class TopkAnswer(NamedTuple):
    """The answer of a window, best first.

    `is_exact` says that it is surely what the oracle gives, `has_exact_set` that it surely holds
    the same objects, in whatever order.
    """

    window: int
    keys: Integers
    scores: Floats
    is_exact: bool = True
    has_exact_set: bool = True


class TopkOperator(Protocol):
    """An operator of the family."""

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        """Take arrivals of a pane whose windows are all open."""

    def close(self, window: int) -> TopkAnswer:
        """Close a window, and all before it, and return its ranking."""

    def state(self) -> StateData:
        """Return all there is to know, as plain data, to be restored from."""


def best_arrivals_first(arrivals: Arrivals) -> Arrivals:
    """Return arrivals in order, of each key the latest only.

    >>> found = best_arrivals_first(as_arrivals([1, 2, 1], [0, 1, 2], [5.0, 7.0, 5.0]))
    >>> found.keys.tolist(), found.positions.tolist()
    ([2, 1], [1, 2])
    """
    in_order = np.sort(arrivals.keys)
    if (in_order[1:] == in_order[:-1]).any():
        # Of two arrivals at once the better counts, so that batches do not matter.
        order = np.lexsort((arrivals.scores, arrivals.positions, arrivals.keys))
        is_last = np.r_[np.diff(arrivals.keys[order]) != 0, True]
        arrivals = arrivals.take(order[is_last])
    return arrivals.take(rank_order(arrivals))


def rank_order(arrivals: Arrivals) -> NDArray[np.intp]:
    """Return the places of arrivals, best first."""
    order = np.argsort(-arrivals.scores)
    scores = arrivals.scores[order]
    if (scores[1:] == scores[:-1]).any():
        order = np.lexsort((arrivals.keys, arrivals.positions, arrivals.scores))[::-1]
    return order


def as_array(values: Any, kind: type[np.generic]) -> NDArray[Any]:  # noqa: ANN401 - array-like
    """Return values as an array of one dimension."""
    made = np.asarray(values, kind)
    if made.ndim != 1:
        raise ValueError("arrivals are arrays of one dimension")
    return made


def as_arrivals(keys: Any, positions: Any, scores: Any) -> Arrivals:  # noqa: ANN401 - array-like
    """Return arrays of a batch, or raise what is wrong with it."""
    batch = Arrivals(
        as_array(keys, np.int64), as_array(positions, np.int64), as_array(scores, np.float64)
    )
    if not len(batch.keys) == len(batch.positions) == len(batch.scores):
        raise ValueError("keys, positions and scores must be of equal length")
    if len(batch.scores) and isnan(np.minimum.reduce(batch.scores)):
        raise ValueError("a score must be a number")
    return batch


def concatenated_arrivals(parts: Iterable[Arrivals]) -> Arrivals:
    """Return several batches as one."""
    keys, positions, scores = zip(*parts, strict=True)
    return Arrivals(np.concatenate(keys), np.concatenate(positions), np.concatenate(scores))


def in_panes(frame: TimeFrame, positions: Integers) -> list[tuple[Pane, Integers]]:
    """Return the panes of positions, in time order, each with the places of those in it.

    What is in no window is left out. This is `TimeFrame.pane`, for arrays; for windows that count,
    positions are numbers from 0 on, and the bounds are `[)`.

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
    tells = (first + last)[inside]  # both rise with time, so their sum tells panes apart
    order = inside[np.argsort(tells, kind="stable")]
    starts = np.flatnonzero(np.diff(np.sort(tells))) + 1
    return [
        (Pane(int(first[part[0]]), int(last[part[0]])), part) for part in np.split(order, starts)
    ]
