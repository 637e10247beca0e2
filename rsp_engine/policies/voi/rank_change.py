"""The expected change of rank: how far a refresh is expected to move an object.

The expected rank of u at a score is one plus the sum of A_w, the probabilities that the others are
above it (Cormode, Li, Yi: Semantics of ranking queries for probabilistic data and expected ranks.
ICDE 2009, section 5). The value of refreshing u is the mean absolute deviation of this rank from
its mean,

    E|R_u(Y) - E R_u(Y)|    with R_u(y) = min(K + 1, 1 + sum A_w(y))

in which all ranks below the K-th are one: no answer shows them. No later window is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.voi.rank_distribution import rank_distribution

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.candidates import Outlook

__all__ = ["rank_change"]


def rank_change(outlook: Outlook, k: int, _wp: float) -> Floats:
    """Return the expected change of rank of each object."""
    ranks = np.minimum(rank_distribution(outlook, k).above + 1, k + 1)
    means = (outlook.chances * ranks).sum(axis=1)
    change: Floats = (outlook.chances * np.abs(ranks - means[:, None])).sum(axis=1)
    return change
