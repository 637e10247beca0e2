"""AT-VOI and WSJ-VOI: whom to ask is whose value the answer depends on.

The keys with the largest V are fetched (see `refresh_value`), half of the budget first; what came
is looked at, and the rest is elected anew. The answer is made of what is to be expected: the K
objects with the largest P + G, ordered by G.

Where the scores cannot be told for other remote values there is no outlook, and the policy elects
as another one does: AT-VOI as AT-TSM, WSJ-VOI as WSJ-LRU.

(Refresh by the value of information: docs/voi.md. No paper has this policy.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from rsp_engine.policies.lru import WSJ_LRU
from rsp_engine.policies.policy import CandidatePlaces, Proposer, RankedPolicy, refuse
from rsp_engine.policies.tsm import AT_TSM
from rsp_engine.policies.voi.rank_distribution import rank_distribution
from rsp_engine.policies.voi.refresh_value import refresh_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_VOI", "WSJ_VOI", "AnswerOrder", "Voi"]

AnswerOrder = Literal["expected", "replica"]


@dataclass(frozen=True, slots=True)
class Voi:
    """Elects by the value of information, of what it is given as the outlook.

    `wp` weighs precision against nDCG: 2 serves both, 1 is more for nDCG, 4 for precision. `answer`
    orders an answer by the gain that is to be expected, or by the scores that the replica knows.
    """

    name: str
    summary: str
    section: str
    proposer: Proposer
    otherwise: RankedPolicy
    """Elects where there is no outlook."""
    wp: float = 2.0
    answer: AnswerOrder = "expected"
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
        if candidates.outlook is None:
            return self.otherwise.elect(candidates, entries, budget, now, seed)
        value = refresh_value(candidates.outlook, candidates.k, self.wp)
        order = np.lexsort((~candidates.keys, -candidates.scores, -value))
        return candidates.keys[order[:budget]]

    def best(self, candidates: Candidates) -> CandidatePlaces:
        """Return the places of the K candidates that make the answer, in its order."""
        outlook, k = candidates.outlook, candidates.k
        if outlook is None:
            return np.arange(min(k, len(candidates)))
        found = rank_distribution(outlook, k)
        last = (-outlook.precedence, -candidates.scores)
        chosen = np.lexsort((*last, -(found.p_in + found.gain)))[:k]
        by = candidates.scores if self.answer == "replica" else found.gain
        return chosen[np.lexsort((*(tie[chosen] for tie in last), -by[chosen]))]

    def having(self, parameters: Mapping[str, str]) -> Voi:
        """Return the same policy with other parameters, given as text."""
        made: dict[str, float | str] = {}
        for name, text in parameters.items():
            if name not in {"wp", "answer"}:
                raise ValueError(f"{self.name} has no parameter {name}: it has wp and answer")
            try:
                made[name] = float(text) if name == "wp" else text
            except ValueError:
                raise ValueError(f"wp must be a number from 0 on, not {text}") from None
        name = "+".join((self.name, *(f"{name}={text}" for name, text in parameters.items())))
        return replace(self, name=name, **made)  # type: ignore[arg-type]


AT_VOI = Voi("AT-VOI", "keys of the list that the answer depends on", "docs/voi.md", "list", AT_TSM)
WSJ_VOI = Voi(
    "WSJ-VOI", "keys of the window that the answer depends on", "docs/voi.md", "window", WSJ_LRU
)
