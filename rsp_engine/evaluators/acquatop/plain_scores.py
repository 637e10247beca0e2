"""F over float64, as long as float64 preserves the order of SPARQL, so that Topk+N can rank.

The kinds of x_S and x_D are tracked as values arrive: integers and decimals, with their number of
fractional digits, or doubles. For these kinds, F is computed exactly. After the first other value
or score (a string, a date, an unbound variable, a very large product), float64 may not preserve the
order any more, and objects are ranked by terms: see `ByTerms`. The same holds after the first key
with several remote solutions, each of which is a row of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.scoring.exact_scores import Column, NumberKind, ordered_scores

if TYPE_CHECKING:
    from rsp_engine.evaluators.acquatop.evaluator import AcquaTopConfig
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.state import StateData

__all__ = ["PlainScores"]


class PlainScores:
    """F of a query. Its scores have the order of SPARQL as long as `is_plain`."""

    def __init__(self, config: AcquaTopConfig) -> None:
        self.is_plain = True
        self._config = config
        self._streaming: NumberKind | None = None
        self._remote: NumberKind | None = None

    def stream(self, kind: NumberKind | None) -> None:
        """Record the kind of some x_S; None if float64 may not preserve their order."""
        if self._config.streaming is not None:
            self._streaming = self._join_kinds(self._streaming, kind)

    def answer(self, kind: NumberKind | None) -> None:
        """Record the kind of some x_D; None if float64 may not preserve their order."""
        if self._config.remote is not None:
            self._remote = self._join_kinds(self._remote, kind)

    def answer_several(self) -> None:
        """Record that a key has several remote solutions."""
        self.is_plain = False

    def _join_kinds(self, before: NumberKind | None, kind: NumberKind | None) -> NumberKind | None:
        self.is_plain &= kind is not None
        return kind if before is None or kind is None else before.joined(kind)

    def __call__(self, streaming: Floats, remote: Floats) -> Floats:
        """Return F, larger is better; NaN only without a remote value."""
        if self.is_plain:
            scores = self._exact(streaming, remote)
            if scores is not None:
                return scores
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
        exact = self._exact_of_known(streaming[known], remote[known])
        if exact is None:
            return None
        scores[known] = exact
        return scores

    def _exact_of_known(self, streaming: Floats, remote: Floats) -> Floats | None:
        config = self._config
        columns = {}
        if config.streaming is not None and self._streaming is not None:
            columns[config.streaming] = Column(streaming, self._streaming)
        if config.remote is not None and self._remote is not None:
            columns[config.remote] = Column(remote, self._remote)
        scores = ordered_scores(config.scoring, columns, len(remote))
        if scores is None or not np.isfinite(scores).all():
            return None
        return scores if config.descending else -scores

    def for_other_replica(self) -> PlainScores:
        """Return F for the same stream and another replica, as the oracle needs it."""
        other = PlainScores(self._config)
        other.is_plain, other._streaming = self.is_plain, self._streaming
        return other

    def state(self) -> StateData:
        """Return the recorded kinds, as plain data."""
        sides = {"streaming": self._streaming, "remote": self._remote}
        kinds = {side: None if kind is None else [*kind] for side, kind in sides.items()}
        return {"is_plain": self.is_plain, **kinds}

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self.is_plain = state["is_plain"]
        self._streaming, self._remote = (
            None if state[side] is None else NumberKind(*state[side])
            for side in ("streaming", "remote")
        )
