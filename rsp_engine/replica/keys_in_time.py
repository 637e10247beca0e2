"""A budget in time: how many keys a call may ask for, so that their answers come in time.

The number begins at one. After each call it is scaled by the part of the time that the slowest of
the last calls has left, with a margin, and at most doubled. While time is left, it grows by one at
least: even a single key takes the latency of a call, so time is not in proportion to keys. A call
that was not answered in time halves it. If not even one key is answered in time, the next
evaluations send nothing: 1, then 3, 7 and so on, until a single key is answered again. (TCP's slow
start and multiplicative decrease: Jacobson, Congestion avoidance and control, SIGCOMM 1988.)

Times are observed, so a run that is repeated must be given those that were logged.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rsp_engine.model.state import StateData

__all__ = ["KeysInTime"]

_MARGIN = 0.8
"""The part of the time that a call is to take: the rest is for latency that rises."""
_CALLS = 8
"""How many calls are remembered: one evaluation in eight may be slower than the others."""
_MOST_IDLE = 31
"""The most evaluations that send nothing."""


class KeysInTime:
    """Learns how many keys are answered in time.

    >>> learned = KeysInTime()
    >>> for _ in range(4):
    ...     keys = learned.allowed()
    ...     learned.observe(keys, 10 + keys, 80, is_answered=True)
    >>> learned.allowed()
    16
    >>> learned.observe(16, 80, 80, is_answered=False)
    >>> learned.allowed()
    8
    """

    def __init__(self) -> None:
        self._keys = 1
        self._times: deque[float] = deque(maxlen=_CALLS)
        self._idle = 0
        """How many evaluations have sent nothing since the last call that was not answered."""
        self._idle_until = 0

    def allowed(self) -> int:
        """Return how many keys the next call may ask for; an evaluation calls this once."""
        if self._idle < self._idle_until:
            self._idle += 1
            return 0
        return self._keys

    def observe(self, keys: int, ms: float, most_ms: float, *, is_answered: bool) -> None:
        """Learn from a call that took `ms` of the `most_ms` that it had."""
        if not is_answered:
            if ms < _MARGIN * most_ms:
                return  # it failed, but not for want of time
            self._times.append(1.0)
            self._keys = max(keys // 2, 1)
            if keys <= 1:
                self._idle, self._idle_until = 0, min(2 * self._idle_until + 1, _MOST_IDLE)
            return
        if self._idle_until:
            self._idle_until = 0
            self._times.clear()
        self._times.append(ms / max(most_ms, 1.0))
        scale = min(_MARGIN / max([*self._times, 1e-6]), 2.0)
        if scale < 1:
            self._keys = max(int(keys * scale), 1)
        elif 2 * keys >= self._keys:
            self._keys = max(int(keys * scale), keys + (scale > 1))

    def state(self) -> StateData:
        """Return what was learned, as plain data."""
        return {
            "keys": self._keys,
            "times": list(self._times),
            "idle": [self._idle, self._idle_until],
        }

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self._keys = state["keys"]
        self._times = deque(state["times"], maxlen=_CALLS)
        self._idle, self._idle_until = state["idle"]
