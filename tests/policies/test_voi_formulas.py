"""The formulas of docs/voi.md, each against a case by hand, a brute force or a Monte Carlo run."""

from __future__ import annotations

from itertools import product
from math import isclose
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given

from rsp_engine.model.candidates import Outlook
from rsp_engine.policies.voi.rank_distribution import rank_distribution
from rsp_engine.policies.voi.rate import ChangeRate
from rsp_engine.policies.voi.refresh_value import horizon, ideal, refresh_value, thresholds
from rsp_engine.policies.voi.values import Levels, Marginal, ValueHistory, group_levels
from tests.policies.inputs import numbers, outlooks
from tests.thoroughness import examples

POINTS = [1 / (1 + np.exp(-(-5 + 10 * i / 39))) for i in range(40)]


def floats(*values):
    return np.array(values, dtype=np.float64)


# The change rate.


def test_the_posterior_of_p_on_a_history_by_hand():
    """Changed after 1 and 3 evaluations, the same after 2; the same after 4, F(old) being 0.3."""
    rate = ChangeRate()
    rate.observe(numbers([1, 3, 2]), np.array([True, True, False]), floats(0, 0, 0))
    rate.observe(numbers([4]), np.array([False]), floats(0.3))
    weights = [
        p * (1 - (1 - p) ** 3) * (1 - p) ** 2 * ((1 - p) ** 4 + (1 - (1 - p) ** 4) * 0.3)
        for p in POINTS
    ]
    expected = sum(p * w for p, w in zip(POINTS, weights, strict=True)) / sum(weights)
    assert rate.mean == pytest.approx(expected, rel=1e-12)


def test_a_value_that_always_comes_back_tells_nothing_of_p():
    rate = ChangeRate()
    rate.observe(numbers([5] * 50), np.zeros(50, dtype=bool), np.ones(50))
    assert rate.mean == pytest.approx(0.5)


def test_p_is_found_from_what_refreshes_show():
    """10,000 refreshes after 1 to 8 evaluations, of values of which a fifth comes back."""
    chance = np.random.default_rng(1)
    ages = chance.integers(1, 9, 10_000)
    drawn = chance.random(10_000) > 0.9**ages
    changed = drawn & (chance.random(10_000) > 0.2)
    rate = ChangeRate()
    rate.observe(ages, changed, np.full(10_000, 0.2))
    assert rate.mean == pytest.approx(0.1, rel=0.1)
    blind = ChangeRate()
    blind.observe(ages, changed, np.zeros(10_000))
    assert blind.mean < 0.09  # without the coincidences it is taken to be less


def test_a_value_that_outlives_all_rates_but_the_smallest_leaves_that_one():
    """After 10,000 evaluations, the likelihood of most rates is 0 in float64."""
    rate = ChangeRate()
    rate.observe(numbers([10_000]), np.array([False]), floats(0))
    assert rate.mean == pytest.approx(1 / (1 + np.exp(5)))


def test_the_rate_goes_on_from_its_state():
    rate = ChangeRate()
    rate.observe(numbers([1, 7]), np.array([True, False]), floats(0, 0.1))
    again = ChangeRate(rate.state())
    for one in (rate, again):
        one.observe(numbers([2]), np.array([False]), floats(0))
    assert again.mean == rate.mean
    with pytest.raises(ValueError, match="40 points"):
        ChangeRate([0.0])


# F and F_u.


def test_f_weighs_what_it_is_told():
    marginal = Marginal()
    marginal.add(floats(5, 3, 5), floats(1, 0.25, 1))
    marginal.add(floats(9), floats(0.75))
    assert marginal.chance(floats(3, 5, 9, 4)).tolist() == pytest.approx(
        [1 / 12, 8 / 12, 3 / 12, 0]
    )
    assert marginal.ranks(floats(3, 5, 9, 4, 0, 99)).tolist() == pytest.approx(
        [1 / 24, 5 / 12, 21 / 24, 1 / 12, 0, 1]
    )
    levels = marginal.levels()
    assert levels.values.tolist() == [3, 5, 9]
    assert levels.ranks.tolist() == pytest.approx(marginal.ranks(levels.values).tolist())


def test_f_has_at_most_40_levels_of_about_equal_weight():
    values = np.random.default_rng(2).normal(size=3_000)
    marginal = Marginal()
    marginal.add(values, np.ones(3_000))
    assert len(marginal) == 3_000, "few enough to keep each"
    levels = marginal.levels()
    assert len(levels.values) == 40
    assert levels.chances.min() > 0.02
    assert levels.chances.max() < 0.03
    assert levels.values @ levels.chances == pytest.approx(values.mean())
    assert (np.diff(levels.values) > 0).all()


def test_a_value_of_great_weight_is_a_level_of_its_own():
    values, weights = group_levels(np.arange(100.0), np.where(np.arange(100) == 50, 99.0, 1.0), 10)
    assert 50.0 in values
    assert weights[values == 50.0] == 99
    assert weights.sum() == 198


def test_memory_of_f_is_bounded():
    marginal = Marginal()
    for start in range(0, 20_000, 500):
        marginal.add(np.arange(start, start + 500) / 7, np.ones(500))
    assert len(marginal) <= 4096
    assert marginal.ranks(floats(10_000 / 7)) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("place", "c", "near", "far"),
    [(0, 1, 0.6 / 2, 0.1 / 2), (1, 3, 0.8 / 4, 0.3 / 4), (2, 10, 1.5 / 11, 1 / 11)],
)
def test_f_of_an_object_leans_on_its_past(place, c, near, far):
    """Ten levels of equal chance, with the ranks 0.05, 0.15 ... One value before, of rank 0.05.

    k is 1 / 0.2 for the ranks 0 to 0.2, that is for two of the levels; with c = 1 and m = 1:
    F_u ~ 0.1 (1 + 5) / 2 = 0.3 for these, and 0.05 for the eight others.
    """
    levels = Levels(np.arange(10.0), np.full(10, 0.1))
    past = ValueHistory()
    past.restore([float(place == number) for number in range(4)])
    assert past.c == c
    found = past.chances(levels, floats([0.05, np.nan], [np.nan, np.nan]))
    assert found[0].tolist() == pytest.approx([near, near, *[far] * 8])
    assert found[1].tolist() == pytest.approx([0.1] * 10)


def test_how_much_the_past_tells_is_learned():
    chance = np.random.default_rng(3)
    assert ValueHistory().c == np.inf
    past = ValueHistory()
    ranks = chance.random(200)
    past.observe(ranks, chance.random((200, 3)))
    assert past.c == np.inf  # nothing to lean on
    past = ValueHistory()
    near = np.clip(ranks[:, None] + chance.uniform(-0.05, 0.05, (200, 3)), 0, 1)
    past.observe(ranks, near)
    assert past.c == 1


def test_the_advantage_of_no_past_is_two_in_logarithms():
    """One value at rank 0.5 that is as before: c = 1 gains log((1 + 1/0.3) / 2) = 0.773."""
    past = ValueHistory()
    past.observe(floats(0.5), floats([0.5]))
    assert past.state() == pytest.approx(
        [np.log((c + 1 / 0.3) / (c + 1)) - 2 for c in (1, 3, 10)] + [0]
    )
    past.observe(floats(0.5), floats([0.5]))
    assert past.c == np.inf
    past.observe(floats(0.5), floats([0.5]))
    assert past.c == 1


# pi and g.


def naive(outlook, k):
    """Return pi and g as they are written, object by object and score by score."""
    count, width = outlook.scores.shape
    pi, g = np.ones((count, width)), np.empty((count, width))
    for u, at in product(range(count), range(width)):
        y, above = outlook.scores[u, at], []
        for w in range(count):
            if w == u:
                continue
            wins = outlook.precedence[w] > outlook.precedence[u]
            over = outlook.scores[w] >= y if wins else outlook.scores[w] > y
            above.append(outlook.chances[w][over].sum())
        a = np.array(above)
        if count > k:
            deviation = np.sqrt((a * (1 - a)).sum() + 1e-4)
            pi[u, at] = NormalDist().cdf((k - 0.5 - a.sum()) / deviation)
        g[u, at] = max(0, np.prod(1 - a / 2) - 2.0**-k)
    return pi, g


@examples(80)
@given(outlooks(7))
def test_all_sums_of_one_pass_are_those_of_each_pair(outlook):
    for k in (1, 3, 7):
        found = rank_distribution(outlook, k)
        pi, g = naive(outlook, k)
        assert np.allclose(found.pi, pi, atol=1e-9)
        assert np.allclose(found.g, g, atol=1e-12)
        assert np.allclose(found.p_in, (pi * outlook.chances).sum(axis=1))
        assert np.allclose(found.gain, (g * outlook.chances).sum(axis=1))


def drawn_outlook(count, width, seed):
    chance = np.random.default_rng(seed)
    weights = chance.random((count, width)) ** 2
    scores = (chance.integers(0, 60, (count, width)) + chance.integers(0, 20, (count, 1))) / 4
    chances = weights / weights.sum(axis=1, keepdims=True)
    return Outlook(scores, chances, chance.permutation(count), np.ones(count))


@pytest.mark.parametrize(("count", "k", "seed"), [(32, 5, 1), (32, 10, 2), (60, 20, 3), (20, 6, 4)])
def test_pi_and_g_are_near_a_monte_carlo_run(count, k, seed):
    """Worlds are drawn, and each score of an object is compared with the others in all of them.

    E[2^-above] is exact, since objects are independent; pi uses the normal approximation. Both are
    within 2 % of the whole.
    """
    outlook = drawn_outlook(count, 8, seed)
    found = rank_distribution(outlook, k)
    chance = np.random.default_rng(seed + 100)
    cumulated = outlook.chances.cumsum(axis=1)
    picks = (chance.random((20_000, count, 1)) > cumulated).sum(axis=2).clip(max=7)
    worlds = outlook.scores[np.arange(count), picks] + outlook.precedence / 1e6
    for u, at in product(chance.permutation(count)[:8].tolist(), range(8)):
        y = outlook.scores[u, at] + outlook.precedence[u] / 1e6
        above = (np.delete(worlds, u, axis=1) > y).sum(axis=1)
        assert found.pi[u, at] == pytest.approx((above < k).mean(), abs=0.02)
        gain = (0.5**above).mean() - 0.5**k
        assert found.g[u, at] == pytest.approx(max(0, gain), abs=0.005, rel=0.02)


def test_who_is_sure_of_everything_stands_where_the_scores_say():
    scores = floats([5], [9], [5], [1])
    outlook = Outlook(scores, np.ones((4, 1)), numbers([1, 2, 3, 4]), np.ones(4))
    found = rank_distribution(outlook, 2)
    assert found.p_in.tolist() == pytest.approx([0, 1, 1, 0])
    assert found.gain.tolist() == pytest.approx([0, 0.75, 0.25, 0])
    assert refresh_value(outlook, 2, 1.0).tolist() == pytest.approx([0, 0, 0, 0], abs=1e-9)


def test_at_most_k_objects_are_all_in():
    outlook = drawn_outlook(5, 3, 9)
    assert rank_distribution(outlook, 5).p_in.tolist() == pytest.approx([1] * 5)


# H and V.


def by_the_sum(p, age, beta):
    age = min(age, 60)

    def c(s):
        return 1 - (1 - p) ** s

    return 1 + sum(beta**s * (c(age) - c(s)) / c(age) for s in range(1, age))


@pytest.mark.parametrize("p", [0.01, 0.2, 0.9])
def test_h_is_the_sum_over_the_evaluations_to_come(p):
    ages, beta = numbers([1, 2, 5, 60, 200]), floats(0.3, 0.98, 0.5, 0.7, 0.9)
    expected = [by_the_sum(p, *pair) for pair in zip(ages.tolist(), beta.tolist(), strict=True)]
    assert horizon(p, ages, beta).tolist() == pytest.approx(expected)
    assert horizon(p, ages, beta)[0] == 1


def test_theta_is_the_rival_and_idcg_that_of_the_measure():
    assert thresholds(floats(0.9, 0.5, 0.8, 0.1), 2).tolist() == [0.5, 0.8, 0.5, 0.8]
    assert thresholds(floats(0.9, 0.5), 2).tolist() == [0, 0]
    assert isclose(ideal(3, 10), 7 / 8 + 3 / 8 / np.log2(3) + 1 / 8 / 2)
    assert isclose(ideal(3, 2), 7 / 8 + 3 / 8 / np.log2(3))


@examples(60)
@given(outlooks(6))
def test_v_is_as_it_is_written(outlook):
    k, wp = 2, 4.0
    pi, g = naive(outlook, k)
    chances = outlook.chances
    p_in, gain = (pi * chances).sum(axis=1), (g * chances).sum(axis=1)
    order = sorted(range(6), key=lambda u: -p_in[u])
    idcg = 3 / 4 + 1 / 4 / np.log2(3)
    value, now = refresh_value(outlook, k, wp), []
    for u in range(6):
        theta = p_in[order[k]] if u in order[:k] else p_in[order[k - 1]]
        spread = (chances[u] * abs(g[u] - gain[u])).sum() / 2 / idcg
        crossing = (chances[u] * np.maximum(0, pi[u] - theta)).sum() - max(0, p_in[u] - theta)
        now.append(spread + wp * crossing / k)
    changed = [chances[u][1:].sum() for u in range(6)]
    mean = sum(now) / sum(changed) if any(changed) else 0
    for u in range(6):
        later = (outlook.horizon[u] - 1) * changed[u] * mean
        assert value[u] == pytest.approx(now[u] + later, abs=1e-8)


def test_what_serves_later_windows_is_worth_a_fetch_even_if_it_is_far_below_today():
    """The third ranks last at any value; it was not refreshed for long, and stays in windows."""
    scores = floats([9, 5], [8, 6], [2, 1])
    chances = floats([0.9, 0.1], [0.9, 0.1], [0.2, 0.8])
    order = numbers([3, 2, 1])
    now = refresh_value(Outlook(scores, chances, order, np.ones(3)), 1, 1.0)
    assert now[2] == pytest.approx(0, abs=1e-9)
    later = refresh_value(Outlook(scores, chances, order, floats(1, 1, 3)), 1, 1.0)
    assert later[:2].tolist() == now[:2].tolist()
    assert later[2] == pytest.approx(2 * 0.8 * now.sum() / (0.1 + 0.1 + 0.8))
    assert later[2] > later[:2].max()


def test_nothing_is_worth_less_than_nothing():
    for seed in range(20):
        assert (refresh_value(drawn_outlook(20, 6, seed), 5, 1.0) >= 0).all()
