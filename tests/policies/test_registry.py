"""A user's own policy: how it is registered, what is refused, and how its contract is checked."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rsp_engine.errors import RspError
from rsp_engine.policies import POLICIES, RankedPolicy, elected_set, in_order, register
from tests.policies.inputs import candidates, entries


@dataclass(frozen=True)
class Fixed:
    """Elects a fixed answer, whatever the arguments."""

    answer: Any
    name: str = "FIXED"
    summary: str = "always the same"
    section: Any = "none"
    proposer: Any = "window"
    is_bounded: Any = True

    def elect(self, *_question: object) -> Any:
        return self.answer


def ask(policy: Any, budget: int = 2) -> Any:
    asked = candidates([3, 1, 2], [9, 8, 7], [1, 1, 1])
    return elected_set(policy, asked, entries(3), budget, 0, 0).tolist()


def test_a_policy_is_added_to_a_mapping_of_its_own():
    mine = Fixed([1])
    known = register(mine)
    assert known["FIXED"] is mine
    assert set(known) - {"FIXED"} == set(POLICIES)
    assert "FIXED" not in POLICIES


def test_two_policies_can_be_added_one_after_the_other():
    known = register(Fixed([], name="TWO"), register(Fixed([])))
    assert {"FIXED", "TWO"} < set(known)


@pytest.mark.parametrize("known", [POLICIES, register(Fixed([]))])
def test_policies_cannot_be_changed_behind_the_back_of_others(known):
    with pytest.raises(TypeError):
        known["WST"] = Fixed([])


def test_a_ranker_of_the_users_own_makes_a_policy():
    def shortest_lived(candidates, _entries, _now, _seed):
        return in_order(candidates, candidates.lives)

    mine = RankedPolicy("MINE", "what leaves first", "my notes", "window", shortest_lived)
    asked = candidates([1, 2, 3], [9, 8, 7], [3, 1, 2])
    policy = register(mine)["MINE"]
    assert elected_set(policy, asked, entries(3), 2, 0, 0).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Fixed([], name="WST"), "there is a policy WST already"),
        (Fixed([], name=""), "must have a name"),
        (Fixed([], summary=""), "must have a summary"),
        (Fixed([], section=None), "must have a section"),
        (Fixed([], proposer="replica"), "proposer of FIXED must be 'window', 'list' or None"),
        (Fixed([], is_bounded="yes"), "FIXED must say whether it is_bounded"),
        (lambda: None, "must have a name"),
        ("WST", "must have a name"),
    ],
)
def test_what_is_no_policy_is_refused_with_the_reason(policy, reason):
    with pytest.raises(ValueError, match=reason):
        register(policy)


def test_a_policy_that_cannot_elect_is_refused():
    silent: Any = SimpleNamespace(
        name="S", summary="silent", section="none", proposer=None, is_bounded=True
    )
    with pytest.raises(ValueError, match="S has no function elect"):
        register(silent)


@pytest.mark.parametrize("answer", [[], (), np.empty(0), [2], [2, 3], np.array([1, 3], np.uint8)])
def test_an_answer_within_the_promise_is_taken(answer):
    assert ask(Fixed(answer)) == list(answer)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([1, 2, 3], "FIXED elected 3 keys, the budget is 2"),
        ([1, 1], "FIXED elected a key twice"),
        ([4], "FIXED elected a key that is not a candidate"),
        ([1.0], "FIXED must elect keys"),
        ([[1, 2]], "FIXED must elect keys"),
        (["1"], "FIXED must elect keys"),
        (3, "FIXED must elect keys"),
    ],
)
def test_an_answer_beyond_the_promise_is_refused(answer, reason):
    with pytest.raises(RspError, match=reason):
        ask(Fixed(answer))


def test_the_guard_lets_the_unbounded_pass_the_budget():
    assert ask(Fixed([1, 2, 3], is_bounded=False)) == [1, 2, 3]


def test_the_guard_asks_no_policy_with_a_bad_question():
    with pytest.raises(ValueError, match="at least 0"):
        ask(Fixed([]), budget=-1)
