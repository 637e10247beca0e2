"""The plan of a SERVICE clause: its pattern, its endpoint, and the refresh of its replica."""

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
"""Opens an endpoint for the pattern of a SERVICE clause."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options of a user for remote data.

    At most `budget` keys are fetched per evaluation, within `limits`. `n` is the N of Topk+N: the
    objects kept below the top k. The replica starts with a `snapshot` of the whole dataset, or
    empty, and holds at most `capacity` keys.
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
    """The plan of one SERVICE clause."""

    pattern: RemotePattern
    connect: Connect
    policy: Policy
    options: ServiceOptions
    is_pushed: bool = False
    """Whether a change feed pushes the changes."""
    modified: str | None = None
    """The property with the time of the last modification of a key: the change signal."""
    instead: str | None = None
    """The policy that this one replaces, and why."""


def changes_stream(service: str) -> str:
    """Return the name of the change feed of a service, by which drivers know it."""
    return f"urn:rsp-engine:changes:{service}"
