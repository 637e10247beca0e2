"""The tour of docs/how-to/connect.md: JSON over MQTT and Kafka to a ranking, and back to MQTT."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.data import PROJECT
from tests.documents import page
from tests.io.live.engine_thread import publish, until
from tests.io.live.kafka_broker import kafka_broker
from tests.io.live.servers import mosquitto, needs_mosquitto

if TYPE_CHECKING:
    from pathlib import Path

START = 1_709_283_600
"""A full hour, in seconds."""


def block(language: str, after: str) -> str:
    """Return the first block of a language after some words of the page."""
    text = page("connect.md").read_text(encoding="utf-8")
    found = re.search(rf"```{language}\n(.*?)```", text[text.index(after) :], re.DOTALL)
    assert found is not None
    return found[1]


def reading(room: str, celsius: float, second: int) -> bytes:
    return json.dumps({"room": room, "celsius": celsius, "at": START + second}).encode()


def subscribed(port: int, topic: str, received: list[Any]) -> mqtt.Client:
    """Return a client that lists the answers that arrive under a topic."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    is_there = threading.Event()
    client.on_subscribe = lambda *_: is_there.set()
    client.on_message = lambda _client, _data, message: received.append(json.loads(message.payload))
    client.connect("127.0.0.1", port)
    client.subscribe(topic, qos=1)
    client.loop_start()
    assert is_there.wait(30)
    return client


@pytest.mark.outside
@needs_mosquitto
def test_plain_json_of_devices_becomes_a_ranking_that_goes_back_to_them(tmp_path: Path):
    received: list[Any] = []
    subprocess.run(["sh"], input=block("sh", "This writes"), cwd=tmp_path, check=True, text=True)  # noqa: S607
    (tmp_path / "queries").symlink_to(PROJECT / "queries")
    with mosquitto(tmp_path) as broker, kafka_broker(readings=1) as kafka:
        settings = block("toml", "This is the whole configuration")
        settings = settings.replace("mqtt://broker.example.org", broker.url)
        settings = settings.replace("broker.example.org:9092", kafka.address)
        (tmp_path / "rsp.toml").write_text(settings)
        client = subscribed(broker.port, "ranking", received)
        command = [sys.executable, "-m", "rsp_engine.cli", "run", "--config", "rsp.toml"]
        running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)  # noqa: S603
        try:
            broker.wait_for_subscriber("sensors/+")
            publish(broker.port, [("sensors/1", reading("hall", 21.5, 10))])
            kafka.send("readings", [(0, reading("lab", 24, 20)), (0, b'{"room": "attic"}')])
            publish(broker.port, [("sensors/1", reading("hall", 22, 70))])
            kafka.send("readings", [(0, reading("lab", 20, 80))])
            until(lambda: received)
        finally:
            running.send_signal(signal.SIGINT)
            _, told = running.communicate(timeout=60)
            client.disconnect()
            client.loop_stop()
    assert running.returncode == 0, told
    rows = [{n: v["value"] for n, v in row["bindings"].items()} for row in received[0]["rows"]]
    rooms = "http://example.org/building/"
    assert rows == [
        {"room": f"{rooms}lab", "degrees": "24"},
        {"room": f"{rooms}hall", "degrees": "21.5"},
    ]
    assert b"the field at is absent" in told
