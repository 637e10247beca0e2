"""A replica with its endpoint, change signal and change feed, and the queries that read it.

Most replicas have one reader. Queries whose service has a budget of its own share a replica where
they ask the same: a value that is fetched for one reader is news for the others, which take it at
their next evaluation. A key is forgotten when no reader uses it; its number may then be reused, so
each reader learns it before it evaluates again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.garbage import no_garbage_collection
from rsp_engine.replica.change_signal import ChangeSignal, modified_pattern
from rsp_engine.replica.changes import ChangeFeed
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, FetchResult
from rsp_engine.replica.endpoints.request_pace import PacedEndpoint
from rsp_engine.replica.keys_in_time import KeysInTime
from rsp_engine.replica.store.replica import Replica, ReplicaConfig

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from pyoxigraph import Triple

    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.model.arrays import Booleans, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.replica.endpoints.endpoint import Endpoint
    from rsp_engine.replica.endpoints.request_pace import RequestPace
    from rsp_engine.replica.pattern import RemotePattern

__all__ = ["News", "ReplicaReader", "SharedReplica"]

_NO_KEYS = np.empty(0, dtype=np.int64)


class News(NamedTuple):
    """What a replica has learned at an instant: which keys were answered, and which have changed.

    Keys that were loaded, pushed or dropped are changed, and not answered.
    """

    now: int
    answered: Integers
    changed: Integers


@dataclass(slots=True)
class ReplicaReader:
    """A query that reads a replica: the keys that it uses, and what it has not taken yet."""

    uses: Callable[[Integers], Booleans] | None = None
    news: list[News] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)

    def take_news(self) -> list[News]:
        """Return what other readers have learned since the last call."""
        taken, self.news = self.news, []
        return taken

    def take_gone(self) -> Integers:
        """Return the numbers that other readers have freed since the last call."""
        taken, self.gone = self.gone, []
        return np.array(taken, dtype=np.int64)

    def state(self) -> StateData:
        """Return what is not taken yet, as plain data."""
        news = [[each.now, each.answered.tolist(), each.changed.tolist()] for each in self.news]
        return {"news": news, "gone": self.gone}

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self.news = [
            News(now, *(np.array(keys, dtype=np.int64) for keys in both))
            for now, *both in state["news"]
        ]
        self.gone = list(state["gone"])


class SharedReplica:
    """The replica of equal SERVICE clauses, with all that updates it."""

    def __init__(self, plan: ServicePlan, pace: RequestPace | None = None) -> None:
        self.plan = plan
        self._pace = pace
        capacity = plan.options.capacity
        self.replica = Replica(ReplicaConfig(plan.pattern, plan.estimation, capacity))
        self.endpoint = self._connected(plan.pattern)
        self.signal = None
        if plan.modified is not None:
            stamps = modified_pattern(plan.pattern, plan.modified)
            self.signal = ChangeSignal(self._connected(stamps), self.replica.keys)
        self._feed = ChangeFeed(plan.pattern) if plan.is_pushed else None
        self._first_push: int | None = None
        self._has_begun = plan.options.replica == "cache"
        self.is_whole = False
        """Whether the whole dataset was loaded: an unknown key had no solutions then."""
        self.has_missed_a_change = False
        """Whether a pushed element could not be evaluated: any key may have changed unseen."""
        self.in_time = KeysInTime() if plan.options.budget_ms is not None else None
        """How many keys are answered in time, if the budget is a time."""
        self.readers: list[ReplicaReader] = []
        self._asked_at: int | None = None
        self._asked: set[int] = set()

    def _connected(self, pattern: RemotePattern) -> Endpoint:
        endpoint = self.plan.connect(pattern)
        return endpoint if self._pace is None else PacedEndpoint(endpoint, self._pace)

    def join(self) -> ReplicaReader:
        """Add a reader; call it before the first evaluation of any."""
        self.readers.append(ReplicaReader())
        return self.readers[-1]

    @property
    def is_shared(self) -> bool:
        """Whether several queries read the replica."""
        return len(self.readers) > 1

    def begin(self, now: int, reader: ReplicaReader, faults: Counter[str]) -> Integers:
        """Load the snapshot once, as of an instant before the first evaluation; return its keys."""
        if self._has_begun:
            return _NO_KEYS
        self._has_begun = True
        loaded = self._load(now, faults)
        self.tell(News(now, _NO_KEYS, loaded), reader)
        return loaded

    @no_garbage_collection(is_loading=True)
    def _load(self, now: int, faults: Counter[str]) -> Integers:
        """Load the snapshot; return its keys.

        The instant is not after the first pushed change: the replica ignores answers that are
        older than its last refresh.
        """
        now = now if self._first_push is None else min(now, self._first_push)
        stamps = FetchResult() if self.signal is None else self.signal.snapshot(now)
        snapshot = self.endpoint.snapshot(UNLIMITED, now)
        faults.update({**stamps.faults, **snapshot.faults})
        self.is_whole = not snapshot.faults and self.plan.options.capacity is None
        changed = self.replica.load(snapshot, now)
        if self.signal is not None:
            self.signal.load(stamps)
        return changed

    def push(self, time: int, triples: Sequence[Triple]) -> None:
        """Add an element of the change feed."""
        if self._feed is not None:
            self._feed.push(time, triples)
            self._first_push = time if self._first_push is None else min(time, self._first_push)

    def pushed(self, now: int, reader: ReplicaReader, faults: Counter[str]) -> Integers:
        """Apply the changes pushed up to `now`; return the changed keys."""
        due = [] if self._feed is None else self._feed.due(now)
        if not due:
            return _NO_KEYS
        parts = [self.replica.apply(change.fetched, change.time) for change in due]
        for change in due:
            faults.update(change.fetched.faults)
            self.has_missed_a_change |= bool(change.fetched.faults)
        changed = np.unique(np.concatenate(parts))
        self.tell(News(now, _NO_KEYS, changed), reader)
        return changed

    def tell(self, news: News, reader: ReplicaReader) -> None:
        """Tell the other readers what one of them has learned."""
        for other in self.readers:
            if other is not reader:
                other.news.append(news)

    def note_asked(self, keys: Integers, now: int) -> None:
        """Note keys that are fetched at an instant."""
        if self.is_shared:
            if self._asked_at != now:
                self._asked_at, self._asked = now, set()
            self._asked.update(keys.tolist())

    def are_asked(self, keys: Integers, now: int) -> Booleans:
        """Return which keys a reader has fetched at this instant: no other asks again."""
        if self._asked_at != now:
            return np.zeros(len(keys), dtype=np.bool_)
        return np.isin(keys, [*self._asked])

    def forget(self, left: Integers, reader: ReplicaReader) -> Integers:
        """Forget keys that no reader uses and the replica does not hold; return their numbers.

        Only keys that `left` the windows of this reader, or that the replica dropped, can be such.
        Their numbers are reused, so readers must forget whatever they store by number. The replica
        keeps a key without a value only while a reader uses it.
        """
        left = left[~self.is_used(left)]
        self.replica.drop_empty(left)
        dropped = self.replica.dropped()
        gone = np.union1d(left, [*dropped]) if dropped else left
        gone = gone[~self.replica.is_known(gone)]
        gone = gone[~self.is_used(gone)]
        freed = gone.tolist()
        if self.signal is not None:
            self.signal.forget(freed)
        self.replica.keys.forget(freed)
        self._asked.difference_update(freed)
        for other in self.readers:
            if other is not reader:
                other.gone += freed
        return gone

    def is_used(self, keys: Integers) -> Booleans:
        """Return which keys a reader uses."""
        used = np.zeros(len(keys), dtype=np.bool_)
        for reader in self.readers:
            if reader.uses is not None:
                used |= reader.uses(keys)
        return used

    def state(self) -> StateData:
        """Return the replica and the state of its refresh, as plain data."""
        asked = {"asked": [self._asked_at, sorted(self._asked)]} if self.is_shared else {}
        return {
            "replica": self.replica.state(),
            "changes": None if self._feed is None else self._feed.state(),
            "first_push": self._first_push,
            "has_begun": self._has_begun,
            "is_whole": self.is_whole,
            "has_missed_a_change": self.has_missed_a_change,
            "stamps": None if self.signal is None else self.signal.state(),
            **asked,
            **({} if self.in_time is None else {"in_time": self.in_time.state()}),
        }

    def restore(self, state: StateData) -> None:
        """Restore a saved state, before the first request."""
        self.replica.restore(state["replica"])
        changes, stamps = state["changes"], state["stamps"]  # each is in every state
        if self._feed is not None:
            self._feed.restore(changes)
        self._first_push, self._has_begun = state["first_push"], state["has_begun"]
        self.is_whole = state["is_whole"]
        self.has_missed_a_change = state["has_missed_a_change"]
        if self.signal is not None:
            self.signal.restore(stamps)
        if self.in_time is not None:
            self.in_time.restore(state["in_time"])
        if self.is_shared:
            self._asked_at, self._asked = state["asked"][0], set(state["asked"][1])

    def close(self) -> None:
        """Close the endpoints. Idempotent, as endpoints are."""
        self.endpoint.close()
        if self.signal is not None:
            self.signal.close()
