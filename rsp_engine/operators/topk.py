"""Top-k over sliding windows: what the operators of the family share.

An operator is made from a configuration, takes arrivals a batch at a time as arrays, is told which
window closes, and answers with the ranking of that window.

An arrival is a key (a dense integer), a position and a score. Positions are times, or, for windows
that count, numbers from 0 on; a `TimeFrame` says which windows hold a position. A key that arrives
again replaces its earlier arrival. The order is: larger score, then later arrival, then larger key.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rsp_engine.model.windows import Pane, TimeFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "Arrivals",
    "Floats",
    "Integers",
    "PaneBuffer",
    "Ranking",
    "TopkConfig",
    "TopkOperator",
    "as_arrivals",
    "best_first",
    "joined",
]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TopkConfig:
    """The k best of each window."""

    k: int
    frame: TimeFrame

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


class Ranking(NamedTuple):
    """The answer of a window, best first."""

    window: int
    keys: Integers
    scores: Floats


class TopkOperator(Protocol):
    """An operator of the family."""

    def arrive(self, keys: Integers, positions: Integers, scores: Floats) -> None:
        """Take a batch of arrivals, of windows that are still open."""

    def close(self, window: int) -> Ranking:
        """Close a window, and all before it, and return its ranking."""


def best_first(arrivals: Arrivals) -> Arrivals:
    """Return arrivals in order, of each key the latest only.

    >>> found = best_first(as_arrivals([1, 2, 1], [0, 1, 2], [5.0, 7.0, 5.0]))
    >>> found.keys.tolist(), found.positions.tolist()
    ([2, 1], [1, 2])
    """
    in_order = np.sort(arrivals.keys)
    if (in_order[1:] == in_order[:-1]).any():
        order = np.lexsort((arrivals.positions, arrivals.keys))
        is_last = np.r_[np.diff(arrivals.keys[order]) != 0, True]
        arrivals = arrivals.take(order[is_last])
    order = np.argsort(-arrivals.scores)
    scores = arrivals.scores[order]
    if (scores[1:] == scores[:-1]).any():
        order = np.lexsort((arrivals.keys, arrivals.positions, arrivals.scores))[::-1]
    return arrivals.take(order)


def as_arrivals(keys: Any, positions: Any, scores: Any) -> Arrivals:  # noqa: ANN401 - array-like
    """Return arrays of a batch, or raise what is wrong with it."""
    batch = Arrivals(
        np.asarray(keys, dtype=np.int64),
        np.asarray(positions, dtype=np.int64),
        np.asarray(scores, dtype=np.float64),
    )
    if not len(batch.keys) == len(batch.positions) == len(batch.scores):
        raise ValueError("keys, positions and scores must be of equal length")
    if len(batch.scores) and np.isnan(batch.scores.min()):
        raise ValueError("a score must be a number")
    return batch


def joined(parts: Iterable[Arrivals]) -> Arrivals:
    """Return several batches as one."""
    keys, positions, scores = zip(*parts, strict=True)
    return Arrivals(np.concatenate(keys), np.concatenate(positions), np.concatenate(scores))


class Best:
    """Reduces arrivals to the k best keys, best first. The arrivals before tell where to look.

    Only few of many arrivals are near the top. Those above a border guessed from the last batch are
    sorted; if the guess was bad, a partition finds a better one.
    """

    def __init__(self, k: int) -> None:
        self._k = k
        # So many above the border leave at least k of the next batch above it, in all likelihood.
        self._some = k + 6 * isqrt(k) + 10
        self._guess = np.inf

    def __call__(self, arrivals: Arrivals) -> Arrivals:
        """Return the k best of a batch, each key once, best first."""
        n = len(arrivals.keys)
        if n <= 2 * self._some:
            return self._cut(best_first(arrivals))
        above = np.flatnonzero(arrivals.scores >= self._guess)
        if not self._k <= len(above) <= 16 * self._k:
            above = self._partition(arrivals.scores, self._some)
        best = best_first(arrivals.take(above))
        if len(best.keys) < self._k:
            best = best_first(arrivals)  # the same few keys again and again
        self._guess = best.scores[min(self._some, len(best.keys)) - 1]
        return self._cut(best)

    def _partition(self, scores: Floats, wanted: int) -> NDArray[np.intp]:
        border = np.partition(scores, len(scores) - wanted)[len(scores) - wanted]
        return np.flatnonzero(scores >= border)

    def _cut(self, best: Arrivals) -> Arrivals:
        k = self._k
        return Arrivals(best.keys[:k], best.positions[:k], best.scores[:k])


class PaneBuffer:
    """The best arrivals of each pane, until a window that holds them closes."""

    def __init__(self, config: TopkConfig) -> None:
        self.frame = config.frame
        self.closed = -1
        self._best = Best(config.k)
        self._panes: dict[Pane, list[Arrivals]] = {}

    def add(self, batch: Arrivals) -> None:
        """Put a batch into its panes; nothing of it if one of its windows has closed."""
        if not len(batch.keys):
            return
        low, high = int(batch.positions.min()), int(batch.positions.max())
        if (pane := self.frame.pane(low)) is not None and pane == self.frame.pane(high):
            self._check_open(pane.first)
            self._panes.setdefault(pane, []).append(self._best(batch))
            return
        for pane, part in self._cut(batch):
            self._panes.setdefault(pane, []).append(self._best(part))

    def _check_open(self, first: int) -> None:
        if first <= self.closed:
            raise ValueError(f"window {self.closed} has closed, and cannot take an arrival")

    def _cut(self, batch: Arrivals) -> list[tuple[Pane, Arrivals]]:
        """Cut a batch into its panes; what is in no window is left out."""
        first, last = self._windows(batch.positions)
        inside = np.flatnonzero(first <= last)
        if not len(inside):
            return []
        self._check_open(int(first[inside].min()))
        # Both rise with time, so their sum tells panes apart.
        tells = (first + last)[inside]
        order = inside[np.argsort(tells, kind="stable")]
        starts = np.flatnonzero(np.r_[True, np.diff(np.sort(tells, kind="stable")) > 0])
        return [
            (Pane(int(first[part[0]]), int(last[part[0]])), batch.take(part))
            for part in np.split(order, starts[1:])
        ]

    def _windows(self, positions: Integers) -> tuple[Integers, Integers]:
        """Return the first and the last window of each position: `TimeFrame.pane`, for arrays."""
        frame, since = self.frame, positions - self.frame.t0
        if frame.bounds == "(]":
            first = -((frame.range - since) // frame.step)
            last = -(-since // frame.step) - 1
        else:
            first = (since - frame.range) // frame.step + 1
            last = since // frame.step
        return np.maximum(first, 0), last

    def close(self, window: int) -> Iterator[tuple[Pane, Arrivals]]:
        """Yield the best of the panes of a window that are not yet given out, in time order."""
        if window <= self.closed:
            raise ValueError(f"window {window} has closed already")
        self.closed = window
        for pane in sorted(pane for pane in self._panes if pane.first <= window):
            parts = self._panes.pop(pane)
            yield pane, parts[0] if len(parts) == 1 else self._best(joined(parts))
