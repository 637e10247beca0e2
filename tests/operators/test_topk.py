"""The top-k family: every operator gives the oracle's ranking for every window."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.mintopk import MinTopk
from rsp_engine.operators.oracle import Oracle
from rsp_engine.operators.pretopk import PreTopk
from rsp_engine.operators.topk import TopkConfig

FAMILY = [PreTopk, MinTopk]
frames = st.builds(
    TimeFrame,
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(-2, 2),
    st.sampled_from(["(]", "[)"]),
)
configs = st.builds(TopkConfig, st.integers(1, 4), frames)


@st.composite
def runs(draw: st.DrawFn) -> tuple[TopkConfig, list[list[list[tuple[int, int]]]], list[int]]:
    """A configuration, batches of (key, position) before each window closes, and scores by key.

    Positions may run ahead of the window that closes, and batches are cut anywhere.
    """
    config = draw(configs)
    scores = draw(st.lists(st.integers(0, 5), min_size=8, max_size=8))
    positions = sorted(draw(st.lists(st.integers(-3, 30), max_size=40)))
    found = [(draw(st.integers(0, 7)), position) for position in positions]
    batches = []
    for window in range(14):
        ahead = config.frame.interval(window).close + draw(st.integers(0, 4))
        now = [pair for pair in found if pair[1] <= ahead]
        found = found[len(now) :]
        now = draw(st.permutations(now))
        cut = draw(st.integers(0, len(now)))
        batches.append([list(now[:cut]), list(now[cut:])])
    return config, batches, scores


@pytest.mark.parametrize("operator", FAMILY)
@settings(max_examples=150, deadline=None)
@given(runs())
def test_every_operator_gives_the_ranking_of_the_oracle(operator, run):
    config, batches, scores = run
    oracle, clever = Oracle(config), operator(config)
    for window, parts in enumerate(batches):
        for part in parts:
            keys, positions = [k for k, _ in part], [p for _, p in part]
            for one in (oracle, clever):
                one.arrive(keys, positions, [scores[key] for key in keys])
        expected, found = oracle.close(window), clever.close(window)
        assert found.keys.tolist() == expected.keys.tolist()
        assert found.scores.tolist() == expected.scores.tolist()


@settings(max_examples=150, deadline=None)
@given(runs())
def test_the_list_is_the_union_of_the_predicted_answers(run):
    """Lemma 3.1: what PreTopk keeps for all windows together is what MinTopk keeps, no less."""
    config, batches, scores = run
    predicted, minimal = PreTopk(config), MinTopk(config)
    for window, parts in enumerate(batches):
        for part in parts:
            keys, positions = [k for k, _ in part], [p for _, p in part]
            for one in (predicted, minimal):
                one.arrive(keys, positions, [scores[key] for key in keys])
        predicted.close(window)
        minimal.close(window)
        minimal._check()
        later = range(window + 1, window + 20)
        union = set().union(*(predicted.predicted(index) for index in later))
        listed = minimal.candidates()
        assert {c.key for c in listed if c.end > window} == union
        for index in later:
            inside = {c.key for c in listed if c.start <= index <= c.end}
            assert inside == predicted.predicted(index)


@pytest.mark.parametrize("operator", [Oracle, *FAMILY])
def test_the_running_example_of_mintopk(operator):
    """k=3, win=16, slide=4 (Figs 1-5): W1 is {17, 6, 14}."""
    config = TopkConfig(3, TimeFrame(16, 4, bounds="[)"))
    made = operator(config)
    scores = {1: 14, 6: 13, 14: 12, 7: 10, 15: 9, 16: 8, 17: 13.5, 18: 7, 20: 6, 19: 1}
    given_scores = [scores.get(number, 0.1 * number) for number in range(1, 21)]
    made.arrive(range(1, 17), range(16), given_scores[:16])
    assert made.close(0).keys.tolist() == [1, 6, 14]
    made.arrive(range(17, 21), range(16, 20), given_scores[16:])
    assert made.close(1).keys.tolist() == [17, 6, 14]


def test_the_list_of_the_running_example_has_the_marks_of_the_paper():
    """Fig 5, before and after o17 to o20."""
    made = MinTopk(TopkConfig(3, TimeFrame(16, 4, bounds="[)")))
    scores = {1: 14, 6: 13, 14: 12, 7: 10, 15: 9, 16: 8, 17: 13.5, 18: 7, 20: 6, 19: 1}
    given_scores = [scores.get(number, 0.1 * number) for number in range(1, 21)]
    made.arrive(range(1, 17), range(16), given_scores[:16])
    made.close(0)
    marks = [(c.key, c.start, c.end) for c in made.candidates()]
    assert marks == [(1, 0, 0), (6, 0, 1), (14, 0, 3), (7, 1, 1), (15, 2, 3), (16, 2, 3)]
    made.arrive(range(17, 21), range(16, 20), given_scores[16:])
    made.close(1)
    marks = [(c.key, c.start, c.end) for c in made.candidates()]
    assert marks == [(17, 1, 4), (6, 1, 1), (14, 1, 3), (15, 2, 3), (18, 4, 4), (20, 4, 4)]


@pytest.mark.parametrize("operator", FAMILY)
@pytest.mark.parametrize(
    ("keys", "positions", "scores", "reason"),
    [
        ([1], [1, 2], [1.0], "equal length"),
        ([1], [1], [float("nan")], "must be a number"),
        ([1, 2], [1, 99], [1.0, 1.0], "has closed"),
    ],
)
def test_a_bad_batch_is_refused_whole(operator, keys, positions, scores, reason):
    config = TopkConfig(2, TimeFrame(10, 10))
    made, other = operator(config), operator(config)
    for one in (made, other):
        one.arrive([7], [5], [3.0])
        one.close(0)
        one.arrive([8], [15], [2.0])
    with pytest.raises(ValueError, match=reason):
        made.arrive(keys, positions, scores)
    assert made.close(1).keys.tolist() == other.close(1).keys.tolist() == [8]


@pytest.mark.parametrize("operator", FAMILY)
def test_infinite_and_equal_scores_and_one_key_many_times_work(operator):
    made = operator(TopkConfig(2, TimeFrame(10, 5)))
    made.arrive([1] * 1000, [3] * 1000, [float("inf")] * 1000)
    made.arrive([2, 3, 4], [3, 4, 5], [float("-inf")] * 3)
    assert made.close(0).keys.tolist() == [1, 4]
    with pytest.raises(ValueError, match="closed already"):
        made.close(0)


def test_k_must_be_positive():
    with pytest.raises(ValueError, match="at least 1"):
        TopkConfig(0, TimeFrame(1, 1))
