"""SMA: the k_max best objects of the window as a skyband, refilled by a scan when they run out.

Arrivals that are better than the worst of these join them, and the worst leave when there are more
than k_max. When fewer than k are left, the operator scans the whole window for the k_max best. The
window is indexed by a grid, as in the paper, or kept as a plain buffer. A baseline of MinTopk and
SAP.

>>> from rsp_engine.model.windows import Pane
>>> operator = Sma(SmaConfig(1, k_max=1))
>>> operator.arrive(Pane(0, 0), [1], [10], [5.0])
>>> operator.arrive(Pane(0, 1), [2], [20], [3.0])
>>> operator.close(0).keys.tolist(), operator.close(1).keys.tolist(), operator.scans
([1], [2], 1)

A key must always arrive with the same score, as in MinTopk.

Mouratidis, Bakiras, Papadias: Continuous monitoring of top-k queries over sliding windows. SIGMOD
2006. `k_max` and its default, 2 k, are from SAP (IEEE TKDE 29(6), 2017, section 2.1).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.topk.baselines.window_index import (
    RingBuffer,
    ScoreGrid,
    WindowIndex,
    restore,
    state_of,
)
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_arrivals,
    best_arrivals_first,
)
from rsp_engine.operators.topk.pane_buffer import PaneBuffer
from rsp_engine.operators.topk.super_mtk_list import SuperMTKList

if TYPE_CHECKING:
    from rsp_engine.model.windows import Pane

__all__ = ["Sma", "SmaConfig"]

_NO_FLOOR = (-inf, int(np.iinfo(np.int64).min), -1)  # no object ranks lower


@dataclass(frozen=True, slots=True)
class SmaConfig(TopkOperatorConfig):
    """The configuration of SMA: `k_max` (2 k by default) and the index of the window."""

    k_max: int | None = None
    index: Literal["grid", "ring"] = "grid"

    def __post_init__(self) -> None:
        super(SmaConfig, self).__post_init__()
        if self.k_max is not None and self.k_max < self.k:
            raise ValueError("k_max must be at least k")

    @property
    def most(self) -> int:
        """The effective k_max: how many objects a scan looks for."""
        return 2 * self.k if self.k_max is None else self.k_max


class Sma:
    """The SMA operator. Time for a pane: that of the index and, rarely, a scan. Memory: O(n)."""

    def __init__(self, config: SmaConfig) -> None:
        self.config = config
        self.scans = 0
        self._buffer = PaneBuffer(config.k, unreduced=inf)
        self._list = SuperMTKList(config.k)
        self._index: WindowIndex = ScoreGrid() if config.index == "grid" else RingBuffer()
        # Every better object is in the list, or has k dominators there.
        self._floor: tuple[float, int, int] = _NO_FLOOR

    def __len__(self) -> int:
        return len(self._list)

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(pane, as_arrivals(keys, positions, scores))

    def close(self, window: int) -> TopkAnswer:
        for pane, batch in self._buffer.until(window):
            self._index.add(pane.last, batch)
            best = best_arrivals_first(self._above(batch)).first(self.config.k)
            new = self._list.remove_replaced(best)
            self._list.insert(pane.last, new, window=window)
            if len(self._list) > self.config.most:
                self._list.cut(self.config.most)
                self._set_floor()
        self._list.purge(window)
        self._index.purge(window)
        k = self.config.k
        if len(self._list) < k and self._floor != _NO_FLOOR:
            self._scan(window)
        self._buffer.closed = window
        return TopkAnswer(window, self._list.keys[:k].copy(), self._list.scores[:k])

    def _above(self, batch: Arrivals) -> Arrivals:
        """Return the arrivals that rank above the floor."""
        score, position, key = self._floor
        above = batch.scores > score
        ties = np.flatnonzero(batch.scores == score)
        if len(ties):
            later = batch.positions[ties] > position
            later |= (batch.positions[ties] == position) & (batch.keys[ties] > key)
            above[ties[later]] = True
        return batch.take(above)

    def _scan(self, window: int) -> None:
        """Rebuild the list from a scan of the window."""
        self.scans += 1
        best, ends = self._index.best(self.config.most, window)
        self._list.replace(best, ends, window=window)
        self._floor = _NO_FLOOR
        if len(best.keys) == self.config.most:
            self._set_floor(best)

    def _set_floor(self, scanned: Arrivals | None = None) -> None:
        """Set the floor to the worst object of a scan, or of the list."""
        columns = scanned or (self._list.keys, self._list.positions, self._list.scores)
        key, position, score = (column[-1].item() for column in columns)
        self._floor = score, position, key

    def state(self) -> StateData:
        content = {
            "buffer": self._buffer.state(),
            "list": self._list.state(),
            "index": state_of(self._index),
            "floor": list(self._floor),
            "scans": self.scans,
        }
        return with_header("Sma", asdict(self.config), content)

    @classmethod
    def restored(cls, config: SmaConfig, state: StateData) -> Sma:
        """Restore an operator from a saved state."""
        check_header(state, "Sma", asdict(config))
        operator = cls(config)
        operator._buffer.restore(state["buffer"])
        operator._list.restore(state["list"])
        restore(operator._index, state["index"])
        score, position, key = state["floor"]
        operator._floor, operator.scans = (score, position, key), state["scans"]
        return operator

    def _check(self) -> None:
        """Assert the invariants of the list."""
        window, k = self._buffer.closed, self.config.k
        self._list.check(window)
        assert len(self._list) >= k or self._floor == _NO_FLOOR, "k are listed"  # noqa: S101
        best, _ = self._index.best(k, window)
        assert self._list.keys[:k].tolist() == best.keys.tolist(), "the best are listed"  # noqa: S101
        floor = self._floor
        listed = zip(self._list.scores, self._list.positions, self._list.keys, strict=True)
        assert all(entry >= floor for entry in listed), "none is below the floor"  # noqa: S101
