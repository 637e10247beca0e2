"""Aggregates over windows: every ranking and every list equals that of a naive evaluation."""

from __future__ import annotations

import json
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import StateError
from rsp_engine.model.windows import Pane
from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig
from tests.operators.aggregate_runs import (
    FUNCTIONS,
    Naive,
    Run,
    any_values,
    bits,
    feed,
    joined,
    runs,
)
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.operators.aggregates.pane_partials import Totals


@examples(80)
@given(st.one_of(runs(), runs(any_values)))
def test_every_window_is_ranked_as_the_naive_one_says(run: Run):
    naive, clever = Naive(run), run.operator()
    for window, parts in enumerate(run.batches):
        for part in parts:
            naive.feed(part)
            feed(clever, run.frame, part)
        run.set_remote(clever, window)
        naive.remote.update(run.remote[window])
        totals = naive.totals(window, window)
        keys, positions, values, counts = clever.totals(window)
        assert counts.tolist() == naive.counts(window)
        assert positions.tolist() == [position for _, position in totals.values()]
        assert keys.tolist() == list(totals)
        assert bits(values) == bits(value for value, _ in totals.values())
        expected = naive.ranked(window, window)
        found = clever.close(window)
        assert found.window == window
        assert found.keys.tolist() == [key for _, _, key in expected[: run.config.k]]
        assert bits(found.scores) == bits(score for score, _, _ in expected[: run.config.k])
        assert found.is_exact == found.has_exact_set == run.is_exact(naive, totals)
        clever._check()


@examples(80)
@given(runs(), st.booleans())
def test_the_list_is_the_union_of_the_best_of_each_active_window(run: Run, settles: bool):
    """Before a window closes, and after: then as of the next window, without its new pane."""
    naive, clever = Naive(run), run.operator()
    for window, parts in enumerate(run.batches):
        for part in parts:
            naive.feed(part)
            feed(clever, run.frame, part)
        if settles:
            clever.settle(window)
            for _ in range(2):  # with the remote values so far, and with those set now
                expected = naive.listed(window, window)
                assert [tuple(candidate) for candidate in clever.candidates()] == expected
                assert clever.lives.tolist() == [end - window + 1 for *_, end in expected]
                run.set_remote(clever, window)
                naive.remote.update(run.remote[window])
        first = naive.ranked(window, window)[: run.config.k]
        ranking = clever.close(window)
        if settles:
            assert ranking.keys.tolist() == [key for _, _, key in first]
        expected = naive.listed(window + 1, window)
        assert clever.keys.tolist() == [key for key, *_ in expected]
        assert bits(clever.scores) == bits(score for _, score, *_ in expected)
        assert clever.ends.tolist() == [end for *_, end in expected]
        assert len(clever) == len(expected)


@examples(40)
@given(runs(any_values), st.data())
def test_any_batching_gives_the_same_bits(run: Run, data: st.DataObject):
    whole, pieces = run.operator(), run.operator()
    for window, parts in enumerate(run.batches):
        together = [arrival for part in parts for arrival in part]
        feed(whole, run.frame, together)
        shuffled = data.draw(st.permutations(together))
        cuts = data.draw(st.lists(st.integers(0, len(together)), max_size=6).map(sorted))
        for begin, end in zip([0, *cuts], [*cuts, len(together)], strict=True):
            feed(pieces, run.frame, list(shuffled[begin:end]))
        for one in (whole, pieces):
            run.set_remote(one, window)
            one.settle(window)
        assert bits(whole.totals(window).values) == bits(pieces.totals(window).values)
        assert repr(whole.candidates()) == repr(pieces.candidates())
        assert json.dumps(whole.state()) == json.dumps(pieces.state())
        assert repr(whole.close(window)) == repr(pieces.close(window))


@examples(40)
@given(runs(any_values), st.data())
def test_a_state_written_and_read_back_at_any_point_changes_nothing(run: Run, data: st.DataObject):
    straight, broken = run.operator(), run.operator()
    for window, parts in enumerate(run.batches):
        breaks = data.draw(st.sets(st.sampled_from(["arrived", "changed", "settled", "closed"])))
        for one in (straight, broken):
            for part in parts:
                feed(one, run.frame, part)
        broken = run.restored(broken) if "arrived" in breaks else broken
        for one in (straight, broken):
            run.set_remote(one, window)
        broken = run.restored(broken) if "changed" in breaks else broken
        for one in (straight, broken):
            one.settle(window)
        broken = run.restored(broken) if "settled" in breaks else broken
        assert repr(straight.candidates()) == repr(broken.candidates())
        assert repr(straight.close(window)) == repr(broken.close(window))
        broken = run.restored(broken) if "closed" in breaks else broken
        assert repr(straight.candidates()) == repr(broken.candidates())
    assert json.dumps(straight.state()) == json.dumps(broken.state())


@pytest.mark.parametrize("function", ["sum", "avg", "min", "max"])
def test_infinite_values_work_and_what_is_not_a_number_ranks_last(function):
    operator = AggregateTopk(AggregateTopkConfig(4, function=function))
    operator.arrive(Pane(0, 0), [1, 2, 3, 3, 4], [1, 2, 3, 4, 5], [inf, -5.0, -inf, inf, 7.0])
    ranking = operator.close(0)
    expected = {
        "sum": ([1, 4, 2, 3], [inf, 7.0, -5.0, -inf]),
        "avg": ([1, 4, 2, 3], [inf, 7.0, -5.0, -inf]),
        "min": ([1, 4, 2, 3], [inf, 7.0, -5.0, -inf]),
        "max": ([3, 1, 4, 2], [inf, inf, 7.0, -5.0]),
    }
    assert (ranking.keys.tolist(), ranking.scores.tolist()) == expected[function]
    assert ranking.is_exact


@pytest.mark.parametrize("function", ["min", "max", "sum", "avg"])
def test_zero_has_no_sign(function):
    for values in ([0.0, -0.0], [-0.0, 0.0], [-0.0]):
        operator = AggregateTopk(AggregateTopkConfig(1, function=function))
        for value in values:
            operator.arrive(Pane(0, 0), [0], [0], [value])
        assert bits(operator.close(0).scores) == bits([0.0])


def test_of_equal_scores_the_later_arrival_is_first_then_the_larger_key():
    operator = AggregateTopk(AggregateTopkConfig(3))
    operator.arrive(Pane(0, 1), [1, 2, 3, 4], [5, 9, 9, 7])
    operator.arrive(Pane(0, 0), [4], [1])
    ranking = operator.close(0)
    assert ranking.keys.tolist() == [4, 3, 2]
    assert ranking.scores.tolist() == [2.0, 1.0, 1.0]


def test_the_list_does_not_depend_on_how_far_ahead_the_input_was_read():
    behind, ahead = (AggregateTopk(AggregateTopkConfig(1, 1)) for _ in range(2))
    for one in (behind, ahead):
        one.arrive(Pane(0, 1), [1, 2], [5, 6])
    ahead.arrive(Pane(1, 2), [3, 3, 3], [12, 13, 14])
    for one in (behind, ahead):
        one.settle(0)
        assert [tuple(c) for c in one.candidates()] == [(2, 1.0, 0, 1), (1, 1.0, 0, 1)]
    ahead.settle(1)
    assert ahead.keys.tolist() == [3, 2]


def test_an_object_without_a_remote_value_is_left_out_until_it_is_told():
    operator = AggregateTopk(AggregateTopkConfig(2, function="sum"), joined)
    operator.change([1, 9], [1.0, 5.0])
    operator.arrive(Pane(0, 2), [1, 2], [1, 2], [10.0, 20.0])
    ranking = operator.close(0)
    assert ranking.keys.tolist() == [1]
    assert not ranking.is_exact
    assert not ranking.has_exact_set
    operator.change([2, 2], [nan, 3.0])
    operator.settle(1)
    assert operator.keys.tolist() == [2, 1]
    assert operator.close(1).is_exact
    operator.change([1], [nan])
    assert operator.keys.tolist() == [2]
    assert operator.close(2).is_exact  # it is known that there is no remote value
    operator.arrive(Pane(3, 3), [1, 2], [11, 12], [10.0, 20.0])
    operator.forget([1, 5])
    assert not operator.close(3).is_exact
    with pytest.raises(ValueError, match="no remote side"):
        AggregateTopk(AggregateTopkConfig(1)).change([1], [1.0])


def test_a_score_that_is_not_a_number_ranks_last():
    operator = AggregateTopk(AggregateTopkConfig(2, function="sum"), lambda x, remote: x * remote)
    operator.change([1, 2], [0.0, -3.0])
    operator.arrive(Pane(0, 0), [1, 2], [1, 2], [inf, 4.0])
    ranking = operator.close(0)
    assert ranking.keys.tolist() == [2, 1]
    assert ranking.scores.tolist() == [-12.0, -inf]
    assert ranking.is_exact


def test_what_arrives_after_a_look_counts():
    operator = AggregateTopk(AggregateTopkConfig(1))
    operator.settle(0)
    for seen in range(3):
        assert operator.totals(0).values.tolist() == [float(seen)] * bool(seen)
        assert operator.scores.tolist() == [float(seen)] * bool(seen)
        operator.arrive(Pane(0, 0), [1], [seen])
    assert operator.close(0).scores.tolist() == [3.0]


def test_a_bad_scoring_function_leaves_everything_as_it_was():
    operator = AggregateTopk(AggregateTopkConfig(1), lambda streaming, remote: np.zeros(7))
    operator.change([1], [1.0])
    operator.arrive(Pane(0, 0), [1], [1])
    before = operator.state()
    with pytest.raises(ValueError, match="one score for each pair"):
        operator.close(0)
    assert operator.state() == before


@pytest.mark.parametrize(
    ("pane", "columns", "reason"),
    [
        (Pane(1, 1), ([1], [1, 2], [1.0]), "equal length"),
        (Pane(1, 1), ([1], [1], []), "equal length"),
        (Pane(1, 1), ([3, -1], [1, 1], [1.0, 1.0]), "not be negative"),
        (Pane(1, 1), ([2**56], [1], [1.0]), "less than"),
        (Pane(0, 1), ([1, 2], [1, 99], [1.0, 1.0]), "has closed"),
        (Pane(2, 1), ([1], [1], [1.0]), "in no window"),
        (Pane(1, 1), ([[1]], [1], [1.0]), "one dimension"),
    ],
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_bad_batch_is_refused_whole(function, pane, columns, reason):
    operator = AggregateTopk(AggregateTopkConfig(2, function=function))
    operator.arrive(Pane(0, 0), [7], [5], [3.0])
    operator.close(0)
    operator.arrive(Pane(1, 1), [8], [15], [2.0])
    before = operator.state()
    with pytest.raises(ValueError, match=reason):
        operator.arrive(pane, *columns)
    assert operator.state() == before
    assert operator.close(1).keys.tolist() == [8]


def test_only_a_count_needs_no_values():
    for function in FUNCTIONS:
        operator = AggregateTopk(AggregateTopkConfig(1, function=function))
        if function == "count":
            operator.arrive(Pane(0, 0), [1, 1], [1, 2])
            assert operator.close(0).scores.tolist() == [2.0]
        else:
            with pytest.raises(ValueError, match=f"{function} needs values"):
                operator.arrive(Pane(0, 0), [1], [1])


def test_windows_that_have_closed_and_bad_changes_are_refused():
    operator = AggregateTopk(AggregateTopkConfig(1), joined)
    operator.close(3)
    for act in (operator.close, operator.settle, operator.totals):
        with pytest.raises(ValueError, match="closed already"):
            act(3)
    with pytest.raises(ValueError, match="equal length"):
        operator.change([1, 2], [1.0])
    with pytest.raises(ValueError, match="not be negative"):
        operator.change([-1], [1.0])


def test_a_pane_is_forgotten_with_its_last_window():
    operator = AggregateTopk(AggregateTopkConfig(1))
    operator.arrive(Pane(0, 0), [1], [1])
    operator.arrive(Pane(0, 1), [2], [2])
    operator.close(0)
    assert [*operator.state()["panes"]["panes"]] == ["0 1"]
    operator.close(5)
    assert operator.state()["panes"]["panes"] == {}
    assert operator.keys.tolist() == []


def test_what_is_given_out_can_be_changed_without_harm():
    operator = AggregateTopk(AggregateTopkConfig(1, function="max"))
    operator.arrive(Pane(0, 1), [1, 2], [1, 2], [5.0, 6.0])
    keys, positions, values, counts = operator.totals(0)
    keys[:], positions[:], values[:], counts[:] = 0, 0, 0.0, 0
    assert operator.close(0).scores.tolist() == [6.0]
    assert operator.close(1).scores.tolist() == [6.0]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("levels", [1, 4, 10_000])
def test_large_panes_are_ranked_as_by_one_sort(function, levels):
    """Integers, which sum without rounding, at few levels, which tie."""
    draw = np.random.default_rng(levels)
    operator = AggregateTopk(AggregateTopkConfig(20, 5, function))
    seen: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]] = []
    for window in range(8):
        keys = draw.integers(0, 3000, 4000)
        positions = np.arange(4000 * window, 4000 * (window + 1)) // 7
        values = draw.integers(0, levels, 4000) - levels / 2
        seen.append((window + 2, keys, positions, values))
        operator.arrive(Pane(window, window + 2), keys, positions, values)
        inside = [part for part in seen if part[0] >= window]
        keys, positions, values = (
            np.concatenate([part[i] for part in inside]) for i in range(1, 4)
        )
        counts = np.bincount(keys, minlength=3000)
        scores = {
            "count": counts * 1.0,
            "sum": np.bincount(keys, values, 3000),
            "avg": np.bincount(keys, values, 3000) / np.maximum(counts, 1),
            "min": np.full(3000, inf),
            "max": np.full(3000, -inf),
        }
        np.minimum.at(scores["min"], keys, values)
        np.maximum.at(scores["max"], keys, values)
        latest = np.full(3000, -1)
        np.maximum.at(latest, keys, positions)
        score = np.where(counts > 0, scores[function], -inf)
        order = np.lexsort((np.arange(3000), latest, score))[::-1][:20]
        operator.settle(window)
        assert operator.keys[:20].tolist() == order.tolist()
        ranking = operator.close(window)
        assert ranking.keys.tolist() == order.tolist()
        assert ranking.scores.tolist() == score[order].tolist()


def test_bad_configurations_and_states_of_others_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        AggregateTopkConfig(0)
    with pytest.raises(ValueError, match="not be negative"):
        AggregateTopkConfig(1, -1)
    with pytest.raises(ValueError, match="one of count, sum, min, max, avg"):
        AggregateTopkConfig(1, function="median")  # type: ignore[arg-type]
    state = AggregateTopk(AggregateTopkConfig(1)).state()
    with pytest.raises(StateError, match="another configuration"):
        AggregateTopk.restored(AggregateTopkConfig(1, function="sum"), state)
    with pytest.raises(StateError, match="a state of Oracle"):
        AggregateTopk.restored(AggregateTopkConfig(1), {**state, "operator": "Oracle"})


@examples(60)
@given(runs(st.one_of(any_values, st.sampled_from([inf, -inf, nan]))), st.data())
def test_what_arrives_and_is_withdrawn_leaves_no_trace(run: Run, data: st.DataObject):
    if run.config.function in {"min", "max"}:
        return  # they need no withdrawal
    straight, clever = run.operator(), run.operator()
    for window, parts in enumerate(run.batches):
        for part in parts:
            again = data.draw(st.lists(st.sampled_from(part), max_size=4)) if part else []
            feed(straight, run.frame, part)
            feed(clever, run.frame, part + again)
            for arrival in again:
                if pane := run.frame.pane(arrival.position):
                    clever.withdraw(pane, [arrival.key], [arrival.value])
        assert json.dumps(straight.state()) == json.dumps(clever.state())
        for one in (straight, clever):
            run.set_remote(one, window)
            one.settle(window)
        assert repr(straight.candidates()) == repr(clever.candidates())
        assert repr(straight.close(window)) == repr(clever.close(window))


@pytest.mark.parametrize("function", ["sum", "avg", "min", "max"])
def test_a_value_that_is_no_number_makes_the_aggregate_none_while_it_lives(function):
    operator = AggregateTopk(AggregateTopkConfig(2, function=function))
    operator.arrive(Pane(0, 0), [1, 1], [1, 2], [nan, 7.0])
    operator.arrive(Pane(0, 1), [1, 2], [3, 4], [8.0, 2.0])
    operator.settle(0)
    assert operator.scores.tolist() == [2.0, -inf]
    assert operator.close(0).keys.tolist() == [2, 1]
    assert operator.close(1).keys.tolist() == [1, 2]


def test_a_score_of_the_aggregate_alone_needs_no_remote_side():
    config = AggregateTopkConfig(1, function="sum")
    operator = AggregateTopk(config, streaming=lambda totals: -totals.values)
    operator.arrive(Pane(0, 1), [1, 2], [1, 2], [5.0, 3.0])
    operator.settle(0)
    assert operator.keys.tolist() == [2]
    assert operator.close(0).scores.tolist() == [-3.0]


def test_x_s_may_be_made_of_totals_and_joined_with_the_remote_side():
    config = AggregateTopkConfig(1, function="sum")
    seen = []

    def halved(totals: Totals) -> Any:
        seen.append((totals.keys.tolist(), totals.counts.tolist()))
        return totals.values / 2

    operator = AggregateTopk(config, joined, streaming=halved)
    operator.change([1, 2], [0.0, 1.0])
    operator.arrive(Pane(0, 1), [1, 2, 2], [1, 2, 3], [8.0, 7.0, 5.0])
    assert operator.close(0).scores.tolist() == [4.0]
    assert seen == [([1, 2], [1, 2])]
