"""RND: candidates in random order.

(AcquaTop, section 3.2; from ACQUA.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy

if TYPE_CHECKING:
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_RND", "WSJ_RND", "rnd"]

_WORD = 2**64  # numpy refuses negative seeds


def rnd(candidates: Candidates, _entries: Entries, now: int, seed: int) -> CandidatePlaces:
    """Shuffle the candidates. The result depends on seed and time, not on their given order."""
    generator = np.random.default_rng([seed % _WORD, now % _WORD])
    return generator.permutation(np.lexsort((candidates.keys, candidates.scores)))


WSJ_RND = RankedPolicy("WSJ-RND", "keys of the window, at random", "AcquaTop 3.2", "window", rnd)
AT_RND = RankedPolicy("AT-RND", "keys of the list, at random", "AcquaTop 3.2, 5.2", "list", rnd)
