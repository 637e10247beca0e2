"""What one call of an endpoint has cost so far, held against its limits."""

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
    """The requests, the time and the faults of a call, from the moment this is made."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    until: float = field(init=False)
    requests: int = field(init=False, default=0)
    faults: Counter[str] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        deadline = self.limits.deadline_ms
        self.until = math.inf if deadline is None else self.clock() + deadline / 1000

    def spend(self, longest: float) -> float:
        """Pay for a request, and return until when it may run; what is spent is a `FaultError`."""
        most = self.limits.max_requests
        if most is not None and self.requests >= most:
            raise FaultError(NO_REQUESTS)
        now = self.clock()
        if now >= self.until:
            raise FaultError(NO_TIME)
        self.requests += 1
        return min(self.until, now + longest)

    def heed(self, until: float) -> None:
        """Put an end to what takes longer than it may."""
        if self.clock() >= until:
            raise FaultError(TIME_OUT)

    def allows(self, wait: float) -> bool:
        """Tell whether there would be a request, and time for it, after a wait."""
        most = self.limits.max_requests
        return (most is None or self.requests < most) and self.clock() + wait < self.until
