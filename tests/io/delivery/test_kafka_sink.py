"""Kafka sinks on librdkafka's mock cluster, in a process of its own, read by aiokafka."""

from __future__ import annotations

import json

import pytest

from rsp_engine.io.sinks.delivery import kafka
from tests.io.delivery.kafka_listener import KafkaListener
from tests.io.delivery.receivers import until
from tests.io.delivery.sinks import opened, sent
from tests.io.live.kafka_broker import kafka_broker
from tests.io.live.servers import free_port
from tests.io.sinks.samples import RANKED, answer

pytestmark = pytest.mark.outside

ANSWERS = [answer(RANKED, 5000 * number) for number in range(1, 1201)]
IDS = [f"http%3A%2F%2Fexample.org%2Fquery/{5000 * n}/{5000 * n + 5000}" for n in range(1200)]


def test_messages_have_query_and_window_as_key_and_are_in_order():
    with kafka_broker(ranking=1) as broker, KafkaListener(broker.address, "ranking") as listener:
        sink = sent(broker.url("ranking"), *ANSWERS)
        until(lambda: len(listener.received) == len(ANSWERS))
    assert [each.id for each in listener.received] == IDS
    assert [json.loads(each.body)["id"] for each in listener.received] == IDS
    assert listener.received[0].headers == {"id": IDS[0], "content-type": "application/json"}
    assert (sink.status.delivered, sink.status.failures) == (len(ANSWERS), 0)


def test_brokers_that_are_away_for_a_while_get_everything(monkeypatch, caplog):
    monkeypatch.setattr(kafka, "_TIMEOUT_S", 1.5)
    with (
        kafka_broker(ranking=2) as broker,
        KafkaListener(broker.address, "ranking") as listener,
        opened(broker.url("ranking"), *ANSWERS[:600]) as sink,
    ):
        until(lambda: sink.status.delivered)
        broker.pause()
        for each in ANSWERS[600:]:
            sink.write(each)
        until(lambda: sink.status.trouble)
        broker.go_on()
        until(lambda: sink.status.waiting == 0)
        until(lambda: {each.id for each in listener.received} == set(IDS))
    assert len({(each.id, each.body) for each in listener.received}) == len(ANSWERS)
    assert "the brokers take nothing" in caplog.text
    assert "answers are delivered again" in caplog.text


def test_brokers_that_are_away_at_the_start_are_told_at_once(caplog):
    sink = sent(f"kafka://127.0.0.1:{free_port()}/ranking", ANSWERS[0], patience=2)
    assert sink.status.waiting == 1
    assert "Connection refused" in caplog.text


def test_credentials_that_do_not_fit_are_told_and_never_shown(monkeypatch, caplog):
    with kafka_broker(ranking=1) as broker:
        names = "RSP_SINK_" + broker.address.replace(".", "_").replace(":", "_").upper()
        monkeypatch.setenv(f"{names}_USER", "ann")
        monkeypatch.setenv(f"{names}_PASSWORD", "t0ps3cret")
        assert sent(broker.url("ranking"), ANSWERS[0], patience=1.5).status.waiting == 1
        monkeypatch.delenv(f"{names}_USER")
        monkeypatch.delenv(f"{names}_PASSWORD")
        assert sent(broker.url("ranking"), ANSWERS[0]).status.waiting == 0
    [said] = [record.getMessage() for record in caplog.records]
    assert "SASL" in said
    assert f"(check {names}_USER and {names}_PASSWORD); trying again" in said
    assert "t0ps3cret" not in caplog.text
