"""k-skyband: all objects that fewer than k later and better objects dominate.

Only these objects can enter an answer, so no window is recomputed. The operator does not exploit
that the objects of a slide expire together: only a later object dominates an earlier one, and even
an object with a low score stays until k better ones have arrived. A baseline of MinTopk and SAP.

>>> from rsp_engine.model.windows import Pane
>>> operator = KSkyband(TopkOperatorConfig(1))
>>> operator.arrive(Pane(0, 1), [1, 2], [10, 20], [5.0, 3.0])
>>> operator.close(0).keys.tolist(), len(operator)
([1], 2)

A key must always arrive with the same score, as in MinTopk.

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012,
as SAP (IEEE TKDE 29(6), 2017, section 2.1) describes it for single objects.
"""

from __future__ import annotations

from dataclasses import asdict
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_arrivals,
    best_arrivals_first,
    concatenated_arrivals,
)
from rsp_engine.operators.topk.dominance import dominators
from rsp_engine.operators.topk.pane_buffer import PaneBuffer

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.windows import Pane

__all__ = ["KSkyband"]


class KSkyband:
    """The k-skyband operator.

    Time for a pane of n arrivals: O(n log n + c), with c objects in the skyband. Memory: O(c).
    """

    def __init__(self, config: TopkOperatorConfig) -> None:
        self.config = config
        self._buffer = PaneBuffer(config.k, unreduced=inf)
        self._kept = as_arrivals([], [], [])  # best first
        self._end: Integers = np.empty(0, dtype=np.int64)
        self._dominators: Integers = np.empty(0, dtype=np.int64)  # of each object, how many

    def __len__(self) -> int:
        return len(self._dominators)

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(pane, as_arrivals(keys, positions, scores))

    def close(self, window: int) -> TopkAnswer:
        for pane, batch in self._buffer.until(window):
            self._insert(pane.last, best_arrivals_first(batch))
        self._keep(self._end >= window)
        self._buffer.closed = window
        best = self._kept.first(self.config.k)
        return TopkAnswer(window, best.keys.copy(), best.scores.copy())

    def _insert(self, end: int, new: Arrivals) -> None:
        """Insert the objects of a pane, best first."""
        kept, count = self._kept, len(new.keys)
        is_later = not len(self) or (
            end >= self._end.max() and new.positions.min() > kept.positions.max()
        )
        if not is_later or np.isin(new.keys, kept.keys).any():
            self._sort(end, new)
            return
        # New objects first: the merge is stable, and of a tie the later arrival ranks higher.
        both = concatenated_arrivals([new, kept])
        order = np.argsort(-both.scores, kind="stable")
        is_new = order < count
        counts = np.concatenate((dominators(new.positions), self._dominators))[order]
        counts += np.where(is_new, 0, is_new.cumsum())
        self._kept = both.take(order)
        self._end = np.concatenate((np.full(count, end), self._end))[order]
        self._dominators = counts
        self._keep(counts < self.config.k)

    def _sort(self, end: int, new: Arrivals) -> None:
        """Insert objects in any order, keep the latest of each key, and recount dominators."""
        both = concatenated_arrivals([new, self._kept])
        ends = np.concatenate((np.full(len(new.keys), end), self._end))
        order = np.lexsort((ends, both.positions, both.keys))
        order = order[np.r_[np.diff(both.keys[order]) != 0, True]]
        order = order[
            np.lexsort((both.keys[order], both.positions[order], both.scores[order]))[::-1]
        ]
        self._kept, self._end = both.take(order), ends[order]
        self._dominators = dominators(self._lateness())
        self._keep(self._dominators < self.config.k)

    def _lateness(self) -> Integers:
        """Return numbers that order the objects by end, then by position."""
        pairs = np.stack((self._end, self._kept.positions))
        lateness: Integers = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
        return lateness

    def _keep(self, chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        if not chosen.all():
            self._kept, self._end = self._kept.take(chosen), self._end[chosen]
            self._dominators = self._dominators[chosen]

    def state(self) -> StateData:
        columns = [column.tolist() for column in (*self._kept, self._end, self._dominators)]
        content = {"buffer": self._buffer.state(), "kept": columns}
        return with_header("KSkyband", asdict(self.config), content)

    @classmethod
    def restored(cls, config: TopkOperatorConfig, state: StateData) -> KSkyband:
        """Restore an operator from a saved state."""
        check_header(state, "KSkyband", asdict(config))
        operator = cls(config)
        operator._buffer.restore(state["buffer"])
        *kept, end, counts = state["kept"]
        operator._kept = as_arrivals(*kept)
        operator._end = np.array(end, dtype=np.int64)
        operator._dominators = np.array(counts, dtype=np.int64)
        return operator

    def _check(self) -> None:
        """Assert the invariants of the skyband."""
        order = np.lexsort((self._kept.keys, self._kept.positions, self._kept.scores))[::-1]
        assert (order == np.arange(len(self))).all(), "the skyband is in order"  # noqa: S101
        assert len(np.unique(self._kept.keys)) == len(self), "keys are unique"  # noqa: S101
        late = self._lateness()
        naive = [int((late[:i] >= late[i]).sum()) for i in range(len(self))]
        assert self._dominators.tolist() == naive, "dominance counts are right"  # noqa: S101
        assert (self._dominators < self.config.k).all(), "dominated objects are removed"  # noqa: S101
