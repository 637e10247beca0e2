"""WBM: a fetch goes where it saves most later fetches.

Only what may be stale is elected. A fetched value serves as long as its object lives in the window
(L evaluations) and as long as it stays fresh (V evaluations): its score is the smaller of the two.
(AcquaTop, section 3.2; from ACQUA.)

The renewed best-before time is the next one to come: as many change intervals after the old one as
are needed to pass now. Where one interval is enough this is tau + I, as in the example of the
paper; with one interval only, a value that was left alone for long would count as stale already
when fetched, and would be left alone for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy, in_order

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_WBM", "WSJ_WBM", "renewed_life", "wbm"]


def renewed_life(entries: Entries, now: int, step: int) -> Floats:
    """Return how many evaluations a stale value stays fresh for if it is fetched now: V."""
    # As floats, so that times that stand for never or for always do not overflow.
    interval = np.maximum(entries.interval, 1).astype(np.float64)
    late = now - entries.best_before.astype(np.float64)
    return np.ceil((interval - late % interval) / step)


def wbm(candidates: Candidates, entries: Entries, now: int, _seed: int) -> CandidatePlaces:
    """Order the stale candidates by min(L, V), the largest first."""
    score = np.minimum(candidates.lives, renewed_life(entries, now, candidates.step))
    order = in_order(candidates, -score)
    return order[entries.is_stale(now)[order]]


WSJ_WBM = RankedPolicy(
    "WSJ-WBM", "stale keys of the window, longest of use first", "AcquaTop 3.2", "window", wbm
)
AT_WBM = RankedPolicy(
    "AT-WBM", "stale keys of the list, longest of use first", "AcquaTop 5.2.4", "list", wbm
)
