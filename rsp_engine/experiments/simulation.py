"""One run: a policy over a dataset, window by window, with nothing between it and its numbers.

The policies, what is learned of change intervals and the measures are the engine's own. Left out is
what all runs over a dataset have in common: matching, counting, and the ranking of the oracle are
done once, in `windows`. So a window costs a fraction of a millisecond. Tests hold a run against the
operator of the engine, `Aggregates`, and against the same experiment as a query; see `as_query`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.datasets.dataset import STEP
from rsp_engine.experiments.simulated_replica import Listed, SimulatedReplica, variant
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
    """What became of a window. The answer is best first; the measures are from 0 to 1."""

    answer: tuple[int, ...]
    fetched: int
    ndcg: float
    ndcg_by_place: float
    precision: float


def simulate(windows: DatasetWindows, setting: SimulationSetting) -> Iterator[SimulationOutcome]:
    """Yield the outcome of every window."""
    chosen, k = variant(setting.policy), setting.k
    held = SimulatedReplica(windows.initial, 0, LearnedIntervals(), chosen, setting.seed)
    size = k + setting.n if chosen.proposer == "list" else None
    for window in windows.windows:
        listed = partial(_listed, windows, window, held, k, size)
        fetched = held.refresh(listed, window.dfc, window.users, setting.budget, window.close)
        ranked = listed()
        answer = ranked.keys[held.best(ranked)].tolist()
        oracle = window.oracle[: 2 * k]  # deeper, no measure looks
        yield SimulationOutcome(
            tuple(answer),
            fetched,
            ndcg(answer, oracle, k),
            ndcg_by_place(answer, oracle, k),
            precision(answer, oracle, k),
        )


def _listed(
    windows: DatasetWindows, window: DatasetWindow, held: SimulatedReplica, k: int, size: int | None
) -> Listed:
    """Return the list: the best of each active window, or all of them where no size is given.

    They stand in the order of the window at hand. Each lives until the last window among whose
    best it is.
    """
    known = held.values[window.users]
    order = ranked_users(windows.score(window.mn, known))
    lives = np.zeros(len(order), dtype=np.int64)
    lives[order[:size]] = 1
    for life, (places, mn) in enumerate(window.later, 2):
        best = ranked_users(windows.score(mn, known[places]))[:size]
        lives[places[best]] = life
    order = order[lives[order] > 0]
    return Listed(
        window.users[order],
        window.mn[order],
        lives[order],
        window.latest[order],
        windows.score,
        k,
        STEP,
    )
