"""Proofs of monotonicity: sound for all values, and explained."""

from __future__ import annotations

import functools
from math import inf, nan

import numpy as np
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
)
from rsp_engine.plan.intervals import value_interval
from rsp_engine.plan.monotone import prove, scoring_text
from tests.thoroughness import examples

A, B, C = map(Variable, "abc")
ABOVE, BELOW = (0, inf), (-inf, 0)


def f(a: float, b: float) -> float:
    return a - 2 * b


def marked(a: float, b: float) -> float:
    return a - b


marked.monotone = ("rises", "falls")  # type: ignore[attr-defined]


@functools.wraps(marked)
def wrapped(a: float, b: float) -> float:
    return marked(a, b)


@pytest.mark.parametrize(
    ("expression", "ranges", "direction", "why"),
    [
        (A, {}, "rises", "?a rises with ?a, since it is the variable itself"),
        (B, {}, "constant", "?b does not change with ?a, since it does not contain ?a"),
        (Number(2), {}, "constant", "2 does not change with ?a, since it does not contain ?a"),
        (
            Add(Divide(A, 100), B),
            {},
            "rises",
            "?a / 100 + ?b rises with ?a, since no part of the sum falls",
        ),
        (Subtract(B, A), {}, "falls", "?b - ?a falls with ?a, since no part of the sum rises"),
        (
            Subtract(A, A),
            {},
            None,
            "?a - ?a may rise or fall with ?a: in ?a - ?a one part rises and one falls",
        ),
        (Subtract(A, Subtract(B, A)), {}, "rises", "no part of the sum falls"),
        (Divide(A, -2), {}, "falls", "?a / -2 falls with ?a, since ?a rises and -2 is negative"),
        (Divide(Negate(A), 2), {}, "falls", "since -?a falls and 2 is positive"),
        (
            Negate(A),
            {},
            "falls",
            "-?a falls with ?a, since ?a rises and the minus sign reverses it",
        ),
        (Multiply(A, Number(0.3)), {}, "rises", "since 0.3 is never negative"),
        (Multiply(Number(-3), A), {}, "falls", "since -3 is never positive"),
        (Multiply(Number(0), A), {}, "constant", "since a factor is always 0"),
        (Multiply(A, B), {}, None, "?a * ?b may rise or fall with ?a: ?b may be negative or"),
        (Multiply(A, B), {"b": ABOVE}, "rises", "since ?b is never negative"),
        (Multiply(A, B), {"b": BELOW}, "falls", "since ?b is never positive"),
        (Multiply(A, B), {"a": ABOVE}, None, "?b may be negative or positive"),
        (Multiply(A, A), {}, None, "?a may be negative or positive"),
        (Multiply(A, A), {"a": ABOVE}, "rises", "since ?a is never negative"),
        (Multiply(A, A), {"a": BELOW}, "falls", "since ?a is never positive"),
        (
            Multiply(A, Subtract(Number(1), A)),
            {"a": (0, 1)},
            None,
            "in ?a * (1 - ?a) one part rises and one falls",
        ),
        (Multiply(A, Subtract(B, Number(5))), {"b": (5, 9)}, "rises", "?b - 5 is never negative"),
        (Multiply(A, Absolute(B)), {}, "rises", "ABS(?b) is never negative"),
        (Multiply(A, Number(inf)), {}, None, "inf is infinite"),
        (Absolute(A), {}, None, "?a may be negative or positive"),
        (Absolute(A), {"a": ABOVE}, "rises", "since ?a rises and is never negative"),
        (Absolute(A), {"a": (-3, -1)}, "falls", "since ?a rises and is never positive"),
        (Absolute(Multiply(Number(0), A)), {}, "constant", "since a factor is always 0"),
        (ScoringCall("F", f, (A, B)), {}, None, "the function F does not declare whether it rises"),
        (
            ScoringCall("F", marked, (A, B)),
            {},
            "rises",
            "F(?a, ?b) rises with ?a, since F declares it",
        ),
        (ScoringCall("F", marked, (B, A)), {}, "falls", "since F declares it"),
        (ScoringCall("F", wrapped, (B, A)), {}, "falls", "since F declares it"),
        (ScoringCall("F", marked, (A, A)), {}, None, "in F(?a, ?a) one part rises and one falls"),
        (ScoringCall("F", marked, (A, Negate(A))), {}, "rises", "since F declares it"),
        (ScoringCall("min", min, (A, Add(A, B))), {}, "rises", "since min declares it"),
        (ScoringCall("max", max, (A, Negate(A))), {}, None, "one part rises and one falls"),
        (Multiply(A, ScoringCall("max", max, (B, Number(0)))), {}, "rises", "is never negative"),
        (Multiply(A, ScoringCall("min", min, (B, Number(0)))), {}, "falls", "is never positive"),
    ],
)
def test_a_proof_has_a_direction_and_a_reason(expression, ranges, direction, why):
    proof = prove(expression, "a", ranges)
    assert proof.direction == direction
    assert why in proof.why


@pytest.mark.parametrize(
    ("declared", "direction"),
    [
        ("rises", "rises"),
        ("falls", "falls"),
        ("constant", "constant"),
        (("falls", None), "falls"),
        ((None, "rises"), None),
        (("constant", None), "constant"),
    ],
)
def test_a_function_declares_by_its_name_what_it_does(declared, direction):
    assert prove(ScoringCall("F", f, (A, B)), "a", declared={"F": declared}).direction == direction
    assert prove(ScoringCall("F", f, (B, B)), "a", declared={"F": declared}).direction == "constant"


def test_a_score_without_a_streamed_variable_does_not_change():
    assert prove(B, None).direction == "constant"


@pytest.mark.parametrize("bad", [(1, 0), (nan, 1), (0, nan), (inf, inf), (-inf, -inf)])
def test_an_empty_range_is_refused(bad):
    with pytest.raises(ValueError, match=r"the range of \?a"):
        prove(A, "a", {"a": bad})


def test_an_invalid_declaration_is_refused():
    call = ScoringCall("F", f, (A, B))
    with pytest.raises(ValueError, match="1 direction for 2 arguments"):
        prove(call, "a", declared={"F": ("rises",)})
    with pytest.raises(ValueError, match="use rises, falls or constant"):
        prove(call, "a", declared={"F": "up"})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Subtract(A, Subtract(B, C)), "?a - (?b - ?c)"),
        (Subtract(Subtract(A, B), C), "?a - ?b - ?c"),
        (Add(A, Subtract(B, C)), "?a + (?b - ?c)"),
        (Multiply(Add(A, B), Divide(C, 4)), "(?a + ?b) * (?c / 4)"),
        (Divide(Multiply(A, B), 0.5), "?a * ?b / 0.5"),
        (Negate(Add(A, Number(1))), "-(?a + 1)"),
        (Negate(Negate(A)), "-(-?a)"),
        (ScoringCall("F", f, (Absolute(A), Number(1e300))), "F(ABS(?a), 1e+300)"),
    ],
)
def test_a_scoring_function_is_written_as_in_sparql(expression, text):
    assert scoring_text(expression) == text


numbers = st.integers(-3, 3).map(float)
ranges = st.one_of(
    st.just((-inf, inf)),
    st.just(ABOVE),
    st.just(BELOW),
    st.tuples(numbers, numbers).map(lambda ends: (min(ends), max(ends))),
)
expressions = st.recursive(
    st.one_of(st.sampled_from([A, B, C]), st.builds(Number, numbers)),
    lambda inner: st.one_of(
        st.builds(Add, inner, inner),
        st.builds(Subtract, inner, inner),
        st.builds(Multiply, inner, inner),
        st.builds(Divide, inner, st.sampled_from([-3.0, 0.1, 7.0])),
        st.builds(Negate, inner),
        st.builds(Absolute, inner),
        st.builds(ScoringCall, st.just("min"), st.just(min), st.tuples(inner, inner)),
        st.builds(ScoringCall, st.just("max"), st.just(max), st.tuples(inner, inner)),
        st.builds(ScoringCall, st.just("F"), st.just(marked), st.tuples(inner, inner)),
    ),
    max_leaves=6,
)


@st.composite
def values(draw: st.DrawFn, within: tuple[float, float], count: int) -> np.ndarray:
    low, high = (max(within[0], -1e6), min(within[1], 1e6))
    return np.array(draw(st.lists(st.floats(low, high), min_size=count, max_size=count)))


@examples(400)
@given(expressions, st.fixed_dictionaries(dict.fromkeys("abc", ranges)), st.data())
def test_a_proof_holds_for_all_values_to_the_last_bit(expression, within, data):
    proof = prove(expression, "a", within)
    rising = np.sort(data.draw(values(within["a"], 8)))
    columns = {"a": rising}
    for name in "bc":
        columns[name] = np.full(8, data.draw(values(within[name], 1))[0])
    scores = evaluate(expression, columns)
    low, high = value_interval(expression, within)
    assert ((low <= scores) & (scores <= high)).all()
    steps = np.diff(scores)
    if proof.direction == "rises":
        assert (steps >= 0).all()
    elif proof.direction == "falls":
        assert (steps <= 0).all()
    elif proof.direction == "constant":
        assert (steps == 0).all()
