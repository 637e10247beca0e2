"""Numbers of keys."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.replica.keys import Keys
from tests.replica.drawn import terms, user

composite = st.lists(terms, max_size=3).map(tuple)


@given(st.lists(composite))
def test_numbers_are_dense_and_lead_back_to_their_keys(drawn):
    keys = Keys()
    numbers = keys.numbers(drawn).tolist()
    assert keys.of(numbers) == drawn
    assert sorted(set(numbers)) == list(range(len(keys)))
    assert numbers == [keys.number(key) for key in drawn]
    assert all(key in keys for key in drawn)


@given(st.lists(composite))
def test_saved_keys_have_the_same_numbers(drawn):
    keys = Keys(drawn)
    again = Keys.restored(json.loads(json.dumps(keys.state())))
    assert again.of(range(len(keys))) == keys.of(range(len(keys)))
    assert len(again) == len(keys)


def test_the_same_key_twice_in_a_saved_state_is_refused():
    state = Keys([user(1)]).state()
    with pytest.raises(ValueError, match="a key stands twice"):
        Keys.restored(state + state)


def test_a_key_that_was_never_numbered_is_not_there():
    assert user(1) not in Keys([user(2)])
