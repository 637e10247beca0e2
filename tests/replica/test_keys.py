"""Numbers of keys."""

from __future__ import annotations

import json

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.replica.store.keys import Keys
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
    [[number, *key]] = Keys([user(1)]).state()["keys"]["0"]
    for twice in ([number, *key], [number + 1, *key]):
        with pytest.raises(ValueError, match="a key occurs twice"):
            Keys.restored({"size": 2, "keys": {"0": [[number, *key], twice]}})


@given(st.lists(composite, unique=True), st.data())
def test_numbers_of_forgotten_keys_are_given_again_the_smallest_first(drawn, data):
    keys = Keys(drawn)
    gone = data.draw(st.sets(st.sampled_from(range(len(drawn))))) if drawn else set()
    keys.forget(gone)
    assert len(keys) == len(drawn) - len(gone)
    again = Keys.restored(json.loads(json.dumps(keys.state())))
    new = [(ox.Literal(f"new {place}"), ox.Literal(place)) for place in range(len(gone))]
    for each in (keys, again):
        assert each.numbers(new).tolist() == sorted(gone)
        assert [key in each for key in drawn] == [place not in gone for place in range(len(drawn))]


@given(st.lists(composite, unique=True), st.randoms())
def test_the_order_of_keys_depends_on_their_terms_alone(drawn, chance):
    other = drawn[:]
    chance.shuffle(other)
    found = []
    for each in (drawn, other):
        keys = Keys(each)
        numbers = keys.in_order(keys.every())
        found.append(keys.of(numbers))
        scores = np.array([len(key) for key in each], dtype=np.float64)
        ranks = keys.precedence(keys.every(), scores)
        found.append([key for _, key in sorted(zip(ranks.tolist(), each, strict=True))])
    assert found[:2] == found[2:]


def test_a_key_that_was_never_numbered_is_not_there():
    assert user(1) not in Keys([user(2)])
