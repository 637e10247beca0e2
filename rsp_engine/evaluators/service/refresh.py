"""The refresh of a replica before an evaluation: AcquaTop's `UpdateReplica`.

    pushed changes   taken in first; they cost nothing
    absent keys      cold misses, which the replica does not know, and those without a value: up to
                     half the budget, and what the elected set leaves
    change signal    if the service has one: what is told to be unchanged is as good as fetched
    elected set      what the policy elects of the other candidates, with the rest of the budget
    fetch            one call, within the limits; whatever fails leaves the replica as it was

A policy that learns elects half of its keys, looks at what came, and elects the rest: two calls. Of
the requests that are allowed, one is kept for the fetch: with one alone there is no signal, and
whoever learns fetches all at once.

Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data. Section 5, Algorithm 5. ACQUA is its section 3.2.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.policies.policy import elected_set
from rsp_engine.replica.budget_shares import Absent, shares
from rsp_engine.replica.change_signal import ChangeSignal, modified_pattern
from rsp_engine.replica.changes import ChangeFeed
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, Fetched, Limits
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
    """What a refresh did: the keys whose values are others now, and what it cost."""

    changed: Integers
    fetched: int
    """How many keys were to be fetched: never more than the budget."""
    unanswered: int
    """Of how many of these nothing came: the service failed, or what is allowed was spent."""
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
        return {**told, **failure_stats(self.unanswered, self.faults)}


def failure_stats(unanswered: int, faults: Mapping[str, int]) -> dict[str, Any]:
    """Return what an answer says of what went wrong, if something did."""
    told: dict[str, Any] = {"unanswered": unanswered} if unanswered else {}
    return {**told, "faults": dict(sorted(faults.items()))} if faults else told


class Refresh:
    """The replica of one SERVICE clause, its endpoint and its feed."""

    def __init__(self, plan: ServicePlan) -> None:
        self.plan = plan
        options = plan.options
        self.replica = Replica(ReplicaConfig(plan.pattern, options.estimation, options.capacity))
        self._endpoint = plan.connect(plan.pattern)
        self._signal = None
        if plan.modified is not None:
            asked = modified_pattern(plan.pattern, plan.modified)
            self._signal = ChangeSignal(plan.connect(asked), self.replica.keys)
        self._changes = ChangeFeed(plan.pattern) if plan.is_pushed else None
        self._first_push: int | None = None
        self._has_begun = not options.snapshot
        self.is_whole = False
        """Whether everything was loaded, so that a key that is not known had no solutions then."""
        self.has_missed_a_change = False
        """Whether something was pushed that could not be read: nobody knows what it was about."""
        self._tried: dict[int, int] = {}
        """When cold keys of the last window were asked for in vain."""
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
        stamps = Fetched() if self._signal is None else self._signal.snapshot(now)
        snapshot = self._endpoint.snapshot(UNLIMITED, now)
        self._faults.update({**stamps.faults, **snapshot.faults})
        self.is_whole = not snapshot.faults and self.plan.options.capacity is None
        changed = self.replica.load(snapshot, now)
        if self._signal is not None:
            self._signal.load(stamps)
        return changed

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
            self.has_missed_a_change |= bool(change.fetched.faults)
        return np.unique(np.concatenate(changed)) if changed else np.empty(0, dtype=np.int64)

    def fetch(  # noqa: PLR0913 - what may be fetched, and what it may cost
        self,
        candidates: Candidates,
        absent: Integers,
        scores: Floats,
        now: int,
        *,
        budget: int | None = None,
        limits: Limits | None = None,
        prospect: VoiOutlook | None = None,
    ) -> RefreshReport:
        """Fetch keys that are absent, given with their stream scores, and those that are elected.

        The candidates have values. Of the absent, most are cold: not known to the replica. Others
        are known to have no value; they stand with the cold when that is stale, and behind them
        until then. A budget and limits are given where others share those of the plan. A `prospect`
        is told what comes, as it comes. Where changes are pushed, what is known is not asked for.
        """
        plan = self.plan
        if plan.is_pushed:
            candidates, prospect = candidates.none(), None
            is_asked = ~self.replica.is_known(absent) & (not self.is_whole)
            absent, scores = absent[is_asked], scores[is_asked]
        call = _Call(limits or plan.options.limits, now, self._faults)
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
            asked = np.concatenate((share.fetched, share.missed[:rest]))
            fresh = self._told(candidates.keys, asked, call, prospect)
        first, spare = share.fetched, rest
        if prospect is not None:
            candidates = prospect.candidates()
        if prospect is not None and call.allows(2):
            half = -(-rest // 2)
            elected = self._elected(candidates, half, now, fresh)
            self._take(np.concatenate((first, elected)), call, prospect)
            first, rest, spare = first[:0], rest - half, spare - len(elected)
            candidates = prospect.candidates()
            fresh = self.replica.entries(candidates.keys).last_refresh == now
        elected = self._elected(candidates, rest, now, fresh)
        # What the policy has no use for is there for keys that would be left over.
        more = share.missed[: spare - len(elected)]
        self._take(np.concatenate((first, elected, more)), call, prospect)
        missed = absent[~self.replica.is_known(absent)]
        self._tried = {key: self._tried[key] for key in missed.tolist() if key in self._tried}
        changed = np.unique(np.concatenate(call.changed))
        return RefreshReport(
            changed, call.fetched, call.unanswered, call.requests, len(missed), call.faults
        )

    def _absent(self, keys: Integers, scores: Floats, now: int) -> Absent:
        """Return what is known of keys without a value. Those that are cold are stale as well."""
        entries = self.replica.entries(keys)
        tried = np.array([self._tried.get(key, NEVER) for key in keys.tolist()], dtype=np.int64)
        tried = np.maximum(tried, entries.last_refresh)
        ranks = self.replica.keys.precedence(keys, scores)
        return Absent(keys, scores, tried, entries.is_stale(now), ranks)

    def _elected(
        self, candidates: Candidates, budget: int, now: int, fresh: Booleans | None
    ) -> Integers:
        policy, seed = self.plan.policy, self.plan.options.seed
        if not len(candidates):
            return candidates.keys
        entries = self.replica.entries(candidates.keys)
        # Numbers depend on what came before, so a policy sees ranks: ties are broken by the terms.
        ranks = self.replica.keys.precedence(candidates.keys, candidates.scores)
        ranked = replace(candidates, keys=ranks)
        elected = elected_set(policy, ranked, entries, budget, now, seed, skipped=fresh)
        return candidates.keys[np.argsort(ranks)[elected]]

    def _told(
        self, keys: Integers, cold: Integers, call: _Call, prospect: VoiOutlook | None
    ) -> Booleans | None:
        """Ask which keys have changed, if that can be asked; return which have not.

        Cold keys that are about to be fetched are asked about, so that their stamps are known.
        """
        if self._signal is None or not call.allows(2) or not len(keys) + len(cold):
            return None
        told = self._signal.ask(np.concatenate((keys, cold)), call.left(), call.now)
        call.note(told.requests, told.faults)
        is_told, unchanged = told.is_told[: len(keys)], told.unchanged[: len(keys)]
        self.replica.confirm(keys[unchanged], call.now)
        self.replica.doubt(keys[is_told & ~unchanged], call.now)
        if prospect is not None:
            prospect.told(keys[is_told], ~unchanged[is_told])
        return unchanged

    def _take(self, wanted: Integers, call: _Call, prospect: VoiOutlook | None = None) -> None:
        """Fetch keys, and take in what comes."""
        if not len(wanted):
            return
        keys = self.replica.keys.of(wanted.tolist())
        fetched = self._endpoint.fetch(keys, call.left(), call.now)
        changed = self.replica.apply(fetched, call.now)
        call.note(fetched.requests, fetched.faults)
        call.fetched += len(wanted)
        call.changed.append(changed)
        answered = self.replica.keys.numbers(fetched.answers)
        failed = wanted[~np.isin(wanted, answered)].tolist()
        call.unanswered += len(failed)
        self._tried.update(dict.fromkeys(failed, call.now))
        self._count(wanted, answered, changed)
        if self._signal is not None:
            self._signal.took(answered.tolist())
        if prospect is not None:
            prospect.fetched(answered, changed)

    def _count(self, wanted: Integers, answered: Integers, changed: Integers) -> None:
        is_there, is_other = np.isin(wanted, answered), np.isin(wanted, changed)
        self.outcomes["changed"] += int(np.count_nonzero(is_there & is_other))
        self.outcomes["unchanged"] += int(np.count_nonzero(is_there & ~is_other))
        self.outcomes["failed"] += int(np.count_nonzero(~is_there))

    def forget(self, left: Integers, is_used: Callable[[Integers], Booleans]) -> Integers:
        """Forget keys that neither a window nor the replica holds; return their numbers.

        They are among those that `left` the windows, and those that the replica dropped. Others get
        their numbers: nobody may know anything by these any more. That a key has no value is known
        for as long as a window holds it.
        """
        left = left[~is_used(left)]
        self.replica.drop_empty(left)
        found = {*left.tolist(), *self.replica.dropped()}
        unheld = [number for number in sorted(found) if not self.replica.holds(number)]
        gone = np.array(unheld, dtype=np.int64)
        gone = gone[~is_used(gone)]
        if self._signal is not None:
            self._signal.forget(gone.tolist())
        self.replica.keys.forget(gone.tolist())
        return gone

    def ask(self, keys: Sequence[Key], now: int) -> Fetched:
        """Fetch keys beside the replica, without limits: for who wants to know the truth."""
        return self._endpoint.fetch(keys, UNLIMITED, now)

    def state(self) -> StateData:
        """Return what is known of the remote side, as plain data, to be restored from."""
        return {
            "replica": self.replica.state(),
            "changes": None if self._changes is None else self._changes.state(),
            "first_push": self._first_push,
            "has_begun": self._has_begun,
            "is_whole": self.is_whole,
            "has_missed_a_change": self.has_missed_a_change,
            "tried": sorted([key, at] for key, at in self._tried.items()),
            "faults": dict(sorted(self._faults.items())),
            "stamps": None if self._signal is None else self._signal.state(),
        }

    def restore(self, state: StateData) -> None:
        """Go on from a state, before anything was asked."""
        self.replica.restore(state["replica"])
        changes = state["changes"]
        if self._changes is not None:
            self._changes.restore(changes)
        self._first_push, self._has_begun = state["first_push"], state["has_begun"]
        self.is_whole = state["is_whole"]
        self.has_missed_a_change = state["has_missed_a_change"]
        self._tried = dict(state["tried"])
        self._faults = Counter(state["faults"])
        stamps = state["stamps"]
        if self._signal is not None:
            self._signal.restore(stamps)

    def close(self) -> None:
        """Give back what the endpoints hold."""
        self._endpoint.close()
        if self._signal is not None:
            self._signal.close()


@dataclass(slots=True)
class _Call:
    """What a refresh has done so far, held against its limits.

    What is done next hangs on requests alone, never on the time that has passed: a run that is gone
    on with asks the same.
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
        """Tell whether so many requests are left."""
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
