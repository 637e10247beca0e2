"""The simulation of one run: a policy over the windows of a dataset.

The policies, the change-interval estimators and the measures are the engine's own. The work that
all runs over a dataset share (matching, counting, the oracle's ranking) is done once, in `windows`,
so that a window costs a fraction of a millisecond. Tests compare a run with the engine's operator,
`AggregateTopk`, and with the same experiment as an RSP-QL query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.datasets.dataset import STEP
from rsp_engine.experiments.simulated_replica import CandidateList, SimulatedReplica, variant
from rsp_engine.experiments.windows import ranked_users
from rsp_engine.operators.scoring.ranking_measures import ndcg, ndcg_by_place, precision
from rsp_engine.replica.store.estimator import LearnedIntervals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.experiments.windows import DatasetWindow, DatasetWindows

__all__ = ["SimulationOutcome", "SimulationSetting", "simulate"]


@dataclass(frozen=True, slots=True)
class SimulationSetting:
    """The parameters of a run, named as in Table 4 of AcquaTop; for the policy see `variant`."""

    policy: str
    budget: int
    k: int
    n: int
    seed: int = 0


class SimulationOutcome(NamedTuple):
    """The answer for a window, best first, the number of keys fetched, and measures in [0, 1]."""

    answer: tuple[int, ...]
    fetched: int
    ndcg: float
    ndcg_by_place: float
    precision: float


def simulate(windows: DatasetWindows, setting: SimulationSetting) -> Iterator[SimulationOutcome]:
    """Yield the outcome of every window."""
    policy_variant, k = variant(setting.policy), setting.k
    replica = SimulatedReplica(windows.initial, 0, LearnedIntervals(), policy_variant, setting.seed)
    size = k + setting.n if policy_variant.proposer == "list" else None
    for window in windows.windows:
        ranking = partial(_candidate_list, windows, window, replica, k, size)
        fetched = replica.refresh(ranking, window.dfc, window.users, setting.budget, window.close)
        ranked = ranking()
        answer = ranked.keys[replica.best(ranked)].tolist()
        oracle = window.oracle[: 2 * k]  # no measure looks deeper
        yield SimulationOutcome(
            tuple(answer),
            fetched,
            ndcg(answer, oracle, k),
            ndcg_by_place(answer, oracle, k),
            precision(answer, oracle, k),
        )


def _candidate_list(
    windows: DatasetWindows,
    window: DatasetWindow,
    replica: SimulatedReplica,
    k: int,
    size: int | None,
) -> CandidateList:
    """Return the `size` best users of each active window, or all users without a size.

    They are in the order of the current window. A user lives until the last window whose best
    include it.
    """
    known = replica.values[window.users]
    order = ranked_users(windows.score(window.mn, known))
    lives = np.zeros(len(order), dtype=np.int64)
    lives[order[:size]] = 1
    for life, (places, mn) in enumerate(window.later, 2):
        best = ranked_users(windows.score(mn, known[places]))[:size]
        lives[places[best]] = life
    order = order[lives[order] > 0]
    return CandidateList(
        window.users[order],
        window.mn[order],
        lives[order],
        window.latest[order],
        windows.score,
        k,
        STEP,
    )
