"""The refresh of a replica before an evaluation: AcquaTop's `UpdateReplica`.

    pushed changes   applied first; they cost no budget
    absent keys      cold keys and keys without a value: up to half of the budget, and what the
                     elected set leaves
    change signal    if the service has one: an unchanged key counts as refreshed
    elected set      what the policy elects among the other candidates, with the rest of the budget
    fetch            one call, within the limits; a failed fetch leaves the replica as it was

A policy that learns fetches in two calls: it elects half of its keys, learns from the fetched
values, and elects the rest. One of the allowed requests is reserved for the fetch: if there is only
one, no change signal is requested, and a policy that learns fetches in one call.

Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data. Section 5, Algorithm 5. ACQUA is its section 3.2.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.garbage import no_garbage_collection
from rsp_engine.policies.policy import elected_set
from rsp_engine.replica.budget_shares import AbsentKeys, shares
from rsp_engine.replica.change_signal import ChangeSignal, modified_pattern
from rsp_engine.replica.changes import ChangeFeed
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, FetchResult, Limits
from rsp_engine.replica.store.freshness_table import NEVER
from rsp_engine.replica.store.replica import Replica, ReplicaConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyoxigraph import Triple

    from rsp_engine.evaluators.acquatop.voi_outlook import VoiOutlook
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.candidates import Candidates
    from rsp_engine.model.state import StateData
    from rsp_engine.replica.pattern import Key

__all__ = ["Refresh", "RefreshReport", "failure_stats"]


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """The result of a refresh: the changed keys, and its cost."""

    changed: Integers
    fetched: int
    """How many keys were requested: at most the budget, if the policy is bounded."""
    unanswered: int
    """How many of these have no answer: the service failed, or a limit was reached."""
    requests: int
    cold_misses: int
    """How many keys of the window are still cold."""
    faults: Mapping[str, int]

    def stats(self) -> dict[str, Any]:
        """Return the statistics of the refresh for its answer."""
        stats: dict[str, Any] = {
            "budget_spent": self.fetched,
            "requests": self.requests,
            "cold_misses": self.cold_misses,
        }
        return {**stats, **failure_stats(self.unanswered, self.faults)}


def failure_stats(unanswered: int, faults: Mapping[str, int]) -> dict[str, Any]:
    """Return the statistics of failures for an answer; empty if there are none."""
    stats: dict[str, Any] = {"unanswered": unanswered} if unanswered else {}
    return {**stats, "faults": dict(sorted(faults.items()))} if faults else stats


class Refresh:
    """The replica of one SERVICE clause, with its endpoint, change signal and change feed."""

    def __init__(self, plan: ServicePlan) -> None:
        self.plan = plan
        capacity = plan.options.capacity
        self.replica = Replica(ReplicaConfig(plan.pattern, plan.estimation, capacity))
        self._endpoint = plan.connect(plan.pattern)
        self._signal = None
        if plan.modified is not None:
            stamps = modified_pattern(plan.pattern, plan.modified)
            self._signal = ChangeSignal(plan.connect(stamps), self.replica.keys)
        self._feed = ChangeFeed(plan.pattern) if plan.is_pushed else None
        self._first_push: int | None = None
        self._has_begun = plan.options.replica == "cache"
        self.is_whole = False
        """Whether the whole dataset was loaded: an unknown key had no solutions then."""
        self.has_missed_a_change = False
        """Whether a pushed element could not be evaluated: any key may have changed unseen."""
        self._tried: dict[int, int] = {}
        """When the last fetch of each cold key of the last window failed."""
        self._faults: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        """How many fetched keys were changed, unchanged or failed."""

    @no_garbage_collection(is_loading=True)
    def begin(self, now: int) -> Integers:
        """Load the snapshot once, as of an instant before the first evaluation; return its keys.

        The instant is not after the first pushed change: the replica ignores answers that are
        older than its last refresh.
        """
        if self._has_begun:
            return np.empty(0, dtype=np.int64)
        self._has_begun = True
        now = now if self._first_push is None else min(now, self._first_push)
        stamps = FetchResult() if self._signal is None else self._signal.snapshot(now)
        snapshot = self._endpoint.snapshot(UNLIMITED, now)
        self._faults.update({**stamps.faults, **snapshot.faults})
        self.is_whole = not snapshot.faults and self.plan.options.capacity is None
        changed = self.replica.load(snapshot, now)
        if self._signal is not None:
            self._signal.load(stamps)
        return changed

    def push(self, time: int, triples: Sequence[Triple]) -> None:
        """Add an element of the change feed."""
        if self._feed is not None:
            self._feed.push(time, triples)
            self._first_push = time if self._first_push is None else min(time, self._first_push)

    def pushed(self, now: int) -> Integers:
        """Apply the changes pushed up to `now`; return the changed keys."""
        due = [] if self._feed is None else self._feed.due(now)
        changed = [self.replica.apply(change.fetched, change.time) for change in due]
        for change in due:
            self._faults.update(change.fetched.faults)
            self.has_missed_a_change |= bool(change.fetched.faults)
        return np.unique(np.concatenate(changed)) if changed else np.empty(0, dtype=np.int64)

    def fetch(  # noqa: PLR0913 - keys, and the limits of their fetch
        self,
        candidates: Candidates,
        absent: Integers,
        scores: Floats,
        now: int,
        *,
        budget: int | None = None,
        limits: Limits | None = None,
        outlook: VoiOutlook | None = None,
    ) -> RefreshReport:
        """Fetch absent keys, ordered by their stream scores, and the elected set of the candidates.

        Candidates have values. Absent keys are cold, or known to have no value; the latter come
        with the cold keys once that is stale, and after them until then. `budget` and `limits`
        default to those of the plan. An `outlook` learns from the signal and from each fetch. With
        a change feed, known keys are not fetched.
        """
        plan = self.plan
        if plan.is_pushed:
            candidates, outlook = candidates.none(), None
            is_fetched = ~self.replica.is_known(absent) & (not self.is_whole)
            absent, scores = absent[is_fetched], scores[is_fetched]
        call = _Call(limits or plan.limits, now, self._faults)
        self._faults = Counter()
        budget = plan.options.budget if budget is None else budget
        if not plan.policy.is_bounded:
            budget = None
        if plan.policy.proposer is None:
            budget = 0
        share = shares(budget, self._absent(absent, scores, now))
        rest = len(candidates) if share.rest is None else share.rest
        fresh = None
        if plan.policy.proposer is not None and rest + len(share.fetched):
            cold = np.concatenate((share.fetched, share.missed[:rest]))
            fresh = self._signalled_fresh(candidates.keys, cold, call, outlook)
        first, spare = share.fetched, rest
        if outlook is not None:
            candidates = outlook.candidates()
        if outlook is not None and call.allows(2):
            half = -(-rest // 2)
            elected = self._elected(candidates, half, now, fresh)
            self._fetch_keys(np.concatenate((first, elected)), call, outlook)
            first, rest, spare = first[:0], rest - half, spare - len(elected)
            candidates = outlook.candidates()
            fresh = self.replica.entries(candidates.keys).last_refresh == now
        elected = self._elected(candidates, rest, now, fresh)
        # The budget that the policy does not use goes to the absent keys left over.
        extra = share.missed[: spare - len(elected)]
        self._fetch_keys(np.concatenate((first, elected, extra)), call, outlook)
        missed = absent[~self.replica.is_known(absent)]
        self._tried = {key: self._tried[key] for key in missed.tolist() if key in self._tried}
        changed = np.unique(np.concatenate(call.changed))
        return RefreshReport(
            changed, call.fetched, call.unanswered, call.requests, len(missed), call.faults
        )

    def _absent(self, keys: Integers, scores: Floats, now: int) -> AbsentKeys:
        """Return the absent keys with what orders them; stale and cold ones are urgent."""
        entries = self.replica.entries(keys)
        tried = np.array([self._tried.get(key, NEVER) for key in keys.tolist()], dtype=np.int64)
        tried = np.maximum(tried, entries.last_refresh)
        ranks = self.replica.keys.precedence(keys, scores)
        return AbsentKeys(keys, scores, tried, entries.is_stale(now), ranks)

    def _elected(
        self, candidates: Candidates, budget: int, now: int, fresh: Booleans | None
    ) -> Integers:
        policy, seed = self.plan.policy, self.plan.options.seed
        if not len(candidates):
            return candidates.keys
        entries = self.replica.entries(candidates.keys)
        # Key numbers depend on the history of the run. Policies see ranks instead, so that ties are
        # broken by term order.
        ranks = self.replica.keys.precedence(candidates.keys, candidates.scores)
        ranked = replace(candidates, keys=ranks)
        elected = elected_set(policy, ranked, entries, budget, now, seed, skipped=fresh)
        return candidates.keys[np.argsort(ranks)[elected]]

    def _signalled_fresh(
        self, keys: Integers, cold: Integers, call: _Call, outlook: VoiOutlook | None
    ) -> Booleans | None:
        """Ask the change signal, if there is one; return which keys are unchanged.

        Cold keys that may be fetched are included, so that their stamps are known.
        """
        if self._signal is None or not call.allows(2) or not len(keys) + len(cold):
            return None
        reply = self._signal.ask(np.concatenate((keys, cold)), call.left(), call.now)
        call.note(reply.requests, reply.faults)
        is_covered, unchanged = reply.is_covered[: len(keys)], reply.unchanged[: len(keys)]
        self.replica.confirm(keys[unchanged], call.now)
        self.replica.doubt(keys[is_covered & ~unchanged], call.now)
        if outlook is not None:
            outlook.learn_signal(keys[is_covered], ~unchanged[is_covered])
        return unchanged

    def _fetch_keys(self, wanted: Integers, call: _Call, outlook: VoiOutlook | None = None) -> None:
        """Fetch keys, and apply the answers to the replica."""
        if not len(wanted):
            return
        keys = self.replica.keys.of(wanted.tolist())
        fetched = self._endpoint.fetch(keys, call.left(), call.now)
        changed = self.replica.apply(fetched, call.now)
        call.note(fetched.requests, fetched.faults)
        call.fetched += len(wanted)
        call.changed.append(changed)
        answered = self.replica.keys.numbers(fetched.answers)
        is_answered = np.isin(wanted, answered)
        failed = wanted[~is_answered].tolist()
        call.unanswered += len(failed)
        self._tried.update(dict.fromkeys(failed, call.now))
        self._count(is_answered, np.isin(wanted, changed))
        if self._signal is not None:
            self._signal.record_fetched(answered.tolist())
        if outlook is not None:
            outlook.learn_fetched(answered, changed)

    def _count(self, is_answered: Booleans, has_changed: Booleans) -> None:
        self.outcomes["changed"] += int(np.count_nonzero(is_answered & has_changed))
        self.outcomes["unchanged"] += int(np.count_nonzero(is_answered & ~has_changed))
        self.outcomes["failed"] += int(np.count_nonzero(~is_answered))

    def forget(self, left: Integers, is_used: Callable[[Integers], Booleans]) -> Integers:
        """Forget keys that are neither in a window nor in the replica; return their numbers.

        Only keys that `left` the windows, or that the replica dropped, can be such. Their numbers
        are reused, so callers must forget whatever they store by number. The replica keeps a key
        without a value only while a window uses it.
        """
        left = left[~is_used(left)]
        self.replica.drop_empty(left)
        numbers = {*left.tolist(), *self.replica.dropped()}
        unknown = [number for number in sorted(numbers) if not self.replica.holds(number)]
        gone = np.array(unknown, dtype=np.int64)
        gone = gone[~is_used(gone)]
        if self._signal is not None:
            self._signal.forget(gone.tolist())
        self.replica.keys.forget(gone.tolist())
        return gone

    def ask(self, keys: Sequence[Key], now: int) -> FetchResult:
        """Fetch keys without limits, and without a change of the replica: for the oracle."""
        return self._endpoint.fetch(keys, UNLIMITED, now)

    def state(self) -> StateData:
        """Return the replica and the state of its refresh, as plain data."""
        return {
            "replica": self.replica.state(),
            "changes": None if self._feed is None else self._feed.state(),
            "first_push": self._first_push,
            "has_begun": self._has_begun,
            "is_whole": self.is_whole,
            "has_missed_a_change": self.has_missed_a_change,
            "tried": sorted([key, at] for key, at in self._tried.items()),
            "faults": dict(sorted(self._faults.items())),
            "stamps": None if self._signal is None else self._signal.state(),
        }

    def restore(self, state: StateData) -> None:
        """Restore a saved state, before the first request."""
        self.replica.restore(state["replica"])
        changes = state["changes"]
        if self._feed is not None:
            self._feed.restore(changes)
        self._first_push, self._has_begun = state["first_push"], state["has_begun"]
        self.is_whole = state["is_whole"]
        self.has_missed_a_change = state["has_missed_a_change"]
        self._tried = dict(state["tried"])
        self._faults = Counter(state["faults"])
        stamps = state["stamps"]
        if self._signal is not None:
            self._signal.restore(stamps)

    def close(self) -> None:
        """Close the endpoints."""
        self._endpoint.close()
        if self._signal is not None:
            self._signal.close()


@dataclass(slots=True)
class _Call:
    """The progress of a refresh, checked against its limits.

    Decisions depend on the number of requests only, never on elapsed time: a recovered run must
    make the same calls.
    """

    limits: Limits
    now: int
    faults: Counter[str]
    clock: Callable[[], float] = time.monotonic
    changed: list[Integers] = field(default_factory=lambda: [np.empty(0, dtype=np.int64)])
    fetched: int = 0
    unanswered: int = 0
    requests: int = 0
    start: float = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.clock()

    def note(self, requests: int, faults: Mapping[str, int]) -> None:
        self.requests += requests
        self.faults.update(faults)

    def allows(self, requests: int) -> bool:
        """Return whether the limits allow this many more requests."""
        most = self.limits.max_requests
        return most is None or most - self.requests >= requests

    def left(self) -> Limits:
        """Return what is left of the limits."""
        most, deadline = self.limits.max_requests, self.limits.deadline_ms
        passed = int((self.clock() - self.start) * 1000)
        return Limits(
            None if most is None else max(most - self.requests, 0),
            None if deadline is None else max(deadline - passed, 0),
        )
