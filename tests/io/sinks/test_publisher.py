"""The address of a publisher: refused by name, and never with a password in the message."""

from __future__ import annotations

import json

import pytest

from rsp_engine.errors import DriverError, SourceError
from rsp_engine.io.sinks.delivery.publisher import Publisher
from rsp_engine.io.sources.spec import read_spec
from rsp_engine.model.streams import Element
from tests.io.delivery.receivers import Subscriber, until
from tests.io.live.servers import free_port, mosquitto, needs_mosquitto


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("mqtt://user:hush@localhost/t?foo=1", "must not contain a user or a password"),
        ("mqtt://localhost/t?foo=1", "there is no option foo"),
        ("http://localhost/t?version=5", "streams are replayed to MQTT and Kafka"),
        ("mqtt://localhost/a/+?version=5", "it names no topic to send to"),
        ("kafka://localhost/t?version=5", "there is no option version"),
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
            pytest.raises(DriverError, match="the broker refuses the message: Not authorized"),
            Publisher(read_spec(f"{broker.url}/closed")) as publisher,
        ):
            publisher.send(Element(1, (), "s", 1, b""))


@needs_mosquitto
@pytest.mark.outside
def test_a_broker_that_is_away_for_a_while_gets_everything(tmp_path):
    with mosquitto(tmp_path) as broker, Subscriber(broker, "t") as listener:
        with Publisher(read_spec(f"{broker.url}/t")) as publisher:
            publisher.send(Element(1, (), "s", 1, b""))
            until(lambda: len(listener.received) == 1)
            broker.stop()
            for time in range(2, 50):
                publisher.send(Element(time, (), "s", time, b""))
            broker.start()
        until(lambda: len({each.id for each in listener.received}) == 49)
    times = {each.id: json.loads(each.body)["timestamp"] for each in listener.received}
    assert [*times.values()] == [*range(1, 50)]


@pytest.mark.outside
@pytest.mark.parametrize("scheme", ["mqtt", "kafka"])
def test_a_broker_that_is_away_at_the_start_ends_the_replay(scheme):
    with (
        pytest.raises(DriverError, match=f"{scheme}://127.0.0.1:{(port := free_port())}/t: "),
        Publisher(read_spec(f"{scheme}://127.0.0.1:{port}/t")) as publisher,
    ):
        publisher.send(Element(1, (), "s", 1, b""))
