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
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.evaluators.service.shared_replica import News, SharedReplica
from rsp_engine.policies.policy import ValuingPolicy, elected_set
from rsp_engine.replica.budget_shares import AbsentKeys, shares
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, FetchResult, Limits
from rsp_engine.replica.store.replica import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyoxigraph import Triple

    from rsp_engine.evaluators.acquatop.voi_outlook import VoiOutlook
    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.evaluators.service.service_budget import ServiceBudget
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
    elected: Sequence[Mapping[str, Any]] | None = None
    """The keys that the policy has elected, if that is to be reported."""

    def stats(self) -> dict[str, Any]:
        """Return the statistics of the refresh for its answer."""
        stats: dict[str, Any] = {
            "budget_spent": self.fetched,
            "requests": self.requests,
            "cold_misses": self.cold_misses,
        }
        if self.elected is not None:
            stats["elected"] = self.elected
        return {**stats, **failure_stats(self.unanswered, self.faults)}


def failure_stats(unanswered: int, faults: Mapping[str, int]) -> dict[str, Any]:
    """Return the statistics of failures for an answer; empty if there are none."""
    stats: dict[str, Any] = {"unanswered": unanswered} if unanswered else {}
    return {**stats, "faults": dict(sorted(faults.items()))} if faults else stats


class Refresh:
    """The refresh of a replica for one SERVICE clause of a query.

    The replica may be shared with other queries; then `budget` is that of their service.
    """

    def __init__(
        self,
        plan: ServicePlan,
        shared: SharedReplica | None = None,
        budget: ServiceBudget | None = None,
        query: str = "",
    ) -> None:
        self.plan = plan
        self.budget = budget
        self._query = query
        if budget is not None and budget.keeper is None:
            budget.keeper = self
        self._shared = SharedReplica(plan) if shared is None else shared
        self._reader = self._shared.join()
        self._is_first = self._shared.readers[0] is self._reader
        self.replica = self._shared.replica
        self._tried: dict[int, int] = {}
        """When the last fetch of each cold key of the last window failed."""
        self._faults: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        """How many fetched keys were changed, unchanged or failed."""

    @property
    def is_whole(self) -> bool:
        """Whether the whole dataset was loaded: an unknown key had no solutions then."""
        return self._shared.is_whole

    @property
    def has_missed_a_change(self) -> bool:
        """Whether a pushed element could not be evaluated: any key may have changed unseen."""
        return self._shared.has_missed_a_change

    def serve(self, uses: Callable[[Integers], Booleans]) -> None:
        """Set how to find out which keys the query uses, before its first evaluation."""
        self._reader.uses = uses

    def begin(self, now: int) -> Integers:
        """Load the snapshot once, as of an instant before the first evaluation; return its keys."""
        return self._shared.begin(now, self._reader, self._faults)

    def push(self, time: int, triples: Sequence[Triple]) -> None:
        """Add an element of the change feed; of a shared replica, the first query adds it."""
        if self._is_first:
            self._shared.push(time, triples)

    def pushed(self, now: int) -> Integers:
        """Apply the changes pushed up to `now`; return the keys changed by these or by others."""
        news = [each.changed for each in self._reader.take_news()]
        pushed = self._shared.pushed(now, self._reader, self._faults)
        return np.unique(np.concatenate((*news, pushed))) if news else pushed

    def news(self) -> list[News]:
        """Return what other queries have fetched since the last call of this or of `pushed`."""
        return self._reader.take_news()

    def freed(self) -> Integers:
        """Return the numbers of keys that were forgotten after evaluations of other queries."""
        return self._reader.take_gone()

    def bid(self, absent: Integers, now: int, worth: tuple[Integers, Floats] | None) -> None:
        """Tell a shared budget what the query needs, before any query fetches.

        These are its cold keys, and, if it is known, what refreshes of known keys are worth.
        """
        if self.budget is None or worth is None or not self.plan.policy.is_bounded:
            return
        self.budget.bid(self._query, self._shared, worth)
        self.budget.need(
            self._query, int(np.count_nonzero(self.replica.entries(absent).is_stale(now)))
        )

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
        budget = plan.options.most_keys if budget is None else budget
        if budget is None:
            budget = self._in_time(call, learns=outlook is not None)
        if not plan.policy.is_bounded:
            budget = None
        if plan.policy.proposer is None:
            budget = 0
        missing, most_absent = absent, None
        if self.budget is not None:
            granted, most_absent = self.budget.grant(self._query)
            budget = granted if budget is None else min(budget, granted)
            is_left = ~self._shared.are_asked(absent, now)
            absent, scores = absent[is_left], scores[is_left]
        share = shares(budget, self._absent(absent, scores, now), most_absent)
        rest = len(candidates) if share.rest is None else share.rest
        fresh = None
        if plan.policy.proposer is not None and rest + len(share.fetched):
            cold = np.concatenate((share.fetched, share.missed[:rest]))
            fresh = self._signalled_fresh(candidates.keys, cold, call, outlook)
        if self._shared.is_shared:
            asked = self._shared.are_asked(candidates.keys, now)
            fresh = asked if fresh is None else fresh | asked
        first, spare = share.fetched, rest
        if outlook is not None:
            candidates = self._outlook(outlook)
        if outlook is not None and call.allows(2):
            half = -(-rest // 2)
            elected = self._elected(candidates, half, fresh, call)
            self._fetch_keys(np.concatenate((first, elected)), call, outlook)
            first, rest, spare = first[:0], rest - half, spare - len(elected)
            candidates = self._outlook(outlook)
            fresh = self.replica.entries(candidates.keys).last_refresh == now
            fresh |= self._shared.are_asked(candidates.keys, now)
        elected = self._elected(candidates, rest, fresh, call)
        # The budget that the policy does not use goes to the absent keys left over.
        extra = share.missed[: spare - len(elected)]
        self._fetch_keys(np.concatenate((first, elected, extra)), call, outlook)
        missed = missing[~self.replica.is_known(missing)]
        self._tried = {key: self._tried[key] for key in missed.tolist() if key in self._tried}
        changed = np.unique(np.concatenate(call.changed))
        reported = [*self._told(call)] if plan.options.elected else None
        return RefreshReport(
            *(changed, call.fetched, call.unanswered, call.requests, len(missed), call.faults),
            reported,
        )

    def _in_time(self, call: _Call, *, learns: bool) -> int | None:
        """Return how many keys are answered in time; a policy that learns fetches in two calls."""
        learned, most = self._shared.in_time, call.limits.deadline_ms
        if learned is None or most is None:
            return None
        if most < 1:
            return 0
        fetches = 2 if learns else 1
        call.most_ms = most / (fetches + (self._shared.signal is not None))
        return fetches * learned.allowed()

    def _outlook(self, outlook: VoiOutlook) -> Candidates:
        """Return the candidates of an outlook, with what they are worth to other queries."""
        candidates = outlook.candidates()
        if self.budget is None:
            return candidates
        return replace(candidates, elsewhere=self.budget.elsewhere(self._query, candidates.keys))

    def _absent(self, keys: Integers, scores: Floats, now: int) -> AbsentKeys:
        """Return the absent keys with what orders them; stale and cold ones are urgent."""
        entries = self.replica.entries(keys)
        tried = np.array([self._tried.get(key, NEVER) for key in keys.tolist()], dtype=np.int64)
        tried = np.maximum(tried, entries.last_refresh)
        ranks = self.replica.keys.precedence(keys, scores)
        return AbsentKeys(keys, scores, tried, entries.is_stale(now), ranks)

    def _told(self, call: _Call) -> Iterator[dict[str, Any]]:
        """Yield the elected keys in order, with their values and the outcomes of their fetches."""
        pattern, changed = self.plan.pattern, set(np.concatenate(call.changed).tolist())
        keys = self.replica.keys.of(number for number, _ in call.elected)
        for (number, value), key in zip(call.elected, keys, strict=True):
            outcome = "changed" if number in changed else "unchanged"
            yield {
                "service": pattern.service,
                "key": dict(zip(pattern.keys, map(str, key), strict=True)),
                "value": value if isfinite(value) else None,
                "outcome": "unanswered" if number in call.failed else outcome,
            }

    def _elected(
        self, candidates: Candidates, budget: int, fresh: Booleans | None, call: _Call
    ) -> Integers:
        policy, seed, now = self.plan.policy, self.plan.options.seed, call.now
        if not len(candidates):
            return candidates.keys
        entries = self.replica.entries(candidates.keys)
        # Key numbers depend on the history of the run. Policies see ranks instead, so that ties are
        # broken by term order.
        ranks = self.replica.keys.precedence(candidates.keys, candidates.scores)
        ranked = replace(candidates, keys=ranks)
        elected = elected_set(policy, ranked, entries, budget, now, seed, skipped=fresh)
        places = np.argsort(ranks)[elected][:budget]
        if self.plan.options.elected:
            known = (
                policy.values(ranked, entries, now) if isinstance(policy, ValuingPolicy) else None
            )
            values = np.full(len(ranked), np.nan) if known is None else known
            numbers = candidates.keys[places].tolist()
            call.elected += zip(numbers, values[places].tolist(), strict=True)
        return candidates.keys[places]

    def _signalled_fresh(
        self, keys: Integers, cold: Integers, call: _Call, outlook: VoiOutlook | None
    ) -> Booleans | None:
        """Ask the change signal, if there is one; return which keys are unchanged.

        Cold keys that may be fetched are included, so that their stamps are known.
        """
        signal = self._shared.signal
        if signal is None or not call.allows(2) or not len(keys) + len(cold):
            return None
        reply = signal.ask(np.concatenate((keys, cold)), call.left(), call.now)
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
        if self.budget is not None:
            self.budget.spend(self._query, len(wanted))
        self._shared.note_asked(wanted, call.now)
        start = call.clock()
        fetched = self._shared.endpoint.fetch(keys, call.left(), call.now)
        elapsed = (call.clock() - start) * 1000 if fetched.elapsed is None else fetched.elapsed
        changed = self.replica.apply(fetched, call.now)
        call.note(fetched.requests, fetched.faults)
        call.fetched += len(wanted)
        call.changed.append(changed)
        answered = self.replica.keys.numbers(fetched.answers)
        is_answered = np.isin(wanted, answered)
        failed = wanted[~is_answered].tolist()
        if self._shared.in_time is not None and call.most_ms is not None:
            self._shared.in_time.observe(len(wanted), elapsed, call.most_ms, is_answered=not failed)
        call.unanswered += len(failed)
        call.failed.update(failed)
        self._tried.update(dict.fromkeys(failed, call.now))
        self._count(is_answered, np.isin(wanted, changed))
        self._shared.tell(News(call.now, answered, changed), self._reader)
        if self._shared.signal is not None:
            self._shared.signal.record_fetched(answered.tolist())
        if outlook is not None:
            outlook.learn_fetched(answered, changed)

    def _count(self, is_answered: Booleans, has_changed: Booleans) -> None:
        self.outcomes["changed"] += int(np.count_nonzero(is_answered & has_changed))
        self.outcomes["unchanged"] += int(np.count_nonzero(is_answered & ~has_changed))
        self.outcomes["failed"] += int(np.count_nonzero(~is_answered))

    def forget(self, left: Integers) -> Integers:
        """Forget keys that no query uses and the replica does not hold; return their numbers.

        Only keys that `left` the windows, or that the replica dropped, can be such. Their numbers
        are reused, so callers must forget whatever they store by number.
        """
        return self._shared.forget(left, self._reader)

    def ask(self, keys: Sequence[Key], now: int) -> FetchResult:
        """Fetch keys without limits, and without a change of the replica: for the oracle."""
        return self._shared.endpoint.fetch(keys, UNLIMITED, now)

    def state(self) -> StateData:
        """Return the replica and the state of its refresh, as plain data.

        A shared replica is in the state of its first query, and so is a shared budget.
        """
        return {
            **(self._shared.state() if self._is_first else {}),
            **(self._reader.state() if self._shared.is_shared else {}),
            **self._budget_state(),
            "tried": sorted([key, at] for key, at in self._tried.items()),
            "faults": dict(sorted(self._faults.items())),
        }

    def restore(self, state: StateData) -> None:
        """Restore a saved state, before the first request."""
        if self._is_first:
            self._shared.restore(state)
        if self._shared.is_shared:
            self._reader.restore(state)
        if self.budget is not None and self.budget.keeper is self:
            self.budget.restore(state["budget"])
        self._tried = dict(state["tried"])
        self._faults = Counter(state["faults"])

    def _budget_state(self) -> StateData:
        if self.budget is None or self.budget.keeper is not self:
            return {}
        return {"budget": self.budget.state()}

    def close(self) -> None:
        """Close the endpoints."""
        if self._is_first:
            self._shared.close()


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
    failed: set[int] = field(default_factory=set)
    elected: list[tuple[int, float]] = field(default_factory=list)
    """The elected keys with their values, if they are to be reported."""
    requests: int = 0
    most_ms: float | None = None
    """How long a fetch may take, if the budget is a time."""
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
