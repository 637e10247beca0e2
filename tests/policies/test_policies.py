"""Each policy: the worked examples of the paper, and its rule said again in another way."""

from __future__ import annotations

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
