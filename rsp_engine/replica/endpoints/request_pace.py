"""The pace of the requests to a service: at most so many in any span of real time.

A request that comes too early waits, as long as its deadline allows. Halved batches, retries, pages
of a snapshot, change signals and the oracle count as well. So the pace protects the service; which
keys are fetched is a matter of budgets, which are of event time.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rsp_engine.model.quantities import Rate
    from rsp_engine.replica.endpoints.endpoint import Endpoint, FetchResult, Limits
    from rsp_engine.replica.pattern import Key

__all__ = ["PacedEndpoint", "RequestPace"]


class RequestPace:
    """The times of the last requests to a service.

    >>> from rsp_engine.model.quantities import parse_rate
    >>> pace = RequestPace(parse_rate("2/1s"), clock=lambda: 5.0)
    >>> [pace.wait(), pace.note(), pace.wait(), pace.note(), pace.wait()]
    [0.0, None, 0.0, None, 1.0]
    """

    def __init__(
        self,
        rate: Rate,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._span = rate.span / 1000
        self._clock = clock
        self.sleep = sleep
        self._sent: deque[float] = deque(maxlen=rate.most)

    def wait(self) -> float:
        """Return after how many seconds the next request may be sent."""
        if len(self._sent) < (self._sent.maxlen or 0):
            return 0.0
        return max(self._sent[0] + self._span - self._clock(), 0.0)

    def note(self) -> None:
        """Record a request that is sent."""
        self._sent.append(self._clock())


@dataclass(frozen=True, slots=True)
class PacedEndpoint:
    """Hands the pace to an endpoint, with the limits of each call."""

    endpoint: Endpoint
    pace: RequestPace

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        return self.endpoint.fetch(keys, replace(limits, pace=self.pace), now)

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        return self.endpoint.snapshot(replace(limits, pace=self.pace), now)

    def close(self) -> None:
        self.endpoint.close()
