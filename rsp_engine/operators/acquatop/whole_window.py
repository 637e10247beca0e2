"""A ranking of the whole window, for policies that consider every object.

The score of an object is F(x_S, x_D): x_S is the streaming value of its latest arrival, and x_D its
remote value. Every object of an open window is kept, so a change of any object gets its exact
score, and the ranking is correct for the known remote values.

An unknown remote value is NaN: such an object is not ranked until a change gives its value, and the
answer is not exact. An object whose remote value has vanished is not ranked either, and the answer
stays exact.

>>> from rsp_engine.model.windows import Pane
>>> operator = WholeWindow(TopkOperatorConfig(1), lambda streaming, remote: streaming + remote)
>>> operator.arrive(Pane(0, 1), [0, 1], [10, 20], [1.0, 2.0], [5.0, np.nan])
>>> operator.settle(0)
>>> operator.unknown.tolist()
[1]
>>> operator.change([1], [9.0])
>>> operator.close(0).keys.tolist()
[1]
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.acquatop.arrival_buffer import (
    ArrivalBuffer,
    ScoreFunction,
    as_joined_arrivals,
)
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_array,
    check_order,
    rank_order,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.windows import Pane

__all__ = ["WholeWindow"]


class _View(NamedTuple):
    """The objects of a window, best first, and the keys whose remote value is unknown."""

    keys: Integers
    positions: Integers
    scores: Floats
    ends: Integers
    unknown: Integers


class WholeWindow:
    """An operator that ranks all objects of a window.

    Time for a window of n arrivals: O(n log n); for m changes: O(n log m). Memory: the latest
    arrivals of each key and pane of open windows; while a window is ranked, also a number for each
    key up to the largest.
    """

    def __init__(self, config: TopkOperatorConfig, score: ScoreFunction) -> None:
        self.config = config
        self._score = score
        self._window = 0  # the window being evaluated
        self._buffer = ArrivalBuffer()
        self._vanished: Integers = np.empty(0, dtype=np.int64)  # sorted keys without a remote value
        self._cached: _View | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def keys(self) -> Integers:
        """The keys of the current window that have a score, best first."""
        return self._view().keys

    @property
    def scores(self) -> Floats:
        """The scores of `keys`, in descending order."""
        return self._view().scores

    @property
    def ends(self) -> Integers:
        """The last window that contains each of `keys`."""
        return self._view().ends

    @property
    def unknown(self) -> Integers:
        """The keys of the current window whose remote value is unknown, the largest x_S first."""
        return self._view().unknown

    def arrive(self, pane: Pane, keys: Any, positions: Any, streaming: Any, remote: Any) -> None:  # noqa: ANN401 - array-like
        """Add arrivals of a pane, none of whose windows has closed, with x_S and x_D."""
        batch = as_joined_arrivals((keys, positions, streaming, remote), self._score)
        self._buffer.add(pane, batch.newest())
        if len(self._vanished):
            known = batch.keys[~np.isnan(batch.remote)]
            self._vanished = np.setdiff1d(self._vanished, known)
        self._cached = None

    def settle(self, window: int) -> None:
        """Make a window the current one, with its arrivals so far."""
        check_order(window, self._buffer.closed)
        if window != self._window:
            self._window, self._cached = window, None

    def change(self, keys: Any, remote: Any, streaming: Any = None) -> None:  # noqa: ANN401 - array-like
        """Apply new remote values of keys; NaN means that a key has none any more.

        If a key occurs twice, the last value counts. `streaming` is ignored: all x_S are stored.
        """
        keys, remote = as_array(keys, np.int64), as_array(remote, np.float64)
        if len(keys) != len(remote):
            raise ValueError("keys and remote values must be of equal length")
        if not len(keys):
            return
        keys, places = np.unique(keys[::-1], return_index=True)
        remote = remote[::-1][places]
        self._buffer.change(keys, remote, self._score)
        has_none = np.isnan(remote)
        others = np.setdiff1d(self._vanished, keys, assume_unique=True)
        self._vanished = np.union1d(others, keys[has_none])
        self._cached = None

    def close(self, window: int) -> TopkAnswer:
        """Close a window and all earlier ones, and return its top-k."""
        self.settle(window)
        view, k = self._view(), self.config.k
        self._buffer.close(window)
        if len(self._vanished):
            self._vanished = self._vanished[self._buffer.holds(self._vanished)]
        self._window, self._cached = window + 1, None
        is_exact = not len(view.unknown)
        return TopkAnswer(window, view.keys[:k], view.scores[:k], is_exact, is_exact)

    def _view(self) -> _View:
        """Return the ranking of the current window, from the cache if it is valid."""
        if self._cached is None:
            self._cached = self._rank()
        return self._cached

    def _rank(self) -> _View:
        panes = list(self._buffer.within(self._window))
        if not panes:
            none = np.empty(0, dtype=np.int64)
            return _View(none, none, np.empty(0), none, none)
        parts = [part for _, part in panes]
        keys = np.concatenate([part.keys for part in parts])
        positions = np.concatenate([part.positions for part in parts])
        streaming = np.concatenate([part.streaming for part in parts])
        scores = np.concatenate([part.scores for part in parts])
        ends = np.repeat([pane.last for pane, _ in panes], [len(part.keys) for part in parts])
        latest = _latest(keys, positions, streaming, scores, ends)
        is_known = ~np.isnan(scores[latest])
        known, others = latest[is_known], latest[~is_known]
        known = known[rank_order(Arrivals(keys[known], positions[known], scores[known]))]
        others = others[~np.isin(keys[others], self._vanished)]
        others = others[rank_order(Arrivals(keys[others], positions[others], streaming[others]))]
        return _View(keys[known], positions[known], scores[known], ends[known], keys[others])

    def state(self) -> StateData:
        """Return the state of the operator as plain data."""
        content = {
            "window": self._window,
            "vanished": self._vanished.tolist(),
            "inflow": self._buffer.state(),
        }
        return with_header("WholeWindow", asdict(self.config), content)

    @classmethod
    def restored(
        cls, config: TopkOperatorConfig, score: ScoreFunction, state: StateData
    ) -> WholeWindow:
        """Restore an operator from a saved state."""
        check_header(state, "WholeWindow", asdict(config))
        operator = cls(config, score)
        operator._window = state["window"]
        operator._vanished = np.array(state["vanished"], dtype=np.int64)
        operator._buffer.restore(state["inflow"], score)
        return operator

    def _check(self) -> None:
        """Assert the invariants of the ranking."""
        view = self._view()
        assert self._window > self._buffer.closed, "the window is open"  # noqa: S101
        assert (view.ends >= self._window).all(), "all objects are alive"  # noqa: S101
        keys = np.concatenate((view.keys, view.unknown))
        assert len(np.unique(keys)) == len(keys), "keys are unique"  # noqa: S101
        assert not np.isnan(view.scores).any(), "ranked objects have scores"  # noqa: S101
        order = rank_order(Arrivals(view.keys, view.positions, view.scores))
        assert (order == np.arange(len(order))).all(), "the objects are in order"  # noqa: S101
        assert not np.isin(view.unknown, self._vanished).any(), "vanished keys are known"  # noqa: S101
        assert (np.diff(self._vanished) > 0).all(), "vanished keys are sorted"  # noqa: S101


def _latest(
    keys: Integers, positions: Integers, streaming: Floats, scores: Floats, ends: Integers
) -> NDArray[np.intp]:
    """Return the indices of the latest arrivals of their keys.

    At equal positions the larger x_S wins, then a known and larger score, then the larger end; the
    order of arrival does not matter.
    """
    newest = np.full(keys.max() + 1, np.iinfo(np.int64).min)
    np.maximum.at(newest, keys, positions)
    places = np.flatnonzero(positions == newest[keys])
    in_order = np.sort(keys[places])
    if not (in_order[1:] == in_order[:-1]).any():
        return places
    is_known = ~np.isnan(scores[places])
    values = np.where(is_known, scores[places], 0)
    order = np.lexsort((ends[places], values, is_known, streaming[places], keys[places]))
    return places[order[np.r_[np.diff(keys[places][order]) != 0, True]]]
