"""What the queries of a run share of services: budgets, and the replicas of services that have one.

Without a budget of its service, a query has replicas of its own, so that its answers are those of
the query alone. With one, clauses share a replica if they ask the same, in the same way: equal
pattern, endpoint, change signal, change feed, kind of replica, capacity and change interval.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rsp_engine.model.quantities import parse_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.evaluators.service.refresh import Refresh
    from rsp_engine.evaluators.service.service_budget import ServiceBudget
    from rsp_engine.evaluators.service.shared_replica import SharedReplica
    from rsp_engine.model.quantities import Rate
    from rsp_engine.replica.endpoints.request_pace import RequestPace

__all__ = ["BudgetRules", "SharedServices", "asks_the_same"]


@dataclass(frozen=True, slots=True)
class BudgetRules:
    """The budgets of services by IRI, and the weights of queries by name."""

    rates: Mapping[str, Rate] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    def weight(self, query: str) -> float:
        """Return the weight of a query."""
        return self.weights.get(query, 1.0)

    def identity(self) -> dict[str, Any]:
        """Return the rules as plain data: a checkpoint belongs to them."""
        rates = {service: str(rate) for service, rate in sorted(self.rates.items())}
        return {"services": rates, "weights": dict(sorted(self.weights.items()))}


@dataclass(slots=True)
class SharedServices:
    """The budgets, the replicas and the paces of requests that the queries of a run share."""

    rules: BudgetRules = field(default_factory=BudgetRules)
    budgets: dict[str, ServiceBudget] = field(init=False)
    _replicas: list[SharedReplica] = field(init=False, default_factory=list)
    _paces: dict[str, RequestPace] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.budgets = {service: self._budget(service) for service in self.rules.rates}

    def _budget(self, service: str) -> ServiceBudget:
        # Few runs have one.
        from rsp_engine.evaluators.service.service_budget import ServiceBudget

        return ServiceBudget(service, self.rules.rates[service], self.rules.weights)

    def refresh(self, plan: ServicePlan, query: str) -> Refresh:
        """Return the refresh of a clause of a query."""
        # Queries without SERVICE need neither replicas nor policies.
        from rsp_engine.evaluators.service.refresh import Refresh
        from rsp_engine.evaluators.service.shared_replica import SharedReplica

        budget = self.budgets.get(plan.pattern.service)
        if budget is None:
            return Refresh(plan, SharedReplica(plan, self._pace(plan)))
        return Refresh(plan, self._replica(plan), budget, query)

    def _replica(self, plan: ServicePlan) -> SharedReplica:
        from rsp_engine.evaluators.service.shared_replica import SharedReplica

        for replica in self._replicas:
            if asks_the_same(replica.plan, plan):
                return replica
        self._replicas.append(SharedReplica(plan, self._pace(plan)))
        return self._replicas[-1]

    def _pace(self, plan: ServicePlan) -> RequestPace | None:
        """Return the pace of the requests to a service, if there is one."""
        rate, service = plan.options.max_rate, plan.pattern.service
        if rate is None:
            return None
        from rsp_engine.replica.endpoints.request_pace import RequestPace

        return self._paces.setdefault(service, RequestPace(parse_rate(rate)))


def asks_the_same(one: ServicePlan, other: ServicePlan) -> bool:
    """Return whether two clauses can share a replica."""
    return _identity(one) == _identity(other)


def _identity(plan: ServicePlan) -> tuple[object, ...]:
    options = plan.options
    kind = options.replica, options.capacity, options.change_interval
    return plan.pattern, plan.connect, plan.modified, plan.is_pushed, kind
