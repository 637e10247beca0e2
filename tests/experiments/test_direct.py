"""A simulation equals a run of the engine's operators, and the engine's answers to the query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.experiments.datasets.dataset import RANGE, STEP
from rsp_engine.experiments.datasets.generator import Scale, generate
from rsp_engine.experiments.datasets.traces import derive, read_trace
from rsp_engine.experiments.simulation import SimulationOutcome, SimulationSetting, simulate
from rsp_engine.experiments.suite import NINE
from rsp_engine.experiments.tasks import canonical_setting
from rsp_engine.experiments.windows import prepare
from rsp_engine.model.candidates import Candidates
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig
from rsp_engine.operators.scoring.ranking_measures import measure
from rsp_engine.operators.topk.contract import in_panes
from rsp_engine.policies import POLICIES, elected_set
from rsp_engine.policies.voi import Learner, Voi
from rsp_engine.replica.store.estimator import LearnedIntervals, estimator
from rsp_engine.replica.store.freshness_table import FreshnessTable
from tests.data import real_data
from tests.experiments.as_query import SERVICE, query_text, run_through_engine

SMALL = Scale(users=60, duration=1_500_000, mentions=900)


def by_operator(dataset, windows, setting):
    """The same run on the engine's own list, with every policy held to what it promises."""
    policy, learner = POLICIES[setting.policy], Learner()
    n = setting.n if policy.proposer == "list" else 1 << 62
    objects = AggregateTopk(AggregateTopkConfig(setting.k, n), windows.score)
    values, facts, learned = dataset.initial.copy(), FreshnessTable(), estimator(LearnedIntervals())
    every = np.arange(len(values))
    objects.change(every, values)
    facts.grow(len(values))
    facts.renew(every, np.ones(len(values), dtype=bool), learned.intervals(every), 0)
    panes = in_panes(TimeFrame(RANGE, STEP), dataset.mention_times)
    for index, (opened, close) in enumerate(dataset.windows[: len(windows.windows)]):
        for pane, places in panes:
            if pane.first == index:
                objects.arrive(pane, dataset.mention_users[places], places)
        objects.settle(index)
        truth, count = dataset.dfc_at(close), 0
        learns = isinstance(policy, Voi)
        present = objects.totals(index).keys
        learner.begin(present, values[present])
        half = -(-setting.budget // 2)
        for budget in (half, setting.budget - half) if learns else (setting.budget,):
            asked = candidates(objects, index, learner if learns else None, windows.score, setting)
            entries = facts.entries(asked.keys)
            fresh = entries.last_refresh == close if learns else None
            keys = elected_set(policy, asked, entries, budget, close, setting.seed, skipped=fresh)
            changed = values[keys] != truth[keys]
            learned.observe(keys, close - facts.last_refresh[keys], changed)
            facts.renew(keys, changed, learned.intervals(keys), close)
            values[keys] = truth[keys]
            objects.change(keys, truth[keys])
            learner.fetched(keys, truth[keys])
            count += len(keys)
        asked = candidates(objects, index, learner, windows.score, setting)
        answer = objects.close(index).keys.tolist()
        if isinstance(policy, Voi):
            answer = asked.keys[policy.best(asked)].tolist()
        mn = dataset.mentioned(opened, close)
        users = np.flatnonzero(mn)
        scores = windows.score(mn[users].astype(float), truth[users])
        found = measure(answer, users[np.argsort(-scores)].tolist(), setting.k)
        measures = found.ndcg, found.ndcg_by_place, found.precision
        yield SimulationOutcome(tuple(answer), count, *measures)


def candidates(objects, index, learner, score, setting):
    """Return the candidates of the list, with an outlook for a policy that learns."""
    keys, scores, outlook = objects.keys, objects.scores, None
    if learner is not None:
        users, positions, mn, _ = objects.totals(index)
        places = np.searchsorted(users, keys)

        def scored(levels):
            return np.array([score(np.full(len(levels), m), levels) for m in mn[places]])

        outlook = learner.outlook(keys, scores, positions[places], scored)
    return Candidates(keys, scores, objects.lives, setting.k, STEP, outlook)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 5),
    ch=st.sampled_from([5, 20, 80]),
    budget=st.integers(0, 12),
    sizes=st.tuples(st.integers(1, 12), st.integers(0, 12)),
    once=st.booleans(),
)
def test_a_run_is_that_of_the_operator(policy, *, seed, ch, budget, sizes, once):
    dataset = generate(seed, ch, 1, SMALL)
    dataset = dataset.once_a_slide() if once else dataset
    windows = prepare(dataset)
    setting = SimulationSetting(policy, budget, sizes[0], sizes[1], seed)
    assert list(simulate(windows, setting)) == list(by_operator(dataset, windows, setting))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_is_that_of_the_operator_at_full_size(policy):
    dataset = generate(0, 20, 1).once_a_slide()
    windows = prepare(dataset)
    setting = SimulationSetting(policy, 7, 5, 10)
    found = list(simulate(windows, setting))
    assert len(found) == 150
    assert found == list(by_operator(dataset, windows, setting))


@pytest.mark.parametrize(
    "policy",
    [*NINE, "AT-VOI", "WSJ-VOI+wp=4+answer=replica", "AT-VOI+signal", "WSJ-LRU+signal"],
)
@pytest.mark.parametrize("counting", ["slides", "mentions"])
def test_a_run_is_what_the_engine_answers_to_the_query(policy, counting):
    dataset = generate(0, 20, 1, replace(SMALL, users=400, duration=3_000_000, mentions=1_450))
    dataset = dataset.once_a_slide() if counting == "slides" else dataset
    windows = prepare(dataset)
    setting = SimulationSetting(policy, 7, 5, 10, seed=3)
    answered = list(run_through_engine(dataset, windows.score, setting))
    found = list(simulate(windows, setting))
    assert len(found) == len(dataset.windows) == 49
    assert [(a.users, a.fetched) for a in answered] == [(o.answer, o.fetched) for o in found]
    assert [a.close for a in answered] == [window.close for window in windows.windows]
    assert [a.ndcg for a in answered] == [round(o.ndcg, 6) for o in found]
    assert [a.precision for a in answered] == [round(o.precision, 6) for o in found]


def test_a_run_over_the_recorded_traces_is_what_the_engine_answers():
    dataset = derive(read_trace(real_data("acquatop")), 0, 20, 1).once_a_slide()
    windows = prepare(dataset)
    setting = SimulationSetting("AT-TSM", 7, 5, 10)
    answered = [a.users for a in run_through_engine(dataset, windows.score, setting)]
    names = dataset.names.tolist()
    assert answered == [tuple(names[u] for u in o.answer) for o in simulate(windows, setting)]


def test_the_query_is_ranked_by_the_engine_and_not_by_the_general_path():
    dataset = generate(0, 20, 1, SMALL)
    engine = Engine(policy="AT-BSM")
    engine.service(SERVICE, dataset.endpoint())
    engine.register(query_text(prepare(dataset).score, 5))
    plan = engine.explain()
    assert "operator pane partials (COUNT), the best 5; and the next 10" in plan
    assert "policy   AT-BSM" in plan


@pytest.mark.parametrize("policy", POLICIES)
def test_settings_that_make_no_difference_make_none(policy):
    windows = prepare(generate(1, 20, 1, SMALL))
    given = SimulationSetting(policy, 4, 3, 5, seed=1)
    outcomes = list(simulate(windows, given))
    assert outcomes == list(simulate(windows, canonical_setting(given)))
    is_bounded = policy not in {"WST", "AT-ASM", "EXACT"}
    assert (canonical_setting(given).budget == given.budget) == is_bounded
    assert (canonical_setting(given).n == given.n) == policy.startswith("AT-")


def test_to_know_everything_is_to_be_right():
    outcomes = list(
        simulate(prepare(generate(0, 80, 1, SMALL)), SimulationSetting("EXACT", 0, 7, 0))
    )
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
