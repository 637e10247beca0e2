"""The endpoint contract: a source of remote data, the limits of a call, its cost and its result."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rsp_engine.http_client.faults import NO_REQUESTS, NO_TIME, TIME_OUT, FaultError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rsp_engine.replica.endpoints.request_pace import RequestPace
    from rsp_engine.replica.pattern import Key, RemoteSolution

__all__ = ["UNLIMITED", "Endpoint", "FetchResult", "Limits", "RequestMeter"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The cost limits of one evaluation, apart from its budget; None means unlimited.

    `max_requests` counts every request, including halved batches and retries. `deadline_ms` bounds
    the time from the call to its return. The `pace` of a service may delay requests.
    """

    max_requests: int | None = None
    deadline_ms: int | None = None
    pace: RequestPace | None = None

    def __post_init__(self) -> None:
        if self.max_requests is not None and self.max_requests < 0:
            raise ValueError("max_requests must not be negative")
        if self.deadline_ms is not None and self.deadline_ms < 0:
            raise ValueError("deadline_ms must not be negative")


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The result of a call. `answers` contains only complete answers.

    A key in `answers` without solutions has none at the remote side; a key not in `answers` was not
    answered. `requests` is the number of requests sent, and `faults` counts failures by cause.
    `elapsed` is how long the call took, in ms; None if the caller is to measure it.
    """

    answers: Mapping[Key, tuple[RemoteSolution, ...]] = field(default_factory=dict)
    requests: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    elapsed: float | None = None


class Endpoint(Protocol):
    """Answers one `RemotePattern`. Remote failures are counted in `faults`, never raised."""

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        """Fetch the solutions of keys; `now` is event time, for endpoints that have a history."""

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        """Fetch all keys. Without faults, the result is the whole dataset."""

    def close(self) -> None:
        """Release connections and other resources."""


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
        pace = self.limits.pace
        wait = 0.0 if pace is None else pace.wait()
        if self.clock() + wait >= self.until:
            raise FaultError(NO_TIME)
        if pace is not None:
            pace.sleep(wait)
            pace.note()
        now = self.clock()
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
