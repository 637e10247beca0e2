"""LDS, low-discrepancy schedule: freshness weighed by importance, of Azar and others.

A value changes at a rate of r and is asked for at a rate of w. If it is refreshed at random, with
rate f, it is fresh for the share of time f / (f + r), so that the weighed sum is largest where

    w r / (f + r)^2

is the same for all keys. The optimal rates are made a deterministic schedule of low discrepancy:
between two refreshes of a key there is a time of about 1 / f. (Azar, Horvitz, Lubetzky, Peres,
Shahaf: Tractable near-optimal policies for crawling. PNAS 115(32), 2018.)

So a key is due when its age a reaches 1 / f, and the keys with the largest w r a^2 / (1 + r a)^2
are elected: the common value need not be known, since it follows from the budget. Decided here: the
importance w of an object is the discount of its rank in DCG, 1 / log2(rank + 1), and r is one over
the interval that the replica has estimated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.cgm import ages_and_rates
from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy, in_order

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_LDS", "WSJ_LDS", "lds", "weighed_gain"]


def weighed_gain(candidates: Candidates, entries: Entries, now: int) -> Floats:
    """Return the weighed freshness that a refresh of each value adds."""
    ages, rates = ages_and_rates(entries, now)
    importance = 1 / np.log2(np.arange(len(candidates)) + 2)
    gains: Floats = importance * rates * (ages / (1 + rates * ages)) ** 2
    return gains


def lds(candidates: Candidates, entries: Entries, now: int, _seed: int) -> CandidatePlaces:
    """Order candidates by the weighed freshness that a refresh adds, largest first."""
    return in_order(candidates, -weighed_gain(candidates, entries, now))


_SOURCE = "Azar et al. 2018"
WSJ_LDS = RankedPolicy(
    "WSJ-LDS",
    "as WSJ-CGM, but freshness at the top counts more",
    _SOURCE,
    "window",
    lds,
    worth=weighed_gain,
)
AT_LDS = RankedPolicy(
    "AT-LDS",
    "as AT-CGM, but freshness at the top counts more",
    _SOURCE,
    "list",
    lds,
    worth=weighed_gain,
)
