"""Families of datasets depart from the paper's in the way that they say, and in CH they do not."""

from __future__ import annotations

import numpy as np
import pytest

from rsp_engine.experiments.datasets.families import FAMILIES
from rsp_engine.experiments.datasets.generator import Scale, generate
from rsp_engine.experiments.datasets.profile import changes
from rsp_engine.experiments.datasets.traces import derive, read_trace
from tests.data import real_data

OTHERS = tuple(family for family in FAMILIES if family != "paper")
SMALL = Scale(users=40, duration=2_000_000, mentions=200)


def history(dataset):
    """Return the values of each user, oldest first."""
    return [dataset.history(user)[1] for user in range(len(dataset.names))]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("ch", [5, 20])
def test_a_family_has_the_changes_that_ch_asks_for(family, ch):
    assert changes(generate(2, ch, 1, family=family)).mean() == pytest.approx(ch, rel=0.12)


@pytest.mark.parametrize("family", OTHERS)
def test_the_same_seed_gives_the_same_values_and_another_number_gives_others(family):
    first, again, other = (generate(4, 20, n, SMALL, family) for n in (1, 1, 2))
    assert np.array_equal(first.changes.values, again.changes.values)
    assert not np.array_equal(first.initial, other.initial)
    assert np.array_equal(first.mention_times, other.mention_times)


@pytest.mark.parametrize("family", OTHERS)
def test_each_change_is_a_change_and_no_two_users_have_the_same_value(family):
    dataset = generate(1, 40, 1, SMALL, family)
    values = history(dataset)
    assert all((np.diff(of) != 0).all() for of in values)
    now = np.array([of[-1] for of in values])
    assert len(np.unique(now)) == len(now)
    assert len(np.unique(dataset.initial)) == len(now)
    # The export as text loses nothing.
    assert all(f"{value:.9f}" == f"{float(f'{value:.9f}'):.9f}" for value in dataset.changes.values)


def test_values_that_rise_never_fall():
    assert all((np.diff(of) > 0).all() for of in history(generate(0, 20, 1, family="rising")))


def test_a_walk_is_near_its_last_value_and_a_redrawn_value_is_not():
    def step_by_spread(family):
        values = history(generate(0, 20, 1, family=family))
        steps = np.concatenate([np.diff(of) for of in values])
        return np.abs(steps).mean() / np.concatenate(values).std()

    assert step_by_spread("walks") < 0.2
    assert step_by_spread("churn") > 0.8


def test_users_change_at_unequal_rates_or_at_one():
    def spread(family):
        counts = np.bincount(generate(0, 20, 1, family=family).changes.users, minlength=400)
        return np.quantile(counts, 0.9) / np.quantile(counts, 0.1)

    assert spread("walks") > 8
    assert spread("paper") < 2


def test_a_burst_has_most_changes_of_a_user():
    dataset = generate(0, 10, 1, family="bursts")
    gaps = [np.diff(dataset.history(user)[0][1:]) for user in range(400)]
    minutes = np.concatenate(gaps) / 60_000
    assert np.median(minutes) < 1.5  # one round
    assert np.quantile(minutes, 0.95) > 10


def test_a_day_has_more_changes_than_a_night():
    dataset = generate(0, 20, 1, family="days")
    rounds = dataset.changes.times // 63_933  # 148 rounds in 9,462 s
    by_day = rounds % 48 < 24
    assert by_day.sum() > 5 * (~by_day).sum()


def test_heavy_tails_are_heavy():
    values = generate(0, 20, 1, family="heavy-tails").changes.values
    assert values.max() > 1000 * np.median(values)


def test_who_is_mentioned_changes_under_churn():
    def shared(family):
        dataset = generate(0, 20, 1, family=family)
        first, last = (
            set(dataset.mention_users[part].tolist()) for part in (slice(600), slice(2000, 2600))
        )
        return len(first & last) / len(first)

    assert shared("churn") < 0.6 * shared("paper")


def test_correlated_users_change_together():
    dataset = generate(0, 20, 1, family="correlated")
    rounds, users, _ = dataset.changes
    happened = np.zeros((148, 400), dtype=bool)
    happened[rounds // 63_933, users] = True
    together = np.corrcoef(happened.T)
    others = together[~np.eye(400, dtype=bool)].reshape(400, 399)
    # Each user has nearly twenty others that change when it does.
    assert np.median((others > 0.3).sum(axis=1)) == pytest.approx(19, abs=2)


def test_reverting_values_stay_near_their_level():
    values = history(generate(0, 20, 1, family="reverting"))
    long = [of for of in values if len(of) > 20]
    within, over = np.mean([of.std() for of in long]), np.std([of.mean() for of in long])
    early = [of[: len(of) // 2].mean() for of in long]
    late = [of[len(of) // 2 :].mean() for of in long]
    assert np.corrcoef(early, late)[0, 1] > 0.5
    assert within / over < 2


def test_recorded_mentions_can_have_generated_values():
    trace = read_trace(real_data("acquatop"))
    dataset = derive(trace, 0, 20, 1, "walks")
    assert np.array_equal(dataset.mention_times, trace.mention_times)
    assert changes(dataset).mean() == pytest.approx(20, rel=0.12)
    with pytest.raises(ValueError, match="churn needs generated mentions"):
        derive(trace, 0, 20, 1, "churn")
