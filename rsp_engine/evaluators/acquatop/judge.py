"""The oracle judge: measures each answer against the exact one.

It fetches every key of the window. This costs no budget and never changes the replica, so answers
are the same as without the judge.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.evaluators.acquatop.plain_scores import RemoteValues
from rsp_engine.evaluators.acquatop.term_ranking import ByTerms
from rsp_engine.operators.scoring.ranking_measures import CumulatedMeasures, Measures, measure
from rsp_engine.operators.topk.contract import Arrivals, rank_order
from rsp_engine.replica.store.replica import Replica, ReplicaConfig

if TYPE_CHECKING:
    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.acquatop.plain_scores import PlainScores
    from rsp_engine.evaluators.acquatop.ranked_objects import RankedObjects
    from rsp_engine.evaluators.service.refresh import Refresh
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData

__all__ = ["OracleJudge"]


class OracleJudge:
    """Judges the answers of a ranked query by nDCG@k and precision@k."""

    def __init__(self, config: AcquaTopConfig, refresh: Refresh, scores: PlainScores) -> None:
        self._config = config
        self._refresh = refresh
        self._scores = scores
        self._by_terms = ByTerms(config)
        self.cumulated = CumulatedMeasures()

    def judge(self, answer: Integers, objects: RankedObjects, now: int) -> dict[str, float]:
        """Return the measures of an answer; empty if a key could not be fetched."""
        truth = Replica(ReplicaConfig(self._refresh.plan.pattern))
        keys = self._refresh.replica.keys.of(objects.join_keys().tolist())
        fetched = self._refresh.ask(keys, now)
        if len(fetched.answers) < len(keys):
            return {}
        truth.apply(fetched, now)
        oracle = self._exact_order(objects, truth, now)
        # The best row of an object counts.
        shown, best = (list(dict.fromkeys(keys.tolist())) for keys in (answer, oracle))
        measures = measure(shown, best, self._config.k)
        self.cumulated = self.cumulated.add(measures)
        return {"ndcg": round(measures.ndcg, 6), "precision": round(measures.precision, 6)}

    def state(self) -> StateData:
        """Return the cumulated measures, as plain data."""
        return asdict(self.cumulated)

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        sums = Measures(*(state["sums"][field.name] for field in fields(Measures)))
        self.cumulated = CumulatedMeasures(state["windows"], sums)

    def _exact_order(self, objects: RankedObjects, truth: Replica, now: int) -> Integers:
        """Return all objects of the window that have a remote value, best first."""
        members, score_function = objects.members(), self._scores.for_other_replica()
        keys = truth.keys.numbers(self._refresh.replica.keys.of(members.keys.tolist()))
        values = RemoteValues(truth, self._config, score_function)
        scores = score_function(members.streaming, values.of(keys))
        if not score_function.is_plain:
            streamed = objects.terms(members.numbers.tolist(), now)
            return self._by_terms.rank(members, streamed, values.solutions(keys), now).keys
        known = np.flatnonzero(~np.isnan(scores))
        rows = Arrivals(members.numbers, members.positions, scores).take(known)
        return rows.keys[rank_order(rows)]
