"""The address of a publisher: refused by name, and never with a password in the message."""

from __future__ import annotations

import pytest

from rsp_engine.errors import DriverError, SourceError
from rsp_engine.io.sinks.publishers.mqtt import Publisher
from rsp_engine.io.sources.spec import read_spec
from rsp_engine.model.streams import Element
from tests.io.live.servers import mosquitto, needs_mosquitto


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("mqtt://user:hush@localhost/t?foo=1", "must not contain a user or a password"),
        ("mqtt://localhost/t?foo=1", "there is no option foo"),
        ("http://localhost/t?version=5", "streams are replayed to MQTT and Kafka"),
        ("mqtt://localhost/a/+?version=5", "it names no topic to send to"),
    ],
)
def test_a_wrong_address_is_refused_without_its_secrets(address, reason):
    with pytest.raises(SourceError, match=reason) as refused:
        Publisher(read_spec(address))
    assert "hush" not in str(refused.value)


@needs_mosquitto
@pytest.mark.outside
def test_what_the_broker_drops_does_not_count_as_sent(tmp_path):
    rules = tmp_path / "acl"
    rules.write_text("topic write open\n")
    with mosquitto(tmp_path, f"allow_anonymous true\nacl_file {rules}") as broker:
        with Publisher(read_spec(f"{broker.url}/open")) as publisher:
            publisher.send(Element(1, (), "s", 1, b""))
        with (
            pytest.raises(DriverError, match="the broker refuses a message: Not authorized"),
            Publisher(read_spec(f"{broker.url}/closed")) as publisher,
        ):
            publisher.send(Element(1, (), "s", 1, b""))
