"""F over float64, as long as that has SPARQL's order: then Topk+N ranks as the query says.

What x_S and x_D are is noted as they come: integers and decimals, and with how many digits behind
the point, or doubles. With these F is worked out exactly. From the first value or score on that is
not so plain (a text, a date, no value, a very large product), float64 does not tell the order any
more, and the objects have to be ranked by terms: see `ByTerms`. So they have from the first key on
that has several remote solutions, each of which is a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.scoring.exact_scores import Column, NumberKind, ordered_scores

if TYPE_CHECKING:
    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.state import StateData

__all__ = ["PlainScores"]


class PlainScores:
    """F of a query. It always gives scores; whether they have SPARQL's order, `is_plain` tells."""

    def __init__(self, config: AcquaTopConfig) -> None:
        self.is_plain = True
        self._config = config
        self._streaming: NumberKind | None = None
        self._remote: NumberKind | None = None

    def stream(self, kind: NumberKind | None) -> None:
        """Note of which kind some x_S are; nothing if float64 may not have their order."""
        if self._config.streaming is not None:
            self._streaming = self._noted(self._streaming, kind)

    def answer(self, kind: NumberKind | None) -> None:
        """Note of which kind some x_D are; nothing if float64 may not have their order."""
        if self._config.remote is not None:
            self._remote = self._noted(self._remote, kind)

    def answer_several(self) -> None:
        """Note that a key has several remote solutions."""
        self.is_plain = False

    def _noted(self, before: NumberKind | None, kind: NumberKind | None) -> NumberKind | None:
        self.is_plain &= kind is not None
        return kind if before is None or kind is None else before.joined(kind)

    def __call__(self, streaming: Floats, remote: Floats) -> Floats:
        """Return F, larger is better; NaN only where there is no remote value."""
        if self.is_plain:
            found = self._exact(streaming, remote)
            if found is not None:
                return found
            self.is_plain = False
        return self._config.scores(streaming, remote)

    def _exact(self, streaming: Floats, remote: Floats) -> Floats | None:
        if not len(remote):
            return np.empty(0)
        known = ~np.isnan(remote)
        if known.all():
            return self._exact_of_known(streaming, remote)
        scores = np.full(len(remote), np.nan)
        if not known.any():
            return scores
        found = self._exact_of_known(streaming[known], remote[known])
        if found is None:
            return None
        scores[known] = found
        return scores

    def _exact_of_known(self, streaming: Floats, remote: Floats) -> Floats | None:
        config = self._config
        assert config.scoring is not None, "the planner says how to score"  # noqa: S101
        columns = {}
        if config.streaming is not None and self._streaming is not None:
            columns[config.streaming] = Column(streaming, self._streaming)
        if config.remote is not None and self._remote is not None:
            columns[config.remote] = Column(remote, self._remote)
        found = ordered_scores(config.scoring, columns, len(remote))
        if found is None or not np.isfinite(found).all():
            return None
        return found if config.descending else -found

    def beside(self) -> PlainScores:
        """Return the same F for the same stream, and other remote values."""
        made = PlainScores(self._config)
        made.is_plain, made._streaming = self.is_plain, self._streaming
        return made

    def state(self) -> StateData:
        """Return what was noted, as plain data."""
        sides = {"streaming": self._streaming, "remote": self._remote}
        noted = {side: None if kind is None else [*kind] for side, kind in sides.items()}
        return {"is_plain": self.is_plain, **noted}

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
        self.is_plain = state["is_plain"]
        self._streaming, self._remote = (
            None if state[side] is None else NumberKind(*state[side])
            for side in ("streaming", "remote")
        )
