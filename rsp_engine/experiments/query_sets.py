"""The run of a set of queries that share one service, with a budget for all of them together.

The queries of a set differ in their populations: each ranks the mentions of its own half of the
users, drawn by lot, so any two of them have about half of their users in common. In any span of one
STEP, all queries together fetch at most the budget of the setting. It is divided in one of these
ways, which suites write after a policy:

    AT-VOI          one replica for all, and the budget divided by marginal value
    AT-VOI+equal    one replica for all, and equal parts of the budget, in turns
    AT-VOI+apart    a replica for each query, and equal parts of the budget, in turns

What a query leaves of its part, the next one gets, in every way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.drivers.bindings import connect
from rsp_engine.evaluators.service.service_budget import ServiceBudget
from rsp_engine.evaluators.service.shared_replica import SharedReplica
from rsp_engine.evaluators.service.shared_services import BudgetRules, SharedServices
from rsp_engine.evaluators.step import Step, due_at_instants
from rsp_engine.experiments.datasets.dfc import Dice
from rsp_engine.experiments.policy_run import (
    RankedUsers,
    RunOutcome,
    measured_outcome,
    oracle,
    plan_of,
    ranked_users,
    variant,
)
from rsp_engine.experiments.workload import SERVICE, MentionStream, make_workload
from rsp_engine.model.answers import Answer
from rsp_engine.model.quantities import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.experiments.policy_run import Division, RunSetting
    from rsp_engine.experiments.workload import Workload
    from rsp_engine.model.terms.term import Term

__all__ = ["MOST_QUERIES", "members_of", "run_set", "set_answers"]

MOST_QUERIES = 64
_MEMBERS = 30
"""The part of the seed by which populations are drawn."""


class EqualDivision(ServiceBudget):
    """A budget that is divided by turns alone: it takes no bids."""

    def bid(self, *_: object) -> None:
        """Take no notice of what refreshes are worth."""

    def need(self, *_: object) -> None:
        """Take no notice of how many keys are cold."""


class EqualServices(SharedServices):
    """One replica for all queries, and equal parts of the budget."""

    def _budget(self, service: str) -> ServiceBudget:
        return EqualDivision(service, self.rules.rates[service], self.rules.weights)


class SeparateServices(EqualServices):
    """A replica for each query, and equal parts of the budget."""

    def _replica(self, plan: ServicePlan) -> SharedReplica:
        return SharedReplica(plan)


_SERVICES: dict[Division | None, type[SharedServices]] = {
    None: SharedServices,
    "equal": EqualServices,
    "apart": SeparateServices,
}


def members_of(workload: Workload, setting: RunSetting) -> list[Workload]:
    """Return the workload of each query of a set; a smaller set is the beginning of a larger."""
    return [_member(workload, setting.seed, number) for number in range(setting.queries)]


@lru_cache(maxsize=MOST_QUERIES)
def _member(workload: Workload, seed: int, number: int) -> Workload:
    mentions, count = workload.mentions, len(workload.users)
    is_member = np.zeros(count, dtype=np.bool_)
    is_member[Dice(seed, _MEMBERS, number).order(count)[: count // 2]] = True
    own = is_member[mentions.users]
    stream = MentionStream(
        mentions.values[own], mentions.users[own], mentions.times[own], mentions.content
    )
    return make_workload(
        workload.bounds,
        workload.frame,
        workload.windows,
        stream,
        workload.users,
        workload.endpoint,
    )


@lru_cache(maxsize=MOST_QUERIES)
def _best(member: Workload, k: int) -> tuple[tuple[int, ...], ...]:
    """Return the exact ranking of each window, as deep as measures look."""
    return tuple(ranked.users[: 2 * k] for ranked in oracle(member))


def run_set(workload: Workload, setting: RunSetting) -> Iterator[list[RunOutcome]]:
    """Yield the outcomes of each window: one for each query."""
    members = members_of(workload, setting)
    best = [_best(member, setting.k) for member in members]
    for window, answers in enumerate(set_answers(members, setting)):
        yield [
            measured_outcome(answer, best[number][window], setting.k)
            for number, answer in enumerate(answers)
        ]


def set_answers(members: Sequence[Workload], setting: RunSetting) -> Iterator[list[RankedUsers]]:
    """Yield the engine's answers for each window: one for each query, empty without content."""
    first = members[0]
    rate = Rate(setting.budget, first.frame.step)
    services = _SERVICES[variant(setting.policy).division](BudgetRules({SERVICE: rate}))
    connected = connect(first.endpoint)  # clauses share a replica if they have one endpoint
    steps = []
    for number, member in enumerate(members):
        plan = plan_of(member, setting)
        [service] = plan.services
        plan = replace(plan, name=f"q{number}", services=(replace(service, connect=connected),))
        steps.append(Step(plan, services=services))
    numbers: dict[Term, int] = {user: number for number, user in enumerate(first.users)}
    waiting = [list(reversed(member.contents)) for member in members]
    for index, close in enumerate(first.closes):
        for step, contents in zip(steps, waiting, strict=True):
            while contents and contents[-1][0].first <= index:
                step.put(0, *contents.pop())
        # A window closes once the watermark exceeds its last instant.
        found = {
            step.name: ranked_users(answer, numbers)
            for step, answer in due_at_instants(steps, close + 1)
            if isinstance(answer, Answer)
        }
        yield [found.get(step.name, RankedUsers()) for step in steps]
