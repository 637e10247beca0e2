"""approxAlgo: EAA with probable instead of possible best scores.

In a best score, the largest value of an attribute that has not arrived is weighted by the
probability that it still will (`arrival_probability`). So intervals are narrower, and far fewer
instances are kept. An instance that would have been among the k best may be dropped, but rarely.
Answers are marked as approximate.

With a `bound`, at most that many instances are kept after each answer: those with the best scores
to expect.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
4; section 5 for objects that recur in one stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rsp_engine.model.state import StateData, check_header
from rsp_engine.operators.incomplete.arrival_probability import ArrivalProbability
from rsp_engine.operators.incomplete.eaa import EAA

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Floats
    from rsp_engine.operators.incomplete.instances import Columns
    from rsp_engine.operators.incomplete.observations import IncompleteOperatorConfig, Observations
    from rsp_engine.operators.topk.contract import TopkAnswer

__all__ = ["Approximate"]


class Approximate(EAA):
    """The approxAlgo operator. Time and memory: those of EAA with fewer instances, and sketches."""

    tag: ClassVar[str] = "Approximate"

    is_approximate = True
    _is_thorough = True  # few instances are kept, so exact dominance pane by pane is cheap

    def __init__(self, config: IncompleteOperatorConfig, bound: int | None = None) -> None:
        super().__init__(config)
        if bound is not None and bound < config.k:
            raise ValueError(f"a bound of {bound} instances is too small for the {config.k} best")
        self.bound = bound
        self._chances = ArrivalProbability(config.most)
        self._window = 0

    def close(self, window: int) -> TopkAnswer:
        self._window = window
        self._chances.expire(window)
        ranking = super().close(window)
        if self.bound is not None and len(self) > self.bound:
            self.prune()
        return ranking

    def kept(self) -> set[int]:
        """Return the keys of the objects that have an instance."""
        return set(self._instances.columns.keys.tolist())

    def bests(self, columns: Columns) -> Floats:
        """Return the score that each instance is expected to reach."""
        config = self.config
        still = self._chances.still(self._window)
        repeats = self._chances.recurrences(self._window)[:, None]
        is_seen = columns.counts > 0
        missing = np.maximum(repeats - columns.counts, 0.0)
        for stream in range(config.streams):
            probability = np.where(is_seen, still[stream][:, None], 0.0).max(axis=0)
            missing[stream] *= np.where(is_seen[stream], 1.0, probability)
        if config.repeats == "max":
            missing = np.minimum(missing, 1.0)
        return self._with_rest(columns.values, missing * self._highs)

    def _take(self, end: int, batch: Observations) -> None:
        self._chances.add(end, batch)
        super()._take(end, batch)

    def _select(self, bests: Floats, kth: Floats) -> Booleans:
        is_kept = super()._select(bests, kth)
        if self.bound is not None and np.count_nonzero(is_kept) > self.bound:
            # Ties go to the younger instances, which live longer.
            order = np.lexsort((np.arange(len(bests)), bests, is_kept))
            is_kept[order[: -self.bound]] = False
        return is_kept

    def _plain(self) -> dict[str, Any]:
        return {**self.config.plain(), "bound": self.bound}

    def _content(self) -> StateData:
        return {**super()._content(), "chances": self._chances.state(), "window": self._window}

    @classmethod
    def restored(
        cls, config: IncompleteOperatorConfig, state: StateData, bound: int | None = None
    ) -> Approximate:
        """Return an operator restored from a state."""
        operator = cls(config, bound)
        check_header(state, cls.tag, operator._plain())
        operator._restore(state)
        return operator

    def _restore(self, state: StateData) -> None:
        super()._restore(state)
        self._chances.restore(state["chances"])
        self._window = state["window"]
