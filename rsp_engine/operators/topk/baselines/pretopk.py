"""PreTopk: one predicted top-k list for each future window.

A new arrival is inserted into the predicted top-k of every window that contains it, and leaves a
list where k objects are better. No window is recomputed when objects expire, but each arrival is
processed once per window, so the cost grows with the number of overlapping windows. It is the
baseline of MinTopk.

Yang, Shastri, Rundensteiner, Ward: An optimal strategy for monitoring top-k queries in streaming
windows. EDBT 2011, section 3.2.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_arrivals,
    best_arrivals_first,
    concatenated_arrivals,
)
from rsp_engine.operators.topk.pane_buffer import PaneBuffer

if TYPE_CHECKING:
    from rsp_engine.model.windows import Pane

__all__ = ["PreTopk"]


class PreTopk:
    """The PreTopk operator.

    Time for a pane of n arrivals: O(n + w k log k), with w future windows. Memory: O(w k).
    """

    def __init__(self, config: TopkOperatorConfig) -> None:
        self.config = config
        self._buffer = PaneBuffer(config.k)
        self._predicted: dict[int, Arrivals] = {}

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(pane, as_arrivals(keys, positions, scores))

    def close(self, window: int) -> TopkAnswer:
        for pane, best in self._buffer.until(window):
            for index in range(max(pane.first, window), pane.last + 1):
                known = self._predicted.get(index)
                both = (
                    best
                    if known is None
                    else best_arrivals_first(concatenated_arrivals([known, best]))
                )
                self._predicted[index] = both.first(self.config.k)
        self._buffer.closed = window
        answer = self._predicted.get(window, as_arrivals([], [], []))
        self._predicted = {i: best for i, best in self._predicted.items() if i > window}
        return TopkAnswer(window, answer.keys, answer.scores)

    def predicted(self, window: int) -> set[int]:
        """Return the keys in the predicted top-k of a future window."""
        known = self._predicted.get(window)
        return set() if known is None else set(known.keys.tolist())

    def state(self) -> StateData:
        predicted = [[i, *(a.tolist() for a in best)] for i, best in self._predicted.items()]
        content = {"buffer": self._buffer.state(), "predicted": predicted}
        return with_header("PreTopk", asdict(self.config), content)

    @classmethod
    def restored(cls, config: TopkOperatorConfig, state: StateData) -> PreTopk:
        """Restore an operator from a saved state."""
        check_header(state, "PreTopk", asdict(config))
        operator = cls(config)
        operator._buffer.restore(state["buffer"])
        operator._predicted = {index: as_arrivals(*best) for index, *best in state["predicted"]}
        return operator
