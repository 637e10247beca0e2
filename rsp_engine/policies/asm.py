"""AT-ASM, all selection maintenance, and EXACT: every candidate, whatever the budget.

AT-ASM refreshes the whole list, so it is the upper bound of every policy that elects from the list.
(AcquaTop, section 5.2.3.) EXACT refreshes the whole window, so the answer is right if every fetch
succeeds: the oracle of AcquaTop, section 6.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy, score

if TYPE_CHECKING:
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_ASM", "EXACT", "everything"]


def everything(candidates: Candidates, _entries: Entries, _now: int, _seed: int) -> CandidatePlaces:
    """Elect every candidate, best first."""
    return np.arange(len(candidates))


AT_ASM = RankedPolicy(
    "AT-ASM",
    "the whole list",
    "AcquaTop 5.2.3",
    "list",
    everything,
    is_bounded=False,
    worth=score,
)
EXACT = RankedPolicy(
    "EXACT",
    "the whole window",
    "AcquaTop 6.2",
    "window",
    everything,
    is_bounded=False,
    worth=score,
)
