"""WBM: the stale keys whose refresh stays useful for the most evaluations.

Only stale keys are elected. A refreshed value is useful while its object is in the window (L
evaluations) and while it stays fresh (V evaluations): the score is min(L, V). (AcquaTop, section
3.2; from ACQUA.)

The renewed best-before time is the first one after now: the old one plus as many change intervals
as needed. If one interval is enough, this is tau + I, as in the example of the paper. Always adding
exactly one interval would starve keys: one not refreshed for long would be stale again right after
its refresh, get V = 0, and never be elected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy, in_order

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_WBM", "WSJ_WBM", "renewed_life", "useful_life", "wbm"]


def renewed_life(entries: Entries, now: int, step: int) -> Floats:
    """Return V: for how many evaluations a stale value stays fresh if it is refreshed now."""
    # Floats, so that the sentinels for never and forever do not overflow.
    interval = np.maximum(entries.interval, 1).astype(np.float64)
    overdue = now - entries.best_before.astype(np.float64)
    return np.ceil((interval - overdue % interval) / step)


def useful_life(candidates: Candidates, entries: Entries, now: int) -> Floats:
    """Return min(L, V): for how many evaluations a refresh now is useful."""
    renewed: Floats = renewed_life(entries, now, candidates.step)
    return np.minimum(candidates.lives, renewed)


def wbm(candidates: Candidates, entries: Entries, now: int, _seed: int) -> CandidatePlaces:
    """Order the stale candidates by min(L, V), largest first."""
    order = in_order(candidates, -useful_life(candidates, entries, now))
    return order[entries.is_stale(now)[order]]


WSJ_WBM = RankedPolicy(
    "WSJ-WBM",
    "stale keys of the window, longest useful first",
    "AcquaTop 3.2",
    "window",
    wbm,
    worth=useful_life,
)
AT_WBM = RankedPolicy(
    "AT-WBM",
    "stale keys of the list, longest useful first",
    "AcquaTop 5.2.4",
    "list",
    wbm,
    worth=useful_life,
)
