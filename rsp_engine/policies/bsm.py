"""AT-BSM, border selection maintenance: around the border of K-list and N-list, for precision.

Objects at the border are the most likely to cross it. (AcquaTop, section 5.2.2.) With a budget of
gamma, the elected set is the run of gamma neighbours that starts at rank K + 1 - floor(gamma / 2),
counted from 1, shifted where needed to lie within the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy, score

if TYPE_CHECKING:
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_BSM", "bsm"]


def bsm(candidates: Candidates, _entries: Entries, _now: int, _seed: int) -> CandidatePlaces:
    """Order candidates by their distance from the border: K+1, K, K+2, K-1 and so on.

    The first gamma of this order are always the run of neighbours that the module describes.
    """
    beyond = np.arange(len(candidates)) - candidates.k
    return np.argsort(np.where(beyond >= 0, 2 * beyond, -2 * beyond - 1))


AT_BSM = RankedPolicy(
    "AT-BSM", "around the k-th place of the list", "AcquaTop 5.2.2", "list", bsm, worth=score
)
