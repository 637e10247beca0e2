"""approxAlgo: EAA that expects of what is missing no more than is likely.

In a best score, the largest value of an attribute that has not come is weighted with the
probability that it will still come (`chances`). So intervals are smaller, and far fewer instances
are kept; that one of those dropped would have been among the best is possible, but rare. Answers
say that they are approximate.

With a `bound`, no more than so many instances are kept after any answer: those with the best hopes.

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009, section
4; section 5 for objects that come again in one stream.
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
    """Time and memory: those of EAA, with fewer instances kept, and the sketches."""

    tag: ClassVar[str] = "Approximate"

    is_approximate = True
    _is_thorough = True  # so few are kept that looking pane by pane costs little

    def __init__(self, config: IncompleteOperatorConfig, bound: int | None = None) -> None:
        super().__init__(config)
        if bound is not None and bound < config.k:
            raise ValueError(f"a bound of {bound} instances has no room for the {config.k} best")
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
        """Return the objects of which an instance is kept."""
        return set(self._instances.columns.keys.tolist())

    def bests(self, held: Columns) -> Floats:
        """Return the score that each instance is likely to reach."""
        config = self.config
        still = self._chances.still(self._window)
        repeats = self._chances.recurrences(self._window)[:, None]
        is_seen = held.counts > 0
        left = np.maximum(repeats - held.counts, 0.0)
        for stream in range(config.streams):
            likely = np.where(is_seen, still[stream][:, None], 0.0).max(axis=0)
            left[stream] *= np.where(is_seen[stream], 1.0, likely)
        if config.repeats == "max":
            left = np.minimum(left, 1.0)
        return self._with_rest(held.values, left * self._highs)

    def _take(self, end: int, batch: Observations) -> None:
        self._chances.hear(end, batch)
        super()._take(end, batch)

    def _chosen(self, bests: Floats, kth: Floats) -> Booleans:
        chosen = super()._chosen(bests, kth)
        if self.bound is not None and np.count_nonzero(chosen) > self.bound:
            # Of equal hopes the younger are kept: they live longer.
            order = np.lexsort((np.arange(len(bests)), bests, chosen))
            chosen[order[: -self.bound]] = False
        return chosen

    def _plain(self) -> dict[str, Any]:
        return {**self.config.plain(), "bound": self.bound}

    def _content(self) -> StateData:
        return {**super()._content(), "chances": self._chances.state(), "window": self._window}

    @classmethod
    def restored(
        cls, config: IncompleteOperatorConfig, state: StateData, bound: int | None = None
    ) -> Approximate:
        """Return an operator that goes on from a state. Where to look for the best is guessed."""
        made = cls(config, bound)
        check_header(state, cls.tag, made._plain())
        made._restore(state)
        return made

    def _restore(self, state: StateData) -> None:
        super()._restore(state)
        self._chances.restore(state["chances"])
        self._window = state["window"]
