"""The query of an experiment as a run of the engine, with a driver that reads the mentions.

The engine reads the mentions of a dataset as a stream, and fetches dfc from a recorded endpoint
that has the value of each user at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyoxigraph import NamedNode

from rsp_engine.engine import Engine
from rsp_engine.experiments.datasets.dataset import USER
from rsp_engine.experiments.policy_run import variant
from rsp_engine.experiments.workload import SERVICE, STREAM, query_text, workload_of
from rsp_engine.model.answers import Solutions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.experiments.policy_run import RunSetting
    from rsp_engine.model.answers import Answer
    from rsp_engine.options import RunnerName

__all__ = ["MODIFIED", "QueryOutcome", "run_through_engine"]

MODIFIED = "http://purl.org/dc/terms/modified"


class QueryOutcome(NamedTuple):
    """The engine's answer for a window; `users` are the numbers in their IRIs, best first."""

    close: int
    users: tuple[int, ...]
    fetched: int
    ndcg: float
    precision: float


def run_through_engine(
    dataset: Dataset,
    setting: RunSetting,
    *,
    runner: RunnerName = "local",
    stream: str | None = None,
) -> Iterator[QueryOutcome]:
    """Yield the engine's answer for each window of a dataset that the paper evaluates.

    `stream` is a source with the mentions of the dataset; by default, the dataset itself.
    """
    policy_variant = variant(setting.policy)
    engine = Engine(
        t0=dataset.start,
        policy=policy_variant.policy.name,
        budget=setting.budget,
        n=setting.n,
        seed=setting.seed,
        oracle=True,
        runner=runner,
    )
    modified = MODIFIED if policy_variant.has_signal else None
    engine.service(SERVICE, dataset.endpoint(), modified=modified)
    workload = workload_of(dataset)
    engine.register(query_text(workload.bounds, workload.frame, setting.k))
    engine.bind(STREAM, dataset.elements() if stream is None else stream)
    last = dataset.start + dataset.windows[-1][1]
    for answer in engine.run():
        if answer.window.close <= last:
            yield _outcome(answer, dataset.start)


def _outcome(answer: Answer, start: int) -> QueryOutcome:
    assert isinstance(answer.content, Solutions), "the query is a SELECT"
    users = [row.bindings["user"] for row in answer.content.rows]
    names = [int(u.value.removeprefix(USER)) for u in users if isinstance(u, NamedNode)]
    stats = answer.stats
    return QueryOutcome(
        answer.window.close - start,
        tuple(names),
        stats["budget_spent"],
        stats["ndcg"],
        stats["precision"],
    )
