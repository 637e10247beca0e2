"""Cold misses: the keys in the window that the replica does not know.

They take at most half the budget, those with the best stream scores first, so that a flood of new
keys cannot stop the refreshing of known ones; but one key at least, since a value that is old is
worth more than none. What the refreshing of known ones does not need is theirs as well. A key that
was asked for in vain stands behind those that were not, so that it cannot hold them up. Those that
are left over are absent from the answer, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["Shares", "shares"]


@dataclass(frozen=True, slots=True)
class Shares:
    """How a budget is shared: cold keys to fetch, those left over, and the rest for the policy.

    No budget at all means that nothing is limited.
    """

    fetched: Integers
    missed: Integers
    rest: int | None


def shares(
    budget: int | None, cold: Integers, scores: Floats, tried: Integers | None = None
) -> Shares:
    """Share a budget between keys never seen, each given once, and those that a policy elects.

    Half is rounded down, to 1 at least. What cold keys leave of their half goes to the policy.
    `tried` says when each key was last asked for in vain: who was not, or longest ago, is first. Of
    equal scores the larger key is first; a score that is not a number is last.

    >>> shares(5, np.array([7, 8, 9]), np.array([0.2, 0.9, 0.5]))
    Shares(fetched=array([8, 9]), missed=array([7]), rest=3)
    >>> shares(5, np.array([7, 8, 9]), np.array([0.2, 0.9, 0.5]), np.array([0, 60, 0]))
    Shares(fetched=array([9, 7]), missed=array([8]), rest=3)
    """
    if budget is not None and budget < 0:
        raise ValueError("the budget must not be negative")
    if len(cold) != len(scores):
        raise ValueError("there must be as many scores as keys")
    waited = np.zeros(len(cold), dtype=np.int64) if tried is None else -tried
    is_scored = ~np.isnan(scores)
    falling = np.lexsort((cold, np.where(is_scored, scores, -np.inf), is_scored, waited))
    ordered = cold[falling[::-1]]
    if budget is None:
        return Shares(ordered, ordered[:0], None)
    fetched = ordered[: min(max(budget // 2, 1), budget)]
    return Shares(fetched, ordered[len(fetched) :], budget - len(fetched))
