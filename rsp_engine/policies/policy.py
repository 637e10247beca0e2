"""The contract of a refresh policy: it elects, among candidates, the keys to refresh.

A proposer selects the candidates and a ranker orders them; the first `budget` of them are the
elected set. Policies are pure functions: time and seed are arguments, and equal arguments give
equal keys.

AcquaTop: Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving
distributed data, sections 3.2 and 5.2. ACQUA: Dehghanzadeh, Dell'Aglio, Gao, Della Valle, Mileo,
Bernstein: Approximate continuous query answering over streams and dynamic linked data sets, ICWE
2015.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rsp_engine.errors import RspError
from rsp_engine.model.arrays import Floats
from rsp_engine.model.candidates import Candidates, Entries

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Integers

__all__ = [
    "CandidatePlaces",
    "Policy",
    "Proposer",
    "RankedPolicy",
    "Ranker",
    "ValuingPolicy",
    "Worth",
    "elected_set",
    "in_order",
    "refuse",
    "score",
]

Proposer = Literal["window", "list"]
"""`window`: all objects of the window (WSJ in ACQUA). `list`: those of the Super-MTK+N list."""

CandidatePlaces = NDArray[np.intp]
"""Indices into the candidates."""

Worth = Callable[[Candidates, Entries, int], Floats]
"""Maps candidates, entries and now to what electing each candidate is worth to the policy."""

Ranker = Callable[[Candidates, Entries, int, int], CandidatePlaces]
"""Maps candidates, entries, now and seed to indices of candidates, most preferred first."""


class Policy(Protocol):
    """A refresh policy. Any object with these members can be registered."""

    @property
    def name(self) -> str:
        """The name in the literature."""

    @property
    def summary(self) -> str:
        """What the policy elects, in one line."""

    @property
    def section(self) -> str:
        """Where the policy is defined: paper and section."""

    @property
    def proposer(self) -> Proposer | None:
        """Where the candidates come from; None if the policy needs none."""

    @property
    def is_bounded(self) -> bool:
        """Whether the policy keeps to the budget."""

    def elect(
        self, candidates: Candidates, entries: Entries, budget: int, now: int, seed: int
    ) -> Integers:
        """Return distinct keys to refresh, most preferred first; at most `budget` if bounded."""


@dataclass(frozen=True, slots=True)
class RankedPolicy:
    """A policy made of a proposer and a ranker."""

    name: str
    summary: str
    section: str
    proposer: Proposer | None
    ranker: Ranker
    is_bounded: bool = True
    worth: Worth | None = None
    """What its order follows from, for reports; None if that is no number."""

    def elect(
        self, candidates: Candidates, entries: Entries, budget: int, now: int, seed: int
    ) -> Integers:
        refuse(candidates, entries, budget)
        places = self.ranker(candidates, entries, now, seed)
        return candidates.keys[places[:budget] if self.is_bounded else places]

    def values(self, candidates: Candidates, entries: Entries, now: int) -> Floats | None:
        """Return what electing each candidate is worth; None if the policy has no such number."""
        return None if self.worth is None else self.worth(candidates, entries, now)


@runtime_checkable
class ValuingPolicy(Protocol):
    """A policy that says what electing a candidate is worth. A policy of a user need not."""

    def values(self, candidates: Candidates, entries: Entries, now: int) -> Floats | None:
        """Return what electing each candidate is worth; None if there is no such number."""


def elected_set(  # noqa: PLR0913, PLR0917 - the policy and its arguments
    policy: Policy,
    candidates: Candidates,
    entries: Entries,
    budget: int,
    now: int,
    seed: int,
    *,
    skipped: Booleans | None = None,
) -> Integers:
    """Let a policy elect, and check that it keeps its contract: it may be a user's own policy.

    Candidates marked in `skipped` are known to be fresh. The policy still ranks them, and the
    candidates it prefers next take their part of the budget.
    """
    if skipped is not None and skipped.any():
        ranked = elected_set(policy, candidates, entries, len(candidates), now, seed)
        stale = ranked[~np.isin(ranked, candidates.keys[skipped])]
        return stale[:budget] if policy.is_bounded else stale
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
        raise RspError(f"the policy {policy.name} elected a key that is not a candidate")
    return keys.astype(np.int64)


def in_order(candidates: Candidates, first: NDArray[Any]) -> CandidatePlaces:
    """Order the candidates by `first`, a number for each, ascending.

    Ties are broken by the larger score, then by the larger key.
    """
    return np.lexsort((~candidates.keys, -candidates.scores, first))


def score(candidates: Candidates, _entries: Entries, _now: int) -> Floats:
    """Return the scores of the candidates, which the order of a list follows from."""
    return candidates.scores


def refuse(candidates: Candidates, entries: Entries, budget: int) -> None:
    """Raise `ValueError` for arguments that no policy accepts."""
    if budget < 0:
        raise ValueError(f"a budget must be at least 0, not {budget}")
    if len(candidates) != len(entries):
        raise ValueError(
            f"{len(candidates)} candidates and {len(entries)} entries: each must have its own"
        )
