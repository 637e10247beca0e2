"""The replica of an experiment: the values as last fetched, and what is known of them, by key.

What an evaluation does to it is what the engine does: a policy that learns fetches half of its
budget, looks at what came, and then fetches the rest; where the remote side tells what has changed,
the unchanged count as fetched, and every policy skips them.
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

__all__ = ["Listed", "SimulatedReplica", "Variant", "variant"]

_SIGNAL = "+signal"
_NEED_INTERVALS = frozenset({"WSJ-WBM", "AT-WBM"})
"""Only these look at how often a value changes; for others, it need not be learned."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A policy, and whether the remote side tells what has changed."""

    policy: Policy
    is_told: bool

    @property
    def proposer(self) -> Proposer | None:
        """Where its candidates come from."""
        return self.policy.proposer


def variant(text: str) -> Variant:
    """Return a policy as experiments name it; one that is none is a `ValueError`.

    >>> variant("AT-VOI+wp=4+signal").is_told
    True
    """
    return Variant(policy_named(text.removesuffix(_SIGNAL)), text.endswith(_SIGNAL))


class Listed(NamedTuple):
    """The candidates of a window, best first by what is held, and all they are scored by.

    `precedence` says who is the better one of equals, a larger number. `score` is F.
    """

    keys: Integers
    streamed: Floats
    lives: Integers
    precedence: Integers
    score: Callable[[Floats, Floats], Floats]
    k: int
    step: int


class SimulatedReplica:
    """The values, with what a policy sees of them."""

    def __init__(
        self,
        initial: Floats | Integers,
        now: int,
        learned: LearnedIntervals,
        chosen: Variant,
        seed: int,
    ) -> None:
        self.values: Floats = initial.astype(np.float64)
        self.learner = Learner() if isinstance(chosen.policy, Voi) else None
        self._facts = FreshnessTable()
        self._facts.grow(len(initial))
        learns = chosen.policy.name in _NEED_INTERVALS
        self._estimator = estimator(learned if learns else DeclaredIntervals(learned.initial))
        self._chosen, self._seed = chosen, seed
        every = np.arange(len(initial))
        self._renew(every, np.ones(len(every), dtype=np.bool_), now)

    def refresh(
        self, listed: Callable[[], Listed], truth: Floats, present: Integers, budget: int, now: int
    ) -> int:
        """Fetch what the policy elects for an evaluation, and return how many keys these are.

        `listed` gives the candidates by the values as they are then; `truth` are the remote values
        by key, `present` the keys of the window.
        """
        if self._chosen.proposer is None:
            return 0
        first = listed()
        if self.learner is not None:
            self.learner.begin(present, self.values[present])
        fresh = self._told(first.keys, truth, now)
        if self.learner is None:
            return self._fetch(first, fresh, truth, budget, now)
        half = -(-budget // 2)
        fetched = self._fetch(first, fresh, truth, half, now)
        again = listed()
        fresh = self._facts.last_refresh[again.keys] == now
        return fetched + self._fetch(again, fresh, truth, budget - half, now)

    def candidates(self, listed: Listed) -> Candidates:
        """Return candidates as a policy is given them."""
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

    def best(self, listed: Listed) -> CandidatePlaces:
        """Return the places of the answer in the list, in its order."""
        policy = self._chosen.policy
        if isinstance(policy, Voi):
            return policy.best(self.candidates(listed))
        return np.arange(min(listed.k, len(listed.keys)))

    def _told(self, keys: Integers, truth: Floats, now: int) -> Booleans | None:
        """Let the remote side tell which keys have changed; return which have not."""
        if not self._chosen.is_told:
            return None
        changed: Booleans = self.values[keys] != truth[keys]
        self._note(keys[~changed], changed[~changed], now)
        self._facts.doubt(keys[changed], now)
        if self.learner is not None:
            self.learner.told(keys, changed)
        return ~changed

    def _fetch(
        self, listed: Listed, fresh: Booleans | None, truth: Floats, budget: int, now: int
    ) -> int:
        candidates, entries = self.candidates(listed), self._facts.entries(listed.keys)
        policy, seed = self._chosen.policy, self._seed
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
