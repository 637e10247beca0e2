"""MinTopk: the minimal top-k candidate set, kept up to date as one super-top-k list.

The first k of the list that live until a window are its answer, so nothing is ever computed anew.
A key must always arrive with the same score; for scores that change there is Topk+N.

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
    """Time for a pane of n arrivals: O(n + c), with c candidates; memory: O(c)."""

    def __init__(self, config: TopkOperatorConfig) -> None:
        self.config = config
        self._buffer = PaneBuffer(config.k)
        self._list = SuperMTKList(config.k)
        self._largest = -1  # no key so far was larger

    def __len__(self) -> int:
        return len(self._list)

    def arrive(self, pane: Pane, keys: Any, positions: Any, scores: Any) -> None:  # noqa: ANN401 - array-like
        self._buffer.add(pane, as_arrivals(keys, positions, scores))

    def settle(self, window: int) -> None:
        """Put into the list what has arrived for a window so far."""
        taken = False
        for pane, best in self._buffer.until(window):
            self._insert(pane.last, best, window)
            taken = True
        if not taken:
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
        """Give the objects of the list other scores, which fall as the old ones did."""
        self._list.recode(ranks)

    def _insert(self, end: int, new: Arrivals, window: int) -> None:
        if len(self) and new.keys.min() <= self._largest:
            new = self._list.take_out(new)
        if len(new.keys):
            self._largest = max(self._largest, int(new.keys.max()))
        self._list.insert(end, new, window=window)

    def candidates(self) -> list[Candidate]:
        """Return the super-top-k list, with marks."""
        self._list.purge(self._buffer.closed + 1)
        return self._list.candidates(self._buffer.closed + 1)

    def pointers(self) -> dict[int, int]:
        """Return the lower bound pointer of each window whose top-k is full."""
        self._list.purge(self._buffer.closed + 1)
        return self._list.pointers(self._buffer.closed + 1)

    def state(self) -> StateData:
        content = {"buffer": self._buffer.state(), "list": self._list.state()}
        return with_header("MinTopk", asdict(self.config), {**content, "largest": self._largest})

    @classmethod
    def restored(cls, config: TopkOperatorConfig, state: StateData) -> MinTopk:
        """Return an operator that goes on from a state."""
        check_header(state, "MinTopk", asdict(config))
        made = cls(config)
        made._buffer.restore(state["buffer"])
        made._list.restore(state["list"])
        made._largest = state["largest"]
        return made

    def _check(self) -> None:
        """Assert what always holds."""
        self._list.purge(self._buffer.closed + 1)
        self._list.check(self._buffer.closed + 1)
