"""Each policy: the worked examples of the paper, and its rule said again in another way."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.policies import POLICIES
from rsp_engine.policies.wbm import renewed_life
from tests.policies.inputs import Question, candidates, counts, entries, questions

A, B, C, D, E, F, G = range(1, 8)
NAMES = " ABCDEFG"


def elected(policy: str, question: Question, budget: int) -> Any:
    asked, facts, now, seed = question
    return POLICIES[policy].elect(asked, facts, budget, now, seed).tolist()


@pytest.mark.parametrize(
    ("policy", "expected"), [("AT-TSM", "GE"), ("AT-BSM", "CF"), ("AT-ASM", "GECFA"), ("WST", "")]
)
def test_the_example_of_section_5_2(policy, expected):
    """List (d) of Figure 6, with K=3, N=1 and a budget of 2.

    K-list   N-list
    G  E  C | F  A
    TSM---
          BSM---
    ASM------------
    """
    listed = candidates([G, E, C, F, A], [8, 7, 6, 3, 2], [3, 2, 1, 2, 3])
    found = elected(policy, Question(listed, entries(5), 13, 0), 2)
    assert {NAMES[key] for key in found} == set(expected)


@pytest.mark.parametrize("policy", ["WSJ-WBM", "AT-WBM"])
def test_the_example_of_figure_5(policy):
    """Window 5, slide 2, now 5: A, B and E are stale; they live for 1, 1 and 3 evaluations.

    Renewed they are good until 11, 10 and 12: for 3, 3 and 4 evaluations. E serves longest.
    """
    asked = candidates([A, B, C, D, E], [5, 4, 3, 2, 1], [1, 1, 2, 2, 3])
    facts = entries(5, best_before=[5, 4, 6, 7, 3], interval=[6, 6, 6, 6, 9])
    assert facts.is_stale(5).tolist() == [True, True, False, False, True]
    assert renewed_life(facts, 5, 2)[[0, 1, 4]].tolist() == [3, 3, 4]
    assert elected(policy, Question(asked, facts, 5, 0), 1) == [E]
    assert elected(policy, Question(asked, facts, 5, 0), 9) == [E, A, B]


@given(questions(), counts)
def test_bsm_elects_the_run_of_neighbours_around_the_border(question, budget):
    """The rule of the authors' program: from K + 1 - floor(gamma / 2) on, within the list."""
    keys = question.candidates.keys.tolist()
    gamma = min(budget, len(keys))
    start = question.candidates.k + 1 - budget // 2  # counted from 1
    start = max(1, min(start, len(keys) + 1 - gamma))
    run = keys[start - 1 : start - 1 + gamma]
    assert sorted(elected("AT-BSM", question, budget)) == sorted(run)


def test_bsm_goes_away_from_the_border_by_turns():
    """K+1, K, K+2, K-1 and so on; a list of a hundred is longer than sorts that keep ties apart."""
    size, k = 100, 50
    listed = candidates(range(size), range(size, 0, -1), [1] * size, k)
    expected = [key for n in range(k) for key in (k + n, k - 1 - n)]
    assert elected("AT-BSM", Question(listed, entries(size), 0, 0), size) == expected


@given(questions(), counts)
def test_tsm_elects_the_best(question, budget):
    assert elected("AT-TSM", question, budget) == question.candidates.keys.tolist()[:budget]


@given(questions(), counts)
def test_lru_elects_the_least_recently_fetched_then_the_best_then_the_larger_key(question, budget):
    asked, facts = question.candidates, question.entries
    order = sorted(
        zip(facts.last_refresh.tolist(), -asked.scores, -asked.keys, strict=True),
    )
    expected = [-int(key) for _, _, key in order][:budget]
    assert elected("WSJ-LRU", question, budget) == expected
    assert elected("AT-LRU", question, budget) == expected


@given(questions(), counts)
def test_wbm_elects_the_stale_by_how_many_evaluations_they_serve(question, budget):
    """The next best-before time is found here by adding intervals until it lies after now."""
    asked, facts, now, _ = question
    ranked = []
    for place, key in enumerate(asked.keys.tolist()):
        best_before = int(facts.best_before[place])
        interval = max(1, int(facts.interval[place]))
        if best_before > now or best_before < -100:  # the far past has a test of its own
            continue
        renewed = best_before + interval
        while renewed <= now:
            renewed += interval
        fresh = math.ceil((renewed - now) / asked.step)
        score = min(int(asked.lives[place]), fresh)
        ranked.append((-score, -asked.scores[place], -key))
    found = elected("WSJ-WBM", question, budget)
    known = {-key for *_, key in ranked}
    if len(known) == int(facts.is_stale(now).sum()):
        assert found == [-key for *_, key in sorted(ranked)][:budget]
    assert elected("AT-WBM", question, budget) == found


def test_a_value_that_changes_all_the_time_is_fresh_until_the_next_evaluation():
    facts = entries(2, best_before=[5, 5], interval=[1, 0])
    assert renewed_life(facts, 5, 1).tolist() == [1, 1]


def test_wbm_comes_back_to_a_value_that_was_left_alone_for_long():
    """Both serve one evaluation; the older one is the better object, and comes first."""
    asked = candidates([A, B], [5, 4], [1, 1], step=10)
    facts = entries(2, best_before=[-10_000, 95], interval=[10, 10])
    assert elected("WSJ-WBM", Question(asked, facts, 100, 0), 1) == [A]


@given(questions(), counts, st.randoms())
def test_rnd_does_not_depend_on_the_order_of_the_candidates(question, budget, random):
    asked = question.candidates
    places = list(range(len(asked)))
    random.shuffle(places)
    again = candidates(asked.keys[places], asked.scores[places], asked.lives[places], asked.k)
    expected = elected("WSJ-RND", question, budget)
    assert elected("AT-RND", question._replace(candidates=again), budget) == expected


def test_rnd_elects_otherwise_under_another_seed_and_at_another_time_and_everyone_in_turn():
    asked = candidates(range(20), range(20, 0, -1), [1] * 20)
    question = Question(asked, entries(20), 0, 0)
    first = elected("WSJ-RND", question, 5)
    assert elected("WSJ-RND", question._replace(seed=1), 5) != first
    assert elected("WSJ-RND", question._replace(now=1), 5) != first
    counted = [
        key for now in range(2_000) for key in elected("WSJ-RND", question._replace(now=now), 5)
    ]
    assert min(map(counted.count, range(20))) > 400  # 500 expected, with a deviation of 19
    assert max(map(counted.count, range(20))) < 600


@pytest.mark.parametrize("policy", ["WSJ-LRU", "AT-LRU", "WSJ-WBM", "AT-WBM"])
def test_an_object_without_a_score_comes_last_among_equals(policy):
    asked = candidates([A, B, C], [1, math.nan, 0], [1, 1, 1])
    assert elected(policy, Question(asked, entries(3), 5, 0), 3) == [A, C, B]


# The policies for freshness.


def fresh_if_periodic(f: float, rate: float) -> float:
    return f / rate * (1 - math.exp(-rate / f))


def fresh_if_random(f: float, rate: float) -> float:
    return f / (f + rate)


@pytest.mark.parametrize(
    ("policy", "shape"), [("WSJ-CGM", fresh_if_periodic), ("WSJ-LDS", fresh_if_random)]
)
def test_who_elects_by_freshness_refreshes_as_often_as_is_optimal(policy, shape):
    """One key of 20 an evaluation, for long: no exchange of refreshes would add freshness.

    The frequencies of a long run are compared with all others near them that cost the same.
    """
    size, evaluations = 20, 2_000
    asked = candidates(range(size), range(size, 0, -1), [1] * size, step=1)
    intervals = [15, 50, 150, 5] * 5
    last, counted = [0] * size, [0] * size
    for now in range(1, evaluations + 1):
        facts = entries(size, last_refresh=last, interval=intervals)
        [key] = elected(policy, Question(asked, facts, now, 0), 1)
        last[key], counted[key] = now, counted[key] + 1
    weights = [1 / math.log2(r + 2) if policy == "WSJ-LDS" else 1.0 for r in range(size)]
    shares = [count / evaluations for count in counted]

    def freshness(key: int, share: float) -> float:
        return weights[key] * shape(share, 1 / intervals[key]) if share > 0 else 0.0

    now_fresh = [freshness(key, share) for key, share in enumerate(shares)]
    for giver, taker in itertools.permutations(range(size), 2):
        moved = min(0.01, shares[giver])
        less, more = shares[giver] - moved, shares[taker] + moved
        gained = freshness(giver, less) + freshness(taker, more)
        assert gained <= now_fresh[giver] + now_fresh[taker] + 0.002


def test_what_changes_too_fast_to_be_kept_fresh_is_left_alone_by_cgm():
    """Cho and Garcia-Molina, section 5: of two pages, the one that changes often gets nothing."""
    asked = candidates([A, B], [2, 1], [1, 1], step=1)
    last, found = [0, 0], []
    for now in range(1, 60):
        facts = entries(2, last_refresh=last, interval=[1, 20])
        [key] = elected("WSJ-CGM", Question(asked, facts, 10 * now, 0), 1)
        last[key - 1] = 10 * now
        found.append(key)
    assert set(found[20:]) == {B}


def test_lds_prefers_the_better_of_two_that_change_alike():
    asked = candidates([A, B], [2, 1], [1, 1])
    facts = entries(2, last_refresh=[5, 5], interval=[10, 10])
    assert elected("AT-LDS", Question(asked, facts, 9, 0), 2) == [A, B]
    assert elected("AT-CGM", Question(asked, facts, 9, 0), 2) == [A, B]  # the larger score
    facts = entries(2, last_refresh=[8, 0], interval=[10, 10])
    assert elected("AT-LDS", Question(asked, facts, 9, 0), 2) == [B, A]


@pytest.mark.parametrize("policy", ["WSJ-CGM", "AT-LDS"])
def test_a_value_that_was_never_fetched_or_never_changes_is_no_trouble(policy):
    asked = candidates([A, B, C], [3, 2, 1], [1] * 3)
    facts = entries(3, last_refresh=[-(2**63), 0, 0], interval=[5, 2**63 - 1, 5])
    assert elected(policy, Question(asked, facts, 10, 0), 3) == [A, C, B]


# FILTER.


@pytest.mark.parametrize("policy", ["WSJ-FILTER", "AT-FILTER"])
def test_filter_elects_by_the_distance_from_the_kth_score(policy):
    """K = 3: the threshold is C's 6; E and D are at 1 and 4, A and B at 3 and 1."""
    asked = candidates([A, B, C, E, D], [9, 7, 6, 5, 2], [1] * 5, k=3)
    assert elected(policy, Question(asked, entries(5), 0, 0), 5) == [C, B, E, A, D]


def test_filter_takes_the_last_score_of_a_short_window_and_bears_what_has_no_score():
    asked = candidates([A, B], [9, 7], [1, 1], k=3)
    assert elected("AT-FILTER", Question(asked, entries(2), 0, 0), 2) == [B, A]
    asked = candidates([A, B, C], [9, 7, -math.inf], [1, 1, 1], k=1)
    assert elected("AT-FILTER", Question(asked, entries(3), 0, 0), 3) == [A, B, C]
    asked = candidates([], [], [], k=1)
    assert elected("AT-FILTER", Question(asked, entries(0), 0, 0), 3) == []
