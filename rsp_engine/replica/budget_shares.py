"""The split of a budget between absent keys and the refresh of known keys.

An absent key is in the window, and the replica has no value for it. Most are cold keys, which the
replica does not know. They get at most half of the budget, best stream scores first, so that a
flood of new keys cannot starve the refresh of known keys; but at least one key, since a stale value
is worth more than none. They also get the part of the budget that the policy does not use. A key
whose last fetch failed comes after those not tried yet, so that it cannot block them. The keys left
over are missing from the answer, and counted.

Other absent keys are known to have no value. They may have one by now, and no policy elects them,
since they are in no list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Floats, Integers

__all__ = ["AbsentKeys", "Shares", "shares"]


@dataclass(frozen=True, slots=True)
class AbsentKeys:
    """Distinct keys without a value, with their stream scores.

    `tried` is when each was last fetched without success. `urgent` keys have a share of the budget;
    the others get what is left in the end. Of equal scores, the larger of `ranks` comes first.
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
        """Return the keys in the order in which to fetch them.

        Urgent keys come first, then those never tried or tried longest ago, then larger scores;
        NaN is the smallest score. Ties are broken by the larger rank.
        """
        is_scored = ~np.isnan(self.scores)
        score = np.where(is_scored, self.scores, -np.inf)
        ascending = np.lexsort((self.ranks, score, is_scored, -self.tried, self.urgent))
        return self.keys[ascending[::-1]]


@dataclass(frozen=True, slots=True)
class Shares:
    """A split budget: absent keys to fetch, those left over, and the rest for the policy.

    `rest` is None if the budget is unlimited.
    """

    fetched: Integers
    missed: Integers
    rest: int | None


def shares(budget: int | None, absent: AbsentKeys, at_most: int | None = None) -> Shares:
    """Split a budget between absent keys and the keys that a policy elects.

    Absent keys get half, rounded down, but at least 1; or `at_most` so many, if it is given. The
    policy gets what they do not use.

    >>> keys, scores, urgent = np.array([7, 8, 9]), np.array([0.2, 0.9, 0.5]), np.full(3, True)
    >>> shares(5, AbsentKeys(keys, scores, np.array([0, 0, 0]), urgent, keys))
    Shares(fetched=array([8, 9]), missed=array([7]), rest=3)
    >>> shares(5, AbsentKeys(keys, scores, np.array([0, 60, 0]), urgent, keys))
    Shares(fetched=array([9, 7]), missed=array([8]), rest=3)
    """
    if budget is not None and budget < 0:
        raise ValueError("the budget must not be negative")
    ordered = absent.in_order()
    if budget is None:
        return Shares(ordered, ordered[:0], None)
    most = max(budget // 2, 1) if at_most is None else at_most
    room = min(most, budget, int(np.count_nonzero(absent.urgent)))
    return Shares(ordered[:room], ordered[room:], budget - room)
