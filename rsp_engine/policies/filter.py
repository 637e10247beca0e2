"""FILTER: the keys whose values are closest to the threshold of the filter, of ACQUA.

A value near the threshold is the most likely to cross it, and so to change the answer. (Zahmatkesh,
Della Valle, Dell'Aglio: When a FILTER makes the difference in continuously answering SPARQL queries
on streaming and quasi-static linked data, ICWE 2016. Zahmatkesh, Della Valle, Dell'Aglio: Using
rank aggregation in continuously answering SPARQL queries on streaming and quasi-static linked data,
DEBS 2017.)

The policy is defined for `FILTER(?value > threshold)`. Decided here: a top-k query is a filter
whose threshold is the K-th score, the last one if there are fewer, and the distance of an object is
that of its score. The threshold moves from window to window, and the object at the K-th place has
distance 0. An object without a score comes last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy, in_order

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_FILTER", "WSJ_FILTER", "closeness", "closest"]


def closeness(candidates: Candidates, _entries: Entries, _now: int) -> Floats:
    """Return the distance of each score from the K-th score, as a negative number."""
    scores = candidates.scores
    threshold = (
        scores[candidates.k - 1 : candidates.k] if len(scores) >= candidates.k else scores[-1:]
    )
    with np.errstate(invalid="ignore"):  # two infinite scores
        distances: Floats = np.where(scores == threshold, 0.0, np.abs(scores - threshold))
    return -distances


def closest(candidates: Candidates, entries: Entries, now: int, _seed: int) -> CandidatePlaces:
    """Order candidates by the distance of their scores from the K-th score, closest first."""
    return in_order(candidates, -closeness(candidates, entries, now))


_SOURCE = "ACQUA FILTER: Zahmatkesh et al. 2016"
WSJ_FILTER = RankedPolicy(
    "WSJ-FILTER",
    "keys of the window, closest to the k-th score first",
    _SOURCE,
    "window",
    closest,
    worth=closeness,
)
AT_FILTER = RankedPolicy(
    "AT-FILTER",
    "keys of the list, closest to the k-th score first",
    _SOURCE,
    "list",
    closest,
    worth=closeness,
)
