"""LRU: the least recently refreshed keys first.

(AcquaTop, section 3.2; from ACQUA.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy, in_order

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_LRU", "WSJ_LRU", "age", "lru"]


def age(_candidates: Candidates, entries: Entries, now: int) -> Floats:
    """Return the age of each value, in milliseconds."""
    return now - entries.last_refresh.astype(np.float64)


def lru(candidates: Candidates, entries: Entries, _now: int, _seed: int) -> CandidatePlaces:
    """Order candidates by their last refresh, oldest first."""
    return in_order(candidates, entries.last_refresh)


WSJ_LRU = RankedPolicy(
    "WSJ-LRU",
    "keys of the window, least recently fetched first",
    "AcquaTop 3.2",
    "window",
    lru,
    worth=age,
)
AT_LRU = RankedPolicy(
    "AT-LRU",
    "keys of the list, least recently fetched first",
    "AcquaTop 5.2.4",
    "list",
    lru,
    worth=age,
)
