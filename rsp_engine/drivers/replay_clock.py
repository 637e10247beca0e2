"""The clock of a replay: a recorded stream at its original speed, or a multiple of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ReplayClock"]

_POLL_S = 0.2
"""The longest sleep, in seconds: how soon `stop` takes effect."""


class ReplayClock:
    """A clock that waits until an element is due; the first one is due at once.

    >>> sleeps: list[float] = []
    >>> clock = ReplayClock(10, clock=lambda: 0.0, sleep=sleeps.append)
    >>> clock.wait(5_000), clock.wait(7_000), clock.wait(6_000)
    (None, None, None)
    >>> sleeps
    [0.2, 0.1]
    """

    def __init__(
        self,
        speed: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Set the speed as a multiple of event time: 1 is the original speed."""
        if not speed > 0:
            raise ValueError("the speed must be more than zero")
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        self._start: tuple[int, float] | None = None
        self._is_stopped = False

    def wait(self, timestamp: int) -> None:
        """Wait until an element with this timestamp, in milliseconds, is due."""
        now = self._clock()
        if self._start is None:
            self._start = timestamp, now
        first, start = self._start
        early = start + (timestamp - first) / 1000 / self._speed - now
        while early > 0 and not self._is_stopped:
            self._sleep(min(early, _POLL_S))
            early -= _POLL_S

    def stop(self) -> None:
        """Stop waiting. Takes no lock, so that a signal handler may call it."""
        self._is_stopped = True
