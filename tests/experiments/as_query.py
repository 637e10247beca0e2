"""The experiment as an RSP-QL query: COUNT of the mentions in a window, SERVICE for dfc.

The engine reads the mentions of a dataset as a stream, and fetches dfc from a recorded endpoint
that has the value of each user at any time. Its answers equal those of `simulate` in every window.
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

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.experiments.simulation import SimulationSetting
    from rsp_engine.experiments.windows import Linear
    from rsp_engine.model.answers import Answer
    from rsp_engine.options import RunnerName

__all__ = ["MODIFIED", "SERVICE", "STREAM", "QueryOutcome", "query_text", "run_through_engine"]

STREAM = "http://example.org/mentions"
SERVICE = "http://example.org/users/sparql"
MODIFIED = "http://purl.org/dc/terms/modified"


class QueryOutcome(NamedTuple):
    """The engine's answer for a window; `users` are the numbers in their IRIs, best first."""

    close: int
    users: tuple[int, ...]
    fetched: int
    ndcg: float
    precision: float


def query_text(score: Linear, k: int) -> str:
    """Return the query for the k users with the best scores of each window."""
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
"""


def run_through_engine(
    dataset: Dataset,
    score: Linear,
    setting: SimulationSetting,
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
    engine.register(query_text(score, setting.k))
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
