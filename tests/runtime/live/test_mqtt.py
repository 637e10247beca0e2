"""MQTT against a real mosquitto: no message is lost, and none counts twice."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from tests.runtime.live.counted import Listener, message, since
from tests.runtime.live.servers import Mosquitto, mosquitto, needs_mosquitto

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = needs_mosquitto

MESSAGES = 20_001
BYTES_A_MESSAGE = 150
TOPIC = "factory/+/vibration"


class Publisher(threading.Thread):
    """Sends messages with QoS 1 as fast as the broker takes them, and again where it must."""

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
        self.sent = 0

    def run(self) -> None:
        self._client.loop_start()
        last = self._messages - 1
        for number in range(self._messages):
            text = message(number, is_last=number == last)
            told = self._client.publish(f"factory/{number % 7}/vibration", text, qos=1)
            self.sent = number + 1
        told.wait_for_publish(120)
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def session(listener: Listener, broker: Mosquitto) -> Iterator[None]:
    """Let the engine listen; its first messages come when the broker knows it."""
    listener.start()
    try:
        broker.wait_for_subscriber(TOPIC)
        yield
    finally:
        listener.kill()


def test_twenty_thousand_messages_come_once_through_three_kills_and_a_broker_that_is_away(tmp_path):
    """The engine dies three times and the broker is stopped for ten seconds, all on the way."""
    with mosquitto(tmp_path) as broker:
        listener = Listener(f"{broker.url}/{TOPIC}", tmp_path, MESSAGES)
        with session(listener, broker):
            publisher = Publisher(broker, MESSAGES)
            publisher.start()
            size = MESSAGES * BYTES_A_MESSAGE
            for part in (0.1, 0.3, 0.5):
                listener.wait_for_spooled(int(part * size))
                listener.kill()
                listener.start()
            listener.wait_for_spooled(int(0.7 * size))
            broker.stop()
            time.sleep(10)
            broker.start()
            publisher.join(timeout=120)
            assert not publisher.is_alive()
            listener.wait()
    listed = listener.listed()
    assert set(listed) == since(MESSAGES), "none is lost"
    assert max(listed.values()) == 1, "none is twice"
    assert "the broker cannot be reached" in listener.log()
    assert "it is back" in listener.log()
