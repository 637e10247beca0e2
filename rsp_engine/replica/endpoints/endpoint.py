"""An endpoint: where remote data come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.replica.pattern import Key, RemoteSolution

__all__ = ["UNLIMITED", "Endpoint", "Fetched", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one evaluation may cost, beside its budget; nothing means no limit.

    `max_requests` counts every request, halves and retries included; `deadline_ms` bounds the time
    from the call until it returns.
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
class Fetched:
    """What came back. `answers` holds whole answers only.

    A key with no solutions is one of which the remote side said so; a key that is not in `answers`
    is as unknown as before. `requests` were sent, and `faults` counts by cause what went wrong.
    """

    answers: Mapping[Key, tuple[RemoteSolution, ...]] = field(default_factory=dict)
    requests: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)


class Endpoint(Protocol):
    """Answers one `RemotePattern`. Never raises for what the world does: `faults` tells."""

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> Fetched:
        """Fetch some keys; `now` is event time, for endpoints that have a history."""

    def snapshot(self, limits: Limits, now: int) -> Fetched:
        """Fetch everything. Without faults this is the whole dataset."""

    def close(self) -> None:
        """Give back what is held."""
