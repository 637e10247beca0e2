"""AT-VOI against the policies of the paper, cell by cell of budget and K.

A usual run looks at a few cells; `RSP_THOROUGH=1` at all 42 of the replay, and at 210 of generated
data, five datasets each. The best is the best of AT-TSM, AT-BSM, WSJ-LRU and WSJ-RND, for each
measure and cell.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rsp_engine.experiments.datasets.generator import generate
from rsp_engine.experiments.datasets.recording import RecordedReplay, read_recording
from rsp_engine.experiments.policy_run import RunSetting, run_policy, variant
from rsp_engine.experiments.replay import ReplaySetting, replay_recording, total
from rsp_engine.experiments.workload import workload_of
from tests.data import real_data
from tests.thoroughness import TIMES

BUDGETS, KS = (1, 3, 5, 7, 10, 15, 20), (5, 7, 10, 15, 20, 30)
ALL = tuple(product(BUDGETS, KS))
OTHERS = ("AT-TSM", "AT-BSM", "WSJ-LRU", "WSJ-RND")
SEEDS = 5 if TIMES > 1 else 2

# On the recorded run.

CELLS = ALL if TIMES > 1 else ((7, 10), (20, 30))


@pytest.fixture(scope="module")
def recording() -> RecordedReplay:
    return read_recording(real_data("acquatop") / "replay_ch20.csv")


@pytest.fixture(scope="module")
def others(recording: RecordedReplay) -> dict[tuple[int, int], np.ndarray]:
    """nDCG and precision of the other policies by cell, with ties that chance breaks."""
    renamed = [recording.renamed(seed) for seed in range(SEEDS)]
    return {
        (budget, k): np.array(
            [
                np.mean([sums(r, name, budget, k, s) for s, r in enumerate(renamed)], axis=0)
                for name in OTHERS
            ]
        )
        for budget, k in CELLS
    }


def sums(recording: RecordedReplay, policy: str, budget: int, k: int, seed: int = 0) -> np.ndarray:
    found = total(
        replay_recording(recording, policy, budget, seed, ReplaySetting(k, 10, k))
    ).measures
    return np.array((found.ndcg, found.precision))


def test_on_the_recorded_run_it_is_the_most_relevant_and_the_best_in_all(recording, others):
    is_above_tsm = []
    for (budget, k), found in others.items():
        ours = sums(recording, "AT-VOI", budget, k)
        assert ours[0] >= found[:, 0].max() - 0.2
        assert ours.sum() >= found.sum(axis=1).max()
        is_above_tsm.append(bool((ours > found[0]).all()))
    assert is_above_tsm.count(False) <= 2 * len(CELLS) // 42
    # Told what has changed, it is the best in both measures.
    are_best = []
    for (budget, k), found in others.items():
        ours = sums(recording, "AT-VOI+signal", budget, k)
        are_best.append(bool((ours >= found.max(axis=0)).all()))
    assert are_best.count(False) <= 2 * len(CELLS) // 42


def test_other_names_for_keys_change_nothing_but_how_ties_are_broken(recording):
    renamed = recording.renamed(1)
    assert renamed.windows[3].remote.tolist() == recording.windows[3].remote.tolist()
    first, other = recording.windows[3].keys, renamed.windows[3].keys
    assert renamed.snapshot[other].tolist() == recording.snapshot[first].tolist()
    assert not np.array_equal(np.argsort(first), np.argsort(other))


# On generated data.

CHS, NUMBERS = ((5, 10, 20, 40, 80), range(1, 6)) if TIMES > 1 else ((20,), range(1, 2))
SOME = ALL if TIMES > 1 else ((10, 10),)


def on_generated(ch: int, number: int) -> np.ndarray:
    """nDCG and precision of AT-VOI and the others, by cell, over one dataset.

    N is 40, so that the list holds what WSJ policies look at.
    """
    workload = workload_of(generate(0, ch, number).once_a_slide())

    def measured(policy: str, budget: int, k: int) -> np.ndarray:
        seeds = range(SEEDS if policy == "WSJ-RND" else 1)
        runs = [run_policy(workload, RunSetting(policy, budget, k, 40, seed)) for seed in seeds]
        sums = [np.sum([(o.ndcg, o.precision) for o in outcomes], axis=0) for outcomes in runs]
        return np.array(np.mean(sums, axis=0))

    return np.array([[measured(p, *cell) for p in ("AT-VOI", *OTHERS)] for cell in SOME])


def test_on_generated_data_it_is_as_relevant_as_the_best_and_the_best_in_all():
    """Cell by cell of every dataset. All of them take an hour."""
    is_relevant, is_best = [], []
    for ch, number in product(CHS, NUMBERS):
        found = on_generated(ch, number)
        ndcg, both = found[..., 0], found.sum(axis=-1)
        is_relevant += (ndcg[:, 0] >= ndcg[:, 1:].max(axis=1) - 0.6).tolist()
        is_best += (both[:, 0] >= both[:, 1:].max(axis=1)).tolist()
    assert np.mean(is_relevant) >= 0.97
    assert np.mean(is_best) >= 0.97


# Names.


@pytest.mark.parametrize(
    ("text", "name", "has_signal"),
    [
        ("AT-VOI", "AT-VOI", False),
        ("AT-TSM+signal", "AT-TSM", True),
        ("WSJ-VOI+wp=4+answer=replica+signal", "WSJ-VOI+wp=4+answer=replica", True),
    ],
)
def test_a_policy_may_be_told_what_has_changed(text, name, has_signal):
    assert (variant(text).policy.name, variant(text).has_signal) == (name, has_signal)


@pytest.mark.parametrize("policy", ["AT-TSM", "WSJ-LRU", "WSJ-WBM", "AT-VOI"])
def test_who_is_told_what_has_changed_fetches_no_other_and_is_not_worse(policy):
    workload = workload_of(generate(0, 5, 1).once_a_slide(), 60)
    alone = list(run_policy(workload, RunSetting(policy, 7, 5, 10)))
    told = list(run_policy(workload, RunSetting(f"{policy}+signal", 7, 5, 10)))
    assert sum(o.fetched for o in told) < sum(o.fetched for o in alone)
    assert sum(o.ndcg for o in told) > sum(o.ndcg for o in alone)
