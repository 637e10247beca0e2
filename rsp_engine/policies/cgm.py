"""CGM: the keys whose refresh adds the most freshness, of Cho and Garcia-Molina.

A value changes at a rate of r, a Poisson process. Refreshed with frequency f, it is fresh for the
share of time F(f) = (f / r) (1 - exp(-r / f)). The sum of all F is largest, for a given number of
refreshes, where dF/df is the same mu for all keys; keys of which dF/df never reaches mu change too
fast to be kept fresh, and are never refreshed. (Cho, Garcia-Molina: Effective page refresh policies
for Web crawlers. ACM Transactions on Database Systems 28(4), 2003, section 5.)

The optimal period of a key is the age a at which

    dF/df at f = 1/a     =  (1 - exp(-r a)) / r - a exp(-r a)

reaches mu. So the keys with the largest dF/df at their present age are elected, and mu need not be
known: it follows from the budget. Decided here: all keys weigh the same, as in the paper, and r is
one over the interval that the replica has estimated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.policy import CandidatePlaces, RankedPolicy, in_order

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.candidates import Candidates, Entries

__all__ = ["AT_CGM", "WSJ_CGM", "added_freshness", "ages_and_rates", "cgm", "gain"]

_SMALL = 1e-4  # below it, the difference of nearly equal numbers would lose its digits


def ages_and_rates(entries: Entries, now: int) -> tuple[Floats, Floats]:
    """Return the age of each value in milliseconds, and its changes per millisecond."""
    # Floats, so that the sentinels for never and forever do not overflow.
    ages = np.maximum(now - entries.last_refresh.astype(np.float64), 0.0)
    return ages, 1 / np.maximum(entries.interval, 1)


def added_freshness(ages: Floats, rates: Floats) -> Floats:
    """Return dF/df of values that are refreshed whenever they have this age.

    >>> added_freshness(np.array([1.0, 1.0, 100.0]), np.array([0.1, 1.0, 1.0])).round(3).tolist()
    [0.047, 0.264, 1.0]
    """
    x = ages * rates
    safe = np.maximum(x, _SMALL)
    exact = -np.expm1(-safe) / safe - np.exp(-safe)
    added: Floats = ages * np.where(x < _SMALL, x / 2, exact)
    return added


def gain(_candidates: Candidates, entries: Entries, now: int) -> Floats:
    """Return the freshness that a refresh of each value adds."""
    return added_freshness(*ages_and_rates(entries, now))


def cgm(candidates: Candidates, entries: Entries, now: int, _seed: int) -> CandidatePlaces:
    """Order candidates by the freshness that a refresh adds, largest first."""
    return in_order(candidates, -gain(candidates, entries, now))


_SOURCE = "Cho and Garcia-Molina 2003, 5"
WSJ_CGM = RankedPolicy(
    "WSJ-CGM",
    "keys of the window whose refresh adds most freshness",
    _SOURCE,
    "window",
    cgm,
    worth=gain,
)
AT_CGM = RankedPolicy(
    "AT-CGM",
    "keys of the list whose refresh adds most freshness",
    _SOURCE,
    "list",
    cgm,
    worth=gain,
)
