"""Sinks by URL: they serialize each answer as a message of its own, and put it into an outbox.

The id of a message follows from the name of its query and its window: `QUERY/OPEN/CLOSE`, with the
name percent-encoded. Windows of a query may have the same edges, as windows that count elements
can; the second one is `QUERY/OPEN/CLOSE/2`.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from rsp_engine.errors import SinkError, StateError
from rsp_engine.io.sinks.delivery.courier import Delivery
from rsp_engine.io.sinks.delivery.deliverer import Deliverer
from rsp_engine.io.sinks.destinations import encoded, query_word
from rsp_engine.io.sinks.format import Sink
from rsp_engine.monitor.run_monitor import DeliveryStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rsp_engine.io.sinks.delivery.courier import Courier
    from rsp_engine.io.sinks.delivery.outbox import Outbox
    from rsp_engine.model.answers import Answer

    MessageWriter: TypeAlias = Callable[[Answer, str], str | bytes]

__all__ = ["DeliveryIds", "MessageSink", "drain"]

_LOG = logging.getLogger("rsp")
_POLL_S = 0.02
_FULL_REPORT_S = 60.0
"""How often a full outbox is reported, in seconds."""
_CLOSING_S = 2.0
"""How long an attempt may go on while the sink is closed, in seconds."""


class DeliveryIds:
    """The ids of the answers of some queries, given in their order.

    >>> from rsp_engine.model.answers import Boolean, Interval
    >>> from rsp_engine.model.answers import Answer
    >>> ids = DeliveryIds()
    >>> answer = Answer("http://e/q", Interval(0, 5), Boolean(True), {})
    >>> ids.next(answer), ids.next(answer)
    ('http%3A%2F%2Fe%2Fq/0/5', 'http%3A%2F%2Fe%2Fq/0/5/2')
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int, int]] = {}
        """The last window of each query, and how many had its edges."""

    def next(self, answer: Answer) -> str:
        """Return the id of the next answer."""
        edges = answer.window.open, answer.window.close
        *before, count = self._last.get(answer.query, (None, None, 0))
        number = count + 1 if tuple(before) == edges else 1
        self._last[answer.query] = (*edges, number)
        parts = query_word(answer.query), *map(str, edges), *((str(number),) if number > 1 else ())
        return "/".join(parts)

    def state(self) -> dict[str, Sequence[int]]:
        """Return the state as plain data."""
        return dict(self._last)

    def restore(self, state: Mapping[str, Sequence[int]]) -> None:
        """Resume from a state."""
        self._last = {query: (first, last, n) for query, (first, last, n) in state.items()}


def drain(sinks: Sequence[MessageSink], patience: float) -> None:
    """Wait until all is delivered; give a sink up that delivers nothing for some seconds."""
    begun = time.monotonic()
    while any(sink.is_delivering(begun, patience) for sink in sinks):
        time.sleep(_POLL_S)


class MessageSink(Sink):
    """A sink that delivers answers to another program.

    An answer is written to the outbox, and delivered once it is committed. While the outbox is
    full, drivers read no input.
    """

    def __init__(
        self, name: str, kind: str, write: MessageWriter, outbox: Outbox, courier: Courier
    ) -> None:
        """Set what serializes an answer; `kind` says in what and where to, for checkpoints."""
        self.name = name
        self._kind = kind
        self._write = write
        self._outbox = outbox
        self._deliverer = Deliverer(name, outbox, courier)
        self._ids = DeliveryIds()
        self._is_open = False
        self._full_reported = -float("inf")

    def write(self, answer: Answer) -> None:
        """Put an answer into the outbox."""
        if not self._is_open:
            self.go_back(None)
        self._check()
        name = self._ids.next(answer)
        text = self._write(answer, name)
        if text:
            self._outbox.put(Delivery(name, encoded(text)))

    def position(self) -> list[Any]:
        return [self._kind, self._outbox.position(), self._ids.state()]

    def go_back(self, position: list[Any] | None) -> None:
        """Open the outbox, drop what was put in after a position, and start to deliver."""
        kind, end, ids = position or (self._kind, None, {})
        if kind != self._kind:
            raise StateError(
                f"answers were delivered as {kind}, and would now be as {self._kind}",
                "deliver them as before, or name another folder for the checkpoint",
            )
        self._ids.restore(ids)
        self._outbox.go_back(end)
        self._is_open = True
        self._deliverer.progress = time.monotonic()
        self._deliverer.start()

    def committed(self) -> None:
        """Deliver what was put into the outbox before the last position."""
        self._outbox.committed()

    @property
    def is_full(self) -> bool:
        """Whether the outbox has no room, so that the input has to wait."""
        self._check()
        if not self._outbox.is_full:
            return False
        if (now := time.monotonic()) > self._full_reported + _FULL_REPORT_S:
            size = f"{self._outbox.room:,} bytes"
            _LOG.warning("%s: its outbox is full (%s); the input waits", self.name, size)
            self._full_reported = now
        return True

    @property
    def status(self) -> DeliveryStatus:
        """How much was delivered, and what waits. Other threads may ask for it."""
        waiting = self._outbox.waiting()
        since = None if waiting.since is None else max(0.0, time.time() - waiting.since)
        work = self._deliverer
        return DeliveryStatus(
            self.name, work.delivered, waiting.deliveries, since, work.failures, work.trouble
        )

    def is_delivering(self, begun: float, patience: float) -> bool:
        """Return whether answers wait, and one was delivered in the last seconds, or may yet be.

        `begun` is when the caller began to wait, on the monotonic clock.
        """
        self._check()
        until = max(begun, self._deliverer.progress) + patience
        return self._is_open and self.status.waiting > 0 and time.monotonic() < until

    def close(self) -> None:
        """Stop delivering; what is not delivered stays in an outbox on disk."""
        if self._is_open:
            self._is_open = False
            self._deliverer.close(_CLOSING_S)
            self._outbox.close()

    def _check(self) -> None:
        """Raise if the deliverer has ended by itself."""
        if self._deliverer.defect is not None:
            defect = self._deliverer.defect
            raise SinkError(f"{self.name}: delivering failed: {defect!r}") from defect
