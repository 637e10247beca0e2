"""The endpoint contract: a source of remote data, its limits, and what a call returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.replica.pattern import Key, RemoteSolution

__all__ = ["UNLIMITED", "Endpoint", "FetchResult", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The cost limits of one evaluation, apart from its budget; None means unlimited.

    `max_requests` counts every request, including halved batches and retries. `deadline_ms` bounds
    the time from the call to its return.
    """

    max_requests: int | None = None
    deadline_ms: int | None = None

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
    """

    answers: Mapping[Key, tuple[RemoteSolution, ...]] = field(default_factory=dict)
    requests: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)


class Endpoint(Protocol):
    """Answers one `RemotePattern`. Remote failures are counted in `faults`, never raised."""

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        """Fetch the solutions of keys; `now` is event time, for endpoints that have a history."""

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        """Fetch all keys. Without faults, the result is the whole dataset."""

    def close(self) -> None:
        """Release connections and other resources."""
