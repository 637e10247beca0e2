"""The formulas of docs/explanation/voi.md: by hand, by brute force, by Monte Carlo runs."""

from __future__ import annotations

from itertools import product
from math import isclose
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given

from rsp_engine.model.candidates import Outlook
from rsp_engine.policies.voi.changed_value import MODELS, ChangedValue, Predicted
from rsp_engine.policies.voi.rank_change import rank_change
from rsp_engine.policies.voi.rank_distribution import rank_distribution
from rsp_engine.policies.voi.rate import MEMORIES, ChangeRates
from rsp_engine.policies.voi.refresh_value import (
    horizon,
    ideal,
    refresh_value,
    signalled_horizon,
    thresholds,
)
from rsp_engine.policies.voi.values import Levels, Marginal, ValueHistory, group_levels
from tests.policies.inputs import numbers, outlooks
from tests.thoroughness import examples

POINTS = np.array([1 / (1 + np.exp(-(-5 + 10 * i / 24))) for i in range(25)])


def floats(*values):
    return np.array(values, dtype=np.float64)


# The change rate.


def likelihood(p, history):
    """The likelihood of a rate, given ages, whether the value changed, and F of the old value."""
    result = 1.0
    for age, changed, coincidence in history:
        q = (1 - p) ** age
        result *= 1 - q if changed else q + (1 - q) * coincidence
    return result


def posterior_by_hand(histories, key):
    """The posterior over the points, by the formulas of the module, family by family."""
    shapes = [
        [p ** (m * s) * (1 - p) ** ((1 - m) * s) for p in POINTS]
        for s in (12, 4, 1.6)
        for m in POINTS
    ]
    families = [np.eye(25)[j] for j in range(25)] + [np.array(f) / sum(f) for f in shapes]
    logs = []
    for number, family in enumerate(families):
        each = [sum(family * [likelihood(p, h) for p in POINTS]) for h in histories.values()]
        logs.append((1 if number < 25 else 0) + sum(np.log(each)))
    weights = np.exp(np.array(logs) - max(logs))
    crowd = sum(w * f for w, f in zip(weights, families, strict=True)) / weights.sum()
    posterior = crowd * [likelihood(p, histories[key]) for p in POINTS]
    return posterior / posterior.sum()


def observed(histories):
    """Rates that have seen these histories, one refresh of each key at a time."""
    rates = ChangeRates()
    for turn in range(max(map(len, histories.values()))):
        rows = [(key, *h[turn]) for key, h in histories.items() if turn < len(h)]
        keys, ages, changed, coincidence = zip(*rows, strict=True)
        rates.observe(numbers(keys), numbers(ages), np.array(changed), floats(*coincidence))
    return rates


def mean_of(rates, keys):
    return rates.expect(keys, np.ones_like(keys)).mean


def test_the_posterior_of_each_key_is_as_it_is_written():
    histories = {
        0: [(1, True, 0.0), (3, True, 0.0), (2, False, 0.0)],
        2: [(4, False, 0.3)],
        3: [(1, True, 0.0)] * 5,
        7: [(2, False, 0.1)] * 4,
    }
    rates = observed(histories)
    for key in histories:
        expected = posterior_by_hand(histories, key)
        assert rates.posterior(numbers([key]), numbers([1]))[0] == pytest.approx(
            expected, rel=1e-9, abs=1e-15
        )
        assert mean_of(rates, numbers([key])) == pytest.approx(expected @ POINTS)
        q = expected @ (1 - POINTS) ** 5
        assert rates.expect(numbers([key]), numbers([5])).unchanged == pytest.approx(q)
        n = max(1, 5 * (expected @ POINTS) / (1 - q))
        assert rates.expect(numbers([key]), numbers([5])).changes == pytest.approx(n)
    without = mean_of(rates, numbers([99]))  # without a refresh
    assert without == pytest.approx(rates.crowd @ POINTS)


def test_a_value_that_always_comes_back_tells_nothing_of_p():
    rates = observed({key: [(5, False, 1.0)] * 50 for key in range(3)})
    assert mean_of(rates, numbers([0])) == pytest.approx(0.5)


def drawn_histories(chance, rates, refreshes):
    """Refreshes after 1 to 8 evaluations, of values of which a fifth comes back."""
    histories = {}
    for key, p in enumerate(rates):
        ages = chance.integers(1, 9, refreshes)
        changed = (chance.random(refreshes) > (1 - p) ** ages) & (chance.random(refreshes) > 0.2)
        histories[key] = [(a, c, 0.2) for a, c in zip(ages.tolist(), changed.tolist(), strict=True)]
    return histories


def test_one_rate_of_all_keys_is_found_and_believed_of_each():
    rates = observed(drawn_histories(np.random.default_rng(1), [0.1] * 200, 10))
    found = mean_of(rates, np.arange(300))
    assert found.min() == pytest.approx(0.1, abs=0.03)
    assert found.max() == pytest.approx(0.1, abs=0.03)
    assert rates.quantile(0.9) - rates.quantile(0.1) < 0.05


def test_unequal_rates_are_told_apart():
    truth = [0.02] * 100 + [0.6] * 100
    rates = observed(drawn_histories(np.random.default_rng(2), truth, 12))
    found = mean_of(rates, np.arange(200))
    assert found[:100].mean() < 0.05
    assert found[100:].mean() == pytest.approx(0.6, abs=0.1)
    assert rates.quantile(0.9) - rates.quantile(0.1) > 0.4


def test_a_value_that_outlives_all_rates_but_the_smallest_leaves_that_one():
    """After 10,000 evaluations, the likelihood of most rates is 0 in float64."""
    rates = observed({0: [(10_000, False, 0.0)]})
    assert mean_of(rates, numbers([0])) == pytest.approx(1 / (1 + np.exp(5)))


def test_what_a_key_has_shown_is_forgotten_but_not_by_the_crowd():
    rates = observed({key: [(1, key % 2 == 0, 0.0)] * 20 for key in range(8)})
    crowd = rates.crowd
    rates.forget(numbers([0, 900]))
    assert rates.crowd.tolist() == crowd.tolist()
    assert mean_of(rates, numbers([0])) == pytest.approx(crowd @ POINTS)
    assert mean_of(rates, numbers([2])) > 0.9


def test_the_rates_go_on_from_their_state():
    first = observed({0: [(1, True, 0.0)], 5: [(7, False, 0.1)]})
    again = ChangeRates()
    again.restore(first.state())
    for each in (first, again):
        each.observe(numbers([5]), numbers([2]), np.array([False]), floats(0))
    assert again.state() == first.state()
    with pytest.raises(ValueError, match="3 memories of 100 families"):
        ChangeRates().restore({"keys": [], "logs": [], "evidence": [0.0], "predicted": [0.0]})


def test_where_rates_change_old_refreshes_count_less():
    """Half of the keys are busy for 20 evaluations, and then the others."""
    chance, rates, keys = np.random.default_rng(2), ChangeRates(), np.arange(40)
    ones, never = np.ones_like(keys), np.zeros(len(keys))
    assert rates.memory == 1, "before anything is seen"
    for turn in range(120):
        is_busy = (keys % 2 == 0) == (turn // 20 % 2 == 0)
        changed = chance.random(len(keys)) < np.where(is_busy, 0.9, 0.05)
        rates.observe(keys, ones, changed, never)
    assert rates.memory < 1
    means = mean_of(rates, keys)
    assert means[is_busy].min() > means[~is_busy].max()
    # A key that was not refreshed for long is as the crowd is.
    assert rates.posterior(keys[:1], ones[:1] * 500)[0] == pytest.approx(rates.crowd)


def test_where_rates_stay_every_refresh_counts_alike():
    chance, rates, keys = np.random.default_rng(3), ChangeRates(), np.arange(40)
    for _ in range(60):
        changed = chance.random(40) < np.where(keys % 2, 0.7, 0.05)
        rates.observe(keys, np.ones_like(keys), changed, np.zeros(40))
    assert rates.memory == 1


def test_a_memory_weighs_what_a_refresh_has_shown_by_its_age():
    rates = observed({0: [(1, True, 0.0), (3, False, 0.2)]})
    for place, memory in enumerate(MEMORIES):
        first = np.array([likelihood(p, [(1, True, 0.0)]) for p in POINTS])
        second = np.array([likelihood(p, [(3, False, 0.2)]) for p in POINTS])
        expected = memory**3 * np.log(first) + np.log(second)
        found = rates.state()["logs"][place][0]
        assert np.subtract(found, found[0]) == pytest.approx(expected - expected[0])


# A changed value.


def redrawn(count):
    """Ten levels of equal chance for each key."""
    return Predicted(np.tile(np.arange(10.0), (count, 1)), np.full((count, 10), 0.1))


def seen(draw, turns=60, size=20, seed=0):
    """A model that has seen `turns` changes of each key; `draw` makes the next values."""
    chance = np.random.default_rng(seed)
    model, keys = ChangedValue(), np.arange(size)
    history = [chance.uniform(0, 9, size)]
    for _ in range(turns):
        new, means = draw(chance, history[-1]), np.mean(history[-12:], axis=0)
        model.observe(keys, new, history[-1], means, np.ones(size), redrawn(size), 8.0)
        history.append(new)
    return model


@pytest.mark.parametrize(
    ("best", "draw"),
    [
        ("redrawn", lambda chance, old: chance.integers(0, 10, len(old)).astype(float)),
        ("innovation", lambda chance, old: old + chance.normal(0, 0.3, len(old))),
        (
            "own mean",
            lambda chance, old: np.arange(len(old)) / 2 + chance.normal(0, 0.7, len(old)),
        ),
    ],
)
def test_the_model_by_which_values_change_is_found(best, draw):
    weights = seen(draw).weights
    assert MODELS[int(np.argmax(weights))] == best
    assert weights.max() > 0.7
    assert weights.sum() == pytest.approx(1)


def test_before_five_changes_values_are_taken_to_be_redrawn():
    model, one = ChangedValue(), numbers([0])
    for turn in range(5):
        assert model.weights.tolist() == [1, 0, 0]
        found = model.predict(one, floats(3), floats(3), floats(1), redrawn(1))
        assert found.values.tolist() == redrawn(1).values.tolist()
        model.observe(one, floats(turn), floats(3), floats(3), floats(1), redrawn(1), 8.0)
    assert model.weights.min() > 0


def test_before_any_change_one_model_is_likelier_than_a_mixture_and_redrawn_the_likeliest():
    mixtures = [mixture for mixture in product(range(5), repeat=3) if sum(mixture) == 4]
    start = dict(zip(mixtures, ChangedValue().state()["logs"], strict=True))
    pure = [start.pop(mixture) for mixture in ((4, 0, 0), (0, 4, 0), (0, 0, 4))]
    assert pure == sorted(pure, reverse=True)
    assert min(pure) > max(start.values())


def test_a_drift_shows_from_the_fifth_change_on():
    model, one = ChangedValue(), numbers([0])
    for _ in range(5):
        assert model.drift == 0
        model.observe(one, floats(4), floats(3), floats(3), floats(1), redrawn(1), 10.0)
    assert model.drift == 1


def test_a_drift_is_believed_only_beyond_chance():
    assert seen(lambda chance, old: old + chance.normal(0, 1, len(old))).drift == 0
    rising = seen(lambda chance, old: old + chance.exponential(1, len(old)))
    assert rising.drift == pytest.approx(1, abs=0.2)
    [row] = rising.predict(numbers([0]), floats(100), floats(90), floats(4), redrawn(1)).values
    assert 101 < np.median(row[row > 50]) < 107, "about four steps of one"


def test_steps_grow_with_the_root_of_their_number_and_with_the_scale_of_the_key():
    """Keys 0 to 9 move by 0.1, keys 10 to 19 by 2."""
    scale = np.where(np.arange(20) < 10, 0.1, 2.0)
    model = seen(lambda chance, old: old + scale * chance.normal(0, 1, len(old)))

    def spread(key, n):
        found = model.predict(numbers([key]), floats(0), floats(0), floats(n), redrawn(1))
        inner = found.values[0, -32:-16] if model.weights[2] else found.values[0, -16:]
        return float(inner.max() - inner.min())

    assert spread(15, 4) == pytest.approx(2 * spread(15, 1))
    assert spread(15, 1) > 2 * spread(5, 1)
    state = model.state()
    count, sizes = dict(zip(state["keys"], state["jumps"], strict=True))[15]
    assert spread(15, 1) == pytest.approx(spread(30, 1) * (4 + sizes / 1.2) / (4 + count))


def test_a_step_out_of_all_proportion_counts_four_usual_ones():
    model, one = ChangedValue(), numbers([0])
    for new in (4, 2, 4, 2, 4, 2, 1003):
        model.observe(one, floats(new), floats(3), floats(3), floats(1), redrawn(1), 10.0)
    assert model.state()["jumps"] == [[7, 6 + 4]]


def test_the_scale_of_a_key_without_a_change_is_forgotten_without_harm():
    model = seen(lambda chance, old: old + 1, turns=1, size=3)
    model.forget(numbers([2, 3]))
    assert model.state()["keys"] == [0, 1]


def test_a_change_multiplies_each_mixture_by_its_mass_near_the_new_value():
    """Six equal steps from 3 to 4 are a drift: all but the redrawn model foresee the next."""
    model, one = ChangedValue(), numbers([0])
    for _ in range(6):
        model.observe(one, floats(4), floats(3), floats(3), floats(1), redrawn(1), 10.0)
    before = model.state()["logs"]
    model.observe(one, floats(4), floats(3), floats(3), floats(1), redrawn(1), 10.0)
    near = floats(0.1, 1, 1) + 0.002  # the half-width is 0.8, the levels are one apart
    grid = [floats(*w) / 4 for w in product(range(5), repeat=3) if sum(w) == 4]
    expected = [log + np.log(w @ near) for log, w in zip(before, grid, strict=True)]
    found = model.state()["logs"]
    assert np.subtract(found, found[0]) == pytest.approx(np.subtract(expected, expected[0]))


def test_the_model_of_changes_goes_on_from_its_state():
    first = seen(lambda chance, old: old + chance.normal(0, 1, len(old)), turns=3)
    again = ChangedValue()
    again.restore(first.state())
    keys = numbers([3, 40])
    for each in (first, again):
        each.observe(keys, floats(1, 2), floats(0, 0), floats(0, 0), floats(1, 2), redrawn(2), 8.0)
        each.forget(numbers([3, 99]))
    assert again.state() == first.state()
    assert 3 not in first.state()["keys"]
    with pytest.raises(ValueError, match="15 mixtures"):
        ChangedValue().restore({**first.state(), "logs": [0.0]})


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


def test_the_span_of_f_is_that_of_most_values_or_of_all_if_most_are_equal():
    marginal = Marginal()
    assert marginal.span == 0
    marginal.add(np.arange(101.0), np.ones(101))
    assert marginal.span == pytest.approx(80, abs=1)
    marginal.add(floats(7), floats(10_000))
    assert marginal.span == 100


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
    marginal.add(np.arange(5_000) / 11, np.ones(5_000))
    assert len(marginal) <= 2048, "room for as many more, before values are merged again"


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


def test_a_state_with_another_number_of_choices_is_refused():
    with pytest.raises(ValueError, match="there are 4 choices of c"):
        ValueHistory().restore([0.0, 0.0, 0.0])


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
    found = horizon(np.full(5, p), ages, beta)
    assert found.tolist() == pytest.approx(expected)
    assert found[0] == 1
    told = signalled_horizon(np.full(5, p), beta)
    assert told.tolist() == pytest.approx(
        [sum((b * (1 - p)) ** s for s in range(60)) for b in beta]
    )


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


@examples(60)
@given(outlooks(6))
def test_the_change_of_rank_is_the_mean_distance_from_the_expected_rank(outlook):
    """Below the K-th place, all ranks are one."""
    for k in (1, 3):
        found = rank_change(outlook, k, 1.0)
        for u in range(6):
            ranks = np.empty(0)
            for y in outlook.scores[u]:
                above = 0.0
                for w in range(6):
                    wins = outlook.precedence[w] > outlook.precedence[u]
                    over = outlook.scores[w] >= y if wins else outlook.scores[w] > y
                    above += outlook.chances[w][over].sum() if w != u else 0.0
                ranks = np.append(ranks, min(above + 1, k + 1))
            mean = float(np.dot(outlook.chances[u], ranks))
            assert found[u] == pytest.approx(
                np.dot(outlook.chances[u], abs(ranks - mean)), abs=1e-9
            )
