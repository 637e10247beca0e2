"""Terms as scores, and scoring functions over columns."""

from __future__ import annotations

from decimal import Decimal
from math import isnan, nan

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.operators.scoring.scoring_function import (
    Absolute,
    Add,
    Divide,
    Multiply,
    Negate,
    Number,
    ScoringCall,
    Subtract,
    Variable,
    evaluate,
    variables,
)
from rsp_engine.operators.scoring.term_scores import are_numbers, column, number

XSD = "http://www.w3.org/2001/XMLSchema#"
A, B = Variable("a"), Variable("b")


def literal(text: str, kind: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + kind))


KINDS = ("integer", "decimal", "double", "int", "unsignedByte")
texts = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.decimals(-(10**21), 10**21, places=20).map(str),
    st.decimals(-100, 100, places=2).map(str),
    st.floats().map(repr),
    st.text("0123456789.+-eEINFaN_ ٣x", max_size=5),
    st.sampled_from([
        "170141183460469231731", "170141183460469231732.0", "9223372036854775807",
        "9223372036854775808", "-9223372036854775808", "5.", ".5", ".", "1.00000000000000000000",
        "0.0000000000000000001", "+INF", "-INF", "1e400", "1E-400", "00000000000000000000000005",
    ]),
)  # fmt: skip
literals = st.builds(literal, texts, st.sampled_from(KINDS))
others = st.sampled_from([
    None, ox.NamedNode("urn:a"), ox.BlankNode("b"), ox.Literal("5"), ox.Literal(value=True),
    ox.Literal("5", language="en"), literal("1970-01-01T00:00:01Z", "dateTime"),
    literal("PT2S", "duration"),
])  # fmt: skip


def by_oxigraph(term: ox.Literal) -> float | None:
    """Return the result of Oxigraph's arithmetic with a number."""
    found = ox.Store().query(f"SELECT (?x * 1e0 AS ?n) {{ VALUES ?x {{ {term} }} }}")
    assert isinstance(found, ox.QuerySolutions)
    result = next(iter(found))["n"]
    assert result is None or isinstance(result, ox.Literal)
    return None if result is None else float(result.value)


def same(x: float | None, y: float | None) -> bool:
    return x == y or (x is not None and y is not None and isnan(x) and isnan(y))


@given(literals)
def test_a_term_is_a_score_if_and_only_if_it_is_a_number_to_oxigraph(term):
    found, expected = number(term), by_oxigraph(term)
    if found is None or expected is None or found == 0:
        assert same(found, expected), term
    else:
        assert same(found, expected) or abs(found - expected) <= 1e-15 * abs(found), term


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("1970-01-01T00:00:01.5Z", "dateTime", 1500.0),
        ("1970-01-01T01:00:00+01:00", "dateTime", 0.0),
        ("1970-01-01T00:00:00", "dateTime", 0.0),
        ("1970-01-02", "date", 86_400_000.0),
        ("-PT2S", "dayTimeDuration", -2000.0),
        ("P1D", "duration", 86_400_000.0),
        ("P1M", "duration", None),
        ("9m", "duration", None),
        ("31st of May", "date", None),
        ("1.1", "float", 1.1),
        ("true", "boolean", None),
    ],
)
def test_dates_and_durations_count_in_milliseconds(text, kind, expected):
    assert number(literal(text, kind)) == expected


@given(st.one_of(*(
    st.lists(some, max_size=6)
    for some in (
        st.one_of(literals, others),
        st.integers(-1000, 1000).map(ox.Literal),
        st.decimals(-100, 100, places=2).map(lambda d: literal(str(d), "decimal")),
        st.floats(-1e3, 1e3, width=16).map(ox.Literal),
        st.builds(literal, texts, st.just("decimal")),
        st.builds(literal, texts, st.just("integer")),
        st.builds(literal, texts, st.just("double")),
    )
)))  # fmt: skip
def test_a_column_holds_the_score_of_each_term(terms):
    found = column(terms)
    assert found.dtype == np.float64
    expected = [nan if score is None else score for score in map(number, terms)]
    assert np.array_equal(found, np.array(expected), equal_nan=True)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (None, True),
        (literal("5", "integer"), True),
        (literal("5", "unsignedByte"), True),
        (literal("5", "decimal"), True),
        (literal("NaN", "double"), True),
        (literal("5", "float"), False),
        (literal("1970-01-01", "date"), False),
        (literal("true", "boolean"), False),
        (ox.Literal("5"), False),
        (ox.NamedNode("urn:a"), False),
    ],
)
def test_terms_whose_arithmetic_is_not_that_of_float64_are_recognised(term, expected):
    assert are_numbers([ox.Literal(1), term, None]) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (Number(3), [3, 3, 3]),
        (A, [1, -2, nan]),
        (Add(A, B), [5, 3, nan]),
        (Subtract(A, B), [-3, -7, nan]),
        (Multiply(A, Number(2)), [2, -4, nan]),
        (Divide(B, 4), [1, 1.25, nan]),
        (Negate(A), [-1, 2, nan]),
        (Absolute(A), [1, 2, nan]),
        (Add(Divide(A, 2), Multiply(B, B)), [16.5, 24, nan]),
    ],
)
def test_a_scoring_function_is_evaluated_row_by_row(expression, expected):
    columns = {"a": np.array([1, -2, nan]), "b": np.array([4, 5, nan])}
    found = evaluate(expression, columns)
    assert np.array_equal(found, np.array(expected, dtype=np.float64), equal_nan=True)
    assert columns["a"].tolist()[:2] == [1, -2]
    found[:] = 0  # a column given is never handed out again
    assert columns["a"].tolist()[:2] == [1, -2]


def test_a_function_is_called_with_the_floats_of_each_row_that_has_all():
    seen = []

    def f(a, b):
        seen.append((a, b))
        return a + b

    call = ScoringCall("f", f, (A, Negate(B)))
    found = evaluate(call, {"a": np.array([1.0, nan, 3.0]), "b": np.array([1.0, 2.0, 5.0])})
    assert np.array_equal(found, [0, nan, -2], equal_nan=True)
    assert seen == [(1.0, -1.0), (3.0, -5.0)]
    assert all(type(x) is float for row in seen for x in row)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (2, 2.0),
        (2.5, 2.5),
        (np.float32(0.5), 0.5),
        (Decimal("1.5"), 1.5),
        (ox.Literal(7), 7.0),
        (ox.Literal("7"), nan),
        (None, nan),
        ("7", nan),
        (True, nan),
        (10**400, nan),
    ],
)
def test_what_a_function_returns_is_a_number_or_no_value(result, expected):
    found = evaluate(ScoringCall("f", lambda: result, ()), {"a": np.zeros(2)})
    assert np.array_equal(found, [expected] * 2, equal_nan=True)


def test_a_function_that_raises_gives_no_value_to_that_row():
    call = ScoringCall("f", lambda a: 1 / a, (A,))
    found = evaluate(call, {"a": np.array([0.0, 4.0])})
    assert np.array_equal(found, [nan, 0.25], equal_nan=True)


def test_overflow_and_infinities_are_no_errors():
    found = evaluate(Subtract(Multiply(A, A), A), {"a": np.array([1e200, np.inf])})
    assert np.array_equal(found, [np.inf, nan], equal_nan=True)


def test_no_rows_give_no_scores_and_no_columns_one():
    assert evaluate(Add(A, Number(1)), {"a": np.empty(0)}).tolist() == []
    assert evaluate(ScoringCall("f", abs, (A,)), {"a": np.empty(0)}).tolist() == []
    assert evaluate(Number(2), {}).tolist() == [2.0]


def test_variables_are_listed_once_in_the_order_of_their_occurrence():
    assert variables(Number(1)) == ()
    expression = Subtract(
        ScoringCall("f", abs, (B, Number(1))), Add(Divide(A, 2), Absolute(Negate(B)))
    )
    assert variables(expression) == ("b", "a")


def test_an_invalid_evaluation_is_refused():
    with pytest.raises(ValueError, match=r"no column for \?b"):
        evaluate(Add(A, B), {"a": np.zeros(1)})
    with pytest.raises(ValueError, match="equal length"):
        evaluate(Add(A, B), {"a": np.zeros(1), "b": np.zeros(2)})
    for divisor in (0.0, -0.0, nan):
        with pytest.raises(ValueError, match="cannot be divided"):
            Divide(A, divisor)
