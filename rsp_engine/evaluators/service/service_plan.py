"""The plan of a SERVICE clause: its pattern, its endpoint, and the refresh of its replica."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.model.option import milliseconds
from rsp_engine.replica.endpoints.endpoint import Endpoint, Limits
from rsp_engine.replica.pattern import RemotePattern
from rsp_engine.replica.store.estimator import DeclaredIntervals, Estimation, LearnedIntervals

if TYPE_CHECKING:
    from rsp_engine.options import ServiceOptions
    from rsp_engine.policies.policy import Policy

__all__ = ["Connect", "ServicePlan", "changes_stream"]

Connect = Callable[[RemotePattern], Endpoint]
"""Opens an endpoint for the pattern of a SERVICE clause."""


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
    step: int = 60_000
    """The time between two evaluations in milliseconds: before anything is learned, each key is
    taken to change once in it, so that the first evaluation already refreshes."""

    @property
    def limits(self) -> Limits:
        """The limits of the requests of an evaluation."""
        deadline = self.options.deadline
        return Limits(
            self.options.max_requests, None if deadline is None else milliseconds(deadline)
        )

    @property
    def estimation(self) -> Estimation:
        """How the change intervals of keys are estimated."""
        interval = self.options.change_interval
        if interval is None:
            return LearnedIntervals(self.step)
        return DeclaredIntervals(milliseconds(interval))


def changes_stream(service: str) -> str:
    """Return the name of the change feed of a service, by which drivers know it."""
    return f"urn:rsp-engine:changes:{service}"
