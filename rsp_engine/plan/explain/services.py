"""The explanation of SERVICE clauses, as text and as data, without sending a request."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from pyoxigraph import NamedNode

from rsp_engine.evaluators.service.config import ServiceConfig
from rsp_engine.evaluators.service.shared_services import asks_the_same
from rsp_engine.model.quantities import format_duration, parse_rate, quantity
from rsp_engine.policies.voi import MODELS, Voi
from rsp_engine.replica.sparql_client.request_text import batch_of, whole_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan, ServicePlan
    from rsp_engine.evaluators.service.shared_services import BudgetRules
    from rsp_engine.model.quantities import Rate
    from rsp_engine.replica.pattern import RemotePattern

__all__ = [
    "SharedClause",
    "service_summary",
    "services_as_data",
    "services_as_text",
    "shared_clauses",
]


class SharedClause(NamedTuple):
    """The budget that a clause shares, the weight of its query, and the names of the others.

    `readers` are the other queries with the same replica.
    """

    rate: Rate
    weight: float
    others: tuple[str, ...]
    readers: tuple[str, ...]


def shared_clauses(
    plans: Sequence[PhysicalPlan], rules: BudgetRules
) -> dict[str, list[SharedClause | None]]:
    """Return what each clause of the queries of a run shares, by the name of its query."""
    clauses = [(plan.name, service) for plan in plans for service in plan.services]

    def shared(query: str, clause: ServicePlan) -> SharedClause | None:
        rate = rules.rates.get(clause.pattern.service)
        if rate is None:
            return None
        callers = {n: c for n, c in clauses if c.pattern.service == clause.pattern.service}
        readers = {n: c for n, c in clauses if asks_the_same(c, clause)}
        others, same = (
            tuple(name for name in names if name != query) for names in (callers, readers)
        )
        return SharedClause(rate, rules.weight(query), others, same)

    return {plan.name: [shared(plan.name, each) for each in plan.services] for plan in plans}


def services_as_text(
    physical: PhysicalPlan, shared: Sequence[SharedClause | None] = ()
) -> Iterator[str]:
    """Yield the lines that explain each clause: its join, policy, budget, replica and request."""
    for (plan, graph, keys), common in zip_longest(_served(physical), shared):
        pattern = plan.pattern
        yield f"service  <{pattern.service}>, {_join(pattern)}; returns {_names(pattern)}"
        yield f"policy   {plan.policy.name}: {plan.policy.summary}"
        if plan.instead is not None:
            yield f"         in place of {plan.instead}"
        if isinstance(plan.policy, Voi):
            yield f"learns   how often each key changes, and the model of change: {_models()}"
        yield f"budget   {_budget(plan)}{_limits(plan)}"
        if common is not None:
            yield f"         {_common_budget(common)}"
        if plan.options.max_rate is not None:
            yield f"pace     {_pace(plan.options.max_rate)}"
        yield f"replica  {_replica(plan)}"
        if common is not None and common.readers:
            yield f"         shared with {', '.join(common.readers)}"
        if plan.modified is not None:
            yield f"signal   <{plan.modified}> marks changed keys; unchanged keys are not fetched"
        if plan.is_pushed:
            yield "changes  are pushed; keys in the replica are not fetched again"
        if graph is not None:
            yield f"read as  graph <{graph}>"
        if keys is not None:
            yield "keys     selected from the store by this query"
            yield from (f"         {line}" for line in keys.splitlines())
        yield f"request  {'with an example key' if pattern.keys else 'for all solutions'}"
        yield from (f"         {line}" for line in _request(pattern).splitlines())


def service_summary(plan: ServicePlan) -> list[str]:
    """Return a summary of a clause: its join, policy, budget and replica."""
    pattern = plan.pattern
    pushed = ["changes are pushed"] if plan.is_pushed else []
    return [
        f"{_join(pattern)}; returns {_names(pattern)}",
        f"policy {plan.policy.name}: {plan.policy.summary}",
        f"budget: {_budget(plan)}{_limits(plan)}",
        _replica(plan),
        *pushed,
    ]


def services_as_data(
    physical: PhysicalPlan, shared: Sequence[SharedClause | None] = ()
) -> list[dict[str, Any]]:
    """Return the explanation of each clause as JSON data."""
    return [
        {
            "service": plan.pattern.service,
            "join_key": list(plan.pattern.keys),
            "variables": list(plan.pattern.variables),
            "policy": plan.policy.name,
            "in_place_of": plan.instead,
            "models": list(MODELS) if isinstance(plan.policy, Voi) else None,
            "budget": plan.options.budget if plan.policy.is_bounded else None,
            "max_requests": plan.limits.max_requests,
            "deadline_ms": plan.limits.deadline_ms,
            "max_rate": plan.options.max_rate,
            "snapshot": plan.options.replica == "snapshot",
            "capacity": plan.options.capacity,
            "changes_pushed": plan.is_pushed,
            "modified": plan.modified,
            "graph": graph,
            "keys": keys,
            "request": _request(plan.pattern),
            **({} if common is None else {"shared": _common_data(common)}),
        }
        for (plan, graph, keys), common in zip_longest(_served(physical), shared)
    ]


def _models() -> str:
    return f"{', '.join(MODELS[:-1])} or {MODELS[-1]}"


def _pace(max_rate: str) -> str:
    rate = parse_rate(max_rate)
    return f"at most {quantity(rate.most, 'request')} in any {format_duration(rate.span)}"


def _common_budget(common: SharedClause) -> str:
    keys, span = quantity(common.rate.most, "key"), format_duration(common.rate.span)
    text = f"at most {keys} in any {span} of event time"
    if common.others:
        text += f", with {', '.join(common.others)}; this query weighs {common.weight:g}"
    return text


def _common_data(common: SharedClause) -> dict[str, Any]:
    return {
        "keys": common.rate.most,
        "span_ms": common.rate.span,
        "weight": common.weight,
        "budget_with": list(common.others),
        "replica_with": list(common.readers),
    }


def _served(physical: PhysicalPlan) -> Iterator[tuple[ServicePlan, str | None, str | None]]:
    """Yield each clause with its graph and the query for its keys, or None."""
    operator = physical.operator
    clauses = operator.clauses if isinstance(operator, ServiceConfig) else ()
    for place, plan in enumerate(physical.services):
        if place < len(clauses):
            keys = clauses[place].keys
            yield plan, clauses[place].graph, None if keys is None else keys.sparql
        else:
            yield plan, None, None


def _join(pattern: RemotePattern) -> str:
    if pattern.keys:
        return f"joined on {_variables(pattern.keys)}"
    return "fetched as a whole, since the rest of the query binds no join key"


def _names(pattern: RemotePattern) -> str:
    return _variables(pattern.variables) or "no other variable"


def _variables(names: Iterable[str]) -> str:
    return " ".join(f"?{name}" for name in names)


def _budget(plan: ServicePlan) -> str:
    if not plan.policy.is_bounded:
        return "none: all keys of the window are fetched"
    if plan.options.most_keys is None:
        return f"as many keys per evaluation as are answered within {plan.options.budget}"
    return f"at most {quantity(plan.options.most_keys, 'key')} per evaluation"


def _limits(plan: ServicePlan) -> str:
    limits = plan.limits
    requests = (
        "" if limits.max_requests is None else f", {quantity(limits.max_requests, 'request')}"
    )
    is_shown = limits.deadline_ms in (None, plan.options.budget_ms)  # with the budget
    return requests + ("" if is_shown else f", {limits.deadline_ms} ms")


def _replica(plan: ServicePlan) -> str:
    is_loaded = plan.options.replica == "snapshot"
    begin = "loaded in full at the start" if is_loaded else "filled on demand"
    most = plan.options.capacity
    return (
        begin
        if most is None
        else f"{begin}; at most {quantity(most, 'key')} {'is' if most == 1 else 'are'} kept"
    )


def _request(pattern: RemotePattern) -> str:
    """Return the request for one key, with an example IRI."""
    if not pattern.keys:
        return whole_text(pattern)
    return batch_of(
        pattern, [tuple(NamedNode(f"urn:key:{n}") for n in range(len(pattern.keys)))]
    ).text
