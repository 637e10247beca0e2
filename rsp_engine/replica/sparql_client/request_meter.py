"""The meter of one endpoint call: its cost so far, checked against its limits."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rsp_engine.replica.sparql_client.faults import NO_REQUESTS, NO_TIME, TIME_OUT, FaultError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.replica.endpoints.endpoint import Limits

__all__ = ["RequestMeter"]


@dataclass(slots=True)
class RequestMeter:
    """Requests, time and faults of a call. The time starts when the meter is created."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    until: float = field(init=False)
    requests: int = field(init=False, default=0)
    faults: Counter[str] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        deadline = self.limits.deadline_ms
        self.until = math.inf if deadline is None else self.clock() + deadline / 1000

    def spend(self, longest: float) -> float:
        """Count a request and return its deadline; raise `FaultError` if a limit is reached."""
        most = self.limits.max_requests
        if most is not None and self.requests >= most:
            raise FaultError(NO_REQUESTS)
        now = self.clock()
        if now >= self.until:
            raise FaultError(NO_TIME)
        self.requests += 1
        return min(self.until, now + longest)

    def heed(self, until: float) -> None:
        """Raise `FaultError` if the time `until` has passed."""
        if self.clock() >= until:
            raise FaultError(TIME_OUT)

    def allows(self, wait: float) -> bool:
        """Return whether the limits allow another request after a wait in seconds."""
        most = self.limits.max_requests
        return (most is None or self.requests < most) and self.clock() + wait < self.until
