"""AT-VOI as a whole: what it learns, elects, answers and saves."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.candidates import Candidates, Outlook
from rsp_engine.policies import POLICIES, elected_set, policy_named
from rsp_engine.policies.voi import AT_VOI, WSJ_VOI, Learner, Voi
from rsp_engine.policies.voi.refresh_value import signalled_horizon
from tests.policies.inputs import candidates, counts, entries, numbers, questions
from tests.thoroughness import examples


def floats(*values):
    return np.array(values, dtype=np.float64)


def voi(text):
    policy = policy_named(text)
    assert isinstance(policy, Voi)
    return policy


def itself(values):
    """Score by the remote value alone."""
    return values


# What is learned.


def test_the_first_values_of_keys_weigh_a_quarter_and_changed_ones_one():
    learner = Learner()
    learner.begin(numbers([1, 2]), floats(10, 20))
    learner.fetched(numbers([1]), floats(30))
    assert learner.marginal.state() == {"values": [10, 20, 30], "weights": [0.25, 0.25, 1]}
    learner.begin(numbers([1, 2, 7]), floats(30, 20, np.nan))  # of 7, nothing is known
    assert learner.marginal.state()["weights"] == [0.25, 0.25, 1]


def test_a_value_that_is_the_same_again_weighs_as_much_as_it_is_likely_to_have_come_back():
    """F(10) is 1/2, p 1/2 and the age 1: r = (1/2 1/2) / (1/2 + 1/2 1/2) = 1/3."""
    learner = Learner()
    learner.begin(numbers([1, 2]), floats(10, 20))
    assert learner.rates.expect(numbers([1]), numbers([1])).unchanged == pytest.approx(0.5)
    learner.fetched(numbers([1]), floats(10))
    assert learner.marginal.state()["weights"] == pytest.approx([0.25 + 1 / 3, 0.25])


def test_ages_count_evaluations_and_the_first_load_is_one_before_the_first():
    learner = Learner()
    keys = numbers([1, 2, 3])
    learner.begin(keys, floats(1, 2, 3))
    assert learner.ages(keys).tolist() == [1, 1, 1]
    learner.fetched(numbers([2]), floats(2))
    assert learner.ages(keys).tolist() == [1, 0, 1]
    learner.begin(numbers([2]), floats(2))
    learner.begin(keys, floats(1, 2, 3))
    assert learner.ages(keys).tolist() == [3, 2, 3]


def test_of_a_key_that_is_forgotten_nothing_stays():
    """Its number may be given to another key."""
    learner = Learner()
    learner.begin(numbers([1, 2]), floats(10, 20))
    learner.fetched(numbers([1]), floats(30))
    parts = learner, learner.rates, learner.changed_value
    assert [part.state()["keys"] for part in parts] == [[1, 2], [1], [1]]
    learner.forget(numbers([1, 9]))
    assert [part.state()["keys"] for part in parts] == [[2], [], []]


def test_presence_is_the_part_of_windows_that_a_key_was_in():
    learner = Learner()
    learner.begin(numbers([1]), floats(0))
    learner.begin(numbers([1, 2]), floats(0, 0))
    learner.begin(numbers([2]), floats(0))
    assert learner.presence(numbers([1, 2])).tolist() == pytest.approx([3 / 5, 3 / 4])
    for _ in range(500):
        learner.begin(numbers([2]), floats(0))
    assert learner.presence(numbers([2])).tolist() == [0.98]


def test_the_outlook_is_the_replica_with_the_chance_q_and_a_draw_otherwise():
    learner = Learner()
    learner.begin(numbers([1, 2]), floats(10, 20))
    learner.fetched(numbers([2]), floats(20))
    found = learner.outlook(numbers([1, 2]), floats(10, 20), numbers([1, 2]), itself)
    [p, _] = learner.rates.expect(numbers([1, 2]), numbers([1, 1])).mean
    assert found.scores.tolist() == [[10, 10, 20], [20, 10, 20]]
    assert found.chances[:, 0].tolist() == pytest.approx([1 - p, 1])
    assert found.chances[0, 1:].tolist() == pytest.approx(
        (p * learner.marginal.levels().chances).tolist()
    )
    assert found.chances.sum(axis=1).tolist() == pytest.approx([1, 1])


def test_how_long_a_value_serves_does_not_depend_on_its_age_where_changes_are_signalled():
    learner, keys = Learner(), numbers([1, 2])
    learner.begin(keys, floats(10, 20))
    learner.observe_signal(numbers([2]), np.array([False]))
    rates = floats(0.3, 0.3)
    one, nine = (learner._horizon(keys, rates, numbers([age, age])) for age in (1, 9))
    assert one[0] != nine[0]
    assert one[1] == nine[1] == signalled_horizon(rates, learner.presence(keys))[1]


def test_a_change_signal_makes_a_value_nearly_certainly_changed_or_certainly_unchanged():
    learner = Learner()
    keys = numbers([1, 2, 3])
    learner.begin(keys, floats(10, 20, 30))
    learner.observe_signal(numbers([1, 2]), np.array([True, False]))
    found = learner.outlook(keys, floats(10, 20, 30), keys, itself)
    assert found.chances[0, 0] == 0.05, "the share of false alarms, of which nothing is known"
    assert found.chances[1].tolist() == [1, 0, 0, 0]
    assert 0 < found.chances[2, 0] < 1  # without a signal
    assert learner.ages(keys).tolist() == [1, 0, 1]


def test_a_signalled_change_counts_once_until_the_value_is_fetched():
    learner = Learner()
    learner.begin(numbers([1]), floats(10))
    learner.observe_signal(numbers([1]), np.array([True]))
    once = learner.rates.state()
    learner.begin(numbers([1]), floats(10))
    learner.observe_signal(numbers([1]), np.array([True]))
    assert learner.rates.state() == once
    learner.fetched(numbers([1]), floats(10))  # a change back to what it was
    assert learner.rates.state() == once
    # It is the only value, so F(10) is 1: a change back has 0.95, a false alarm 0.05.
    assert learner.marginal.state()["weights"] == pytest.approx([0.25 + 0.95])
    learner.begin(numbers([1]), floats(10))
    learner.observe_signal(numbers([1]), np.array([False]))
    assert learner.rates.state() != once


def test_how_often_the_signal_is_wrong_is_learned_from_what_is_fetched():
    """Every second signal is false. Values are drawn from 1,000, so none comes back by chance."""
    chance, learner = np.random.default_rng(4), Learner()
    keys = np.arange(40)
    values = chance.integers(0, 1000, 40).astype(float)
    learner.begin(keys, values)
    assert learner.belief()["false_alarms"] is None
    for _ in range(10):
        learner.begin(keys, values)
        learner.observe_signal(keys, np.ones(40, dtype=bool))
        values = np.where(chance.random(40) < 0.5, values, chance.integers(0, 1000, 40))
        learner.fetched(keys, values)
    assert learner.false_alarms == pytest.approx(0.5, abs=0.1)
    assert learner.belief()["false_alarms"] == pytest.approx(0.5, abs=0.1)
    learner.begin(keys, values)
    learner.observe_signal(keys, keys < 20)
    found = learner.outlook(keys, values, keys, itself)
    assert found.chances[:20, 0] == pytest.approx(np.full(20, learner.false_alarms))
    assert found.chances[20:, 0].tolist() == [1] * 20


def test_a_key_without_a_value_is_remembered_as_one():
    learner = Learner()
    learner.begin(numbers([1]), floats(10))
    learner.fetched(numbers([1]), floats(np.nan))
    learner.begin(numbers([1]), floats(np.nan))
    learner.fetched(numbers([1]), floats(30))
    assert learner.state()["values"] == [[30, None, 10]]
    assert learner.marginal.state() == {"values": [10, 30], "weights": [0.25, 1]}


def test_a_value_that_was_pushed_is_fresh_and_says_nothing_about_the_rate():
    """Of 1 a value is pushed after a change was signalled; 2 loses its value; 3 stays as it is."""
    learner = Learner()
    keys = numbers([1, 2, 3])
    learner.begin(keys, floats(10, 20, 30))
    learner.observe_signal(numbers([1]), np.array([True]))
    before = learner.rates.state()
    learner.begin(keys, floats(15, np.nan, 30))
    assert learner.ages(keys).tolist() == [0, 0, 2]
    assert learner.rates.state() == before
    assert learner.marginal.state() == {
        "values": [10, 15, 20, 30],
        "weights": [0.25, 1, 0.25, 0.25],
    }
    assert learner.state()["values"] == [[15, 10], [None, 20], [30]]
    found = learner.outlook(keys, floats(15, 0, 30), keys, itself)
    assert found.chances[0, 0] == 1
    learner.observe_signal(numbers([1]), np.array([False]))
    assert learner.rates.state() == before, "it was fresh: that it has not changed is no news"


def test_as_long_as_nothing_is_known_the_replica_is_the_outlook():
    learner = Learner()
    keys = numbers([1, 2])
    learner.begin(keys, floats(np.nan, np.nan))
    found = learner.outlook(keys, floats(7, 9), keys, itself)
    assert found.scores.tolist() == [[7], [9]]
    assert found.chances.tolist() == [[1], [1]]


@st.composite
def stories(draw: st.DrawFn):
    """Evaluations: the keys of the window, their values, the fetched keys, and the signal."""
    story = []
    for _ in range(draw(st.integers(1, 6))):
        keys = draw(st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True))
        some = draw(st.lists(st.sampled_from(keys), unique=True))
        values = [draw(st.sampled_from([1.0, 2.0, 2.5, float("nan")])) for _ in keys]
        story.append((keys, values, some, [draw(st.booleans()) for _ in keys]))
    return story


def live(learner, story):
    held = dict.fromkeys(range(10), 2.0)
    for keys, values, fetched, changed in story:
        learner.begin(numbers(keys), floats(*(held[key] for key in keys)))
        learner.observe_signal(numbers(keys[:3]), np.array(changed[:3]))
        held |= {key: v for key, v in zip(keys, values, strict=True) if key in fetched}
        learner.fetched(numbers(fetched), floats(*(held[key] for key in fetched)))


@examples(60)
@given(stories(), stories())
def test_the_state_is_plain_data_and_what_is_restored_goes_on_to_the_byte(first, second):
    learner = Learner()
    live(learner, first)
    saved = json.dumps(learner.state())
    again = Learner()
    again.restore(json.loads(saved))
    assert json.dumps(again.state()) == saved
    live(learner, second)
    live(again, second)
    assert json.dumps(again.state()) == json.dumps(learner.state())
    keys = np.arange(10)
    asked = keys, floats(*range(10)), keys, itself
    assert (learner.outlook(*asked).chances == again.outlook(*asked).chances).all()


@examples(30)
@given(st.lists(st.lists(st.floats(allow_infinity=False), min_size=6, max_size=6), max_size=9))
def test_whatever_the_values_are_the_outlook_is_a_distribution(fetches):
    """Values up to the ends of float64, at which steps and squares overflow, or none."""
    learner, keys = Learner(), np.arange(6)
    held = floats(*range(6))
    for values in fetches:
        learner.begin(keys, held)
        held = floats(*values)
        learner.fetched(keys, held)
        learner.begin(keys, held)
        found = learner.outlook(keys, np.nan_to_num(held), keys, itself)
        assert np.isfinite(found.scores).all()
        assert (found.chances >= 0).all()
        assert found.chances.sum(axis=1) == pytest.approx(np.ones(6))
        json.dumps(learner.state(), allow_nan=False)


def test_a_state_of_another_version_is_refused():
    with pytest.raises(ValueError, match="of version 1, not 3"):
        Learner().restore({**Learner().state(), "version": 1})


# Whom it elects.


def sure(scores, unsure, levels):
    """An outlook of objects that are sure of their scores, but for some."""
    count = len(scores)
    grid = np.tile(floats(*levels), (count, 1))
    is_unsure = np.isin(np.arange(count), unsure)[:, None]
    chances = np.where(is_unsure, np.full_like(grid, 1 / len(levels)), 0.0)
    return Outlook(
        np.concatenate((np.array(scores)[:, None], grid), axis=1),
        np.concatenate((np.where(is_unsure, 0.0, 1.0), chances), axis=1),
        np.arange(count),
        np.ones(count),
    )


def test_who_cannot_change_the_answer_is_not_worth_a_fetch():
    """0 may be first or fifth; 4 may have any value too, but all are below the k-th place.

    score   9   8   7   6   1
            0   1   2 | 3   4      k = 3
    """
    outlook = sure([9.0, 8.0, 7.0, 6.0, 1.0], [0, 4], [0.5, 1.5, 2.0])
    wide = sure([9.0, 8.0, 7.0, 6.0, 1.0], [0], [0.5, 8.5, 9.5])
    outlook.scores[0], outlook.chances[0] = wide.scores[0], wide.chances[0]
    asked = candidates(range(5), [9, 8, 7, 6, 1], [1] * 5, k=3, outlook=outlook)
    assert AT_VOI.elect(asked, entries(5), 1, 0, 0).tolist() == [0]


def test_order_and_precision_weigh_the_same_unless_said():
    assert (AT_VOI.wp, WSJ_VOI.wp) == (0.5, 0.5)


def test_wp_weighs_who_is_in_against_the_order():
    """0 may be first or second, for sure in; 2 may be in, and last, or out."""
    scores = [9.0, 8.0, 6.0, 5.0]
    outlook = sure(scores, [0], [7.5, 9.5])
    border = sure(scores, [2], [4.0, 5.5])
    outlook.scores[2], outlook.chances[2] = border.scores[2], border.chances[2]
    asked = candidates(range(4), scores, [1] * 4, k=3, outlook=outlook)
    assert policy_named("AT-VOI+wp=0").elect(asked, entries(4), 1, 0, 0).tolist() == [0]
    assert policy_named("AT-VOI+wp=4").elect(asked, entries(4), 1, 0, 0).tolist() == [2]
    values, elsewhere = AT_VOI.worth(asked), floats(0, 0, 0, 99)
    shared = replace(asked, elsewhere=elsewhere)  # what other queries would gain
    together = AT_VOI.values(shared, entries(4), 1)
    assert values is not None
    assert together is not None
    assert together.tolist() == (values + elsewhere).tolist()
    assert AT_VOI.elect(shared, entries(4), 1, 0, 0).tolist() == [3]


@given(questions(), counts)
def test_without_an_outlook_it_elects_as_another_policy_does(question, budget):
    asked, facts, now, seed = question
    blind = Candidates(asked.keys, asked.scores, asked.lives, asked.k, asked.step)
    for policy, other in ((AT_VOI, "AT-TSM"), (WSJ_VOI, "WSJ-LRU")):
        expected = POLICIES[other].elect(blind, facts, budget, now, seed).tolist()
        assert policy.elect(blind, facts, budget, now, seed).tolist() == expected
        assert policy.best(blind).tolist() == list(range(min(asked.k, len(asked))))


# What it answers.


@examples(60)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 45))
def test_who_knows_everything_answers_as_the_oracle(scores, k):
    count = len(scores)
    order = sorted(range(count), key=lambda u: (scores[u], u), reverse=True)
    known = floats(*scores)
    outlook = Outlook(known[:, None], np.ones((count, 1)), np.arange(count), np.ones(count))
    asked = candidates(range(count), known, [1] * count, k=k, outlook=outlook)
    for policy in (AT_VOI, voi("AT-VOI+answer=replica")):
        assert policy.best(asked).tolist() == order[:k]


def test_the_answer_is_ordered_by_what_is_to_be_expected_or_by_the_replica():
    """By the replica 0 is first; but it is likely to have fallen behind 1."""
    outlook = sure([9.0, 8.0, 1.0], [0], [7.0, 7.5, 9.0])
    asked = candidates(range(3), [9, 8, 1], [1] * 3, k=2, outlook=outlook)
    assert AT_VOI.best(asked).tolist() == [1, 0]
    assert voi("AT-VOI+answer=replica").best(asked).tolist() == [0, 1]


# Its name and parameters.


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("AT-VOY", "there is no policy AT-VOY"),
        ("AT-VOI+wq=1", "AT-VOI has no parameter wq: it has wp and answer"),
        ("AT-VOI+wp=much", "wp must be a number from 0 on, not much"),
        ("AT-VOI+wp=-1", "wp must be a number from 0 on, not -1"),
        ("AT-VOI+wp=nan", "wp must be a number from 0 on, not nan"),
        ("AT-VOI+wp=inf", "wp must be a number from 0 on, not inf"),
        ("AT-VOI+answer=best", "answer is one of expected, replica"),
        ("AT-TSM+wp=1", "AT-TSM has no parameters"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        policy_named(text)


def test_parameters_follow_the_name():
    assert voi("WSJ-VOI+wp=4+answer=replica").wp == 4
    assert policy_named("WSJ-VOI") is WSJ_VOI


# Skipping, which is of every policy.


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@examples(40)
@given(questions(), counts, st.data())
def test_what_is_known_to_be_fresh_is_skipped_and_the_next_in_turn_elected(
    policy, question, budget, data
):
    asked, facts, now, seed = question
    size = len(asked)
    skipped = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=bool)
    found = elected_set(policy, asked, facts, budget, now, seed, skipped=skipped).tolist()
    fresh = set(asked.keys[skipped].tolist())
    every = policy.elect(asked, facts, size, now, seed).tolist()
    expected = [key for key in every if key not in fresh]
    assert found == (expected[:budget] if policy.is_bounded else expected)
