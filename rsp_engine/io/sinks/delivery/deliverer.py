"""The deliverer: the thread that takes answers from an outbox to the other side, in their order.

A failure is logged once, and so is the recovery. Whatever the failure, also one that the library of
a protocol raises unexpectedly, the same answers are delivered again after a pause, with the same
ids: nothing is left out. Only a failure of the outbox itself ends the thread.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from rsp_engine.io.sinks.delivery.courier import NotDelivered
from rsp_engine.io.sources.live.receiver import POLL_S
from rsp_engine.monitor.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.io.sinks.delivery.courier import Courier, Delivery
    from rsp_engine.io.sinks.delivery.outbox import Outbox

__all__ = ["Deliverer"]

_LOG = logging.getLogger("rsp")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_LONGEST_ASKED = 300.0
"""The longest pause that the other side may ask for, in seconds."""


class Deliverer(threading.Thread):
    """A thread that delivers until it is closed."""

    def __init__(self, name: str, outbox: Outbox, courier: Courier, what: str = "answers") -> None:
        """Set the address, as messages show it, and what is delivered to it."""
        super().__init__(name=f"deliverer to {name}", daemon=True)
        self._address = name
        self._what = what
        self._outbox = outbox
        self._courier = courier
        self._closing = threading.Event()
        self.delivered = 0
        """How many deliveries were acknowledged."""
        self.failures = 0
        """How many attempts failed."""
        self.trouble: str | None = None
        """Why the last attempt failed; None if it did not."""
        self.progress = time.monotonic()
        """When something was acknowledged last, on the monotonic clock."""
        self.defect: Exception | None = None
        """The failure of the outbox that ended the thread, if any."""

    def run(self) -> None:
        """Deliver, and retry after a failure, with exponential backoff."""
        pause = _FIRST_PAUSE
        try:
            while not self._closing.is_set():
                before = self.delivered
                asked = self._deliver()
                if self.trouble is None or self.delivered > before:
                    pause = _FIRST_PAUSE
                if self.trouble is not None:
                    self._closing.wait(pause if asked is None else min(asked, _LONGEST_ASKED))
                    pause = min(2 * pause, _LONGEST_PAUSE)
        except Exception as error:
            self.defect = error
        finally:
            self._disconnect()

    def _deliver(self) -> float | None:
        """Deliver once; return how many seconds the other side asks to wait."""
        deliveries = self._outbox.take(self._courier.most, POLL_S)
        if not deliveries:
            return None
        fault = self._attempt(deliveries)
        if fault is not None:
            self._acknowledge(fault.delivered)
            self.failures += 1
            self._report(without_secrets(str(fault)))
            return fault.pause
        self._acknowledge(len(deliveries))
        if self.trouble is not None:
            _LOG.warning("%s: %s are delivered again", self._address, self._what)
            self.trouble = None
        return None

    def _attempt(self, deliveries: Sequence[Delivery]) -> NotDelivered | None:
        """Try to deliver; return why that failed, if it did."""
        try:
            self._courier.deliver(deliveries)
        except NotDelivered as fault:
            return fault
        except Exception as error:
            # What the client of a protocol raises beside its own errors, in a state that is not
            # known: the next attempt begins with a new connection.
            self._disconnect()
            return NotDelivered(f"delivering failed: {error!r}")
        return None

    def _disconnect(self) -> None:
        with suppress(Exception):
            self._courier.close()

    def _acknowledge(self, count: int) -> None:
        if count:
            self._outbox.acknowledge(count)
            self.delivered += count
            self.progress = time.monotonic()

    def _report(self, trouble: str) -> None:
        if trouble != self.trouble:
            _LOG.warning("%s: %s; trying again", self._address, trouble)
        self.trouble = trouble

    def close(self, seconds: float) -> None:
        """Stop after the current attempt, and wait for it up to some seconds."""
        self._closing.set()
        self._outbox.wake()
        self.join(seconds)
