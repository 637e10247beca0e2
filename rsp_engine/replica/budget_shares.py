"""Absent keys: those in the window that the replica has no value for.

Most are cold misses: not known to the replica. They take at most half the budget, those with the
best stream scores first, so that a flood of new keys cannot stop the refreshing of known ones; but
one key at least, since a value that is old is worth more than none. What the refreshing of known
ones does not need is theirs as well. A key that was asked for in vain stands behind those that were
not, so that it cannot hold them up. Those that are left over are absent from the answer, and
counted.

Others are known to have no value. They may have one by now, and nobody but these would ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["Absent", "Shares", "shares"]


@dataclass(frozen=True, slots=True)
class Absent:
    """Keys without a value, each given once, with their stream scores.

    `tried` says when each was last asked for in vain. Those that are `urgent` have a part of the
    budget; others have what nobody else needs. Of equal scores those with larger `ranks` are first.
    """

    keys: Integers
    scores: Floats
    tried: Integers
    urgent: Booleans
    ranks: Integers

    def __post_init__(self) -> None:
        columns = (self.keys, self.scores, self.tried, self.urgent, self.ranks)
        if len(set(map(len, columns))) > 1:
            raise ValueError("keys, scores, tried, urgent and ranks must be of equal length")

    def in_order(self) -> Integers:
        """Return the keys, those to be asked for first at the front.

        Urgent ones come before others, then who was not tried, or longest ago. Of equal scores the
        larger rank is first; a score that is not a number is last.
        """
        is_scored = ~np.isnan(self.scores)
        score = np.where(is_scored, self.scores, -np.inf)
        rising = np.lexsort((self.ranks, score, is_scored, -self.tried, self.urgent))
        return self.keys[rising[::-1]]


@dataclass(frozen=True, slots=True)
class Shares:
    """How a budget is shared: absent keys to fetch, those left over, and the rest for the policy.

    No budget at all means that nothing is limited.
    """

    fetched: Integers
    missed: Integers
    rest: int | None


def shares(budget: int | None, absent: Absent) -> Shares:
    """Share a budget between keys without a value and those that a policy elects.

    Half is rounded down, to 1 at least. What absent keys leave of their half goes to the policy.

    >>> keys, scores, urgent = np.array([7, 8, 9]), np.array([0.2, 0.9, 0.5]), np.full(3, True)
    >>> shares(5, Absent(keys, scores, np.array([0, 0, 0]), urgent, keys))
    Shares(fetched=array([8, 9]), missed=array([7]), rest=3)
    >>> shares(5, Absent(keys, scores, np.array([0, 60, 0]), urgent, keys))
    Shares(fetched=array([9, 7]), missed=array([8]), rest=3)
    """
    if budget is not None and budget < 0:
        raise ValueError("the budget must not be negative")
    ordered = absent.in_order()
    if budget is None:
        return Shares(ordered, ordered[:0], None)
    room = min(max(budget // 2, 1), budget, int(np.count_nonzero(absent.urgent)))
    return Shares(ordered[:room], ordered[room:], budget - room)
