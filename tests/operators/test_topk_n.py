"""Topk+N: scores that change, and answers that are marked exact only when they are."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.topk.mintopk import MinTopk
from tests.operators.topk_runs import KEYS, Run, feed, frames, runs
from tests.operators.topk_stories import (
    WINDOWS,
    Naive,
    Story,
    around,
    feed_joined,
    few,
    least,
    open_panes,
    plus,
    replay,
    stories,
)
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.operators.topk.contract import TopkAnswer


def checked(operator: TopkN) -> TopkN:
    operator._check()
    return operator


def written_and_read(operator: TopkN) -> TopkN:
    state = json.loads(json.dumps(operator.state()))
    return TopkN.restored(operator.config, operator._score, state)


def pairs(ranking: TopkAnswer) -> list[tuple[int, float]]:
    return list(zip(ranking.keys.tolist(), ranking.scores.tolist(), strict=True))


def as_data(ranking: TopkAnswer) -> tuple[object, ...]:
    return pairs(ranking), ranking.is_exact, ranking.has_exact_set


@examples(400)  # many, since some defects show in one story of a thousand
@given(stories())
def test_an_answer_that_says_it_is_exact_is_that_of_the_oracle(story: Story):
    for ranking, ranked in replay(story, story.operator(), checked):
        right = ranked[: story.config.k]
        assert not ranking.is_exact or pairs(ranking) == right
        assert not ranking.has_exact_set or set(ranking.keys.tolist()) == {key for key, _ in right}
        assert ranking.has_exact_set or not ranking.is_exact


@examples(60)
@given(stories())
def test_a_state_written_and_read_back_after_every_step_changes_nothing(story: Story):
    straight = [as_data(ranking) for ranking, _ in replay(story, story.operator())]
    broken = [as_data(ranking) for ranking, _ in replay(story, story.operator(), written_and_read)]
    assert straight == broken


@examples(60)
@given(stories(), st.data())
def test_any_batches_of_the_same_stream_give_the_same_answers(story: Story, data):
    steps = []
    for name, arrivals in story.steps:
        if name == "arrive":
            mixed = data.draw(st.permutations(arrivals))
            cut = data.draw(st.integers(0, len(mixed)))
            steps += [("arrive", mixed[:cut]), ("arrive", mixed[cut:])]
        else:
            steps.append((name, arrivals))
    whole = [as_data(ranking) for ranking, _ in replay(story, story.operator())]
    other = story._replace(steps=steps)
    assert whole == [as_data(ranking) for ranking, _ in replay(other, other.operator())]


@examples(100)
@given(runs(), st.integers(0, 3))
def test_without_changes_it_is_mintopk_for_any_n_and_always_exact(run: Run, n):
    minimal = MinTopk(run.config)
    joined = TopkN(TopkNConfig(run.config.k, n), plus)
    for window, parts in enumerate(run.batches):
        for part in parts:
            feed(minimal, part, run)
            arrivals = [(key, position, run.scores[key]) for key, position in part]
            for pane, inside in open_panes(arrivals, run.frame, window - 1):
                feed_joined(joined, pane, inside, dict.fromkeys(range(len(run.scores)), 0.0))
        expected, found = minimal.close(window), joined.close(window)
        assert pairs(found) == pairs(expected)
        assert found.is_exact
        if n == 0:
            assert joined.candidates() == minimal.candidates()
            assert joined.pointers() == minimal.pointers()


@st.composite
def exact_moments(draw: st.DrawFn) -> tuple[Story, TopkN, Naive, int]:
    """Draw the arrivals of a window, one per key, and one of the keys."""
    k, n = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    frame, remote = draw(frames), draw(st.lists(few, min_size=KEYS, max_size=KEYS))
    story = Story(TopkNConfig(k, n), frame, draw(st.sampled_from([plus, least])), remote, [])
    operator, naive = story.operator(), story.naive()
    close = frame.interval(0).close
    position = st.integers(close - frame.range, close + 2)
    for keys in (range(KEYS // 2), range(KEYS // 2, KEYS)):
        arrivals = [(key, draw(position), draw(few)) for key in keys]
        for pane, inside in open_panes(arrivals, frame, -1):
            naive.arrive(pane, inside)
            feed_joined(operator, pane, inside, naive.remote)
        operator.settle(0)
    ranked = [key for key, _ in naive.ranking(0)]
    assume(ranked)
    return story, operator, naive, draw(st.sampled_from(ranked))


@examples(200)
@given(exact_moments(), few)
def test_one_change_leaves_an_answer_as_exact_as_table_1_says(moment, value):
    (story, operator, naive, key), k = moment, moment[0].config.k
    size = story.config.size
    listed = set(operator.keys.tolist())
    initially = [naive.ranking(window) for window in range(WINDOWS)]
    naive.change([(key, value)])
    operator.change([key], [value])
    for window, before in enumerate(initially):
        again = written_and_read(operator)
        found, after = again.close(window), naive.ranking(window)
        was_inside, is_inside = (key in dict(ranking[:size]) for ranking in (before, after))
        if key in listed and (story.config.n or is_inside >= was_inside):
            # Theorems 1 and 2: its scores were known.
            assert pairs(found) == after[:k]
            # A listed and a dropped object with equal scores could rank in any order.
            forgotten = [score for other, score in after if other not in listed]
            assert found.is_exact or (len(after) > k and after[k - 1][1] in forgotten)
        elif key not in listed and key in found.keys:  # Theorem 3
            assert found.has_exact_set
            assert set(found.keys.tolist()) == {other for other, _ in after[:k]}
        elif not was_inside and not is_inside:
            assert pairs(found) == after[:k]


@examples(40)
@given(
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.integers(0, 3),
    st.sampled_from([3, 50, 10_000]),
    st.booleans(),
)
def test_large_batches_are_cut_by_a_guessed_border_without_loss(seed, k, n, levels, is_fresh):
    """Keys arrive again with other scores, some of them late, while remote values change."""
    draw = np.random.default_rng(seed)
    frame = TimeFrame(30, 10, bounds="[)")
    remote = draw.integers(0, levels, 4000) / levels
    remote[draw.random(4000) < 0.02] = math.nan if seed % 2 else 0.0
    operator, naive = TopkN(TopkNConfig(k, n), plus), Naive(plus, dict(enumerate(remote.tolist())))
    for window in range(6):
        low = 600 * window if is_fresh else int(draw.integers(0, 3000))
        keys = draw.integers(low, low + int(draw.integers(20, 600)), 300)
        positions = draw.integers(10 * window, 10 * window + 30, 300)
        streaming = draw.integers(0, levels, 300) / levels + draw.choice([0.0, 0.5, 1.0])
        arrivals = list(zip(keys.tolist(), positions.tolist(), streaming.tolist(), strict=True))
        for pane, inside in open_panes(arrivals, frame, window - 1):
            naive.arrive(pane, inside)
            feed_joined(operator, pane, inside, naive.remote)
        for _ in range(2):
            changed = draw.choice(keys, 5).tolist()
            changes = dict(
                zip(changed, (draw.integers(0, levels, 5) / levels).tolist(), strict=True)
            )
            naive.change(list(changes.items()))
            operator.change(list(changes), list(changes.values()))
            operator.settle(window)
        ranking, right = operator.close(window), naive.ranking(window)[:k]
        operator._check()
        assert not ranking.is_exact or pairs(ranking) == right
        assert not ranking.has_exact_set or set(ranking.keys.tolist()) == {key for key, _ in right}


@examples(50)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(0, 2), st.integers(5, 400))
def test_keys_that_come_twice_in_a_large_batch_or_late_leave_the_answer_exact(seed, k, n, spread):
    """Only the latest arrival counts, even where earlier ones, or late ones, are better."""
    draw = np.random.default_rng(seed)
    operator, naive = TopkN(TopkNConfig(k, n), plus), Naive(plus, dict.fromkeys(range(6000), 0.0))
    for window in range(6):
        pane = Pane(window, window + 2)
        for is_late in (False, True):
            keys = 1000 * window + draw.integers(0, spread, 300)
            if is_late:  # some keys never came before
                keys[draw.choice(300, int(draw.integers(0, 30)))] += 450
            first = 100 * window + (0 if is_late else 50)
            positions = draw.integers(first, first + 50, 300)
            streaming = draw.random(300) + is_late
            arrivals = list(zip(keys.tolist(), positions.tolist(), streaming.tolist(), strict=True))
            naive.arrive(pane, arrivals)
            feed_joined(operator, pane, arrivals, naive.remote)
            operator.settle(window)
        found = operator.close(window)
        assert found.is_exact
        assert pairs(found) == naive.ranking(window)[:k]


@examples(40)
@given(
    st.integers(0, 10_000), st.integers(1, 4), st.integers(0, 3), st.sampled_from([3, 50, 10_000])
)
def test_a_refill_from_all_live_objects_gives_the_list_that_has_seen_each_of_them(
    seed, k, n, levels
):
    """It leaves out at once what others with the same end keep out of the list."""
    draw = np.random.default_rng(seed)
    frame = TimeFrame(18_000, 6_000, bounds="[)")
    remote = (draw.integers(0, levels, 4000) / levels).tolist()
    operator, naive = TopkN(TopkNConfig(k, n), plus), Naive(plus, dict(enumerate(remote)))
    latest: dict[int, tuple[int, float, Pane]] = {}
    for window in range(6):
        keys = draw.integers(300 * window, 300 * window + 600, 300)
        positions = 6 * (1000 * window + draw.choice(3000, 300, replace=False)) + window
        streaming = draw.integers(0, levels, 300) / levels
        arrivals = list(zip(keys.tolist(), positions.tolist(), streaming.tolist(), strict=True))
        for pane, inside in open_panes(arrivals, frame, window - 1):
            naive.arrive(pane, inside)
            feed_joined(operator, pane, inside, naive.remote)
            for key, position, x_s in inside:
                latest[key] = max(latest.get(key, (-1, 0.0, pane)), (position, x_s, pane))
        operator.settle(window)
        worse = operator.keys[: 2 * k].tolist()
        naive.change([(key, 0.0) for key in worse])
        operator.change(worse, [0.0] * len(worse))
        live = sorted(key for key, (*_, pane) in latest.items() if pane.last >= window)
        objects = live, [naive.remote[key] for key in live], [latest[key][1] for key in live]
        other = written_and_read(operator)
        other.change(*objects)
        keys, values, x_s_of_each = map(np.array, objects)
        operator.refill(keys, values, x_s_of_each, np.empty(0, dtype=np.int64))
        assert operator.candidates() == other.candidates()
        ranking = operator.close(window)
        assert ranking.is_exact
        assert pairs(ranking) == naive.ranking(window)[:k]


REFUSED = [
    ("change", ([0], [math.inf]), "must be a number"),
    ("change", ([5], [math.inf]), "must be a number"),
    ("change", ([7], [math.inf]), "must be a number"),
    ("change", ([0, 1], [1.0]), "equal length"),
    ("change", ([[0]], [1.0]), "one dimension"),
    ("arrive", (Pane(1, 1), [1, 2], [11], [1.0], [1.0]), "equal length"),
    ("arrive", (Pane(1, 1), [1], [11], [math.nan], [1.0]), "must be a number"),
    ("arrive", (Pane(1, 1), [1], [11], [0.0], [math.inf]), "must be a number"),
    ("arrive", (Pane(1, 1), [-1], [11], [1.0], [1.0]), "not be negative"),
    ("arrive", (Pane(0, 1), [1], [11], [1.0], [1.0]), "has closed"),
    ("settle", (0,), "closed already"),
    ("close", (0,), "closed already"),
]


@pytest.mark.parametrize(("act", "arguments", "reason"), REFUSED)
def test_what_cannot_be_taken_is_refused_and_leaves_the_state_as_it_is(act, arguments, reason):
    """0 times infinity is no score, for an object in the list, outside it, or in the buffer."""
    operator = TopkN(TopkNConfig(1, 1), lambda streaming, remote: streaming * remote)
    operator.arrive(Pane(0, 2), [0, 1, 5], [1, 2, 3], [0.0, 2.0, 1.0], [1.0, 1.0, -9.0])
    operator.close(0)
    operator.arrive(Pane(2, 3), [6, 7], [25, 25], [4.0, 0.0], [3.0, 3.0])
    operator.settle(1)
    assert operator.keys.tolist() == [1, 0]
    state = json.dumps(operator.state())
    with pytest.raises(ValueError, match=reason):
        getattr(operator, act)(*arguments)
    assert json.dumps(operator.state()) == state


def test_a_scoring_function_must_give_a_score_for_each_pair():
    operator = TopkN(TopkNConfig(1), lambda streaming, remote: (streaming + remote)[:1])
    with pytest.raises(ValueError, match="one score for each pair"):
        operator.arrive(Pane(0, 1), [0, 1], [1, 2], [3.0, 2.0], [1.0, 1.0])


@pytest.mark.parametrize("known", [0, 5])
def test_the_best_of_a_large_batch_may_all_come_again_in_it_with_less(known):
    """Then the arrivals above the border are not enough: the best are below it."""
    operator = TopkN(TopkNConfig(1), plus)
    if known:
        operator.arrive(Pane(0, 0), [known], [0], [99.0], [0.0])
        operator.close(0)
    top, rest = list(range(17)), list(range(17, 300))
    keys, count = [*top, *rest, *top], 317
    streaming = [100.0] * 17 + [float(key) / 10 for key in rest] + [1.0] * 17
    operator.arrive(Pane(1, 1), keys, range(1, count + 1), streaming, [0.0] * count)
    assert as_data(operator.close(1)) == ([(299, 29.9)], True, True)


def test_what_came_at_the_same_time_before_and_is_forgotten_leaves_an_answer_in_doubt():
    """Of two arrivals of a key at once the larger x_S counts; of key 2 that was 1, which scores 2.

    With 0 it would score 4, as much as key 0, and stand before it.
    """
    operator = TopkN(TopkNConfig(1, is_monotone=False), around)
    operator.arrive(Pane(0, 1), [0, 2], [2, 2], [0.0, 1.0], [0.0, 0.0])
    assert operator.close(0).is_exact
    operator.arrive(Pane(1, 1), [2], [2], [0.0], [0.0])
    assert not operator.close(1).has_exact_set


def test_what_came_at_the_same_time_before_may_have_streamed_more_than_is_known():
    """Key 2 streamed 1 and was dropped, and then 0.5: with the remote value 5, it has 6."""
    operator = TopkN(TopkNConfig(1), plus)
    operator.arrive(Pane(0, 0), [0, 2], [2, 2], [10.0, 1.0], [0.0, 0.0])
    operator.settle(0)
    operator.change([0], [-10.0])
    operator.arrive(Pane(0, 0), [2], [2], [0.5], [0.0])
    operator.settle(0)
    operator.change([2], [5.0])
    operator.arrive(Pane(0, 0), [3], [2], [5.75], [0.0])
    assert not operator.close(0).has_exact_set


def test_a_key_that_came_at_the_same_time_before_and_is_better_now_leaves_no_doubt():
    operator = TopkN(TopkNConfig(1), plus)
    operator.arrive(Pane(0, 0), [0, 2], [2, 2], [10.0, 1.0], [0.0, 0.0])
    operator.settle(0)
    operator.arrive(Pane(0, 0), [2], [2], [11.0], [0.0])
    found = operator.close(0)
    assert (pairs(found), found.is_exact) == ([(2, 11.0)], True)


def test_an_answer_without_an_object_whose_remote_value_is_unknown_is_not_exact():
    operator = TopkN(TopkNConfig(1, 1), plus)
    operator.arrive(Pane(0, 0), [0, 1], [1, 2], [5.0, 1.0], [1.0, math.nan])
    operator.arrive(Pane(1, 1), [0], [11], [5.0], [1.0])
    assert as_data(operator.close(0)) == ([(0, 6.0)], False, False)
    assert as_data(operator.close(1)) == ([(0, 6.0)], True, True)


@pytest.mark.parametrize("step", [1, -1])
def test_a_border_is_noted_even_if_no_more_than_the_best_are_above_it(step):
    """When the best falls below arrivals that were never ranked, the answer is not exact."""
    operator = TopkN(TopkNConfig(1), plus)
    for window, best in ((0, 30.0), (1, 31.0)):
        keys = np.arange(100) + 100 * window
        streaming = np.full(100, 3.0 + window)
        streaming[:20] = best  # this is where the next border comes from
        operator.arrive(Pane(window, window), keys[::step], keys, streaming, np.zeros(100))
        assert operator.close(window).is_exact
    streaming = np.full(100, 30.5)
    streaming[50] = 40.0
    keys = np.arange(200, 300)[::step]
    operator.arrive(Pane(2, 2), keys, np.arange(200, 300), streaming, np.zeros(100))
    operator.settle(2)
    operator.change([keys[50]], [-20.0])
    assert as_data(operator.close(2)) == ([(keys[50], 20.0)], False, False)


def test_an_answer_is_in_doubt_as_long_as_one_that_is_as_good_may_stand_below_it():
    """Key 2 has 6 and came last, but all that is known of its x_S is that it was from 1 to 5."""
    operator = TopkN(TopkNConfig(1, 1), plus)
    operator.arrive(Pane(0, 1), [0, 1, 2], [1, 2, 3], [5.0, 1.0, 5.0], [1.0, 0.0, -9.0])
    operator.settle(0)
    operator.change([2], [1.0])
    assert [(c.key, c.score) for c in operator.candidates()] == [(0, 6.0), (2, 2.0)]
    assert as_data(operator.close(0)) == ([(0, 6.0)], False, False)
    assert as_data(operator.close(1)) == ([(0, 6.0)], False, False)


def test_a_change_outside_the_list_spoils_the_answer_of_a_score_that_may_fall_with_x_s():
    """Key 1 has (0 - 2) (-5 - 2) = 14 now, but F(min.score_S, x_D) would be no lower bound."""
    operator = TopkN(TopkNConfig(1, is_monotone=False), around)
    operator.arrive(Pane(0, 0), [0, 1], [1, 2], [4.0, 0.0], [5.0, 2.0])
    operator.arrive(Pane(1, 1), [0], [11], [4.0], [5.0])
    operator.settle(0)
    operator.change([1], [-5.0])
    assert as_data(operator.close(0)) == ([(0, 6.0)], False, False)
    assert as_data(operator.close(1)) == ([(0, 6.0)], True, True)
