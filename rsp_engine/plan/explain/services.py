"""The explanation of SERVICE clauses, as text and as data, without sending a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyoxigraph import NamedNode

from rsp_engine.evaluators.service.config import ServiceConfig
from rsp_engine.model.quantities import quantity
from rsp_engine.replica.sparql_client.request_text import batch_of, whole_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.replica.pattern import RemotePattern

__all__ = ["service_summary", "services_as_data", "services_as_text"]


def services_as_text(physical: PhysicalPlan) -> Iterator[str]:
    """Yield the lines that explain each clause: its join, policy, budget, replica and request."""
    for plan, graph, keys in _served(physical):
        pattern = plan.pattern
        yield f"service  <{pattern.service}>, {_join(pattern)}; returns {_names(pattern)}"
        yield f"policy   {plan.policy.name}: {plan.policy.summary}"
        if plan.instead is not None:
            yield f"         in place of {plan.instead}"
        yield f"budget   {_budget(plan)}{_limits(plan)}"
        yield f"replica  {_replica(plan)}"
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


def services_as_data(physical: PhysicalPlan) -> list[dict[str, Any]]:
    """Return the explanation of each clause as JSON data."""
    return [
        {
            "service": plan.pattern.service,
            "join_key": list(plan.pattern.keys),
            "variables": list(plan.pattern.variables),
            "policy": plan.policy.name,
            "in_place_of": plan.instead,
            "budget": plan.options.budget if plan.policy.is_bounded else None,
            "max_requests": plan.limits.max_requests,
            "deadline_ms": plan.limits.deadline_ms,
            "snapshot": plan.options.replica == "snapshot",
            "capacity": plan.options.capacity,
            "changes_pushed": plan.is_pushed,
            "modified": plan.modified,
            "graph": graph,
            "keys": keys,
            "request": _request(plan.pattern),
        }
        for plan, graph, keys in _served(physical)
    ]


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
    return f"at most {quantity(plan.options.budget, 'key')} per evaluation"


def _limits(plan: ServicePlan) -> str:
    limits = plan.limits
    requests = (
        "" if limits.max_requests is None else f", {quantity(limits.max_requests, 'request')}"
    )
    return requests + ("" if limits.deadline_ms is None else f", {limits.deadline_ms} ms")


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
