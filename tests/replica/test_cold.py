"""Cold misses: at most half the budget, but one key at least, by stream score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.replica.budget_shares import AbsentKeys, shares
from rsp_engine.replica.store.replica import NEVER

scored = st.dictionaries(
    st.integers(0, 50), st.floats(allow_nan=False) | st.sampled_from([1.0, 2.0]), max_size=12
)


def share(budget, cold, tried=None):
    keys = np.array([*cold], dtype=np.int64)
    never = np.full(len(keys), NEVER) if tried is None else tried
    scores, urgent = np.array([*cold.values()], float), np.full(len(keys), fill_value=True)
    return shares(budget, AbsentKeys(keys, scores, never, urgent, keys))


@given(st.integers(0, 20), scored)
def test_the_best_half_of_the_budget_is_fetched_and_the_rest_is_for_the_policy(budget, cold):
    best_first = sorted(cold, key=lambda key: (cold[key], key), reverse=True)
    room = min(max(budget // 2, 1), budget)
    split = share(budget, cold)
    assert split.fetched.tolist() == best_first[:room]
    assert split.missed.tolist() == best_first[room:]
    assert split.rest == budget - min(room, len(cold))


@given(scored)
def test_without_a_budget_everything_is_fetched(cold):
    split = share(None, cold)
    assert sorted(split.fetched.tolist()) == sorted(cold)
    assert not len(split.missed)
    assert split.rest is None


def test_a_key_without_a_score_comes_last():
    cold = {1: float("nan"), 2: -float("inf"), 3: 1.0}
    assert share(6, cold).fetched.tolist() == [3, 2, 1]


@pytest.mark.parametrize(("budget", "fetched"), [(0, []), (1, [5]), (2, [5]), (3, [5])])
def test_one_cold_key_is_fetched_by_the_smallest_budget(budget, fetched):
    split = share(budget, {4: 1.0, 5: 2.0})
    assert split.fetched.tolist() == fetched
    assert split.rest == budget - len(fetched)


def test_a_key_whose_fetch_failed_comes_after_the_others():
    """Among failed keys, the one tried longest ago is first, whatever its score."""
    cold = {1: 1.0, 2: 9.0, 3: 5.0, 4: 2.0}
    split = share(8, cold, np.array([NEVER, 30, 20, NEVER]))
    assert split.fetched.tolist() == [4, 1, 3, 2]


def test_a_key_that_is_not_urgent_has_no_share_of_the_budget_and_comes_last():
    urgent = np.array([True, False, False, True])
    absent = AbsentKeys(
        np.arange(4), np.array([1.0, 9.0, 5.0, 2.0]), np.full(4, NEVER), urgent, np.arange(4)
    )
    split = shares(6, absent)
    assert (split.fetched.tolist(), split.missed.tolist(), split.rest) == ([3, 0], [1, 2], 4)
    assert shares(None, absent).fetched.tolist() == [3, 0, 1, 2]


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="budget must not be negative"):
        share(-1, {})
    none = np.array([], dtype=np.int64)
    with pytest.raises(ValueError, match="of equal length"):
        AbsentKeys(np.array([1]), np.array([]), none, none == 0, none)
