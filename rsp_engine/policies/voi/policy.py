"""AT-VOI and WSJ-VOI: refresh the keys whose values the answer depends on most.

The keys with the largest V are elected (see `refresh_value`) in two batches: half of the budget is
fetched, the outlook is updated with the fetched values, and the second half is elected from the new
V. The answer holds the K objects with the largest P + G, ordered by G (see `rank_distribution`).
AT-ECR and WSJ-ECR do the same with another value: the expected change of rank (see `rank_change`).

If scores cannot be computed for other remote values, there is no outlook, and another policy elects
instead: AT-TSM in place of AT-VOI, WSJ-LRU in place of WSJ-VOI.

(Refresh by the value of information: docs/explanation/voi.md. No paper has this policy.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from rsp_engine.model.arrays import Floats
from rsp_engine.model.candidates import Outlook
from rsp_engine.policies.lru import WSJ_LRU
from rsp_engine.policies.policy import CandidatePlaces, Proposer, RankedPolicy, refuse
from rsp_engine.policies.tsm import AT_TSM
from rsp_engine.policies.voi.rank_change import rank_change
from rsp_engine.policies.voi.rank_distribution import rank_distribution
from rsp_engine.policies.voi.refresh_value import refresh_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_ECR", "AT_VOI", "WSJ_ECR", "WSJ_VOI", "AnswerOrder", "Valuation", "Voi"]

AnswerOrder = Literal["expected", "replica"]
"""How an answer is ordered: by the expected gain, or by the scores in the replica."""

Valuation = Callable[[Outlook, int, float], Floats]
"""Maps an outlook, K and wp to the value of refreshing each object."""


@dataclass(frozen=True, slots=True)
class Voi:
    """A policy that elects by the value of a refresh in the outlook of the candidates.

    `wp` weighs precision against nDCG: 0.5 suits both, 4 favours precision. `answer`
    selects the order of an answer.
    """

    name: str
    summary: str
    section: str
    proposer: Proposer
    otherwise: RankedPolicy
    """The policy that elects where there is no outlook."""
    wp: float = 0.5
    answer: AnswerOrder = "expected"
    valuation: Valuation = refresh_value
    is_bounded: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.wp < np.inf:
            raise ValueError(f"wp must be a number from 0 on, not {self.wp}")
        if self.answer not in get_args(AnswerOrder):
            raise ValueError(f"answer is one of {', '.join(get_args(AnswerOrder))}")

    def elect(
        self, candidates: Candidates, entries: Entries, budget: int, now: int, seed: int
    ) -> Integers:
        refuse(candidates, entries, budget)
        value = self._total(candidates)
        if value is None:
            return self.otherwise.elect(candidates, entries, budget, now, seed)
        order = np.lexsort((~candidates.keys, -candidates.scores, -value))
        return candidates.keys[order[:budget]]

    def values(self, candidates: Candidates, entries: Entries, now: int) -> Floats | None:
        """Return V of each candidate, other queries included; without an outlook, another value."""
        value = self._total(candidates)
        return self.otherwise.values(candidates, entries, now) if value is None else value

    def _total(self, candidates: Candidates) -> Floats | None:
        value = self.worth(candidates)
        if value is None or candidates.elsewhere is None:
            return value
        return value + candidates.elsewhere

    def worth(self, candidates: Candidates) -> Floats | None:
        """Return V of each candidate; None without an outlook."""
        if candidates.outlook is None:
            return None
        return self.valuation(candidates.outlook, candidates.k, self.wp)

    def best(self, candidates: Candidates) -> CandidatePlaces:
        """Return the indices of the K candidates that form the answer, in answer order."""
        outlook, k = candidates.outlook, candidates.k
        if outlook is None:
            return np.arange(min(k, len(candidates)))
        ranks = rank_distribution(outlook, k)
        ties = (-outlook.precedence, -candidates.scores)
        chosen = np.lexsort((*ties, -(ranks.p_in + ranks.gain)))[:k]
        order = candidates.scores if self.answer == "replica" else ranks.gain
        return chosen[np.lexsort((*(tie[chosen] for tie in ties), -order[chosen]))]

    def having(self, parameters: Mapping[str, str]) -> Voi:
        """Return the policy with the given parameters, whose values are text."""
        changes: dict[str, float | str] = {}
        names = ("wp", "answer") if self.valuation is refresh_value else ("answer",)
        for name, text in parameters.items():
            if name not in names:
                raise ValueError(
                    f"{self.name} has no parameter {name}: it has {' and '.join(names)}"
                )
            try:
                changes[name] = float(text) if name == "wp" else text
            except ValueError:
                raise ValueError(f"wp must be a number from 0 on, not {text}") from None
        name = "+".join((self.name, *(f"{name}={text}" for name, text in parameters.items())))
        return replace(self, name=name, **changes)  # type: ignore[arg-type]


AT_VOI = Voi(
    "AT-VOI",
    "keys of the list that the answer depends on",
    "docs/explanation/voi.md",
    "list",
    AT_TSM,
)
WSJ_VOI = Voi(
    "WSJ-VOI",
    "keys of the window that the answer depends on",
    "docs/explanation/voi.md",
    "window",
    WSJ_LRU,
)
_RANKS = "Cormode, Li and Yi 2009, 5"
AT_ECR = Voi(
    "AT-ECR",
    "keys of the list whose refresh changes ranks most",
    _RANKS,
    "list",
    AT_TSM,
    valuation=rank_change,
)
WSJ_ECR = Voi(
    "WSJ-ECR",
    "keys of the window whose refresh changes ranks most",
    _RANKS,
    "window",
    WSJ_LRU,
    valuation=rank_change,
)
