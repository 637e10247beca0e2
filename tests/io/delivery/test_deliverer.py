"""The deliverer: whatever fails at the other side, the same answers are delivered again."""

from __future__ import annotations

import pytest

from rsp_engine.io.sinks.delivery import deliverer
from rsp_engine.io.sinks.delivery.courier import Delivery, NotDelivered
from rsp_engine.io.sinks.delivery.deliverer import Deliverer
from rsp_engine.io.sinks.delivery.outbox import MemoryOutbox
from tests.io.delivery.receivers import until

DELIVERIES = [Delivery(str(number), b"{}") for number in range(5)]


class FailingCourier:
    """A courier that fails as it is told, one attempt after the other, and then no more."""

    most = 3

    def __init__(self, *failures):
        self.failures = list(failures)
        self.delivered = []
        self.closed = 0

    def deliver(self, deliveries):
        if self.failures:
            failure = self.failures.pop(0)
            self.delivered += deliveries[: getattr(failure, "delivered", 0)]
            raise failure
        self.delivered += deliveries

    def close(self):
        self.closed += 1
        raise OSError("it is closed already")


@pytest.mark.parametrize(
    "failure",
    [
        NotDelivered("the broker is away", delivered=1),
        RuntimeError("Message publish failed: The client is not currently connected."),
        ValueError("what a library raises for a reply that it does not know"),
        OSError("Bad file descriptor"),
        AttributeError("'NoneType' object has no attribute 'send'"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_every_failure_of_the_other_side_is_told_once_and_tried_again(failure, caplog, monkeypatch):
    monkeypatch.setattr(deliverer, "_FIRST_PAUSE", 0.001)
    outbox, courier = MemoryOutbox(), FailingCourier(failure, failure)
    for each in DELIVERIES:
        outbox.put(each)
    thread = Deliverer("mqtt://broker/topic", outbox, courier)
    thread.start()
    until(lambda: thread.delivered == len(DELIVERIES))
    thread.close(10)
    assert courier.delivered == DELIVERIES
    assert (thread.defect, thread.failures, thread.trouble) == (None, 2, None)
    [told, over] = [record.getMessage() for record in caplog.records]
    assert str(failure) in told
    assert over == "mqtt://broker/topic: answers are delivered again"
    is_unexpected = not isinstance(failure, NotDelivered)
    assert courier.closed == 1 + 2 * is_unexpected, "with a new connection"
