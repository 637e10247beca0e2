"""MinTopk over sort keys: the best of a pane, and arrivals that come late."""

from __future__ import annotations

import json

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.windows import Pane
from rsp_engine.operators.sparql.pane_matcher import PaneSolutions
from rsp_engine.operators.topk.keyed_topk import KeyedTopk, best_of
from tests.thoroughness import examples


@pytest.mark.parametrize("has_keys", [False, True], ids=["numbers", "keys"])
@examples(100)
@given(st.randoms(), st.sampled_from([1, 2, 5, 40]), st.integers(1, 4), st.booleans())
def test_the_best_of_a_pane_are_those_of_a_plain_sort(has_keys, random, objects, k, descending):
    """Many arrivals of one object, or few of many; a pane of more than 50 is not sorted whole."""
    rows = [(random.randrange(objects), random.randrange(20)) for _ in range(random.randrange(90))]
    values = [random.randrange(9) for _ in range(objects)]
    numbers = np.array([np.nan if has_keys else values[number] for number, _ in rows], dtype=float)
    keys = [f"{values[number]}" for number, _ in rows] if has_keys else None
    solutions = [(ox.NamedNode(f"urn:{number}"),) for number, _ in rows]
    times = np.array([time for _, time in rows], dtype=np.int64)
    best, places = best_of(PaneSolutions(solutions, times, numbers, keys), k, descending=descending)

    latest: dict[int, int] = {}
    for number, time in rows:
        latest[number] = max(time, latest.get(number, time))
    sign = 1 if descending else -1
    ranked = sorted(latest, key=lambda n: (sign * values[n], latest[n], f"<urn:{n}>"), reverse=True)
    expected = [(f"urn:{number}", latest[number]) for number in ranked[:k]]
    found = [(term.value, time) for (term,), time in zip(best.solutions, best.times, strict=True)]
    assert found[::-1] == expected
    assert [(text, time) for _, time, text in places] == [(f"<{iri}>", at) for iri, at in found]


def test_an_arrival_that_comes_late_does_not_make_its_object_older():
    """The object 7 arrived at 5, and at 1, which is told later; 8 arrived at 3."""
    operator = KeyedTopk(2, descending=True)
    for key, place in ((7, ("a", 5, "x")), (7, ("a", 1, "x")), (8, ("a", 3, "y"))):
        operator.arrive(Pane(0, 1), 0, [key], [place])
    assert operator.close(0) == [7, 8]


@pytest.mark.parametrize("descending", [False, True])
def test_a_restored_operator_goes_on_as_the_saved_one(descending):
    """Saved after the first of two panes, in whose window its objects still are."""

    def closed(*, is_restored: bool) -> list[list[int]]:
        operator = KeyedTopk(2, descending=descending)
        operator.arrive(Pane(0, 1), 0, [7, 8, 9], [("b", 1, "x"), ("d", 1, "y"), ("a", 1, "z")])
        if is_restored:
            state = json.loads(json.dumps(operator.state()))
            operator = KeyedTopk.restored(2, state, descending=descending)
        operator.arrive(Pane(1, 2), 1, [5], [("c", 2, "w")])
        return [operator.close(window) for window in range(3)]

    assert closed(is_restored=True) == closed(is_restored=False)
    assert closed(is_restored=True)[1] == ([8, 5] if descending else [9, 7])
