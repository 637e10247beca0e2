"""The oracle beside a run: it asks the remote side for everything, and judges each answer.

What it asks for costs no budget and never reaches the replica, so the answers are as without it.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.operators.measures import Cumulated, Measures, measure
from rsp_engine.operators.topk import Arrivals, order_of
from rsp_engine.replica.store import Replica, ReplicaConfig
from rsp_engine.runtime.remote_values import RemoteValues

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Integers
    from rsp_engine.operators.state import State
    from rsp_engine.plan.joined import JoinedConfig
    from rsp_engine.runtime.objects import Members, Objects
    from rsp_engine.runtime.refresh import Refresh

__all__ = ["Judge"]


class Judge:
    """Judges the answers of a ranked query by nDCG@k and precision@k."""

    def __init__(self, config: JoinedConfig, refresh: Refresh) -> None:
        self._config = config
        self._refresh = refresh
        self.cumulated = Cumulated()

    def judge(self, answer: Integers, objects: Objects, now: int) -> dict[str, float]:
        """Return the measures of an answer; none if the remote side did not tell everything."""
        truth = Replica(ReplicaConfig(self._refresh.plan.pattern))
        keys = self._refresh.replica.keys.of(objects.join_keys().tolist())
        fetched = self._refresh.ask(keys, now)
        if len(fetched.answers) < len(keys):
            return {}
        truth.apply(fetched, now)
        oracle = self._ranked(objects.members(), truth)
        found = measure(answer.tolist(), oracle.tolist(), self._config.k)
        self.cumulated = self.cumulated.add(found)
        return {"ndcg": round(found.ndcg, 6), "precision": round(found.precision, 6)}

    def state(self) -> State:
        """Return the measures so far."""
        return asdict(self.cumulated)

    def restore(self, state: State) -> None:
        """Go on from a state."""
        sums = Measures(*(state["sums"][field.name] for field in fields(Measures)))
        self.cumulated = Cumulated(state["windows"], sums)

    def _ranked(self, members: Members, truth: Replica) -> Integers:
        """Return all objects of the window that have a remote value, best first."""
        keys = truth.keys.numbers(self._refresh.replica.keys.of(members.keys.tolist()))
        remote = RemoteValues(truth, self._config).of(keys)
        scores = self._config.scores(members.streaming, remote)
        known = np.flatnonzero(~np.isnan(scores))
        found = Arrivals(members.numbers, members.positions, scores).take(known)
        return found.keys[order_of(found)]
