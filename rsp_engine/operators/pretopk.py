"""PreTopk: one predicted top-k for each window to come.

A new arrival is put into the prediction of every window that holds it, and falls out where k others
are better. Nothing is ever computed anew when objects expire; but each arrival is compared once
per window, so the cost grows with the number of windows that overlap. The baseline of MinTopk.

Yang, Shastri, Rundensteiner, Ward: An optimal strategy for monitoring top-k queries in streaming
windows. EDBT 2011, section 3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rsp_engine.operators.topk import (
    Arrivals,
    PaneBuffer,
    Ranking,
    TopkConfig,
    as_arrivals,
    best_first,
    joined,
)

__all__ = ["PreTopk"]


class PreTopk:
    """Time for a pane of n arrivals: O(n + w k log k), with w windows to come; memory: O(w k)."""

    def __init__(self, config: TopkConfig) -> None:
        self.config = config
        self._buffer = PaneBuffer(config)
        self._predicted: dict[int, Arrivals] = {}

    def arrive(self, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(as_arrivals(keys, positions, scores))

    def close(self, window: int) -> Ranking:
        for pane, best in self._buffer.close(window):
            for index in range(max(pane.first, window), pane.last + 1):
                known = self._predicted.get(index)
                both = best if known is None else best_first(joined([known, best]))
                self._predicted[index] = self._cut(both)
        answer = self._predicted.get(window, as_arrivals([], [], []))
        self._predicted = {i: found for i, found in self._predicted.items() if i > window}
        return Ranking(window, answer.keys, answer.scores)

    def _cut(self, best: Arrivals) -> Arrivals:
        return best.take(np.arange(min(self.config.k, len(best.keys))))

    def predicted(self, window: int) -> set[int]:
        """Return the keys that are predicted for a window to come."""
        known = self._predicted.get(window)
        return set() if known is None else set(known.keys.tolist())
