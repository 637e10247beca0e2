"""The approximate operator: its sketches, arrival probabilities, and the instances it keeps."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.operators.incomplete.ams_sketch import AMSSketch
from rsp_engine.operators.incomplete.approximate import Approximate
from rsp_engine.operators.incomplete.arrival_probability import ArrivalProbability
from rsp_engine.operators.incomplete.eaa import EAA
from rsp_engine.operators.incomplete.fm_sketch import FMSketch
from rsp_engine.operators.incomplete.hashing import text_hash
from rsp_engine.operators.incomplete.observations import IncompleteOperatorConfig, as_observations
from tests.operators.incomplete.runs import Run, brute_force, feed, runs
from tests.thoroughness import examples


class Eager(Approximate):
    """Drops what it can before every answer."""

    def close(self, window):
        self._new = 1_000_000
        return super().close(window)


@pytest.mark.parametrize("count", [10, 100, 1000, 30_000])
def test_a_sketch_estimates_the_number_of_distinct_objects(count):
    errors = []
    for start in range(0, 10**7, 10**6):
        sketch = FMSketch()
        keys = np.arange(start, start + count)
        sketch.add(keys, 3)
        sketch.add(keys[: count // 2], 3)  # once more
        errors.append(sketch.distinct(3) / count - 1)
    assert abs(np.mean(errors)) < 0.05
    assert np.std(errors) < 0.15


def test_a_sketch_forgets_objects_that_left_the_window_unless_they_arrived_again():
    sketch = FMSketch()
    sketch.add(np.arange(1000), 3)
    sketch.add(np.arange(500), 5)
    sketch.add(np.arange(2000, 2100), 4)  # what comes late does not shorten a life
    assert sketch.distinct(3) == pytest.approx(1100, rel=0.15)
    assert sketch.distinct(5) == pytest.approx(500, rel=0.15)
    assert sketch.distinct(6) == 0


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 5)), max_size=60), st.integers(1, 5))
def test_a_union_is_the_sketch_of_the_union_of_objects(found, cut):
    one, other, both = FMSketch(), FMSketch(), FMSketch()
    for number, (key, end) in enumerate(found):
        (one if number % cut else other).add(np.array([key]), end)
        both.add(np.array([key]), end)
    assert one.union(other).state() == both.state()


def test_the_self_join_size_estimates_the_frequency_of_objects():
    sketch = AMSSketch()
    sketch.add(np.repeat(np.arange(2000), 4), 3)
    sketch.add(np.arange(5000, 6000), 7)
    assert sketch.recurrences(0) == pytest.approx((2000 * 16 + 1000) / 9000, rel=0.3)
    again = AMSSketch()
    again.restore(json.loads(json.dumps(sketch.state())))
    assert again.state() == sketch.state()
    assert sketch.recurrences(7) == pytest.approx(1, abs=0.3)  # the first pane has left


def test_the_probability_that_an_object_of_one_stream_still_arrives_in_another():
    """Of 1000 objects in each, 400 are in both: 200 of these came first in the other stream."""
    chances = ArrivalProbability((1, 1))
    keys = np.concatenate((np.arange(1000), np.arange(600, 1600)))
    streams = np.repeat([0, 1], 1000)
    chances.add(4, as_observations(streams, keys, np.arange(2000), np.zeros(2000)))
    assert chances.still(4)[0, 1] == pytest.approx(200 / 800, abs=0.1)
    chances.expire(5)
    assert chances.still(5)[0, 1] == 1  # of nothing, nothing is known


def test_sketches_count_objects_by_hash_and_not_by_numbers_that_are_reused():
    """Of 500 objects in each stream 100 are in both, and no more than 50 have a number at once."""
    chances = ArrivalProbability((1, 1))
    names = np.array([text_hash(f"<urn:{n}>") for n in range(900)])
    for start in range(0, 500, 50):
        found = np.concatenate((names[start : start + 50], names[400 + start : 450 + start]))
        numbers = np.tile(np.arange(50), 2)
        batch = as_observations(
            np.repeat([0, 1], 50), numbers, numbers, np.zeros(100), hashes=found
        )
        chances.add(4, batch)
    assert chances.still(4)[0, 1] == pytest.approx(50 / 450, abs=0.08)


def test_sketches_count_a_repeated_observation_once():
    """In each of five panes come the same 400 observations of each stream; none is in both."""
    for is_noticed in (True, False):
        chances = ArrivalProbability((1, 1, 2))
        keys = np.arange(800)
        streams = np.repeat([0, 1], 400)
        for end in range(5):
            since = np.full(800, end - 1 if is_noticed else -1)
            chances.add(end, as_observations(streams, keys, keys, np.zeros(800), since))
            again = as_observations([2] * 100, keys[:100], keys[:100], [0.0] * 100, since[:100])
            chances.add(end, again)
        assert chances.still(0)[0, 1] == pytest.approx(0, abs=0.1)
        if is_noticed:
            assert chances.recurrences(0)[2] == pytest.approx(1, abs=0.4)


@examples(60)
@given(runs())
def test_expected_best_scores_do_not_exceed_possible_best_scores(run: Run):
    operator = Eager(run.config)
    for window, parts in enumerate(run.parts):
        for part in parts:
            feed(operator, part)
        ranking = operator.close(window)
        held = operator._instances.columns
        assert (operator.bests(held) <= EAA.bests(operator, held)).all()
        assert not ranking.is_exact
        true = {key: score for score, _, key in brute_force(run, window)}
        for key, score in zip(ranking.keys.tolist(), ranking.scores.tolist(), strict=True):
            assert score <= true[key]
        operator._check()


@examples(12)
@given(runs(), st.integers(0, 4))
def test_a_bound_is_respected_and_a_run_can_be_restored_anywhere(run: Run, more):
    bound = run.config.k + more
    whole, parted = Approximate(run.config, bound), Approximate(run.config, bound)
    for window, parts in enumerate(run.parts):
        for part in parts:
            feed(whole, part)
            feed(parted, part)
            state = json.loads(json.dumps(parted.state()))
            parted = Approximate.restored(run.config, state, bound)
        assert whole.close(window).keys.tolist() == parted.close(window).keys.tolist()
        assert len(whole) == len(parted) <= bound


def test_a_bound_without_room_for_the_best_is_refused():
    with pytest.raises(ValueError, match="too small for the 3 best"):
        Approximate(IncompleteOperatorConfig(3, (1.0,)), 2)
