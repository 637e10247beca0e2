"""Tasks: the runs of a suite, grouped into units that can run in any process.

A task is one policy over one dataset of a grid, with all its budgets, k and n. It is plain data,
and `work` is a plain function that turns it into a table as text, so that tasks can be sent to
other processes or machines. Each process prepares the workload of a dataset once.

Settings that cannot differ are run once: WST fetches nothing whatever the budget, AT-ASM and EXACT
fetch everything, and only policies of the list depend on N.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from rsp_engine.experiments.clairvoyant import CLAIRVOYANT
from rsp_engine.experiments.datasets.generator import PAPER_SCALE, generate
from rsp_engine.experiments.datasets.own import read_own, stretch_of
from rsp_engine.experiments.datasets.recording import read_recording
from rsp_engine.experiments.datasets.traces import derive, read_trace
from rsp_engine.experiments.policy_run import RunSetting, run_policy, variant
from rsp_engine.experiments.query_sets import run_set
from rsp_engine.experiments.replay import recorded_workload
from rsp_engine.experiments.workload import workload_of

if TYPE_CHECKING:
    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.experiments.datasets.families import Family
    from rsp_engine.experiments.datasets.generator import Scale
    from rsp_engine.experiments.datasets.own import OwnTables
    from rsp_engine.experiments.datasets.traces import Trace
    from rsp_engine.experiments.suite import Data, Suite
    from rsp_engine.experiments.workload import Content, Workload

__all__ = ["RESULT_COLUMNS", "Task", "canonical_setting", "dataset_of", "tasks_of", "work"]

RESULT_COLUMNS = (
    *("ch", "dataset", "policy", "budget", "k", "n", "queries"),
    *("window", "close", "query", "fetched", "ndcg", "ndcg_by_place", "precision"),
)


@dataclass(frozen=True, slots=True)
class Task:
    """One policy over one dataset, under several settings."""

    part: str
    data: Data
    family: Family
    ch: int
    number: int
    settings: tuple[RunSetting, ...]


def tasks_of(suite: Suite) -> list[Task]:
    """Return the tasks of a suite; those of one dataset are adjacent."""
    tasks = []
    for grid in suite.grids:
        numbers = range(1, suite.data.datasets + 1)
        for ch, number, policy in product(grid.ch, numbers, grid.policies):
            # Each dataset has its own seed: else RND would elect much the same in all of them.
            seed = 1000 * suite.data.seed + number
            settings = (
                RunSetting(policy, budget, k, n, seed, queries)
                for budget, k, n, queries in product(grid.budget, grid.k, grid.n, grid.queries)
            )
            part = f"{grid.slug}.ch{ch}.{number}.{policy}.csv"
            tasks.append(Task(part, suite.data, grid.family, ch, number, tuple(settings)))
    return tasks


def work(task: Task) -> str:
    """Return the rows of a task as CSV, one for each setting, window and query."""
    workload = _workload(task.data, task.family, task.ch, task.number)
    known: dict[RunSetting, list[str]] = {}
    lines = [",".join(RESULT_COLUMNS)]
    for setting in task.settings:
        canonical = canonical_setting(setting)
        if canonical not in known:
            known[canonical] = _measured(workload, canonical)
        columns = (task.ch, task.number, setting.policy, setting.budget, setting.k, setting.n)
        start = ",".join(map(str, (*columns, setting.queries)))
        lines += [f"{start},{rest}" for rest in known[canonical]]
    return "\n".join(lines) + "\n"


def canonical_setting(setting: RunSetting) -> RunSetting:
    """Return an equivalent setting, with 0 for parameters that the policy does not use.

    >>> canonical_setting(RunSetting("AT-ASM", 7, 5, 10))
    RunSetting(policy='AT-ASM', budget=0, k=5, n=10, seed=0, queries=0)
    >>> canonical_setting(RunSetting("WST", 7, 5, 10))
    RunSetting(policy='WST', budget=0, k=5, n=0, seed=0, queries=0)
    """
    if setting.policy == CLAIRVOYANT:
        return replace(setting, n=0)
    policy = variant(setting.policy).policy
    fetches_by_budget = policy.is_bounded and policy.proposer is not None
    return replace(
        setting,
        budget=setting.budget if fetches_by_budget else 0,
        n=setting.n if policy.proposer == "list" else 0,
    )


def _measured(workload: Workload, setting: RunSetting) -> list[str]:
    outcomes = (
        run_set(workload, setting)
        if setting.queries
        else ([outcome] for outcome in run_policy(workload, setting))
    )
    return [
        f"{index},{close},{query},{o.fetched},{o.ndcg:.6f},{o.ndcg_by_place:.6f},{o.precision:.6f}"
        for index, (close, several) in enumerate(zip(workload.closes, outcomes, strict=True))
        for query, o in enumerate(several)
    ]


def dataset_of(data: Data, family: Family, ch: int, number: int) -> Dataset:
    """Return the `number`-th dataset of a suite with `ch` changes per invocation."""
    if data.own is not None:
        dataset = stretch_of(_own(data.own), number, data.windows)
    elif data.folder is None and data.mentions == "separate":
        dataset = generate(data.seed + number - 1, ch, 1, _scale(data), family)
    elif data.folder is None:
        dataset = generate(data.seed, ch, number, _scale(data), family)
    else:
        dataset = derive(_trace(data.folder), data.seed, ch, number, family)
    return dataset.once_a_slide() if data.counting == "slides" else dataset


def _scale(data: Data) -> Scale:
    scale = PAPER_SCALE
    return replace(scale, users=scale.users * data.crowd, mentions=scale.mentions * data.crowd)


@lru_cache(maxsize=4)
def _workload(data: Data, family: Family, ch: int, number: int) -> Workload:
    if data.replay is not None:
        recording = read_recording(Path(data.replay))
        return recorded_workload(replace(recording, windows=recording.windows[: data.windows]))
    content: Content = "counts" if data.counting == "streamed" else "posts"
    return workload_of(dataset_of(data, family, ch, number), data.windows, content)


@lru_cache(maxsize=1)
def _own(tables: OwnTables) -> Dataset:
    return read_own(tables)


@lru_cache(maxsize=1)
def _trace(folder: str) -> Trace:
    return read_trace(Path(folder))
