"""The refresh of a replica before an evaluation: AcquaTop's `UpdateReplica`.

    pushed changes   taken in first; they cost nothing
    cold misses      keys in the window that the replica does not know: up to half the budget
    elected set      what the policy elects of the candidates, with the rest of the budget
    fetch            one call, within the limits; whatever fails leaves the replica as it was

Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data. Section 5, Algorithm 5. ACQUA is its section 3.2.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.policies.policy import elected_set
from rsp_engine.replica.changes import Changes
from rsp_engine.replica.cold import shares
from rsp_engine.replica.endpoint import UNLIMITED
from rsp_engine.replica.store import Replica, ReplicaConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.candidates import Candidates
    from rsp_engine.operators.state import State
    from rsp_engine.plan.services import ServicePlan
    from rsp_engine.replica.endpoint import Fetched, Limits
    from rsp_engine.replica.pattern import Key

__all__ = ["Refresh", "Refreshed"]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh did: the keys whose values are others now, and what it cost."""

    changed: Integers
    fetched: int
    """How many keys were asked for: never more than the budget."""
    requests: int
    cold_misses: int
    """How many keys of the window the replica still does not know."""
    faults: Mapping[str, int]

    def stats(self) -> dict[str, Any]:
        """Return what an answer says of it."""
        told: dict[str, Any] = {
            "budget_spent": self.fetched,
            "requests": self.requests,
            "cold_misses": self.cold_misses,
        }
        return {**told, "faults": dict(sorted(self.faults.items()))} if self.faults else told


class Refresh:
    """The replica of one SERVICE clause, its endpoint and its feed."""

    def __init__(self, plan: ServicePlan) -> None:
        self.plan = plan
        options = plan.options
        self.replica = Replica(ReplicaConfig(plan.pattern, options.estimation, options.capacity))
        self._endpoint = plan.connect(plan.pattern)
        self._changes = Changes(plan.pattern) if plan.is_pushed else None
        self._first_push: int | None = None
        self._has_begun = not options.snapshot
        self.is_whole = False
        """Whether everything was loaded, so that a key that is not known had no solutions then."""
        self._faults: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        """What came of the keys that were fetched: changed, unchanged, or failed."""

    def begin(self, now: int) -> Integers:
        """Load everything, once, as of an instant before the first evaluation; return the keys.

        What was pushed by then holds since a later time: else it would count as known already.
        """
        if self._has_begun:
            return np.empty(0, dtype=np.int64)
        self._has_begun = True
        now = now if self._first_push is None else min(now, self._first_push)
        snapshot = self._endpoint.snapshot(UNLIMITED, now)
        self._faults.update(snapshot.faults)
        self.is_whole = not snapshot.faults and self.plan.options.capacity is None
        return self.replica.load(snapshot, now)

    def push(self, time: int, triples: Sequence[Triple]) -> None:
        """Take in an element of the feed."""
        if self._changes is not None:
            self._changes.push(time, triples)
            self._first_push = time if self._first_push is None else min(time, self._first_push)

    def pushed(self, now: int) -> Integers:
        """Take in what was pushed up to an instant; return the keys whose values are others."""
        due = [] if self._changes is None else self._changes.due(now)
        changed = [self.replica.apply(change.fetched, change.time) for change in due]
        for change in due:
            self._faults.update(change.fetched.faults)
        return np.unique(np.concatenate(changed)) if changed else np.empty(0, dtype=np.int64)

    def fetch(  # noqa: PLR0913 - what may be fetched, and what it may cost
        self,
        candidates: Candidates,
        cold: Integers,
        scores: Floats,
        now: int,
        *,
        budget: int | None = None,
        limits: Limits | None = None,
    ) -> Refreshed:
        """Fetch cold keys, given with their stream scores, and those that the policy elects.

        The candidates are known to the replica, the cold keys are not. A budget and limits are
        given where others share those of the plan.
        """
        plan, faults = self.plan, self._faults
        self._faults = Counter()
        budget = plan.options.budget if budget is None else budget
        if not plan.policy.is_bounded:
            budget = None
        if plan.policy.proposer is None:
            budget = 0
        share = shares(budget, cold, scores)
        rest = len(candidates) if share.rest is None else share.rest
        entries = self.replica.entries(candidates.keys)
        elected = elected_set(plan.policy, candidates, entries, rest, now, plan.options.seed)
        wanted = np.concatenate((share.fetched, elected))
        if not len(wanted):
            return Refreshed(wanted, 0, 0, len(cold), faults)
        keys = self.replica.keys.of(wanted.tolist())
        fetched = self._endpoint.fetch(keys, limits or plan.options.limits, now)
        changed = self.replica.apply(fetched, now)
        faults.update(fetched.faults)
        self._count(wanted, self.replica.keys.numbers(fetched.answers), changed)
        missed = int(np.count_nonzero(~self.replica.is_known(cold)))
        return Refreshed(changed, len(wanted), fetched.requests, missed, faults)

    def _count(self, wanted: Integers, answered: Integers, changed: Integers) -> None:
        is_there, is_other = np.isin(wanted, answered), np.isin(wanted, changed)
        self.outcomes["changed"] += int(np.count_nonzero(is_there & is_other))
        self.outcomes["unchanged"] += int(np.count_nonzero(is_there & ~is_other))
        self.outcomes["failed"] += int(np.count_nonzero(~is_there))

    def ask(self, keys: Sequence[Key], now: int) -> Fetched:
        """Fetch keys beside the replica, without limits: for who wants to know the truth."""
        return self._endpoint.fetch(keys, UNLIMITED, now)

    def state(self) -> State:
        """Return what is known of the remote side, as plain data, to be restored from."""
        return {
            "replica": self.replica.state(),
            "changes": None if self._changes is None else self._changes.state(),
            "first_push": self._first_push,
            "has_begun": self._has_begun,
            "is_whole": self.is_whole,
            "faults": dict(sorted(self._faults.items())),
        }

    def restore(self, state: State) -> None:
        """Go on from a state, before anything was asked."""
        self.replica.restore(state["replica"])
        changes = state["changes"]
        if self._changes is not None:
            self._changes.restore(changes)
        self._first_push, self._has_begun = state["first_push"], state["has_begun"]
        self.is_whole = state["is_whole"]
        self._faults = Counter(state["faults"])

    def close(self) -> None:
        """Give back what the endpoint holds."""
        self._endpoint.close()
