"""The runs of a suite, put together into tasks that can be worked on anywhere.

A task is what one policy does over one dataset of a grid: all its budgets, k and n. It is plain
data, and `work` is a plain function of it that gives a table as text, so that tasks can be given to
other processes or machines. What runs of a dataset share is worked out once in a process.

Settings that cannot make a difference are not run twice: WST fetches nothing whatever the budget,
AT-ASM and EXACT fetch everything, and only policies of the list look at N.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from rsp_engine.experiments.datasets.generator import generate
from rsp_engine.experiments.datasets.traces import derive, read_trace
from rsp_engine.experiments.simulated_replica import variant
from rsp_engine.experiments.simulation import SimulationSetting, simulate
from rsp_engine.experiments.windows import prepare

if TYPE_CHECKING:
    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.experiments.datasets.traces import Trace
    from rsp_engine.experiments.suite import Data, Suite
    from rsp_engine.experiments.windows import DatasetWindows

__all__ = ["RESULT_COLUMNS", "Task", "canonical_rows", "dataset_of", "tasks_of", "work"]

RESULT_COLUMNS = (
    *("ch", "dataset", "policy", "budget", "k", "n"),
    *("window", "close", "fetched", "ndcg", "ndcg_by_place", "precision"),
)


@dataclass(frozen=True, slots=True)
class Task:
    """One policy over one dataset, under several settings."""

    part: str
    data: Data
    ch: int
    number: int
    settings: tuple[SimulationSetting, ...]


def tasks_of(suite: Suite) -> list[Task]:
    """Return the tasks of a suite; those of one dataset stand side by side."""
    found = []
    for grid in suite.grids:
        numbers = range(1, suite.data.datasets + 1)
        for ch, number, policy in product(grid.ch, numbers, grid.policies):
            # Datasets differ in chance too: else RND would do much the same in all of them.
            seed = 1000 * suite.data.seed + number
            settings = (
                SimulationSetting(policy, *s, seed) for s in product(grid.budget, grid.k, grid.n)
            )
            part = f"{grid.slug}.ch{ch}.{number}.{policy}.csv"
            found.append(Task(part, suite.data, ch, number, tuple(settings)))
    return found


def work(task: Task) -> str:
    """Return the rows of a task as CSV, one for each setting and window."""
    windows = _windows(task.data, task.ch, task.number)
    known: dict[SimulationSetting, list[str]] = {}
    lines = [",".join(RESULT_COLUMNS)]
    for setting in task.settings:
        asked = canonical_rows(setting)
        if asked not in known:
            known[asked] = _measured(windows, asked)
        of = (task.ch, task.number, setting.policy, setting.budget, setting.k, setting.n)
        start = ",".join(map(str, of))
        lines += [f"{start},{rest}" for rest in known[asked]]
    return "\n".join(lines) + "\n"


def canonical_rows(setting: SimulationSetting) -> SimulationSetting:
    """Return the same run with 0 for all that makes no difference to it.

    >>> canonical_rows(SimulationSetting("AT-ASM", 7, 5, 10))
    SimulationSetting(policy='AT-ASM', budget=0, k=5, n=10, seed=0)
    >>> canonical_rows(SimulationSetting("WST", 7, 5, 10))
    SimulationSetting(policy='WST', budget=0, k=5, n=0, seed=0)
    """
    policy = variant(setting.policy).policy
    fetches_by_budget = policy.is_bounded and policy.proposer is not None
    return replace(
        setting,
        budget=setting.budget if fetches_by_budget else 0,
        n=setting.n if policy.proposer == "list" else 0,
    )


def _measured(windows: DatasetWindows, setting: SimulationSetting) -> list[str]:
    outcomes = zip(windows.windows, simulate(windows, setting), strict=True)
    return [
        f"{index},{window.close},{o.fetched},{o.ndcg:.6f},{o.ndcg_by_place:.6f},{o.precision:.6f}"
        for index, (window, o) in enumerate(outcomes)
    ]


def dataset_of(data: Data, ch: int, number: int) -> Dataset:
    """Return a dataset of a suite."""
    if data.folder is None:
        made = generate(data.seed, ch, number)
    else:
        made = derive(_trace(data.folder), data.seed, ch, number)
    return made.once_a_slide() if data.counting == "slides" else made


@lru_cache(maxsize=4)
def _windows(data: Data, ch: int, number: int) -> DatasetWindows:
    return prepare(dataset_of(data, ch, number), data.windows)


@lru_cache(maxsize=1)
def _trace(folder: str) -> Trace:
    return read_trace(Path(folder))
