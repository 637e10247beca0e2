"""The experiment as a query: mentions counted in a window, dfc asked for behind SERVICE.

The engine reads the mentions of a dataset as a stream, and asks a recorded endpoint that knows the
dfc of each user at any time. What it answers is what `direct` answers, window by window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyoxigraph import NamedNode

from rsp_engine.engine import Engine
from rsp_engine.experiments.datasets.dataset import DFC, MENTIONS_PREDICATE, RANGE, STEP, USER
from rsp_engine.experiments.simulated_replica import variant
from rsp_engine.experiments.windows import WEIGHTS
from rsp_engine.model.answers import Solutions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.engine import RunnerName
    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.experiments.simulation import SimulationSetting
    from rsp_engine.experiments.windows import Linear
    from rsp_engine.model.answers import Answer

__all__ = ["MODIFIED", "SERVICE", "STREAM", "QueryAnswers", "query_text", "run_through_engine"]

STREAM = "http://example.org/mentions"
SERVICE = "http://example.org/users/sparql"
MODIFIED = "http://purl.org/dc/terms/modified"


class QueryAnswers(NamedTuple):
    """What the engine says of a window; the users by the numbers in their names, best first."""

    close: int
    users: tuple[int, ...]
    fetched: int
    ndcg: float
    precision: float


def query_text(score: Linear, k: int) -> str:
    """Return the experiment in RSP-QL: the k users with the best scores of each window."""
    (first, most), (least, largest) = score.mn, score.dfc
    mn = f"(COUNT(?post) - {first}) / {max(most - first, 1)}e0"
    dfc = f"(?dfc - ({least!r}e0)) / {largest - least!r}e0"
    return f"""PREFIX : <http://example.org/>
REGISTER RSTREAM :best AS
SELECT ?user ({WEIGHTS[0]}e0 * {mn} + {WEIGHTS[1]}e0 * {dfc} AS ?score)
FROM NAMED WINDOW :recent ON STREAM <{STREAM}> [RANGE {RANGE}ms STEP {STEP}ms]
WHERE {{
  WINDOW :recent {{ ?post <{MENTIONS_PREDICATE}> ?user }}
  SERVICE <{SERVICE}> {{ ?user <{DFC}> ?dfc }}
}}
GROUP BY ?user ?dfc
ORDER BY DESC(?score)
LIMIT {k}
"""  # noqa: S608 - RSP-QL, of numbers and constants


def run_through_engine(
    dataset: Dataset,
    score: Linear,
    setting: SimulationSetting,
    *,
    runner: RunnerName = "local",
    stream: str | None = None,
) -> Iterator[QueryAnswers]:
    """Yield what the engine answers for each window of a dataset that the paper evaluates.

    The mentions are those of the dataset, or of a `stream` that holds the same.
    """
    chosen = variant(setting.policy)
    engine = Engine(
        t0=dataset.start,
        policy=chosen.policy.name,
        budget=setting.budget,
        n=setting.n,
        seed=setting.seed,
        oracle=True,
        runner=runner,
    )
    engine.service(SERVICE, dataset.endpoint(), modified=MODIFIED if chosen.is_told else None)
    engine.register(query_text(score, setting.k))
    engine.bind(STREAM, dataset.elements() if stream is None else stream)
    last = dataset.start + dataset.windows[-1][1]
    for answer in engine.run():
        if answer.window.close <= last:
            yield _answered(answer, dataset.start)


def _answered(answer: Answer, start: int) -> QueryAnswers:
    assert isinstance(answer.content, Solutions), "the query is a SELECT"  # noqa: S101
    users = [row.bindings["user"] for row in answer.content.rows]
    names = [int(u.value.removeprefix(USER)) for u in users if isinstance(u, NamedNode)]
    stats = answer.stats
    return QueryAnswers(
        answer.window.close - start,
        tuple(names),
        stats["budget_spent"],
        stats["ndcg"],
        stats["precision"],
    )
