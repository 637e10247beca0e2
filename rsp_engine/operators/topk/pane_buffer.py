"""The buffer of arrivals whose first window has not been evaluated yet."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from rsp_engine.model.windows import Pane
from rsp_engine.operators.topk.contract import (
    Arrivals,
    as_arrivals,
    check_open,
    check_order,
    concatenated_arrivals,
)
from rsp_engine.operators.topk.score_threshold import ScoreThreshold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.state import StateData

__all__ = ["PaneBuffer"]


class PaneBuffer:
    """The k best arrivals of each pane, until the first window of the pane is evaluated.

    Panes of at most `unreduced` arrivals are kept whole, in their order of arrival.
    """

    def __init__(self, k: int, unreduced: float = 0) -> None:
        self.closed = -1
        self._best = ScoreThreshold(k)
        self._unreduced = unreduced
        self._panes: dict[tuple[int, int], tuple[Pane, list[Arrivals]]] = {}

    def add(self, pane: Pane, batch: Arrivals) -> None:
        """Add a batch to its pane; raise ValueError if a window of the pane has closed."""
        check_open(pane, self.closed)
        if len(batch.keys):
            self._parts(pane).append(self._reduce(batch))

    def _parts(self, pane: Pane) -> list[Arrivals]:
        windows = pane.first, pane.last
        if windows not in self._panes:
            self._panes[windows] = pane, []
        return self._panes[windows][1]

    def until(self, window: int) -> Iterator[tuple[Pane, Arrivals]]:
        """Remove and yield the panes that begin by a window, in time order."""
        check_order(window, self.closed)
        due = [windows for windows in self._panes if windows[0] <= window]
        due.sort()
        for windows in due:
            pane, parts = self._panes.pop(windows)
            yield pane, self._merge(parts)

    def _merge(self, parts: list[Arrivals]) -> Arrivals:
        return parts[0] if len(parts) == 1 else self._reduce(concatenated_arrivals(parts))

    def _reduce(self, batch: Arrivals) -> Arrivals:
        if len(batch.keys) > self._unreduced:
            return self._best(batch)
        keys, positions, scores = batch
        # The caller may reuse its arrays.
        return Arrivals(keys.copy(), positions.copy(), scores.copy())

    def state(self) -> StateData:
        """Return the buffered arrivals as plain data."""
        panes = {
            pane.name: [column.tolist() for column in self._merge(parts)]
            for _, (pane, parts) in sorted(self._panes.items(), key=itemgetter(0))
        }
        return {"closed": self.closed, "size": len(panes), "panes": panes}

    def restore(self, state: StateData) -> None:
        """Restore the buffered arrivals."""
        self.closed = state["closed"]
        self._panes = {}
        if len(state["panes"]) != state["size"]:
            raise ValueError(f"{state['size']} panes were saved")
        for name, arrivals in state["panes"].items():
            self._parts(Pane.named(name)).append(as_arrivals(*arrivals))
