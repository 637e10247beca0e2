"""How a SERVICE clause is answered: what it asks for, and how its replica is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rsp_engine.replica.endpoints.endpoint import UNLIMITED, Endpoint, Limits
from rsp_engine.replica.pattern import RemotePattern
from rsp_engine.replica.store.estimator import Estimation, LearnedIntervals

if TYPE_CHECKING:
    from rsp_engine.policies.policy import Policy

__all__ = ["Connect", "ServiceOptions", "ServicePlan", "changes_stream"]

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
    estimation: Estimation = field(default_factory=LearnedIntervals)

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
