"""The oracle: keeps every arrival, and sorts each window. Short and obviously right."""

from __future__ import annotations

from typing import Any

import numpy as np

from rsp_engine.operators.topk import Ranking, TopkConfig, as_arrivals, best_first, joined

__all__ = ["Oracle"]


class Oracle:
    """Judges all others. Memory and time: everything that ever arrived."""

    def __init__(self, config: TopkConfig) -> None:
        self.config = config
        self._all = as_arrivals([], [], [])

    def arrive(self, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._all = joined([self._all, as_arrivals(keys, positions, scores)])

    def close(self, window: int) -> Ranking:
        edges = self.config.frame.interval(window)
        at = self._all.positions
        if self.config.frame.bounds == "(]":
            inside = (edges.open < at) & (at <= edges.close)
        else:
            inside = (edges.open <= at) & (at < edges.close)
        best = best_first(self._all.take(np.flatnonzero(inside)))
        return Ranking(window, best.keys[: self.config.k], best.scores[: self.config.k])
