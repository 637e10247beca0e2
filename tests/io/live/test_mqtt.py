"""MQTT against a real mosquitto: no message is lost, and none counts twice."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from rsp_engine.io.sinks import FORMATS
from rsp_engine.io.sources.live.address import address_of
from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.mqtt import MqttLink
from rsp_engine.io.sources.live.receiver import Inbox, Receiver
from rsp_engine.io.sources.live.spool import Spool
from tests.io.live.engine_process import new_engine
from tests.io.live.engine_thread import publish
from tests.io.live.numbered_messages import Listener, message, since
from tests.io.live.servers import Mosquitto, mosquitto, needs_mosquitto
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.model.streams import DeadLetter

pytestmark = needs_mosquitto

AWAY_S = 10 if TIMES > 1 else 3
MESSAGES = 20_001 if TIMES > 1 else 6_001
BYTES_A_MESSAGE = 150
TOPIC = "factory/+/vibration"


class Publisher(threading.Thread):
    """Sends messages with QoS 1, and repeats those that are not acknowledged."""

    def __init__(self, broker: Mosquitto, messages: int) -> None:
        super().__init__(daemon=True)
        self._messages = messages
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2, "publisher", clean_session=False, protocol=mqtt.MQTTv311
        )
        self._client.max_queued_messages_set(0)
        self._client.max_inflight_messages_set(200)
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", broker.port)
        self._has_all = threading.Event()
        acknowledged = iter(range(1, messages + 1))
        self._client.on_publish = lambda *_: (
            self._has_all.set() if next(acknowledged, messages) == messages else None
        )
        self.limit = messages
        """How many messages are sent for now."""

    def run(self) -> None:
        self._client.loop_start()
        last = self._messages - 1
        for number in range(self._messages):
            while number >= self.limit:
                time.sleep(0.01)
            text = message(number, is_last=number == last)
            self._client.publish(f"factory/{number % 7}/vibration", text, qos=1)
        self._has_all.wait(120)
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def session(listener: Listener, broker: Mosquitto) -> Iterator[None]:
    """Start the engine; send the first messages once it has subscribed."""
    listener.start()
    try:
        broker.wait_for_subscriber(TOPIC)
        yield
    finally:
        listener.kill()


@pytest.mark.parametrize("runner", ["local", *(["spark"] if TIMES > 1 else [])])
def test_messages_come_once_through_three_kills_and_a_broker_that_is_away(tmp_path, runner):
    """The engine is killed three times and the broker stopped for seconds, during the run."""
    with mosquitto(tmp_path) as broker:
        listener = Listener(f"{broker.url}/{TOPIC}", tmp_path, MESSAGES, runner)
        with session(listener, broker):
            publisher = Publisher(broker, MESSAGES)
            publisher.start()
            for part in (0.1, 0.3, 0.5, 0.7):
                if runner == "spark":  # it starts so slowly that all would have come before
                    publisher.limit = int((part + 0.1) * MESSAGES)
                    listener.wait_for_commit()
                listener.wait_for_spooled(int(part * MESSAGES) * BYTES_A_MESSAGE)
                if part < 0.7:
                    listener.kill()
                    listener.start()
            publisher.limit = MESSAGES
            broker.stop()
            time.sleep(AWAY_S)
            broker.start()
            publisher.join(timeout=120)
            assert not publisher.is_alive()
            listener.wait()
    listed = listener.listed()
    assert set(listed) == since(MESSAGES), "none is lost"
    assert max(listed.values()) == 1, "none is twice"
    assert "the broker cannot be reached" in listener.log()
    assert "connected again" in listener.log()


def send_all(broker: Mosquitto, texts: Sequence[str | bytes]) -> None:
    """Send messages in order once the engine has subscribed, and wait for the acknowledgements."""
    broker.wait_for_subscriber(TOPIC)
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.max_queued_messages_set(0)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    for sent in [client.publish("factory/1/vibration", text, qos=1) for text in texts]:
        sent.wait_for_publish(60)
    client.disconnect()
    client.loop_stop()


def test_on_spark_messages_are_read_by_executors_and_the_answers_are_the_same(tmp_path, spark):
    """Some messages are in time, one is late, one is garbage, one is far too large."""
    texts = [message(number) for number in range(0, 4_000, 4)]
    texts[500:500] = ["garbage", "x" * (5 << 20)]
    texts += [message(4_000, is_last=True), message(0), message(20_000, is_last=True)]
    found = {}
    for runner in ("local", "spark"):
        folder = tmp_path / runner
        folder.mkdir()
        letters: list[DeadLetter] = []
        answers: list[str] = []
        with mosquitto(folder) as broker:
            engine = new_engine(f"{broker.url}/{TOPIC}?dedup=none", folder, runner, letters.append)
            sending = threading.Thread(target=send_all, args=(broker, texts))
            sending.start()
            for answer in engine.run():
                answers.append(str(FORMATS["jsonl"].writer()(answer)))
                if len(answers) == 5:
                    engine.stop()
            sending.join()
        found[runner] = answers, [(letter.position, letter.reason) for letter in letters]
    assert found["spark"] == found["local"]
    answers, faults = found["spark"]
    assert [line.count('"number"') for line in answers] == [250] * 4 + [1]
    assert [number for number, _ in faults] == [501, 502, 1_004]


@pytest.mark.parametrize("version", [5, 3])
def test_a_broker_knows_that_an_engine_without_room_is_alive(
    tmp_path, version, monkeypatch, caplog
):
    """The spool is full for more than twice as long as a broker tolerates a silent client."""
    monkeypatch.setattr("rsp_engine.io.sources.live.mqtt.KEEP_ALIVE_S", 1)
    spool = Spool(tmp_path / "spool", room=1)
    inbox = Inbox("source", spool, Deduplicator("none"))
    with mosquitto(tmp_path) as broker:
        link = MqttLink(address_of(f"{broker.url}/t"), version, "engine", is_kept=False)
        receiver = Receiver(link, inbox)
        receiver.start()
        broker.wait_for_subscriber("t")
        publish(broker.port, [("t", f"message {number}") for number in range(5)])
        time.sleep(4)
        assert spool.next_number == 2, "the second waits for room"
        until = time.monotonic() + 30
        while spool.next_number < 6 and time.monotonic() < until:
            spool.release(spool.end)
            time.sleep(0.05)
        inbox.close()
        receiver.join(timeout=30)
    texts = [record.message.payload for record in spool]
    spool.close()
    assert texts == [f"message {number}".encode() for number in range(5)]
    assert caplog.text == "", "the connection was never lost"
