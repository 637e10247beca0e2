"""MinTopk: the minimal top-k candidate set, maintained as one super-top-k list.

The first k objects of the list that are alive in a window are its top-k, so no window is ever
recomputed from scratch. A key must always arrive with the same score; Topk+N handles scores that
change.

>>> from rsp_engine.model.windows import Pane
>>> operator = MinTopk(TopkOperatorConfig(1))
>>> operator.arrive(Pane(0, 1), [1, 2], [10, 20], [5.0, 3.0])
>>> operator.close(0).keys.tolist(), operator.candidates()
([1], [Candidate(key=1, score=5.0, start=1, end=1)])

Yang, Shastri, Rundensteiner, Ward: An optimal strategy for monitoring top-k queries in streaming
windows. EDBT 2011.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rsp_engine.model.state import StateData, check_header, with_header
from rsp_engine.operators.topk.contract import Arrivals, TopkAnswer, TopkOperatorConfig, as_arrivals
from rsp_engine.operators.topk.pane_buffer import PaneBuffer
from rsp_engine.operators.topk.super_mtk_list import Candidate, SuperMTKList

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.windows import Pane

__all__ = ["MinTopk"]


class MinTopk:
    """The MinTopk operator.

    Time for a pane of n arrivals: O(n + c), with c candidates. Memory: O(c).
    """

    def __init__(self, config: TopkOperatorConfig) -> None:
        self.config = config
        self._buffer = PaneBuffer(config.k)
        self._list = SuperMTKList(config.k)
        self._largest = -1  # the largest key so far

    def __len__(self) -> int:
        return len(self._list)

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(pane, as_arrivals(keys, positions, scores))

    def settle(self, window: int) -> None:
        """Insert into the list the arrivals of a window so far."""
        has_new = False
        for pane, best in self._buffer.until(window):
            self._insert(pane.last, best, window)
            has_new = True
        if not has_new:
            self._list.purge(window)

    def close(self, window: int) -> TopkAnswer:
        self.settle(window)
        self._buffer.closed = window
        k = self.config.k
        return TopkAnswer(window, self._list.keys[:k].copy(), self._list.scores[:k])

    @property
    def keys(self) -> Integers:
        """The keys of the list, best first."""
        return self._list.keys

    def recode(self, ranks: Integers) -> None:
        """Replace the scores of the listed objects by their ranks, in the same order."""
        self._list.recode(ranks)

    def _insert(self, end: int, new: Arrivals, window: int) -> None:
        if len(self) and new.keys.min() <= self._largest:
            new = self._list.remove_replaced(new)
        if len(new.keys):
            self._largest = max(self._largest, int(new.keys.max()))
        self._list.insert(end, new, window=window)

    def candidates(self) -> list[Candidate]:
        """Return the super-top-k list with its window marks."""
        self._list.purge(self._buffer.closed + 1)
        return self._list.candidates(self._buffer.closed + 1)

    def pointers(self) -> dict[int, int]:
        """Return the lower bound pointer of each window that has k objects."""
        return self._list.pointers(self._buffer.closed + 1)

    def state(self) -> StateData:
        content = {"buffer": self._buffer.state(), "list": self._list.state()}
        return with_header("MinTopk", asdict(self.config), {**content, "largest": self._largest})

    @classmethod
    def restored(cls, config: TopkOperatorConfig, state: StateData) -> MinTopk:
        """Restore an operator from a saved state."""
        check_header(state, "MinTopk", asdict(config))
        operator = cls(config)
        operator._buffer.restore(state["buffer"])
        operator._list.restore(state["list"])
        operator._largest = state["largest"]
        return operator

    def _check(self) -> None:
        """Assert the invariants of the list."""
        self._list.purge(self._buffer.closed + 1)
        self._list.check(self._buffer.closed + 1)
