"""The measures: the worked example of AcquaTop, section 2.1.2, and what holds for every answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.operators.scoring.ranking_measures import (
    CumulatedMeasures,
    Measures,
    accuracy,
    measure,
    ndcg,
    ndcg_by_place,
    precision,
    reciprocal_rank,
)

ALL = [ndcg, ndcg_by_place, precision, accuracy, reciprocal_rank]
objects = st.lists(st.integers(0, 9), max_size=8, unique=True)
sizes = st.integers(1, 6)
every_measure = pytest.mark.parametrize("one", ALL)


@pytest.mark.parametrize(
    ("answer", "expected_ndcg", "expected_precision"),
    [("ADF", 0.754, 0.333), ("FCB", 0.288, 0.667), ("ABC", 1, 1)],
)
def test_the_example_of_the_paper_to_three_digits(answer, expected_ndcg, expected_precision):
    assert round(ndcg(answer, "ABCDEF", 3), 3) == expected_ndcg
    assert round(precision(answer, "ABCDEF", 3), 3) == expected_precision


@given(objects, objects, sizes, st.integers(0, 6))
def test_ndcg_is_the_formula_of_the_paper(answer, oracle, k, more):
    depth = k + more

    def dcg(ranking):
        relevance = [
            max(0, depth - oracle.index(one)) if one in oracle else 0 for one in ranking[:k]
        ]
        return sum((2**rel - 1) / math.log2(i + 1) for i, rel in enumerate(relevance, 1))

    expected = dcg(answer) / dcg(oracle) if oracle else float(not answer)
    assert ndcg(answer, oracle, k, depth) == pytest.approx(expected)


def test_the_depth_is_twice_k_unless_it_is_given():
    assert ndcg("FCB", "ABCDEF", 3) == ndcg("FCB", "ABCDEF", 3, 6)
    assert ndcg("DEF", "ABCDEF", 3, 3) == 0 < ndcg("DEF", "ABCDEF", 3, 4)


def test_the_program_of_the_authors_takes_relevance_from_the_place_in_the_answer():
    """k = 3: the gains of the places are 7, 3 and 1."""
    ideal = 7 + 3 / math.log2(3) + 1 / 2
    assert ndcg_by_place("CBA", "ABCDEF", 3) == 1
    assert ndcg_by_place("DCB", "ABCDEF", 3) == pytest.approx((3 / math.log2(3) + 1 / 2) / ideal)
    assert ndcg_by_place("CDE", "ABCDEF", 3) == pytest.approx(7 / ideal)


def test_precision_divides_by_what_the_oracle_has():
    assert precision("AX", "AB", 5) == 0.5
    assert precision("AB", "AB", 5) == 1


def test_accuracy_counts_what_is_rightly_left_out():
    """Ten objects, k = 2, one wrongly taken, one wrongly left out: eight are right."""
    assert accuracy("AC", "ABCDEFGHIJ", 2) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("answer", "expected"), [("ABC", 1), ("BAC", 1 / 2), ("BCA", 1 / 3), ("B", 0)]
)
def test_the_reciprocal_rank_is_of_the_best_object(answer, expected):
    assert reciprocal_rank(answer, "ABC", 3) == expected


@every_measure
@given(objects, objects, sizes)
def test_a_measure_is_from_0_to_1(one, answer, oracle, k):
    assert 0 <= one(answer, oracle, k) <= 1


@every_measure
@given(objects, sizes)
def test_the_oracle_itself_gets_1(one, oracle, k):
    assert one(oracle, oracle, k) == 1
    assert one(oracle[:k], oracle, k) == 1


@given(st.permutations(range(6)), st.permutations(range(6)), sizes)
def test_only_the_order_of_the_oracle_gets_1_by_ndcg(answer, oracle, k):
    assert (ndcg(answer, oracle, k) == pytest.approx(1, abs=1e-9)) == (answer[:k] == oracle[:k])


@every_measure
@given(objects, objects, sizes)
def test_objects_beyond_the_first_k_of_the_answer_do_not_count(one, answer, oracle, k):
    assert one(answer, oracle, k) == one(answer[:k], oracle, k)


@every_measure
@given(objects, sizes)
def test_where_the_oracle_has_no_answer_only_no_answer_is_right(one, answer, k):
    assert one(answer, [], k) == float(not answer)


@every_measure
def test_no_answer_where_there_is_one_gets_less_than_1(one):
    assert one([], "ABC", 2) == (pytest.approx(1 / 3) if one is accuracy else 0)


def test_an_answer_of_thousands_is_measured():
    """2 to the power of the depth is beyond what a float can hold."""
    oracle = list(range(5_000))
    assert ndcg(oracle, oracle, 2_000) == 1
    assert 0 < ndcg(oracle[1:], oracle, 2_000) < 1
    assert ndcg_by_place(oracle, oracle, 2_000) == 1


@every_measure
def test_bad_parameters_are_refused(one):
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        one("A", "A", 0)
    with pytest.raises(ValueError, match="the answer holds an object twice"):
        one("AA", "AB", 2)
    with pytest.raises(ValueError, match="the oracle's ranking holds an object twice"):
        one("AB", "AA", 2)


def test_a_depth_below_k_is_refused():
    with pytest.raises(ValueError, match="at least k, 3, not 2"):
        ndcg("A", "A", 3, 2)


@given(st.lists(st.tuples(objects, objects), max_size=5), sizes)
def test_measures_are_cumulated_window_by_window(windows, k):
    found = [measure(answer, oracle, k, k) for answer, oracle in windows]
    total = CumulatedMeasures()
    for one in found:
        total = total.add(one)
    assert total.windows == len(windows)
    assert total.sums.ndcg == pytest.approx(sum(ndcg(a, o, k, k) for a, o in windows))
    assert total.sums.ndcg_by_place == pytest.approx(
        sum(ndcg_by_place(a, o, k) for a, o in windows)
    )
    assert total.sums.precision == pytest.approx(sum(precision(a, o, k) for a, o in windows))
    assert total.sums.accuracy == pytest.approx(sum(accuracy(a, o, k) for a, o in windows))
    mrr = sum(reciprocal_rank(a, o, k) for a, o in windows) / max(1, len(windows))
    assert total.means.reciprocal_rank == pytest.approx(mrr)


def test_before_the_first_window_everything_is_0():
    assert CumulatedMeasures().means == Measures()
