"""R2S: the laws of bags, and the rows emitted from one evaluation to the next."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.operators.windows.r2s import StreamOperator, bag_difference

bags = st.lists(st.sampled_from("abc"), max_size=6)


@given(bags, bags)
def test_the_difference_of_bags_is_the_difference_of_multiplicities(rows, others):
    left = bag_difference(rows, others, key=str)
    assert Counter(left) == Counter(rows) - Counter(others)


@given(bags, bags)
def test_the_rows_that_are_left_keep_their_order(rows, others):
    places = iter(rows)
    assert all(row in places for row in bag_difference(rows, others, key=str))


@given(bags)
def test_the_empty_bag_removes_no_row_and_a_bag_removes_all_of_its_own(rows):
    assert bag_difference(rows, [], key=str) == rows
    assert bag_difference([], rows, key=str) == []
    assert bag_difference(rows, rows[::-1], key=str) == []


@given(bags, bags, bags)
def test_removing_two_bags_is_removing_their_sum(rows, others, more):
    one_by_one = bag_difference(bag_difference(rows, others, key=str), more, key=str)
    assert Counter(one_by_one) == Counter(bag_difference(rows, others + more, key=str))


@given(bags, bags)
def test_new_rows_and_remaining_rows_make_the_whole_answer(before, rows):
    new = Counter(bag_difference(rows, before, key=str))
    gone = Counter(bag_difference(before, rows, key=str))
    assert Counter(before) + new - gone == Counter(rows)
    assert not new & gone


@given(bags, bags)
def test_rows_are_compared_by_key_alone(rows, others):
    left = bag_difference([r.upper() for r in rows], others, key=str.lower)
    assert [row.lower() for row in left] == bag_difference(rows, others, key=str)


@given(st.lists(bags, max_size=5))
def test_the_three_streams_emit_all_rows_new_rows_and_removed_rows(evaluations):
    rstream = StreamOperator("RSTREAM")
    istream, dstream = StreamOperator("ISTREAM"), StreamOperator("DSTREAM")
    before: list[str] = []
    for rows in evaluations:
        assert rstream.apply(rows, str) == rows
        assert Counter(istream.apply(rows, str)) == Counter(rows) - Counter(before)
        assert Counter(dstream.apply(rows, str)) == Counter(before) - Counter(rows)
        before = rows


def test_of_three_equal_rows_one_may_be_new():
    stream = StreamOperator("ISTREAM")
    assert stream.apply(["a", "a"], str) == ["a", "a"]
    assert stream.apply(["a", "a", "a"], str) == ["a"]
    assert stream.apply(["a"], str) == []
    assert stream.apply(["a", "a"], str) == ["a"]
