"""Partial aggregates: sums are those of whole numbers, rounded once."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rsp_engine.model.windows import Pane
from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig
from tests.operators.aggregate_runs import bits
from tests.thoroughness import examples

finite = st.floats(allow_nan=False, allow_infinity=False)
near_each_other = st.builds(
    lambda whole, power: float(whole) * 2.0**power,
    st.integers(-(2**53), 2**53),
    st.integers(-120, 120),
)


@examples(100)
@given(st.lists(st.one_of(finite, near_each_other), min_size=1, max_size=12), st.data())
def test_a_sum_is_the_double_nearest_to_the_true_sum(values, data):
    """With values that cancel, over several panes; too large for a double, it is infinite."""
    values += [-value for value in data.draw(st.lists(st.sampled_from(values), max_size=8))]
    exact = sum(map(Fraction, values))
    try:
        expected = float(exact)
    except OverflowError:
        expected = inf if exact > 0 else -inf
    operator = AggregateTopk(AggregateTopkConfig(1, function="sum"))
    for value in values:
        end = data.draw(st.integers(0, 2))
        operator.arrive(Pane(0, end), [7], [0], [value])
    assert bits(operator.totals(0).values) == bits([expected])


def test_a_sum_rounds_halves_to_even_and_sees_the_last_bit():
    for values in (
        [2.0**53, 1.0],
        [2.0**53, 1.0, 2.0**-1074],
        [2.0**53 + 2, 1.0],
        [2.0**53 + 2, 1.0, -(2.0**-1074)],
        [-(2.0**53), -1.0, -(2.0**-600)],
        [2.0**1023, 2.0**970, 2.0**-1074, -(2.0**1023)],
        [2.0**-1022, -(2.0**-1074)],
        [1.0] * 1000 + [2.0**-60],
    ):
        operator = AggregateTopk(AggregateTopkConfig(1, function="sum"))
        operator.arrive(Pane(0, 0), [0] * len(values), [0] * len(values), values)
        assert operator.close(0).scores.tolist() == [float(sum(map(Fraction, values)))]


def test_a_million_numbers_of_one_key_are_added_exactly():
    values = np.random.default_rng(1).normal(size=1_000_000) * 1e-3 + 0.1
    operator = AggregateTopk(AggregateTopkConfig(1, function="sum"))
    operator.arrive(Pane(0, 0), np.zeros(1_000_000, dtype=np.int64), np.arange(1_000_000), values)
    whole = [int(value * 2.0**70) for value in values.tolist()]
    assert operator.close(0).scores.tolist() == [float(Fraction(sum(whole), 2**70))]


pieces = st.one_of(
    st.integers(-(2**30), 2**30), st.integers(-(2**53), 2**53), st.integers(-(2**61), 2**61)
)


@examples(150)
@given(st.lists(st.tuples(pieces, pieces, pieces), min_size=1, max_size=3))
@example([(1, 2**27, 2**52)])  # just more than half of the last bit
def test_what_many_numbers_add_up_to_is_rounded_right(rows):
    """As read from a state: no test can add up so many numbers, billions of one key."""
    operator = AggregateTopk(AggregateTopkConfig(1, function="sum"))
    operator.arrive(Pane(0, 0), [0] * 3, [0] * 3, [1.0, 2.0**28, 2.0**56])
    state = operator.state()
    [saved] = state["panes"]["panes"]["0 0"]["rows"].values()
    made = [[*row[:3], *pieces] for row, pieces in zip(saved, rows, strict=False)]
    state["panes"]["panes"]["0 0"] = {"size": len(rows), "rows": {"0": made}}
    found = AggregateTopk.restored(operator.config, state).close(0).scores.tolist()
    # The number 1 is 2**52 times its last bit, and that is 2**4 above the place where it begins.
    exact = sum(
        piece * Fraction(2) ** (28 * (place + offset) - 56)
        for place, row in enumerate(rows)
        for offset, piece in enumerate(row)
    )
    assert bits(found) == bits([float(exact)])


def test_more_numbers_than_can_be_added_are_refused_not_added_wrongly():
    operator = AggregateTopk(AggregateTopkConfig(1, function="sum"))
    operator.arrive(Pane(0, 0), [0], [0], [1.5])
    state = operator.state()
    [[row]] = state["panes"]["panes"]["0 0"]["rows"].values()
    row[1] = 2**33 + 1
    with pytest.raises(OverflowError, match="cannot be added up"):
        AggregateTopk.restored(operator.config, state).close(0)
