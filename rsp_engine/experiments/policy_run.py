"""The run of a policy over a workload: the answers of the engine, measured against the oracle's.

A run has the step of the query that a driver has, with its evaluator, replica and refresh. It is
fed the matched panes of the workload, and its service is a history whose values depend on event
time only. The oracle is the run of EXACT, which fetches every user of the window. So all runs over
a workload break ties alike, and their replicas start with the same snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, get_args
from typing import Literal as OneOf

import numpy as np
from pyoxigraph import Literal

from rsp_engine.drivers.bindings import connect
from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.physical_plan import changes_stream
from rsp_engine.evaluators.step import Step
from rsp_engine.experiments.clairvoyant import CLAIRVOYANT, Clairvoyant, WindowTruth
from rsp_engine.experiments.workload import SERVICE
from rsp_engine.model.answers import Solutions
from rsp_engine.operators.scoring.ranking_measures import ndcg, ndcg_by_place, precision
from rsp_engine.options import ServiceOptions
from rsp_engine.policies import POLICIES, policy_named, split_parameters
from rsp_engine.replica.store.estimator import LearnedIntervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.experiments.workload import Workload
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.terms.term import Term
    from rsp_engine.policies import Policy

__all__ = [
    "Division",
    "RankedUsers",
    "RunOutcome",
    "RunSetting",
    "Variant",
    "answers",
    "measured_outcome",
    "oracle",
    "plan_of",
    "ranked_users",
    "run_policy",
    "split_ways",
    "variant",
]

_MODIFIED = "http://purl.org/dc/terms/modified"
_NEED_NO_INTERVALS = frozenset(POLICIES) - {
    f"{proposer}-{ranker}" for proposer in ("WSJ", "AT") for ranker in ("WBM", "CGM", "LDS")
}
"""The policies that do not use change intervals: to learn them would be wasted."""

_WAYS = ("signal", "pushed", "list")
"""The ways in which a run may differ from the usual one, as suites write them after a policy."""

Division = OneOf["equal", "apart"]
"""How the queries of a set divide a budget, if not by marginal value: see `query_sets`."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A policy, and how its run differs from the usual one.

    With `has_signal`, the remote side tells which keys have changed; with `is_pushed`, it pushes
    every change, and the policy fetches nothing. With `keeps_list`, only the Super-MTK+N list is
    kept. `division` says how the queries of a set divide their budget.
    """

    policy: Policy
    has_signal: bool = False
    is_pushed: bool = False
    keeps_list: bool = False
    division: Division | None = None


def variant(text: str) -> Variant:
    """Return the policy of a name such as `AT-VOI+wp=4+signal`, as suites write it.

    Raises a `ValueError` for an unknown policy, or a way that does not fit it.

    >>> variant("AT-VOI+wp=4+signal").has_signal
    True
    """
    name, ways = split_ways(text)
    name, words = split_parameters(name)
    divisions = [division for division in get_args(Division) if division in words]
    policy = policy_named("+".join([name, *(word for word in words if word not in divisions)]))
    if len(set(ways)) < len(ways) or len(divisions) > 1:
        raise ValueError(f"{text} says something twice")
    if "list" in ways and policy.proposer != "list":
        raise ValueError(f"{policy.name} considers all objects, so +list does not fit it")
    division = divisions[0] if divisions else None
    return Variant(policy, "signal" in ways, "pushed" in ways, "list" in ways, division)


def split_ways(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the policy of a name, and the ways in which its run differs from the usual one.

    >>> split_ways("AT-VOI+wp=4+signal")
    ('AT-VOI+wp=4', ('signal',))
    """
    name, words = split_parameters(text)
    rest = (word for word in words if word not in _WAYS)
    return "+".join([name, *rest]), tuple(word for word in words if word in _WAYS)


@dataclass(frozen=True, slots=True)
class RunSetting:
    """The parameters of a run, named as in Table 4 of AcquaTop; for the policy see `variant`.

    Of a set of `queries`, the budget is that of all together; 0 queries: one over all users.
    """

    policy: str
    budget: int
    k: int
    n: int
    seed: int = 0
    queries: int = 0


class RankedUsers(NamedTuple):
    """The answer of a window: users, best first, their dfc, and the number of keys fetched."""

    users: tuple[int, ...] = ()
    dfc: tuple[float, ...] = ()
    fetched: int = 0


class RunOutcome(NamedTuple):
    """The answer for a window, best first, the number of keys fetched, and measures in [0, 1]."""

    answer: tuple[int, ...]
    fetched: int
    ndcg: float
    ndcg_by_place: float
    precision: float


def run_policy(workload: Workload, setting: RunSetting) -> Iterator[RunOutcome]:
    """Yield the outcome of every window, under a policy or by `CLAIRVOYANT`."""
    k = setting.k
    given = clairvoyant_answers if setting.policy == CLAIRVOYANT else answers
    for answer, exact in zip(given(workload, setting), oracle(workload), strict=True):
        yield measured_outcome(answer, exact.users[: 2 * k], k)  # no measure looks deeper


def measured_outcome(answer: RankedUsers, best: tuple[int, ...], k: int) -> RunOutcome:
    """Return the outcome of a window, given the exact ranking down to 2k."""
    users = answer.users
    measures = ndcg(users, best, k), ndcg_by_place(users, best, k), precision(users, best, k)
    return RunOutcome(users, answer.fetched, *measures)


@lru_cache(maxsize=8)
def oracle(workload: Workload) -> tuple[RankedUsers, ...]:
    """Return the exact ranking of all users of each window."""
    return tuple(answers(workload, RunSetting("EXACT", 0, len(workload.users), 0)))


def clairvoyant_answers(workload: Workload, setting: RunSetting) -> Iterator[RankedUsers]:
    """Yield the answers of an election that knows every value; see `clairvoyant`."""
    clairvoyant = Clairvoyant(workload.bounds, workload.initial(), setting.k)
    for index, (users, dfc, _) in enumerate(oracle(workload)):
        shown = np.array(users, dtype=np.int64)
        answer = clairvoyant.answer(
            WindowTruth(shown, workload.streamed(index)[shown], np.array(dfc)), setting.budget
        )
        yield RankedUsers(tuple(answer.users.tolist()), tuple(answer.dfc.tolist()), answer.fetched)


def answers(workload: Workload, setting: RunSetting) -> Iterator[RankedUsers]:
    """Yield the engine's answer for every window; it is empty for a window without content."""
    step = Step(plan_of(workload, setting))
    numbers: dict[Term, int] = {user: number for number, user in enumerate(workload.users)}
    contents = iter(workload.contents)
    changes = iter(workload.changes() if variant(setting.policy).is_pushed else ())
    content, change = next(contents, None), next(changes, None)
    for index, close in enumerate(workload.closes):
        while content is not None and content[0].first <= index:
            step.put(0, *content)
            content = next(contents, None)
        while change is not None and change[0] <= close:
            step.take(changes_stream(SERVICE), *change, close)
            change = next(changes, None)
        # A window closes once the watermark exceeds its last instant.
        ranked = [ranked_users(answer, numbers) for answer in step.due(close + 1)]
        yield ranked[0] if ranked else RankedUsers()


def plan_of(workload: Workload, setting: RunSetting) -> PhysicalPlan:
    """Return the plan of the workload's query, with the policy and the options of a setting."""
    plan, chosen = workload.plan(setting.k), variant(setting.policy)
    learns = split_parameters(setting.policy)[0] not in _NEED_NO_INTERVALS
    options = ServiceOptions(
        policy=chosen.policy.name,
        budget=setting.budget,
        n=setting.n,
        seed=setting.seed,
        change_interval=None if learns else LearnedIntervals().initial,
    )
    [service] = plan.services
    service = replace(
        service,
        connect=connect(workload.endpoint),
        policy=chosen.policy,
        options=options,
        modified=_MODIFIED if chosen.has_signal else None,
        is_pushed=chosen.is_pushed,
    )
    assert isinstance(plan.operator, AcquaTopConfig), "the workload has a ranked query"  # noqa: S101
    operator = replace(plan.operator, n=setting.n, memory="list" if chosen.keeps_list else "table")
    return replace(plan, operator=operator, services=(service,))


def ranked_users(answer: Answer, numbers: Mapping[Term, int]) -> RankedUsers:
    """Return the users of an answer by their numbers, with their dfc."""
    assert isinstance(answer.content, Solutions), "the query is a SELECT"  # noqa: S101
    rows = [row.bindings for row in answer.content.rows]
    users = tuple(numbers[row["user"]] for row in rows)
    dfc = (float(value.value) for row in rows if isinstance(value := row["dfc"], Literal))
    return RankedUsers(users, tuple(dfc), answer.stats["budget_spent"])
