"""What a refresh policy is: it elects, of the candidates it is given, the keys to fetch anew.

A proposer says which objects are candidates, and a ranker puts them in order; the first of them, as
many as the budget allows, are the elected set. Policies are pure: what they know of the time and of
chance comes in as arguments, and the same arguments give the same keys.

AcquaTop: Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving
distributed data, sections 3.2 and 5.2. ACQUA: Dehghanzadeh, Dell'Aglio, Gao, Della Valle, Mileo,
Bernstein: Approximate continuous query answering over streams and dynamic linked data sets, ICWE
2015.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rsp_engine.errors import RspError
from rsp_engine.model.candidates import Candidates, Entries

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Integers

__all__ = [
    "CandidatePlaces",
    "Policy",
    "Proposer",
    "RankedPolicy",
    "Ranker",
    "elected_set",
    "in_order",
    "refuse",
]

Proposer = Literal["window", "list"]
"""`window`: all objects of the window (WSJ in ACQUA). `list`: those of the Super-MTK+N list."""

CandidatePlaces = NDArray[np.intp]
"""Where in the candidates the chosen ones are."""

Ranker = Callable[[Candidates, Entries, int, int], CandidatePlaces]
"""From candidates, entries, now and seed to places, in order of preference."""


class Policy(Protocol):
    """A refresh policy. Any object of this form can be registered."""

    @property
    def name(self) -> str:
        """The name in the literature."""

    @property
    def summary(self) -> str:
        """What it elects, in one line."""

    @property
    def section(self) -> str:
        """Where it is defined."""

    @property
    def proposer(self) -> Proposer | None:
        """Where its candidates come from; None if it needs none."""

    @property
    def is_bounded(self) -> bool:
        """Whether it keeps to the budget."""

    def elect(
        self, candidates: Candidates, entries: Entries, budget: int, now: int, seed: int
    ) -> Integers:
        """Return keys to fetch, the most wanted first: each once, at most `budget` if bounded."""


@dataclass(frozen=True, slots=True)
class RankedPolicy:
    """A policy made of a proposer and a ranker."""

    name: str
    summary: str
    section: str
    proposer: Proposer | None
    ranker: Ranker
    is_bounded: bool = True

    def elect(
        self, candidates: Candidates, entries: Entries, budget: int, now: int, seed: int
    ) -> Integers:
        refuse(candidates, entries, budget)
        places = self.ranker(candidates, entries, now, seed)
        return candidates.keys[places[:budget] if self.is_bounded else places]


def elected_set(  # noqa: PLR0913, PLR0917 - a policy, and what it is asked
    policy: Policy,
    candidates: Candidates,
    entries: Entries,
    budget: int,
    now: int,
    seed: int,
    *,
    skipped: Booleans | None = None,
) -> Integers:
    """Ask a policy, and hold it to what it promises: it may be the user's own.

    Candidates that are skipped are known to be fresh. They keep their places among the others, and
    whom the policy elects after them takes their part of the budget.
    """
    if skipped is not None and skipped.any():
        every = elected_set(policy, candidates, entries, len(candidates), now, seed)
        left = every[~np.isin(every, candidates.keys[skipped])]
        return left[:budget] if policy.is_bounded else left
    refuse(candidates, entries, budget)
    keys = np.asarray(policy.elect(candidates, entries, budget, now, seed))
    if keys.size == 0:
        return np.empty(0, dtype=np.int64)
    if keys.ndim != 1 or keys.dtype.kind not in "iu":
        raise RspError(f"the policy {policy.name} must elect keys: whole numbers, in one row")
    if policy.is_bounded and len(keys) > budget:
        raise RspError(f"the policy {policy.name} elected {len(keys)} keys, the budget is {budget}")
    if len(np.unique(keys)) < len(keys):
        raise RspError(f"the policy {policy.name} elected a key twice")
    if not np.isin(keys, candidates.keys).all():
        raise RspError(f"the policy {policy.name} elected a key that is no candidate")
    return keys.astype(np.int64)


def in_order(candidates: Candidates, first: NDArray[Any]) -> CandidatePlaces:
    """Return the places of candidates by a number of each, smaller first.

    Among equals, the one with the larger score comes first, then the one with the larger key.
    """
    return np.lexsort((~candidates.keys, -candidates.scores, first))


def refuse(candidates: Candidates, entries: Entries, budget: int) -> None:
    """Refuse a question that no policy can answer."""
    if budget < 0:
        raise ValueError(f"a budget must be at least 0, not {budget}")
    if len(candidates) != len(entries):
        raise ValueError(
            f"{len(candidates)} candidates and {len(entries)} entries: each must have its own"
        )
