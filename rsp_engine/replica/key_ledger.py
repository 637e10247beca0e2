"""The ledger of a service's budget: how many keys were sent when, and how many may be sent now.

    saved     the budget grows with event time, by `most` keys in each `span`; what is not sent is
              saved, up to `most` keys
    sent      no span (t - span, t] has more than `most` keys, whatever was saved

Without the first, all keys of a span would be sent at its first instant, and none at the others.
Savings never exceed what may be sent: after a burst they grow from zero, so that the next keys are
sent evenly and not in bursts. Instants are event time, and never go back.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rsp_engine.model.quantities import Rate
    from rsp_engine.model.state import StateData

__all__ = ["KeyLedger"]


class KeyLedger:
    """The keys sent in the last span. Memory: one entry for each instant of it.

    >>> from rsp_engine.model.quantities import parse_rate
    >>> ledger = KeyLedger(parse_rate("4/10s"))
    >>> ledger.advance(10_000, 5_000), ledger.advance(15_000, 5_000)
    (2, 4)
    >>> ledger.charge(15_000, 3)
    >>> ledger.advance(20_000, 5_000), ledger.advance(25_000, 5_000)
    (1, 3)
    """

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._sent: deque[list[int]] = deque()
        self._saved = 0  # in thousandths of a key, if the span is a second: always exact
        self._last: int | None = None

    def advance(self, now: int, step: int) -> int:
        """Advance to an instant; return how many keys may be sent at it.

        Before the first instant, the budget has grown for `step` ms.
        """
        most, span = self.rate
        passed = step if self._last is None else max(now - self._last, 0)
        self._last = now if self._last is None else max(now, self._last)
        while self._sent and self._sent[0][0] <= now - span:
            self._sent.popleft()
        room = max(most - self.sent(now), 0)
        self._saved = min(self._saved + most * passed, room * span)
        return self._saved // span

    def sent(self, now: int) -> int:
        """Return how many keys were sent in the span that ends now, or later."""
        return sum(keys for instant, keys in self._sent if instant > now - self.rate.span)

    def charge(self, now: int, keys: int) -> None:
        """Record keys that are sent."""
        if keys:
            self._sent.append([now, keys])
            self._saved = max(self._saved - keys * self.rate.span, 0)

    def excess(self, now: int) -> int:
        """Return how many more keys are charged than the span allows."""
        return max(self.sent(now) - self.rate.most, 0)

    def state(self) -> StateData:
        """Return the ledger as plain data."""
        return {
            "sent": [list(entry) for entry in self._sent],
            "saved": self._saved,
            "last": self._last,
        }

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self._sent = deque(list(entry) for entry in state["sent"])
        self._saved, self._last = state["saved"], state["last"]
