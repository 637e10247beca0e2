"""Change intervals: learned from refreshes, judged by simulation and by the likelihood itself."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.replica.store.estimator import (
    FOREVER,
    DeclaredIntervals,
    LearnedIntervals,
    estimator,
    rates,
)

MINUTE = 60_000


def observed(learned, numbers, refreshes, seed=7):
    """Simulate keys that change as Poisson processes, refreshed at irregular times.

    Key i changes once in `true[i]` on average, from 20 seconds to an hour.
    """
    chance = np.random.default_rng(seed)
    true = np.exp(chance.uniform(np.log(MINUTE / 3), np.log(60 * MINUTE), len(numbers)))
    for _ in range(refreshes):
        elapsed = chance.choice(np.array([1, 2, 5, 10]) * MINUTE, len(numbers))
        changed = chance.poisson(elapsed / true) > 0
        learned.observe(numbers, elapsed, changed)
    return true


def test_estimates_converge_on_simulated_keys():
    numbers = np.arange(300)
    errors = []
    for refreshes in (5, 50, 500, 5000):
        learned = estimator(LearnedIntervals())
        true = observed(learned, numbers, refreshes)
        errors.append(np.log(learned.intervals(numbers) / true))
    spread = [float(np.sqrt(np.mean(error**2))) for error in errors]
    assert spread[0] > 2 * spread[1] > 4 * spread[2]
    assert spread[3] < 0.05
    assert abs(float(np.median(errors[3]))) < 0.03


def test_a_key_of_which_nothing_is_known_has_the_mean_of_the_others():
    learned = estimator(LearnedIntervals(initial=1000))
    assert learned.intervals(np.array([3])).tolist() == [1000]
    chance = np.random.default_rng(1)
    numbers = np.arange(3)
    for _ in range(2000):
        elapsed = np.full(3, MINUTE)
        learned.observe(numbers, elapsed, chance.random(3) < -math.expm1(-MINUTE / 200_000))
    assert learned.intervals(np.array([99]))[0] == pytest.approx(200_000, rel=0.1)


def test_a_key_never_seen_to_change_is_taken_to_change_ever_less():
    learned = estimator(LearnedIntervals(initial=MINUTE))
    seen = []
    for _ in range(20):
        learned.observe(np.array([0]), np.array([MINUTE]), np.array([False]))
        seen.append(int(learned.intervals(np.array([0]))[0]))
    assert seen == sorted(set(seen))


def test_a_key_always_seen_to_change_has_an_interval_all_the_same():
    learned = estimator(LearnedIntervals(initial=MINUTE))
    for _ in range(1000):
        learned.observe(np.array([0]), np.array([MINUTE]), np.array([True]))
    # The corrected estimate of the literature is log(2n + 1) changes in a minute, here 7.6.
    interval = int(learned.intervals(np.array([0]))[0])
    assert MINUTE / 12 < interval < MINUTE / 4


refreshes = st.lists(st.tuples(st.integers(1, 10**7), st.booleans()), min_size=1, max_size=12)


@given(refreshes, st.floats(0.1, 5), st.integers(1, 10**7))
def test_the_rate_makes_what_was_observed_likeliest(drawn, weight, exposure):
    # Each change in a class of its own: nothing is approximated.
    times = np.array([[t for t, changed in drawn if changed]], dtype=np.int64)
    unchanged = sum(t for t, changed in drawn if not changed)

    def likelihood(rate):
        seen = sum(math.log(-math.expm1(-rate * t)) for t in times[0].tolist())
        return seen - rate * unchanged + weight * math.log(rate) - rate * exposure

    counts = np.ones_like(times)
    rate = float(rates(counts, times, np.array([unchanged]), weight, exposure)[0])
    best = likelihood(rate)
    for factor in (0.9, 0.99, 1.01, 1.1):
        assert likelihood(rate * factor) <= best + 1e-9 * abs(best)


@given(st.lists(refreshes, min_size=1, max_size=4))
def test_what_is_known_of_a_key_depends_on_it_and_on_what_is_shared_alone(drawn):
    together, apart = estimator(LearnedIntervals()), estimator(LearnedIntervals())
    last = max(map(len, drawn))
    for step in range(last):
        present = [n for n, key in enumerate(drawn) if step < len(key)]
        elapsed = np.array([drawn[n][step][0] for n in present])
        changed = np.array([drawn[n][step][1] for n in present])
        together.observe(np.array(present), elapsed, changed)
        for place, n in enumerate(present):
            apart.observe(np.array([n]), elapsed[[place]], changed[[place]])
    everything = np.arange(len(drawn))
    assert known(together, everything) == known(apart, everything)
    assert (together.intervals(everything) == apart.intervals(everything)).all()


@given(
    st.sampled_from([LearnedIntervals(), LearnedIntervals(5, 0.5), DeclaredIntervals(7)]),
    st.lists(refreshes, max_size=3),
)
def test_a_saved_estimator_goes_on_as_it_would_have(estimation, drawn):
    one, other = estimator(estimation), estimator(estimation)
    for number, key in enumerate(drawn):
        for elapsed, changed in key:
            one.observe(np.array([number]), np.array([elapsed]), np.array([changed]))
    numbers = np.arange(len(drawn))
    other.restore(numbers, *json.loads(json.dumps(known(one, numbers))))
    more = np.append(numbers, 17)
    for each in (one, other):
        each.observe(np.array([17]), np.array([9]), np.array([True]))
    assert one.intervals(more).tolist() == other.intervals(more).tolist()
    assert known(one, more) == known(other, more)


def known(one, numbers):
    return one.rows(numbers), one.shared()


def test_a_forgotten_key_has_the_shared_interval():
    learned = estimator(LearnedIntervals())
    learned.observe(np.array([0, 1]), np.array([5, 5]), np.array([True, False]))
    learned.forget(np.array([0, 1]))
    assert len(set(learned.intervals(np.array([0, 1, 2])).tolist())) == 1


def test_a_declared_interval_stays():
    declared = estimator(DeclaredIntervals(250))
    declared.observe(np.array([0]), np.array([5]), np.array([True]))
    assert declared.intervals(np.array([0, 1])).tolist() == [250, 250]


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="at least 1 ms"):
        DeclaredIntervals(0)
    with pytest.raises(ValueError, match="at least 1 ms"):
        LearnedIntervals(initial=FOREVER + 1)
    with pytest.raises(ValueError, match="must be positive"):
        LearnedIntervals(weight=0)
