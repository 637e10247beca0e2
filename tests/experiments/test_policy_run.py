"""A run over a workload: as naive evaluation finds it, and as a driver of the engine does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.experiments.datasets.dataset import RANGE
from rsp_engine.experiments.datasets.generator import Scale, generate
from rsp_engine.experiments.datasets.traces import derive, read_trace
from rsp_engine.experiments.policy_run import RunSetting, answers, oracle, run_policy, variant
from rsp_engine.experiments.tasks import canonical_setting
from rsp_engine.experiments.workload import SERVICE, query_text, workload_of
from rsp_engine.policies import POLICIES
from tests.data import real_data
from tests.experiments.as_query import run_through_engine
from tests.experiments.naive_run import naive_ranking, run_naively
from tests.thoroughness import examples

SMALL = Scale(users=60, duration=1_500_000, mentions=900)
SHORT = Scale(users=60, duration=840_000, mentions=504)


@pytest.mark.parametrize("policy", POLICIES)
@examples(18)
@given(
    seed=st.integers(0, 5),
    ch=st.sampled_from([5, 20, 80]),
    budget=st.integers(0, 12),
    sizes=st.tuples(st.integers(1, 12), st.integers(0, 12)),
    once=st.booleans(),
)
def test_a_run_is_that_of_naive_evaluation(policy, *, seed, ch, budget, sizes, once):
    dataset, workload = drawn(seed, ch, once)
    setting = RunSetting(policy, budget, sizes[0], sizes[1], seed)
    assert list(run_policy(workload, setting)) == list(run_naively(dataset, setting))


@cache
def drawn(seed, ch, once):
    """Return a small dataset and its workload; every policy is tried over the same ones."""
    dataset = distinct(generate(seed, ch, 1, SHORT))
    dataset = dataset.once_a_slide() if once else dataset
    return dataset, workload_of(dataset)


def distinct(dataset):
    """Return a dataset without simultaneous mentions: of those, the order of terms decides."""
    times, first = np.unique(dataset.mention_times, return_index=True)
    return replace(dataset, mention_times=times, mention_users=dataset.mention_users[first])


def test_the_oracle_ranks_by_the_values_at_the_close_of_a_window():
    dataset = generate(0, 20, 1).once_a_slide()
    workload = workload_of(dataset)
    assert len(dataset.windows) == 150
    assert tuple(found.users for found in oracle(workload)) == tuple(
        tuple(naive_ranking(dataset, *window, dataset.dfc_at(window[1])))
        for window in dataset.windows
    )


def test_a_window_without_mentions_has_an_empty_answer():
    dataset = generate(0, 20, 1, SMALL)
    is_outside = (dataset.mention_times <= 300_000) | (dataset.mention_times > 500_000)
    times, users = dataset.mention_times[is_outside], dataset.mention_users[is_outside]
    workload = workload_of(replace(dataset, mention_times=times, mention_users=users))
    found = list(run_policy(workload, RunSetting("AT-TSM", 7, 5, 10)))
    assert len(found) == len(dataset.windows)
    empty = [i for i, (o, c) in enumerate(dataset.windows) if o >= 300_000 and c <= 500_000]
    assert len(empty) == 2
    assert [i for i, o in enumerate(found) if o.answer == ()] == empty
    assert {found[i][1:] for i in empty} == {(0, 1.0, 1.0, 1.0)}


@pytest.mark.parametrize("policy", ["AT-BSM", "WSJ-VOI+wp=4+answer=replica", "AT-VOI+signal"])
def test_a_driver_that_reads_the_mentions_gives_the_same_answers(policy):
    dataset = generate(0, 20, 1, replace(SMALL, users=400, duration=3_000_000, mentions=1_450))
    workload = workload_of(dataset)
    setting = RunSetting(policy, 7, 5, 10, seed=3)
    answered = list(run_through_engine(dataset, setting))
    found = list(run_policy(workload, setting))
    assert len(found) == len(dataset.windows) == 49
    assert [(a.users, a.fetched) for a in answered] == [(o.answer, o.fetched) for o in found]
    assert [a.close for a in answered] == list(workload.closes)
    assert [a.ndcg for a in answered] == [round(o.ndcg, 6) for o in found]
    assert [a.precision for a in answered] == [round(o.precision, 6) for o in found]


def test_recorded_traces_start_at_0_and_keep_their_answers():
    dataset = derive(read_trace(real_data("acquatop")), 0, 20, 1).once_a_slide()
    setting = RunSetting("AT-TSM", 7, 5, 10)
    answered = [a.users for a in run_through_engine(dataset, setting)]
    names = dataset.names.tolist()
    found = answers(workload_of(dataset), setting)
    assert answered == [tuple(names[u] for u in answer.users) for answer in found]


def test_the_query_is_ranked_by_the_engine_and_not_by_the_general_path():
    dataset = generate(0, 20, 1, SMALL)
    workload = workload_of(dataset)
    engine = Engine(policy="AT-BSM")
    engine.service(SERVICE, dataset.endpoint())
    engine.register(query_text(workload.bounds, workload.frame, 5))
    plan = engine.explain()
    assert "operator pane partials (COUNT), the best 5; and the next 10" in plan
    assert "policy   AT-BSM" in plan


@pytest.mark.parametrize("policy", POLICIES)
def test_settings_that_make_no_difference_make_none(policy):
    workload = workload_of(generate(1, 20, 1, SMALL))
    given = RunSetting(policy, 4, 3, 5, seed=1)
    outcomes = list(run_policy(workload, given))
    assert outcomes == list(run_policy(workload, canonical_setting(given)))
    is_bounded = policy not in {"WST", "AT-ASM", "EXACT"}
    assert (canonical_setting(given).budget == given.budget) == is_bounded
    assert (canonical_setting(given).n == given.n) == policy.startswith("AT-")


def test_to_know_everything_is_to_be_right():
    workload = workload_of(generate(0, 80, 1, SMALL))
    outcomes = list(run_policy(workload, RunSetting("EXACT", 0, 7, 0)))
    assert {(o.ndcg, o.precision) for o in outcomes} == {(1.0, 1.0)}


def test_a_slide_holds_its_end_and_not_its_start():
    """As windows do: a mention at 60 s is of the first slide, one after it of the second.

    0        60 s       120 s
    (  slide  ](  slide  ]
           x x  x      x x         at 30, 60, 60.001, 110, 120 s
    """
    dataset = generate(3, 20, 1, SMALL)
    times = np.array([30_000, 60_000, 60_001, 110_000, 120_000])
    dataset = replace(dataset, mention_times=times, mention_users=np.zeros(5, dtype=np.int64))
    once = dataset.once_a_slide()
    assert once.mention_times.tolist() == [30_000, 60_001]
    assert once.mentioned(0, RANGE)[0] == dataset.mentioned_parts(0, RANGE)[0] == 2


def test_one_mention_in_a_slide_is_the_number_of_parts_of_a_window():
    dataset = generate(3, 20, 1, SMALL)
    once = dataset.once_a_slide()
    assert len(once.mention_times) < len(dataset.mention_times)
    for window in dataset.windows:
        parts = dataset.mentioned_parts(*window)
        assert (once.mentioned(*window) == parts).all()
        assert parts.max() <= 2


def test_counts_that_are_streamed_are_ranked_by_the_latest_of_each_user():
    dataset = distinct(generate(0, 20, 1, SMALL))
    workload = workload_of(dataset, content="counts")
    (fewest, most), (least, largest) = workload.bounds
    for (ranking, _, _), (opened, closed) in zip(oracle(workload), dataset.windows, strict=True):
        latest = {}
        mentions = zip(dataset.mention_times.tolist(), dataset.mention_users.tolist(), strict=True)
        inside = [(time, user) for time, user in mentions if opened < time <= closed]
        for time, user in inside:
            counted = dataset.mentioned(time - RANGE, time)[user]
            latest[user] = time, (counted - fewest) / (most - fewest)
        dfc = (dataset.dfc_at(closed) - least) / (largest - least)
        scores = {user: 0.7 * mn + 0.3 * dfc[user] for user, (_, mn) in latest.items()}
        order = sorted(latest, key=lambda user: (scores[user], latest[user][0]), reverse=True)
        assert [scores[user] for user in ranking] == pytest.approx([scores[u] for u in order])
        assert set(ranking) == set(order)


@pytest.mark.parametrize("n", [0, 3])
def test_pushed_changes_are_never_missed_and_the_list_alone_is_not_better(n):
    workload = workload_of(generate(0, 80, 1, SMALL), content="counts")
    whole, listed = (
        list(run_policy(workload, RunSetting(f"AT-TSM+pushed{way}", 0, 3, n)))
        for way in ("", "+list")
    )
    assert {(outcome.ndcg, outcome.precision) for outcome in whole} == {(1.0, 1.0)}
    assert min(outcome.ndcg for outcome in listed) < 1.0 or n > 0
    assert {outcome.fetched for outcome in whole + listed} == {0}


@pytest.mark.parametrize("name", ["WSJ-LRU+list", "AT-TSM+list+list"])
def test_a_variant_that_does_not_fit_is_refused(name):
    with pytest.raises(ValueError, match="list"):
        variant(name)
