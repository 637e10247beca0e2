"""Proofs of global scoring functions, and the threshold algorithm on proven ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.operators.pairs.scoring import (
    Condition,
    PairScoring,
    has_quotient,
    is_symmetric,
    swapped,
)
from rsp_engine.operators.pairs.skyband import PairSkyband, SkybandConfig
from rsp_engine.operators.pairs.threshold_algorithm import SortedLists
from rsp_engine.operators.scoring.scoring_function import (
    Absolute,
    Add,
    Divide,
    Multiply,
    Negate,
    Number,
    Quotient,
    Scoring,
    ScoringCall,
    Subtract,
    Variable,
    evaluate,
)
from rsp_engine.plan.shapes.global_scoring import Global, NotGlobal, global_scoring
from tests.operators.pairs.brute_force import as_list
from tests.thoroughness import examples


def difference(column: int) -> Scoring:
    return Absolute(Subtract(Variable(f"a{column}"), Variable(f"b{column}")))


def both(column: int) -> Scoring:
    return Add(Variable(f"b{column}"), Variable(f"a{column}"))


def apart(x: float, y: float) -> float:
    return (x - y) ** 2


def distance(column: int) -> Scoring:
    return ScoringCall("apart", apart, (Variable(f"a{column}"), Variable(f"b{column}")))


ONE, TWO, FAR = difference(1), difference(2), distance(2)
PROVEN = (
    Add(ONE, TWO),
    Negate(Add(ONE, TWO)),
    Multiply(ONE, TWO),
    Subtract(ONE, Multiply(Number(2), TWO)),
    Add(Multiply(both(1), Number(-0.5)), TWO),
    Divide(Add(ONE, Number(1)), -4.0),
    Add(ONE, Add(ONE, TWO)),
    Subtract(FAR, ONE),
    ScoringCall("most", max, (ONE, TWO)),
)
REFUSED = (
    (Quotient(ONE, Add(TWO, Number(1))), "its divisor may be zero"),
    (Subtract(Variable("a1"), Variable("b1")), "objects are exchanged"),
    (Multiply(both(1), TWO), "may rise or fall"),
    (Add(Multiply(Variable("a1"), Variable("b1")), ONE), "only one of the two objects"),
    (ScoringCall("F", apart, (Variable("a1"), Variable("b1"))), "objects are exchanged"),
    (ScoringCall("F", apart, (ONE, TWO)), "may rise or fall"),
)
rows = st.lists(
    st.lists(st.integers(-6, 6).map(float), min_size=3, max_size=3), min_size=2, max_size=30
)


@examples(150)
@given(rows, st.sampled_from(PROVEN), st.booleans(), st.integers(1, 4), st.integers(2, 20))
def test_the_threshold_algorithm_is_right_for_proven_scores(objects, score, descending, k, n):
    scoring = PairScoring(score, 3, descending, declared=("apart",))
    proof = global_scoring(scoring, {"apart": "distance"})
    assert isinstance(proof, Global)
    config = SkybandConfig(k, 3)
    by_lists = PairSkyband(config, 3, scoring.kernel(), SortedLists(proof.kernels()))
    by_staircase = PairSkyband(config, 3, scoring.kernel())
    for row in objects:
        for skyband in (by_lists, by_staircase):
            skyband.arrive(row)
            skyband.expire(skyband.end - n)
        assert as_list(by_lists.pairs()) == as_list(by_staircase.pairs())


@pytest.mark.parametrize(("score", "reason"), REFUSED)
def test_a_score_without_a_proof_has_a_reason(score, reason):
    proof = global_scoring(PairScoring(score, 3), {})
    assert isinstance(proof, NotGlobal)
    assert reason in proof.reason


@examples(100)
@given(rows, st.sampled_from([*PROVEN, *(score for score, _ in REFUSED)]))
def test_a_symmetric_score_is_the_same_both_ways(objects, score):
    first, second = np.array(objects[0]), np.array(objects[1])
    values = {f"a{n}": first[n : n + 1] for n in range(3)}
    values |= {f"b{n}": second[n : n + 1] for n in range(3)}
    if is_symmetric(score, ("apart",)):
        assert evaluate(score, values) == evaluate(swapped(score), values)


@examples(100)
@given(rows, st.sampled_from([*PROVEN, *(score for score, _ in REFUSED)]), st.booleans())
def test_a_kernel_gives_the_score_of_the_pair_in_its_order(objects, score, descending):
    """The object with the smaller key is the first, whichever of the two arrives."""
    kept = Condition("<=", Variable("a1"), Add(Variable("b1"), Number(2)))
    scoring = PairScoring(score, 3, descending, (kept,))
    kernel = scoring.kernel(exact=has_quotient(score))
    for row in objects:
        found = kernel(np.array(objects).T, np.array(row))
        for other, value in zip(objects, found.tolist(), strict=True):
            first, second = sorted((row, other), key=lambda each: each[0])
            if first[0] == second[0] or first[1] > second[1] + 2:
                assert np.isnan(value)
                continue
            values = {f"a{n}": np.array([first[n]]) for n in range(3)}
            values |= {f"b{n}": np.array([second[n]]) for n in range(3)}
            [expected] = evaluate(score, values)
            expected = -expected if descending else expected
            assert value == (expected if np.isfinite(expected) else np.inf)
