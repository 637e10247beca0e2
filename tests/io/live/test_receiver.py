"""The receiver: whatever the client of a protocol raises, it connects again."""

from __future__ import annotations

import pytest

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.receiver import Inbox, Receiver, SenderUnreachable
from rsp_engine.io.sources.live.records import Message
from rsp_engine.io.sources.live.spool import Spool


class FailingLink:
    """A link that fails as it is told, one connection after the other; the last one ends."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.connections = 0

    def listen(self, inbox: Inbox) -> None:
        self.connections += 1
        if self.failures:
            raise self.failures.pop(0)
        inbox.put([Message(b"%d" % self.connections)])


def listen(tmp_path, *failures: Exception) -> tuple[Receiver, FailingLink, list[bytes]]:
    spool = Spool(tmp_path / "spool", room=1 << 20)
    link = FailingLink(*failures)
    receiver = Receiver(link, Inbox("mqtt://broker/topic", spool, Deduplicator("id")))
    receiver.start()
    receiver.join(60)
    payloads = [record.message.payload for record in spool]
    spool.close()
    return receiver, link, payloads


@pytest.mark.parametrize(
    "failure",
    [
        SenderUnreachable("the broker is away"),
        ValueError("a packet that the client does not know"),
        AttributeError("'NoneType' object has no attribute 'recv'"),
        OSError("Bad file descriptor"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_it_connects_again_after_any_failure_of_the_sender(tmp_path, failure, caplog):
    receiver, link, payloads = listen(tmp_path, failure, failure)
    assert (receiver.failure, link.connections) == (None, 3)
    assert payloads == [b"3"]
    [told, over] = [record.getMessage() for record in caplog.records]
    assert str(failure) in told
    assert over == "mqtt://broker/topic: connected again"


def test_an_error_of_the_engine_ends_it(tmp_path):
    receiver, link, _ = listen(tmp_path, SourceError("the folder is gone"))
    assert isinstance(receiver.failure, SourceError)
    assert link.connections == 1
