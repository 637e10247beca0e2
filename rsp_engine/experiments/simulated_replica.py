"""The simulated replica: the last fetched value of each key, with its freshness.

It refreshes as the engine does. A learning policy spends half of its budget, learns from the
fetched values, and then spends the rest. With a change signal, unchanged keys count as refreshed
and every policy skips them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.model.candidates import Candidates
from rsp_engine.policies import elected_set, policy_named
from rsp_engine.policies.voi import Learner, Voi
from rsp_engine.replica.store.estimator import DeclaredIntervals, LearnedIntervals, estimator
from rsp_engine.replica.store.freshness_table import FreshnessTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.policies import Policy, Proposer
    from rsp_engine.policies.policy import CandidatePlaces

__all__ = ["CandidateList", "SimulatedReplica", "Variant", "variant"]

_SIGNAL = "+signal"
_NEED_INTERVALS = frozenset({"WSJ-WBM", "AT-WBM"})
"""The policies that use change intervals; for all others, learning them would be wasted."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A policy, and whether the remote side provides a change signal."""

    policy: Policy
    has_signal: bool

    @property
    def proposer(self) -> Proposer | None:
        """The source of the policy's candidates."""
        return self.policy.proposer


def variant(text: str) -> Variant:
    """Return the policy of a name such as `AT-VOI+wp=4+signal`, as suites write it.

    Raises a `ValueError` for an unknown policy.

    >>> variant("AT-VOI+wp=4+signal").has_signal
    True
    """
    return Variant(policy_named(text.removesuffix(_SIGNAL)), text.endswith(_SIGNAL))


class CandidateList(NamedTuple):
    """The candidates of a window, best first by the replica's values, with the inputs of F.

    `lives` counts the evaluations that a candidate stays in the list. Of equal scores, the larger
    `precedence` ranks first. `score` is F of streamed and remote values.
    """

    keys: Integers
    streamed: Floats
    lives: Integers
    precedence: Integers
    score: Callable[[Floats, Floats], Floats]
    k: int
    step: int


class SimulatedReplica:
    """Remote values by key, with the freshness and the intervals that policies use."""

    def __init__(
        self,
        initial: Floats | Integers,
        now: int,
        learned: LearnedIntervals,
        policy_variant: Variant,
        seed: int,
    ) -> None:
        self.values: Floats = initial.astype(np.float64)
        self.learner = Learner() if isinstance(policy_variant.policy, Voi) else None
        self._facts = FreshnessTable()
        self._facts.grow(len(initial))
        learns = policy_variant.policy.name in _NEED_INTERVALS
        self._estimator = estimator(learned if learns else DeclaredIntervals(learned.initial))
        self._variant, self._seed = policy_variant, seed
        every = np.arange(len(initial))
        self._renew(every, np.ones(len(every), dtype=np.bool_), now)

    def refresh(
        self,
        candidate_list: Callable[[], CandidateList],
        truth: Floats,
        present: Integers,
        budget: int,
        now: int,
    ) -> int:
        """Fetch the keys that the policy elects for an evaluation, and return their number.

        `candidate_list` ranks the candidates by the present values of the replica. `truth` has the
        remote value of every key, and `present` the keys of the window.
        """
        if self._variant.proposer is None:
            return 0
        first = candidate_list()
        if self.learner is not None:
            self.learner.begin(present, self.values[present])
        fresh = self._unchanged(first.keys, truth, now)
        if self.learner is None:
            return self._fetch(first, fresh, truth, budget, now)
        half = -(-budget // 2)
        fetched = self._fetch(first, fresh, truth, half, now)
        second = candidate_list()
        fresh = self._facts.last_refresh[second.keys] == now
        return fetched + self._fetch(second, fresh, truth, budget - half, now)

    def candidates(self, listed: CandidateList) -> Candidates:
        """Return the candidates in the form that policies take."""
        scores = listed.score(listed.streamed, self.values[listed.keys])
        outlook = None
        if self.learner is not None:
            outlook = self.learner.outlook(
                listed.keys,
                scores,
                listed.precedence,
                lambda levels: listed.score(listed.streamed[:, None], levels[None, :]),
            )
        return Candidates(listed.keys, scores, listed.lives, listed.k, listed.step, outlook)

    def best(self, listed: CandidateList) -> CandidatePlaces:
        """Return the places of the k best candidates, in the order of the answer."""
        policy = self._variant.policy
        if isinstance(policy, Voi):
            return policy.best(self.candidates(listed))
        return np.arange(min(listed.k, len(listed.keys)))

    def _unchanged(self, keys: Integers, truth: Floats, now: int) -> Booleans | None:
        """Apply the change signal, and return which keys have not changed; None without one."""
        if not self._variant.has_signal:
            return None
        changed: Booleans = self.values[keys] != truth[keys]
        self._note(keys[~changed], changed[~changed], now)
        self._facts.doubt(keys[changed], now)
        if self.learner is not None:
            self.learner.observe_signal(keys, changed)
        return ~changed

    def _fetch(
        self, listed: CandidateList, fresh: Booleans | None, truth: Floats, budget: int, now: int
    ) -> int:
        candidates, entries = self.candidates(listed), self._facts.entries(listed.keys)
        policy, seed = self._variant.policy, self._seed
        keys = elected_set(policy, candidates, entries, budget, now, seed, skipped=fresh)
        values = truth[keys]
        changed = self.values[keys] != values
        self.values[keys] = values
        self._note(keys, changed, now)
        if self.learner is not None:
            self.learner.fetched(keys, values)
        return len(keys)

    def _note(self, keys: Integers, changed: Booleans, now: int) -> None:
        self._estimator.observe(keys, now - self._facts.last_refresh[keys], changed)
        self._renew(keys, changed, now)

    def _renew(self, keys: Integers, changed: Booleans, now: int) -> None:
        self._facts.renew(keys, changed, self._estimator.intervals(keys), now)
