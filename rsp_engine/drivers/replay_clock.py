"""Pace: a recorded stream replayed as fast as it happened, or so many times faster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ReplayClock"]

_POLL_S = 0.2


class ReplayClock:
    """Waits until it is time for an element: the first one is there at once.

    >>> waited: list[float] = []
    >>> pace = ReplayClock(10, clock=lambda: 0.0, sleep=waited.append)
    >>> pace.wait(5_000), pace.wait(7_000), pace.wait(6_000)
    (None, None, None)
    >>> waited
    [0.2, 0.1]
    """

    def __init__(
        self,
        speed: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take how many times faster than it happened."""
        if not speed > 0:
            raise ValueError("the speed must be more than zero")
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        self._start: tuple[int, float] | None = None
        self._is_over = False

    def wait(self, timestamp: int) -> None:
        """Wait until the time of an element, in milliseconds, has come."""
        now = self._clock()
        if self._start is None:
            self._start = timestamp, now
        first, begun = self._start
        early = begun + (timestamp - first) / 1000 / self._speed - now
        while early > 0 and not self._is_over:
            self._sleep(min(early, _POLL_S))
            early -= _POLL_S

    def stop(self) -> None:
        """Wait no more; a signal may say so, and so no lock is held for that."""
        self._is_over = True
