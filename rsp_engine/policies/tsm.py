"""AT-TSM, top selection maintenance: the top of the list, for relevance (nDCG).

The top k of this window are likely to be in the top k of the next. (AcquaTop, section 5.2.1.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy, score

if TYPE_CHECKING:
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_TSM", "tsm"]


def tsm(candidates: Candidates, _entries: Entries, _now: int, _seed: int) -> CandidatePlaces:
    """Keep the order of the candidates, best first."""
    return np.arange(len(candidates))


AT_TSM = RankedPolicy("AT-TSM", "the top of the list", "AcquaTop 5.2.1", "list", tsm, worth=score)
