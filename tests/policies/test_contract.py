"""What every policy promises. The policies are found by themselves: a new one is tested as well."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.policies import POLICIES, elected_set
from tests.policies.inputs import candidates, counts, entries, questions
from tests.thoroughness import examples

every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


@every_policy
@examples(40)
@given(questions(), counts)
def test_the_budget_is_kept_unless_the_policy_declares_itself_unbounded(policy, question, budget):
    asked, facts, now, seed = question
    elected = policy.elect(asked, facts, budget, now, seed)
    if policy.is_bounded:
        assert len(elected) <= budget
    else:
        assert sorted(elected.tolist()) == sorted(asked.keys.tolist())


@every_policy
@examples(40)
@given(questions(), counts)
def test_only_candidates_are_elected_and_none_twice(policy, question, budget):
    asked, facts, now, seed = question
    elected = policy.elect(asked, facts, budget, now, seed).tolist()
    assert set(elected) <= set(asked.keys.tolist())
    assert len(set(elected)) == len(elected)


@every_policy
@examples(40)
@given(questions(), counts)
def test_the_same_question_gets_the_same_answer(policy, question, budget):
    asked, facts, now, seed = question
    first = policy.elect(asked, facts, budget, now, seed)
    assert first.dtype == "int64"
    assert policy.elect(asked, facts, budget, now, seed).tolist() == first.tolist()


@every_policy
@examples(40)
@given(questions(), counts)
def test_the_input_is_left_untouched_and_not_given_out(policy, question, budget):
    asked, facts, now, seed = question
    before = question.content()
    elected = policy.elect(asked, facts, budget, now, seed)
    elected += 1
    assert question.content() == before


@every_policy
@examples(40)
@given(questions(), counts)
def test_a_larger_budget_elects_the_same_first_and_then_more(policy, question, budget):
    asked, facts, now, seed = question
    less = policy.elect(asked, facts, budget, now, seed).tolist()
    more = policy.elect(asked, facts, budget + 1, now, seed).tolist()
    assert more[: len(less)] == less


@every_policy
@examples(40)
@given(questions())
def test_no_budget_elects_nothing_from_the_bounded(policy, question):
    asked, facts, now, seed = question
    assert not policy.is_bounded or len(policy.elect(asked, facts, 0, now, seed)) == 0


@every_policy
@examples(40)
@given(questions(), counts)
def test_the_guard_lets_every_policy_of_the_engine_pass(policy, question, budget):
    asked, facts, now, seed = question
    found = elected_set(policy, asked, facts, budget, now, seed)
    assert found.tolist() == policy.elect(asked, facts, budget, now, seed).tolist()


@every_policy
@pytest.mark.parametrize("budget", [-1, -100])
def test_a_negative_budget_is_refused(policy, budget):
    with pytest.raises(ValueError, match=f"at least 0, not {budget}"):
        policy.elect(candidates([1], [1], [1]), entries(1), budget, 0, 0)


@every_policy
@examples(40)
@given(st.integers(0, 3), st.integers(0, 3))
def test_candidates_without_their_entries_are_refused(policy, size, other):
    asked = candidates(range(size), range(size), [1] * size)
    if size == other:
        policy.elect(asked, entries(other), 1, 0, 0)
        return
    with pytest.raises(ValueError, match=f"{size} candidates and {other} entries"):
        policy.elect(asked, entries(other), 1, 0, 0)


@every_policy
def test_a_policy_says_what_it_is_in_one_line(policy):
    assert policy.name in POLICIES
    assert 0 < len(policy.summary) < 80
    assert "\n" not in policy.summary
    assert policy.section.startswith(("AcquaTop ", "docs/")) or re.search(
        r"[12]\d{3}", policy.section
    )


def test_the_proposer_follows_from_the_name():
    found = {name: policy.proposer for name, policy in POLICIES.items()}
    assert found.pop("WST") is None
    assert found.pop("EXACT") == "window"
    for name, proposer in found.items():
        assert proposer == {"WSJ": "window", "AT": "list"}[name.partition("-")[0]]


def test_only_those_that_fetch_everything_are_unbounded():
    assert {n for n, policy in POLICIES.items() if not policy.is_bounded} == {"AT-ASM", "EXACT"}
