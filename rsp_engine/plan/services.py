"""What is planned for a SERVICE clause: what it asks for, and how its replica is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rsp_engine.errors import BindingError
from rsp_engine.policies.registry import named
from rsp_engine.replica.changes import Changes
from rsp_engine.replica.endpoint import UNLIMITED, Endpoint, Limits
from rsp_engine.replica.estimator import Estimation, Learned
from rsp_engine.replica.pattern import RemotePattern
from rsp_engine.replica.signal import modified_pattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rsp_engine.plan.options import Options
    from rsp_engine.policies.policy import Policy

__all__ = [
    "Connect",
    "ServiceOptions",
    "ServicePlan",
    "changes_stream",
    "chosen_policy",
    "refuse_unasked",
    "service_plan",
]

Connect = Callable[[RemotePattern], Endpoint]
"""Opens an endpoint for what a SERVICE clause asks for."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What a user decides about remote data.

    At most `budget` keys are fetched for an evaluation, within `limits`; `n` objects stand by
    behind the k best. The replica starts with a `snapshot` of everything, or it is filled by
    misses; at most `capacity` keys are held.
    """

    policy: str | None = None
    budget: int = 10
    n: int = 10
    limits: Limits = UNLIMITED
    seed: int = 0
    snapshot: bool = True
    capacity: int | None = None
    estimation: Estimation = field(default_factory=Learned)

    def __post_init__(self) -> None:
        if self.budget < 0:
            raise ValueError("the budget must not be negative")
        if self.n < 0:
            raise ValueError("n must not be negative")
        if self.capacity is not None and self.capacity < 1:
            raise ValueError("a replica must have room for at least 1 key")


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """How one SERVICE clause is answered."""

    pattern: RemotePattern
    connect: Connect
    policy: Policy
    options: ServiceOptions
    is_pushed: bool = False
    """Whether a feed tells the changes."""
    modified: str | None = None
    """The property that tells when a key was last modified: the change signal."""
    instead: str | None = None
    """The policy in whose place this one elects, and why."""


def changes_stream(service: str) -> str:
    """Return the name of the stream of what a service pushes, as the drivers know it."""
    return f"urn:rsp-engine:changes:{service}"


def chosen_policy(options: Options, default: str) -> Policy:
    """Return the policy that the user names, or the default; a name that is none is refused."""
    name = options.service_options.policy or default
    try:
        return named(name, options.policies)
    except ValueError as reason:
        close = get_close_matches(name.upper(), list(options.policies), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        hint += f"The policies are {', '.join(options.policies)}"
        raise BindingError(str(reason), hint) from None


def service_plan(
    pattern: RemotePattern, options: Options, policy: Policy, instead: str | None = None
) -> ServicePlan:
    """Plan a clause whose service is bound to an endpoint, to a feed, or to both.

    Behind a feed alone there is nothing that could be asked. `instead` names a policy in whose
    place this one elects.
    """
    is_pushed = pattern.service in options.feeds
    chosen = options.service_options
    connect = options.services.get(pattern.service)
    if connect is None:
        chosen = replace(chosen, budget=0, snapshot=False)
        connect = Changes
    modified = options.modified.get(pattern.service)
    if modified is not None:
        modified_pattern(pattern, modified)  # refused here, if it cannot be asked
    return ServicePlan(pattern, connect, policy, chosen, is_pushed, modified, instead)


def refuse_unasked(bound: Collection[str], plans: Iterable[ServicePlan]) -> None:
    """Refuse services that are bound, and that no query asks."""
    asked = {plan.pattern.service for plan in plans}
    for iri in sorted(set(bound) - asked):
        named = ", ".join(f"<{name}>" for name in sorted(asked))
        hint = f"the queries ask {named}" if asked else "no query has a SERVICE clause"
        raise BindingError(f"no query asks service <{iri}>", hint)
