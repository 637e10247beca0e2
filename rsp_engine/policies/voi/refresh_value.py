"""What it is worth to know an object's remote value: how much the answer depends on it.

    W_u = 1/2 E|g_u(Y) - G_u| / IDCG
          + wp (E max(0, pi_u(Y) - theta) - max(0, P_u - theta)) / K
    V_u = W_u + (H_u - 1) c_u sum_w W_w / sum_w c_w

W_u is what a refresh is worth now. P_u and G_u are the means of pi_u and g_u; theta is the P that u
competes with: the (K+1)-th largest if u is among the K largest, else the K-th. The first part is
for the order of the answer (nDCG), the second for who is in it (precision), and wp weighs it.

A refresh serves later evaluations as well, in which u is again with the chance beta each: H_u - 1
counts them, a discounted index of Whittle, Restless bandits: activity allocation in a changing
world. Journal of Applied Probability 25A, 1988. Where u stands then hangs on what will be streamed
of it, not on where it stands now. So each is worth what it is on average to know a value, by the
chance c that it has changed: who was not asked for long is worth a fetch even where the answer of
today does not depend on it.

The value of information is Howard's: Information value theory. IEEE Transactions on Systems Science
and Cybernetics 2(1), 1966.

(Refresh by the value of information: docs/voi.md, "What a refresh is worth".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.voi.rank_distribution import rank_distribution

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.candidates import Outlook

__all__ = ["FARTHEST", "horizon", "ideal", "refresh_value", "thresholds"]

FARTHEST = 60
"""No value is taken to be older than so many evaluations."""


def refresh_value(outlook: Outlook, k: int, wp: float) -> Floats:
    """Return V of each object."""
    found = rank_distribution(outlook, k)
    chances, theta = outlook.chances, thresholds(found.p_in, k)
    spread = (chances * np.abs(found.g - found.gain[:, None])).sum(axis=1) / 2
    known = (chances * np.maximum(found.pi - theta[:, None], 0.0)).sum(axis=1)
    crossing = np.maximum(known - np.maximum(found.p_in - theta, 0.0), 0.0)
    now = spread / ideal(k, len(theta)) + wp * crossing / k
    changed = 1 - chances[:, 0]
    later = (outlook.horizon - 1) * changed * (now.sum() / max(changed.sum(), 1e-12))
    value: Floats = now + later
    return value


def ideal(k: int, count: int) -> float:
    """Return the DCG of the right answer, with the gains of g: IDCG.

    >>> ideal(1, 9)
    0.5
    """
    places = np.arange(max(min(k, count), 1))
    return float(((0.5**places - 0.5**k) / np.log2(places + 2)).sum())


def thresholds(p_in: Floats, k: int) -> Floats:
    """Return theta of each object.

    >>> thresholds(np.array([0.9, 0.2, 0.6]), 2).tolist()
    [0.2, 0.6, 0.2]
    """
    if len(p_in) <= k:
        return np.zeros(len(p_in))
    order = np.argsort(-p_in, kind="stable")
    theta = np.full(len(p_in), p_in[order[k - 1]])
    theta[order[:k]] = p_in[order[k]]
    return theta


def horizon(p: float, ages: Integers, beta: Floats) -> Floats:
    """Return H: 1 + sum over 1 <= s < a of beta^s (c_a - c_s) / c_a, where c_s = 1 - (1-p)^s.

    >>> horizon(0.5, np.array([1, 3]), np.array([0.5, 0.5])).round(4).tolist()
    [1.0, 1.25]
    """
    ages = np.clip(ages, 1, FARTHEST)
    steps = np.arange(1, FARTHEST)
    chance = 1 - (1 - p) ** steps
    until = (1 - (1 - p) ** ages)[:, None]
    served = beta[:, None] ** steps * (until - chance) / until
    found: Floats = 1 + np.where(steps < ages[:, None], served, 0.0).sum(axis=1)
    return found
