"""MQTT sinks against a real mosquitto: acknowledged messages, retained ones, refusals."""

from __future__ import annotations

import json

import pytest

from rsp_engine.io.sinks.delivery.courier import Delivery, NotDelivered
from rsp_engine.io.sinks.delivery.mqtt import MqttBroker
from rsp_engine.io.sources.live.address import address_of
from tests.io.delivery.receivers import Subscriber, until
from tests.io.delivery.sinks import opened, sent
from tests.io.live.servers import Mosquitto, mosquitto, needs_mosquitto, password_file
from tests.io.sinks.samples import RANKED, answer

pytestmark = [needs_mosquitto, pytest.mark.outside]

ANSWERS = [answer(RANKED, 5000 * number) for number in range(1, 301)]
IDS = [f"http%3A%2F%2Fexample.org%2Fquery/{5000 * n}/{5000 * n + 5000}" for n in range(300)]


def test_messages_arrive_in_order_with_id_and_type(tmp_path):
    with mosquitto(tmp_path) as broker, Subscriber(broker, "ranking/#") as listener:
        sent(f"{broker.url}/ranking/all", *ANSWERS)
        until(lambda: len(listener.received) == len(ANSWERS))
    assert [each.id for each in listener.received] == IDS
    assert [json.loads(each.body)["id"] for each in listener.received] == IDS
    assert {each.headers["Content-Type"] for each in listener.received} == {"application/json"}


@pytest.mark.parametrize(("retain", "kept"), [("true", [IDS[1]]), ("false", [])])
def test_the_last_answer_is_retained_if_the_user_asks_for_it(tmp_path, retain, kept):
    with mosquitto(tmp_path) as broker:
        sent(f"{broker.url}/ranking?retain={retain}&version=3", *ANSWERS[:2])
        with Subscriber(broker, "ranking") as listener:
            sent(f"{broker.url}/ranking", ANSWERS[2])
            until(lambda: listener.received)
    assert [json.loads(each.body)["id"] for each in listener.retained] == kept


def test_a_broker_that_is_away_at_the_start_and_in_the_middle_gets_everything(tmp_path, caplog):
    broker = Mosquitto(tmp_path)
    with opened(f"{broker.url}/ranking", ANSWERS[0]) as sink:
        until(lambda: sink.status.trouble)
        assert "the broker cannot be reached: Connection refused" in caplog.text
        broker.start()
        with Subscriber(broker, "ranking") as listener:
            until(lambda: listener.received)
            broker.stop()
            for each in ANSWERS[1:]:
                sink.write(each)
            until(lambda: sink.status.trouble)
            broker.start()
            until(lambda: len({each.id for each in listener.received}) == len(ANSWERS))
            broker.stop()
    assert list(dict.fromkeys(each.id for each in listener.received)) == IDS
    assert caplog.text.count("answers are delivered again") == 2


def test_a_connection_that_breaks_between_two_messages_is_opened_again(tmp_path):
    deliveries = [Delivery(str(number), b"{}") for number in range(3)]
    with mosquitto(tmp_path) as broker, Subscriber(broker, "ranking") as listener:
        sink = MqttBroker(address_of(f"{broker.url}/ranking"), "text/plain", 5, is_retained=False)
        sink.deliver(deliveries[:1])
        break_connection(sink)
        with pytest.raises(NotDelivered, match="not currently connected") as failure:
            sink.deliver(deliveries[1:])
        assert failure.value.delivered == 0
        sink.deliver(deliveries[1:])
        sink.close()
        until(lambda: len(listener.received) == len(deliveries))
    assert [each.id for each in listener.received] == ["0", "1", "2"]


def break_connection(sink):
    """Break the connection of a sink, without a sign of it."""
    client = sink._client
    client.on_disconnect = None
    client.disconnect()
    client.loop_stop()


def test_wrong_credentials_are_told_and_right_ones_work(tmp_path, monkeypatch, caplog):
    passwords = password_file(tmp_path, "ann", "hush")
    settings = f"allow_anonymous false\npassword_file {passwords}"
    with mosquitto(tmp_path, settings) as broker:
        names = f"RSP_SINK_127_0_0_1_{broker.port}"
        monkeypatch.setenv(f"{names}_USER", "ann")
        monkeypatch.setenv(f"{names}_PASSWORD", "wrong")
        sink = sent(f"{broker.url}/ranking", ANSWERS[0], patience=1)
        assert sink.status.waiting == 1
        assert f"check {names}_USER and {names}_PASSWORD" in caplog.text
        monkeypatch.setenv(f"{names}_PASSWORD", "hush")
        assert sent(f"{broker.url}/ranking", ANSWERS[0]).status.waiting == 0
    assert "wrong" not in caplog.text


def test_a_topic_that_the_broker_refuses_counts_as_not_delivered(tmp_path, caplog):
    rules = tmp_path / "acl"
    rules.write_text("topic write open\n")
    with mosquitto(tmp_path, f"allow_anonymous true\nacl_file {rules}") as broker:
        assert sent(f"{broker.url}/open", ANSWERS[0]).status.waiting == 0
        sink = sent(f"{broker.url}/closed", *ANSWERS[:3], patience=1)
    assert sink.status.waiting == 3
    assert "the broker refuses the message: Not authorized" in caplog.text
