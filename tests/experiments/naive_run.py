"""A naive run of a policy over a dataset: every window is counted, ranked and refreshed anew.

It shares the policies, the learner and the change intervals with the engine, and nothing else: no
panes, no list, no replica, no query.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.experiments.datasets.dataset import STEP
from rsp_engine.experiments.policy_run import RunOutcome
from rsp_engine.model.candidates import Candidates
from rsp_engine.operators.scoring.ranking_measures import measure
from rsp_engine.policies import POLICIES, elected_set
from rsp_engine.policies.voi import Learner, Voi
from rsp_engine.replica.store.estimator import LearnedIntervals, estimator
from rsp_engine.replica.store.replica import FreshnessTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.experiments.policy_run import RunSetting

__all__ = ["naive_ranking", "run_naively"]


def run_naively(dataset: Dataset, setting: RunSetting) -> Iterator[RunOutcome]:
    """Yield the outcome of every window of a dataset."""
    run = _NaiveRun(dataset, setting)
    for window in dataset.windows:
        yield run.outcome(*window)


def naive_ranking(dataset: Dataset, opened: int, close: int, values: np.ndarray) -> list[int]:
    """Return the users mentioned in a stretch of time, best first."""
    mn = dataset.mentioned(opened, close)
    users = np.flatnonzero(mn)
    scores = score(dataset, mn[users], values[users])
    ranking: list[int] = users[np.argsort(-scores)].tolist()
    return ranking


def score(dataset: Dataset, mn: np.ndarray, dfc: np.ndarray) -> np.ndarray:
    """Return 0.7 norm(mn) + 0.3 norm(dfc)."""
    most, least, largest = bounds(dataset)
    by_mn = 0.7 * ((mn - 1) / max(most - 1, 1))
    return np.asarray(by_mn + 0.3 * ((dfc - least) / (largest - least)))


@lru_cache(maxsize=4)
def bounds(dataset: Dataset) -> tuple[int, float, float]:
    """Return the largest mn of a window, and the least and the largest dfc."""
    every = np.concatenate((dataset.initial, dataset.changes.values))
    most = max(int(dataset.mentioned(*window).max()) for window in dataset.windows)
    return most, float(every.min()), float(every.max())


class _NaiveRun:
    def __init__(self, dataset: Dataset, setting: RunSetting) -> None:
        self.dataset, self.setting = dataset, setting
        self.policy, self.learner = POLICIES[setting.policy], Learner()
        self.values, self.learned = dataset.initial.copy(), estimator(LearnedIntervals())
        self.facts, every = FreshnessTable(), np.arange(len(dataset.initial))
        self.facts.grow(len(every))
        self.facts.renew(every, np.ones(len(every), bool), self.learned.intervals(every), 0)

    def outcome(self, opened: int, close: int) -> RunOutcome:
        truth, setting = self.dataset.dfc_at(close), self.setting
        present = np.flatnonzero(self.dataset.mentioned(opened, close))
        self.learner.begin(present, self.values[present])
        budgets, learns = [setting.budget], isinstance(self.policy, Voi)
        if learns:
            budgets = [-(-setting.budget // 2), setting.budget // 2]
        fetched = sum(self.fetch(opened, close, budget, truth) for budget in budgets)
        answer = naive_ranking(self.dataset, opened, close, self.values)[: setting.k]
        if isinstance(self.policy, Voi):
            candidates = self.candidates(opened, close)
            answer = candidates.keys[self.policy.best(candidates)].tolist()
        oracle = naive_ranking(self.dataset, opened, close, truth)
        found = measure(answer, oracle, setting.k)
        return RunOutcome(tuple(answer), fetched, found.ndcg, found.ndcg_by_place, found.precision)

    def fetch(self, opened: int, close: int, budget: int, truth: np.ndarray) -> int:
        """Fetch the keys that the policy elects, and return their number."""
        candidates = self.candidates(opened, close)
        entries = self.facts.entries(candidates.keys)
        fresh = entries.last_refresh == close if isinstance(self.policy, Voi) else None
        arguments = candidates, entries, budget, close, self.setting.seed
        keys = elected_set(self.policy, *arguments, skipped=fresh)
        changed = self.values[keys] != truth[keys]
        self.learned.observe(keys, close - self.facts.last_refresh[keys], changed)
        self.facts.renew(keys, changed, self.learned.intervals(keys), close)
        self.values[keys] = truth[keys]
        self.learner.fetched(keys, truth[keys])
        return len(keys)

    def candidates(self, opened: int, close: int) -> Candidates:
        """Return the K+N best of each window that is open, or all users, best first."""
        size = self.setting.k + self.setting.n if self.policy.proposer == "list" else None
        best = [
            naive_ranking(self.dataset, later, close, self.values)[:size]
            for later in range(opened, close, STEP)
        ]
        lives = {user: life for life, users in enumerate(best, 1) for user in users}
        order = naive_ranking(self.dataset, opened, close, self.values)
        keys = np.array([user for user in order if user in lives], dtype=np.int64)
        mn = self.dataset.mentioned(opened, close)[keys]
        scores = score(self.dataset, mn, self.values[keys])
        outlook = None
        if isinstance(self.policy, Voi):
            latest = self.dataset.last_mention(close)[keys]

            def scored(values: np.ndarray) -> np.ndarray:
                return score(self.dataset, mn[:, None], values)

            outlook = self.learner.outlook(keys, scores, latest, scored)
        lives_of = np.array([lives[user] for user in keys.tolist()], dtype=np.int64)
        return Candidates(keys, scores, lives_of, self.setting.k, STEP, outlook)
