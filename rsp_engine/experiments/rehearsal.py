"""A rehearsal: a run of a policy over a workload whose windows are prepared once, as arrays.

A suite runs dozens of policies and settings over the same workload, and what the stream gives is
the same in all of them. So a rehearsal counts each window once, and then does what differs: it
ranks the candidates by the replica, lets the policy elect, fetches, and ranks the answer. Policies,
learner, change intervals and freshness are those of the engine. Panes, terms and requests are not:
tests compare the answers with those of the engine for every policy, with and without the signal.

What is rehearsed: posts that are counted, remote values of which every key has one from the start,
and services that are fetched from (see `can_rehearse`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.workload import WEIGHTS
from rsp_engine.model.candidates import Candidates
from rsp_engine.policies import elected_set
from rsp_engine.policies.voi import Learner, Voi
from rsp_engine.replica.store.estimator import estimator
from rsp_engine.replica.store.replica import FreshnessTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.experiments.workload import Workload
    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["RehearsedAnswer", "can_rehearse", "rehearse"]


_NO_STAMP = -(1 << 60)


class RehearsedAnswer(NamedTuple):
    """The users of an answer, best first, their dfc in the replica, and the number of fetches."""

    users: Integers
    dfc: Floats
    fetched: int


class _Remote(NamedTuple):
    """The remote values of all users at an instant, and from when on each holds."""

    values: Floats
    since: Integers


class _Window(NamedTuple):
    """A window as every run sees it: the users in it by number, and the remote values.

    `streamed` has mn of these users in this window, and in what later windows have of it so far.
    `latest` is the time of the last mention of each. `before` are the remote values at the open,
    and `remote` those at the close.
    """

    close: int
    users: Integers
    streamed: tuple[Integers, ...]
    latest: Integers
    before: _Remote
    remote: _Remote
    open: int


def can_rehearse(workload: Workload) -> bool:
    """Return whether a run that fetches can be rehearsed."""
    return workload.mentions.content == "posts" and not np.isnan(workload.initial()).any()


@lru_cache(maxsize=4)
def _windows(workload: Workload) -> tuple[_Window, ...]:
    frame, stream = workload.frame, workload.mentions
    numbers = {(user,): number for number, user in enumerate(workload.users)}
    changes = [
        (time, numbers[key], float(solution["dfc"].value))
        for time, key, [solution] in workload.endpoint.changes()
        if key in numbers
    ]
    times = np.array([time for time, _, _ in changes], dtype=np.int64)
    changed = np.array([user for _, user, _ in changes], dtype=np.int64)
    values = np.array([value for _, _, value in changes])

    def remote_at(time: int) -> _Remote:
        count = np.searchsorted(times, time, side="right")
        found = _Remote(workload.initial(), np.full(len(numbers), -1, dtype=np.int64))
        found.values[changed[:count]] = values[:count]  # the last assignment wins
        found.since[changed[:count]] = times[:count]
        return found

    def window_of(index: int) -> _Window:
        edges = frame.interval(index)
        opened, close = edges.open, edges.close
        users = np.flatnonzero(workload.counted(opened, close))
        starts = range(opened, close, frame.step)
        streamed = tuple(workload.counted(start, close)[users] for start in starts)
        latest = np.zeros(len(numbers), dtype=np.int64)
        is_past = stream.times <= close
        latest[stream.users[is_past]] = stream.times[is_past]
        remote = remote_at(opened), remote_at(close)
        return _Window(close, users, streamed, latest[users], *remote, opened)

    return tuple(map(window_of, range(workload.windows)))


@lru_cache(maxsize=4)
def _precedence(workload: Workload) -> tuple[Integers, Integers]:
    """Return the ranks of the users in term order, and in the order of their texts in N-Triples.

    Policies break ties by the first. The second is for mentions at the same instant: the text has a
    bracket at its end, so that a name and its extension have another order.
    """
    by_term = np.argsort(np.argsort([user.value for user in workload.users]))
    return by_term, np.argsort(np.argsort([str(user) for user in workload.users]))


def rehearse(workload: Workload, service: ServicePlan, k: int) -> Iterator[RehearsedAnswer]:
    """Yield the answer of each window, of a query for the K best with the options of a service."""
    rehearsal = _Rehearsal(workload, service, k)
    for window in _windows(workload):
        yield rehearsal.answer(window)


class _Rehearsal:
    def __init__(self, workload: Workload, service: ServicePlan, k: int) -> None:
        self._workload, self._service, self._k = workload, service, k
        self._policy = service.policy
        is_listed = self._policy.proposer == "list"
        self._size = k + service.options.n if is_listed else len(workload.users)
        self._terms, self._texts = _precedence(workload)
        self._intervals = estimator(service.estimation)
        self._freshness = FreshnessTable()
        self._learner = Learner() if isinstance(self._policy, Voi) else None
        self._values: Floats = np.empty(0)
        self._fetched_since: Integers = np.empty(0, dtype=np.int64)
        """From when on the value holds that was fetched last: the stamp of the change signal."""
        self._asked: Integers = np.empty(0, dtype=np.int64)
        """The keys whose stamps the last signal told; others lose theirs when they are fetched."""

    def answer(self, window: _Window) -> RehearsedAnswer:
        """Refresh the replica, and rank a window; its answer is empty if it has no content."""
        users, fetched = window.users, 0
        if not len(users):
            return RehearsedAnswer(users, np.empty(0), 0)
        if not len(self._values):
            self._load(window)
        if self._learner is not None:
            self._learner.begin(users, self._values[users])
        for budget, fresh in self._batches(window):
            fetched += self._fetch(window, budget, fresh)
        best = self._best(window)
        return RehearsedAnswer(best, self._values[best], fetched)

    def _load(self, window: _Window) -> None:
        """Load the snapshot as of the open of the first window with content."""
        self._values = window.before.values.copy()
        self._fetched_since = window.before.since.copy()
        everyone = np.arange(len(self._values))
        self._freshness.grow(len(everyone))
        self._renew(everyone, np.ones(len(everyone), dtype=np.bool_), window.open)

    def _batches(self, window: _Window) -> Iterator[tuple[int, Booleans | None]]:
        """Yield how many keys to elect in each fetch, and which candidates are fresh by then."""
        most = self._service.most_keys
        budget = len(self._values) if most is None else most
        if not budget:
            return
        fresh = None
        if self._service.modified is not None:
            fresh = self._ask_signal(window)
        if self._learner is None:
            yield budget, fresh
            return
        half = -(-budget // 2)
        yield half, fresh
        candidates = self._listed(window)[0]
        yield budget - half, self._freshness.last_refresh[window.users[candidates]] == window.close

    def _ask_signal(self, window: _Window) -> Booleans:
        """Ask which candidates have changed since they were fetched; return the unchanged ones."""
        keys, now = window.users[self._listed(window)[0]], window.close
        stamps = self._fetched_since[keys]
        is_covered: Booleans = stamps != _NO_STAMP
        unchanged: Booleans = stamps == window.remote.since[keys]
        same = keys[unchanged]
        self._renew(same, np.zeros(len(same), dtype=np.bool_), now)
        self._freshness.doubt(keys[is_covered & ~unchanged], now)
        if self._learner is not None:
            self._learner.observe_signal(keys[is_covered], ~unchanged[is_covered])
        self._asked = keys
        return unchanged

    def _renew(self, keys: Integers, changed: Booleans, now: int) -> None:
        """Record a refresh, as the replica does."""
        freshness, intervals = self._freshness, self._intervals
        elapsed = now - freshness.last_refresh[keys]
        is_repeat = freshness.is_known[keys] & (elapsed > 0)
        intervals.observe(keys[is_repeat], elapsed[is_repeat], changed[is_repeat])
        freshness.renew(keys, changed, intervals.intervals(keys), now)

    def _fetch(self, window: _Window, budget: int, fresh: Booleans | None) -> int:
        """Fetch the keys that the policy elects; return their number."""
        candidates = self._candidates(window)
        keys, scores, now = candidates.keys, candidates.scores, window.close
        # As in the engine, policies see ranks in place of numbers.
        ranks = np.empty(len(keys), dtype=np.int64)
        by_rank = np.lexsort((self._terms[keys], scores))
        ranks[by_rank] = np.arange(len(keys))
        ranked = Candidates(
            ranks, scores, candidates.lives, self._k, self._step, candidates.outlook
        )
        entries, seed = self._freshness.entries(keys), self._service.options.seed
        chosen = elected_set(self._policy, ranked, entries, budget, now, seed, skipped=fresh)
        elected = keys[by_rank[chosen]]
        if len(elected):
            values = window.remote.values[elected]
            self._renew(elected, self._values[elected] != values, now)
            self._values[elected] = values
            is_asked = np.isin(elected, self._asked)
            stamps = np.where(is_asked, window.remote.since[elected], _NO_STAMP)
            self._fetched_since[elected] = stamps
            if self._learner is not None:
                self._learner.fetched(elected, values)
        return len(elected)

    @property
    def _step(self) -> int:
        return self._workload.frame.step

    def _score(self, streamed: Integers, dfc: Floats) -> Floats:
        """Return the scores of the query."""
        (fewest, most), (least, largest) = self._workload.bounds
        by_mn = WEIGHTS[0] * ((streamed - fewest) / max(most - fewest, 1))
        scores: Floats = by_mn + WEIGHTS[1] * ((dfc - least) / max(largest - least, 1e-9))
        return scores

    def _order(self, window: _Window, places: Integers, scores: Floats) -> Integers:
        """Return places in a window, best first: by score, then later, then by larger key."""
        texts, latest = self._texts[window.users[places]], window.latest[places]
        return places[np.lexsort((-texts, -latest, -scores))]

    def _listed(self, window: _Window) -> tuple[Integers, Integers]:
        """Return the places of the candidates, best first, and the number of windows of each.

        A candidate is among the K+N best of this window, or of what a later one has so far.
        """
        values = self._values[window.users]
        lives = np.zeros(len(values), dtype=np.int64)
        for life, streamed in enumerate(window.streamed, 1):
            places = np.flatnonzero(streamed)
            if len(places) > self._size:
                scores = self._score(streamed[places], values[places])
                places = self._order(window, places, scores)[: self._size]
            lives[places] = life
        listed = np.flatnonzero(lives)
        scores = self._score(window.streamed[0][listed], values[listed])
        order = self._order(window, listed, scores)
        return order, lives[order]

    def _candidates(self, window: _Window) -> Candidates:
        places, lives = self._listed(window)
        keys, streamed = window.users[places], window.streamed[0][places]
        scores, outlook = self._score(streamed, self._values[keys]), None
        if self._learner is not None:
            precedence = np.empty(len(keys), dtype=np.int64)
            by_time = np.lexsort((self._texts[keys], window.latest[places]))
            precedence[by_time] = np.arange(len(keys))
            outlook = self._learner.outlook(
                keys, scores, precedence, lambda values: self._score(streamed[:, None], values)
            )
        return Candidates(keys, scores, lives, self._k, self._step, outlook)

    def _best(self, window: _Window) -> Integers:
        """Return the users of the answer."""
        if isinstance(self._policy, Voi):
            candidates = self._candidates(window)
            return candidates.keys[self._policy.best(candidates)]
        every = np.arange(len(window.users))
        scores = self._score(window.streamed[0], self._values[window.users])
        return window.users[self._order(window, every, scores)[: self._k]]
