"""The plan of a SERVICE clause: its remote pattern, its endpoint or feed, and its policy."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.service.service_plan import ServicePlan
from rsp_engine.policies.registry import policy_named
from rsp_engine.replica.change_signal import modified_pattern
from rsp_engine.replica.changes import ChangeFeed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.policies.policy import Policy
    from rsp_engine.replica.pattern import RemotePattern

__all__ = [
    "chosen_policy",
    "refuse_unused_services",
    "service_plan",
]


def chosen_policy(options: QueryOptions, default: str) -> Policy:
    """Return the policy that the user names, or the default; raise if there is no such policy."""
    name = options.services.policy or default
    try:
        return policy_named(name, options.policies)
    except ValueError as reason:
        close = get_close_matches(name.upper(), list(options.policies), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        hint += f"The policies are {', '.join(options.policies)}"
        raise BindingError(str(reason), hint) from None


def service_plan(
    pattern: RemotePattern, options: QueryOptions, policy: Policy, instead: str | None = None
) -> ServicePlan:
    """Plan a clause whose service is bound to an endpoint, to a change feed, or to both.

    A service with a feed alone takes no requests: it has no budget and no snapshot. `instead` names
    the policy that this one replaces, and why.
    """
    is_pushed = pattern.service in options.feeds
    service_options = options.services
    connect = options.endpoints.get(pattern.service)
    if connect is None:
        service_options = replace(service_options, budget=0, replica="cache")
        connect = ChangeFeed
    modified = options.modified.get(pattern.service)
    if modified is not None:
        modified_pattern(pattern, modified)  # raises if it cannot be requested
    return ServicePlan(pattern, connect, policy, service_options, is_pushed, modified, instead)


def refuse_unused_services(bound: Collection[str], plans: Iterable[ServicePlan]) -> None:
    """Raise if a service is bound that no query has a SERVICE clause for."""
    used = {plan.pattern.service for plan in plans}
    for iri in sorted(set(bound) - used):
        named = ", ".join(f"<{name}>" for name in sorted(used))
        hint = f"the queries call {named}" if used else "no query has a SERVICE clause"
        raise BindingError(f"no query calls service <{iri}>", hint)
