"""WST: no refresh at all. The worst case, the lower baseline of every policy.

(AcquaTop, section 6.3; from ACQUA.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy

if TYPE_CHECKING:
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["WST", "nothing"]


def nothing(_candidates: Candidates, _entries: Entries, _now: int, _seed: int) -> CandidatePlaces:
    """Elect no candidate."""
    return np.empty(0, dtype=np.intp)


WST = RankedPolicy("WST", "nothing: the replica stays as it was", "AcquaTop 6.3", None, nothing)
