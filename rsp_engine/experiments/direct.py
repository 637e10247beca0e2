"""One run: a policy over a dataset, window by window, with nothing between it and its numbers.

The policies, what is learned of change intervals and the measures are the engine's own. Left out is
what all runs over a dataset have in common: matching, counting, and the ranking of the oracle are
done once, in `windows`. So a window costs a fraction of a millisecond. Tests hold a run against the
operator of the engine, `Aggregates`, and against the same experiment as a query; see `as_query`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.dataset import STEP
from rsp_engine.experiments.windows import best_first
from rsp_engine.model.candidates import Candidates
from rsp_engine.operators.measures import ndcg, ndcg_by_place, precision
from rsp_engine.policies import POLICIES
from rsp_engine.replica.estimator import Declared, Learned, estimator
from rsp_engine.replica.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.experiments.windows import Window, Windows
    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["Outcome", "Setting", "run"]

_LEARNERS = frozenset({"WSJ-WBM", "AT-WBM"})
"""Only these look at how often values change; for others, it need not be learned."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters of a run, named as in Table 4 of AcquaTop."""

    policy: str
    budget: int
    k: int
    n: int
    seed: int = 0


class Outcome(NamedTuple):
    """What became of a window. The answer is best first; the measures are from 0 to 1."""

    answer: tuple[int, ...]
    fetched: int
    ndcg: float
    ndcg_by_place: float
    precision: float


def run(windows: Windows, setting: Setting) -> Iterator[Outcome]:
    """Yield the outcome of every window."""
    policy, k = POLICIES[setting.policy], setting.k
    replica = _Replica(windows.initial, learns=setting.policy in _LEARNERS)
    size = k + setting.n if policy.proposer == "list" else None
    for window in windows.windows:
        fetched = 0
        if policy.proposer is not None:
            candidates = _listed(windows, window, replica.values, k, size)
            entries = replica.facts.entries(candidates.keys)
            elected = policy.elect(candidates, entries, setting.budget, window.close, setting.seed)
            replica.fetch(elected, window.dfc[elected], window.close)
            fetched = len(elected)
        best = best_first(windows.score(window.mn, replica.values[window.users]))[:k]
        answer = window.users[best].tolist()
        oracle = window.oracle[: 2 * k]  # deeper, no measure looks
        yield Outcome(
            tuple(answer),
            fetched,
            ndcg(answer, oracle, k),
            ndcg_by_place(answer, oracle, k),
            precision(answer, oracle, k),
        )


def _listed(
    windows: Windows, window: Window, values: Floats, k: int, size: int | None
) -> Candidates:
    """Return the list: the best of each active window, or all of them where no size is given.

    They stand in the order of the window at hand. Each lives until the last window among whose
    best it is.
    """
    known = values[window.users]
    scores = windows.score(window.mn, known)
    order = best_first(scores)
    lives = np.zeros(len(order), dtype=np.int64)
    lives[order[:size]] = 1
    for life, (places, mn) in enumerate(window.later, 2):
        best = best_first(windows.score(mn, known[places]))[:size]
        lives[places[best]] = life
    order = order[lives[order] > 0]
    return Candidates(window.users[order], scores[order], lives[order], k, STEP)


class _Replica:
    """The values as last fetched, and what is known of their ages, by user."""

    def __init__(self, initial: Floats, *, learns: bool) -> None:
        self.values = initial.copy()
        self.facts = Facts()
        self.facts.grow(len(initial))
        self._estimator = estimator(Learned() if learns else Declared(STEP))
        every = np.arange(len(initial))
        self._renew(every, np.ones(len(every), dtype=np.bool_), 0)

    def fetch(self, users: Integers, values: Floats, now: int) -> None:
        """Take in values of users."""
        changed = self.values[users] != values
        self.values[users] = values
        self._estimator.observe(users, now - self.facts.last_refresh[users], changed)
        self._renew(users, changed, now)

    def _renew(self, users: Integers, changed: Booleans, now: int) -> None:
        self.facts.renew(users, changed, self._estimator.intervals(users), now)
