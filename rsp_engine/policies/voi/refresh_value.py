"""The value V of refreshing an object: how much the answer depends on its remote value.

    W_u = 1/2 E|g_u(Y) - G_u| / IDCG
          + wp (E max(0, pi_u(Y) - theta) - max(0, P_u - theta)) / K
    V_u = W_u + (H_u - 1) c_u sum_w W_w / sum_w c_w

W_u is the value for the current evaluation. P_u and G_u are the means of pi_u and g_u; theta is the
P that u competes with: the (K+1)-th largest if u is among the K largest, else the K-th. The first
term is for the order of the answer (nDCG), the second, weighted by wp, for its members (precision).

A refresh also serves later evaluations, each of which has u with probability beta: H_u - 1 counts
them, a discounted index of Whittle, Restless bandits: activity allocation in a changing world.
Journal of Applied Probability 25A, 1988. The rank of u by then depends on future arrivals, not on
its rank now. So each later evaluation counts the average value of a refresh, scaled by c_u, the
probability that the value of u has changed: a key not refreshed for long is worth a fetch even if
the current answer does not depend on it.

The value of information is Howard's: Information value theory. IEEE Transactions on Systems Science
and Cybernetics 2(1), 1966.

(Refresh by the value of information: docs/explanation/voi.md, "What a refresh is worth".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.policies.voi.rank_distribution import rank_distribution

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.candidates import Outlook

__all__ = ["FARTHEST", "horizon", "ideal", "refresh_value", "signalled_horizon", "thresholds"]

FARTHEST = 60
"""The largest age in evaluations that counts: bounds the sum in H. (docs/explanation/voi.md.)"""


def refresh_value(outlook: Outlook, k: int, wp: float) -> Floats:
    """Return V of each object."""
    ranks = rank_distribution(outlook, k)
    chances, theta = outlook.chances, thresholds(ranks.p_in, k)
    spread = (chances * np.abs(ranks.g - ranks.gain[:, None])).sum(axis=1) / 2
    informed = (chances * np.maximum(ranks.pi - theta[:, None], 0.0)).sum(axis=1)
    crossing = np.maximum(informed - np.maximum(ranks.p_in - theta, 0.0), 0.0)
    now = spread / ideal(k, len(theta)) + wp * crossing / k
    changed = 1 - chances[:, 0]
    later = (outlook.horizon - 1) * changed * (now.sum() / max(changed.sum(), 1e-12))
    value: Floats = now + later
    return value


def ideal(k: int, count: int) -> float:
    """Return IDCG: the DCG of the right answer of at most k out of `count` objects.

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


def horizon(rates: Floats, ages: Integers, beta: Floats) -> Floats:
    """Return H: 1 + sum over 1 <= s < a of beta^s (c_a - c_s) / c_a, where c_s = 1 - (1-p)^s.

    >>> horizon(np.array([0.5, 0.5]), np.array([1, 3]), np.array([0.5, 0.5])).round(4).tolist()
    [1.0, 1.25]
    """
    ages = np.clip(ages, 1, FARTHEST)
    steps = np.arange(1, ages.max(initial=1))
    c_s = 1 - (1 - rates[:, None]) ** steps
    c_a = (1 - (1 - rates) ** ages)[:, None]
    terms = beta[:, None] ** steps * (c_a - c_s) / c_a
    total: Floats = 1 + np.where(steps < ages[:, None], terms, 0.0).sum(axis=1)
    return total


def signalled_horizon(rates: Floats, beta: Floats) -> Floats:
    """Return H of keys whose changes are signalled: 1 + sum over 1 <= s < 60 of (beta (1-p))^s.

    A fetched value serves until the key leaves or changes, however old the last value was.

    >>> signalled_horizon(np.array([0.5, 1.0]), np.array([0.5, 0.9])).round(4).tolist()
    [1.3333, 1.0]
    """
    stays = np.minimum(beta * (1 - rates), 1 - 1e-9)
    total: Floats = (1 - stays**FARTHEST) / (1 - stays)
    return total
