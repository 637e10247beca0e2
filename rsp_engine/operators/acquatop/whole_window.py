"""The whole window, ranked: for policies that look at all objects, and forget none.

The score of an object is F(x_S, x_D), of what the stream said when it last arrived and of what the
remote side says. Every object of an open window is kept, so a change of any of them is scored as it
is, and the ranking is right with respect to the remote values that are known.

A remote value that is not known yet is NaN: such an object is left out of the ranking until a
change tells it, and the ranking says that it is not exact. What is told to have vanished is left
out as well, and that is exact.

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
from rsp_engine.operators.acquatop.arrival_buffer import ArrivalBuffer, ScoreFunction, as_joined
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_array,
    rank_order,
)
from rsp_engine.operators.topk.pane_buffer import check_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.windows import Pane

__all__ = ["WholeWindow"]


class _View(NamedTuple):
    """The objects of a window, best first, and the keys of those that cannot be ranked."""

    keys: Integers
    positions: Integers
    scores: Floats
    ends: Integers
    unknown: Integers


class WholeWindow:
    """Time for a window of n arrivals: O(n log n); for m changes: O(n log m).

    Memory: the arrivals of open windows, of each key and pane the latest; while a window is ranked,
    a number for each key up to the largest.
    """

    def __init__(self, config: TopkOperatorConfig, score: ScoreFunction) -> None:
        self.config = config
        self._score = score
        self._window = 0  # the window that is looked at
        self._inflow = ArrivalBuffer()
        self._vanished: Integers = np.empty(0, dtype=np.int64)  # keys told so, in order
        self._seen: _View | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def keys(self) -> Integers:
        """The keys of the window that is looked at, best first, so far as they can be scored."""
        return self._view().keys

    @property
    def scores(self) -> Floats:
        """Their scores, which fall."""
        return self._view().scores

    @property
    def ends(self) -> Integers:
        """The last window that holds each of them."""
        return self._view().ends

    @property
    def unknown(self) -> Integers:
        """The keys of the window whose remote value is not known, the largest x_S first."""
        return self._view().unknown

    def arrive(self, pane: Pane, keys: Any, positions: Any, streaming: Any, remote: Any) -> None:  # noqa: ANN401 - array-like
        """Take arrivals of a pane whose windows are all open, with x_S and x_D."""
        batch = as_joined((keys, positions, streaming, remote), self._score)
        self._inflow.add(pane, batch.newest())
        if len(self._vanished):
            told = batch.keys[~np.isnan(batch.remote)]
            self._vanished = np.setdiff1d(self._vanished, told)
        self._seen = None

    def settle(self, window: int) -> None:
        """Look at a window, with what has arrived for it so far."""
        check_order(window, self._inflow.closed)
        if window != self._window:
            self._window, self._seen = window, None

    def change(self, keys: Any, remote: Any, streaming: Any = None) -> None:  # noqa: ANN401 - array-like
        """Take new remote values of keys; NaN says that there is none any more.

        The last one counts where a key comes twice. What objects streamed is known here.
        """
        keys, remote = as_array(keys, np.int64), as_array(remote, np.float64)
        if len(keys) != len(remote):
            raise ValueError("keys and remote values must be of equal length")
        if not len(keys):
            return
        keys, places = np.unique(keys[::-1], return_index=True)
        remote = remote[::-1][places]
        self._inflow.change(keys, remote, self._score)
        has_none = np.isnan(remote)
        others = np.setdiff1d(self._vanished, keys, assume_unique=True)
        self._vanished = np.union1d(others, keys[has_none])
        self._seen = None

    def close(self, window: int) -> TopkAnswer:
        """Close a window, and all before it, and return its ranking."""
        self.settle(window)
        view, k = self._view(), self.config.k
        self._inflow.close(window)
        if len(self._vanished):
            self._vanished = self._vanished[self._inflow.holds(self._vanished)]
        self._window, self._seen = window + 1, None
        is_exact = not len(view.unknown)
        return TopkAnswer(window, view.keys[:k], view.scores[:k], is_exact, is_exact)

    def _view(self) -> _View:
        """Return the window that is looked at. It is ranked anew only if something has happened."""
        if self._seen is None:
            self._seen = self._ranked()
        return self._seen

    def _ranked(self) -> _View:
        panes = list(self._inflow.within(self._window))
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
        """Return all there is to know, as plain data, to be restored from."""
        content = {
            "window": self._window,
            "vanished": self._vanished.tolist(),
            "inflow": self._inflow.state(),
        }
        return with_header("WholeWindow", asdict(self.config), content)

    @classmethod
    def restored(
        cls, config: TopkOperatorConfig, score: ScoreFunction, state: StateData
    ) -> WholeWindow:
        """Return an operator that goes on from a state."""
        check_header(state, "WholeWindow", asdict(config))
        made = cls(config, score)
        made._window = state["window"]
        made._vanished = np.array(state["vanished"], dtype=np.int64)
        made._inflow.restore(state["inflow"], score)
        return made

    def _check(self) -> None:
        """Assert what always holds."""
        view = self._view()
        assert self._window > self._inflow.closed, "the window is open"  # noqa: S101
        assert (view.ends >= self._window).all(), "all objects live"  # noqa: S101
        keys = np.concatenate((view.keys, view.unknown))
        assert len(np.unique(keys)) == len(keys), "a key stands once"  # noqa: S101
        assert not np.isnan(view.scores).any(), "what is ranked has a score"  # noqa: S101
        order = rank_order(Arrivals(view.keys, view.positions, view.scores))
        assert (order == np.arange(len(order))).all(), "the objects are in order"  # noqa: S101
        assert not np.isin(view.unknown, self._vanished).any(), "vanished is known"  # noqa: S101
        assert (np.diff(self._vanished) > 0).all(), "the vanished are in order"  # noqa: S101


def _latest(
    keys: Integers, positions: Integers, streaming: Floats, scores: Floats, ends: Integers
) -> NDArray[np.intp]:
    """Return the places of the latest arrivals of their keys.

    Of two at once the larger x_S counts; of equals the one that lives longer, in whatever order
    they came.
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
