"""SMA: the best k_max of the window as a skyband, and a new scan of the window when they run out.

Arrivals that are better than the last of them join, and push the worst out if there are more than
k_max; when fewer than k are left, the window, which is kept whole, is scanned for the best k_max.
It is indexed by a grid, as in the paper, or kept as a plain buffer that is read from end to end. A
baseline of MinTopk and SAP.

>>> from rsp_engine.model.windows import Pane
>>> operator = Sma(SmaConfig(1, k_max=1))
>>> operator.arrive(Pane(0, 0), [1], [10], [5.0])
>>> operator.arrive(Pane(0, 1), [2], [20], [3.0])
>>> operator.close(0).keys.tolist(), operator.close(1).keys.tolist(), operator.scans
([1], [2], 1)

A key that comes again must have the same score, as in MinTopk.

Mouratidis, Bakiras, Papadias: Continuous monitoring of top-k queries over sliding windows. SIGMOD
2006. `k_max` and its default, 2 k, are told in SAP (IEEE TKDE 29(6), 2017, section 2.1).
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

_ALL = (-inf, int(np.iinfo(np.int64).min), -1)  # nothing is worse


@dataclass(frozen=True, slots=True)
class SmaConfig(TopkOperatorConfig):
    """The k best of each window, from up to `k_max` (twice k unless it is said) and an index."""

    k_max: int | None = None
    index: Literal["grid", "ring"] = "grid"

    def __post_init__(self) -> None:
        super(SmaConfig, self).__post_init__()
        if self.k_max is not None and self.k_max < self.k:
            raise ValueError("k_max must be at least k")

    @property
    def most(self) -> int:
        """How many a scan looks for."""
        return 2 * self.k if self.k_max is None else self.k_max


class Sma:
    """Time for a pane: that of the index, and of a scan if need be. Memory: the window."""

    def __init__(self, config: SmaConfig) -> None:
        self.config = config
        self.scans = 0
        self._buffer = PaneBuffer(config.k, whole=inf)
        self._list = SuperMTKList(config.k)
        self._index: WindowIndex = ScoreGrid() if config.index == "grid" else RingBuffer()
        self._floor: tuple[float, int, int] = _ALL  # all that are better are in the list

    def __len__(self) -> int:
        return len(self._list)

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(pane, as_arrivals(keys, positions, scores))

    def close(self, window: int) -> TopkAnswer:
        for pane, batch in self._buffer.until(window):
            self._index.add(pane.last, batch)
            new = self._list.take_out(best_arrivals_first(self._above(batch)).first(self.config.k))
            self._list.insert(pane.last, new, window=window)
            if len(self._list) > self.config.most:
                self._list.cut(self.config.most)
                self._set_floor()
        self._list.purge(window)
        self._index.purge(window)
        k = self.config.k
        if len(self._list) < k and self._floor != _ALL:
            self._scan(window)
        self._buffer.closed = window
        return TopkAnswer(window, self._list.keys[:k].copy(), self._list.scores[:k])

    def _above(self, batch: Arrivals) -> Arrivals:
        """Return the arrivals that are better than the last of the list was."""
        score, position, key = self._floor
        above = batch.scores > score
        ties = np.flatnonzero(batch.scores == score)
        if len(ties):
            later = batch.positions[ties] > position
            later |= (batch.positions[ties] == position) & (batch.keys[ties] > key)
            above[ties[later]] = True
        return batch.take(above)

    def _scan(self, window: int) -> None:
        """Look for the best of the window anew."""
        self.scans += 1
        found, ends = self._index.best(self.config.most, window)
        self._list.replace(found, ends, window=window)
        self._floor = _ALL
        if len(found.keys) == self.config.most:
            self._set_floor(found)

    def _set_floor(self, found: Arrivals | None = None) -> None:
        """Remember the last of those found, or of the list: all that are better are known."""
        columns = found or (self._list.keys, self._list.positions, self._list.scores)
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
        """Return an operator that goes on from a state."""
        check_header(state, "Sma", asdict(config))
        made = cls(config)
        made._buffer.restore(state["buffer"])
        made._list.restore(state["list"])
        restore(made._index, state["index"])
        score, position, key = state["floor"]
        made._floor, made.scans = (score, position, key), state["scans"]
        return made

    def _check(self) -> None:
        """Assert what always holds."""
        window, k = self._buffer.closed, self.config.k
        self._list.check(window)
        assert len(self._list) >= k or self._floor == _ALL, "there are enough"  # noqa: S101
        best, _ = self._index.best(k, window)
        assert self._list.keys[:k].tolist() == best.keys.tolist(), "they are the best"  # noqa: S101
        floor = self._floor
        listed = zip(self._list.scores, self._list.positions, self._list.keys, strict=True)
        assert all(entry >= floor for entry in listed), "nothing is below the floor"  # noqa: S101
