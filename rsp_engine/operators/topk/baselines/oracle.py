"""The oracle: it keeps every arrival and sorts each window. Short, and evidently correct."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.model.windows import Pane
from rsp_engine.operators.topk.contract import (
    Arrivals,
    TopkAnswer,
    TopkOperatorConfig,
    as_arrivals,
    best_arrivals_first,
    check_open,
    check_order,
    concatenated_arrivals,
)

__all__ = ["Oracle"]


class Oracle:
    """The reference for all other operators. Time and memory: all arrivals of open windows."""

    def __init__(self, config: TopkOperatorConfig) -> None:
        self.config = config
        self._closed = -1
        self._parts: list[tuple[Pane, Arrivals]] = []

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        batch = as_arrivals(keys, positions, scores)
        check_open(pane, self._closed)
        self._parts.append((pane, batch))

    def close(self, window: int) -> TopkAnswer:
        check_order(window, self._closed)
        self._closed = window
        inside = [batch for pane, batch in self._parts if pane.first <= window <= pane.last]
        best = (
            best_arrivals_first(concatenated_arrivals(inside))
            if inside
            else as_arrivals([], [], [])
        )
        self._parts = [(pane, batch) for pane, batch in self._parts if pane.last > window]
        return TopkAnswer(window, best.keys[: self.config.k], best.scores[: self.config.k])

    def state(self) -> StateData:
        parts = [[pane.first, pane.last, *(a.tolist() for a in b)] for pane, b in self._parts]
        return with_header("Oracle", asdict(self.config), {"closed": self._closed, "parts": parts})

    @classmethod
    def restored(cls, config: TopkOperatorConfig, state: StateData) -> Oracle:
        """Restore an operator from a saved state."""
        check_header(state, "Oracle", asdict(config))
        operator = cls(config)
        operator._closed = state["closed"]
        operator._parts = [
            (Pane(first, last), as_arrivals(*batch)) for first, last, *batch in state["parts"]
        ]
        return operator
