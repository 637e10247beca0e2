"""A run that goes on: flat memory, flat disk, and every window once.

    RSP_THOROUGH=1 RSP_SOAK_MINUTES=60 pytest tests/soak/test_steady.py

Messages come over MQTT, some of them late, and the remote side goes away twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.data import PROJECT
from tests.io.live.servers import Mosquitto, mosquitto, needs_mosquitto
from tests.replica.servers import OxigraphServer, free_port
from tests.soak.processes import disk_bytes, resident_bytes
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from pathlib import Path

EX = "http://example.org/"
MINUTES = float(os.environ.get("RSP_SOAK_MINUTES", "20"))
RATE = 100
"""Messages a second."""
LATE = 50
"""One in so many is later than the run waits for."""
QUERY = f"""PREFIX : <{EX}>
REGISTER RSTREAM :best AS SELECT ?machine (?v + ?f AS ?score)
FROM NAMED WINDOW :w ON STREAM :s [RANGE 5s STEP 1s]
WHERE {{ WINDOW :w {{ ?machine :vibration ?v }} SERVICE :erp {{ ?machine :faults ?f }} }}
ORDER BY DESC(?score) LIMIT 3"""
MACHINES = 200
TOPIC = "factory/vibration"


class Sample(NamedTuple):
    memory: int
    disk: int


class Publisher(threading.Thread):
    """Sends readings of the present, and some of the past, at a steady rate."""

    def __init__(self, broker: Mosquitto, seconds: float) -> None:
        super().__init__(daemon=True)
        self._seconds = seconds
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.max_queued_messages_set(0)
        self._client.connect("127.0.0.1", broker.port)
        self.late = 0

    def run(self) -> None:
        self._client.loop_start()
        start, number = time.monotonic(), 0
        while (passed := time.monotonic() - start) < self._seconds:
            while number < passed * RATE:
                self._send(number)
                number += 1
            time.sleep(0.005)
        self._client.disconnect()
        self._client.loop_stop()

    def _send(self, number: int) -> None:
        is_late = number % LATE == LATE - 1
        self.late += is_late
        at = int(1000 * (time.time() - 20 * is_late))
        machine = f"<{EX}m{number * 7919 % MACHINES}>"
        text = (
            f"{machine} <{EX}vibration> {number % 50} ."
            f" <{EX}at{number}> <http://www.w3.org/ns/prov#generatedAtTime> {at} ."
        )
        self._client.publish(TOPIC, text, qos=1)


class Erp:
    """A remote side that can go away, and comes back where it was."""

    def __init__(self) -> None:
        self.port = free_port()
        self._stack = ExitStack()
        self.start()

    def start(self) -> None:
        server = self._stack.enter_context(OxigraphServer(self.port))
        facts = (f"<{EX}m{n}> <{EX}faults> {n % 17} ." for n in range(MACHINES))
        server.update(f"INSERT DATA {{ {' '.join(facts)} }}")

    def stop(self) -> None:
        self._stack.close()


def command(broker: Mosquitto, erp: Erp) -> list[str]:
    service = f"{EX}erp=http://127.0.0.1:{erp.port}/query"
    return [
        *(sys.executable, "-m", "rsp_engine.cli", "run", "best.rspql", "--runner=local"),
        *(
            f"--stream={EX}s={broker.url}/{TOPIC}?format=turtle",
            f"--service={service}",
            "--policy=AT-TSM",
        ),
        *("--budget=20", "--replica=cache", "--capacity=100", "--deadline=300ms"),
        *("--max-delay=2s", "--checkpoint=checkpoint", "--output=answers.jsonl"),
        "--dead-letters=letters.jsonl",
    ]


@needs_mosquitto
@pytest.mark.skipif(TIMES == 1, reason="it takes minutes: RSP_THOROUGH=1 runs it")
def test_a_run_of_minutes_is_flat_and_answers_every_window_once(tmp_path):
    seconds = 60 * MINUTES
    (tmp_path / "best.rspql").write_text(QUERY, encoding="utf-8")
    erp = Erp()
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with mosquitto(tmp_path) as broker, (tmp_path / "log.txt").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own
            command(broker, erp), cwd=tmp_path, env=environment, stderr=log, start_new_session=True
        )
        try:
            broker.wait_for_subscriber(TOPIC)
            publisher = Publisher(broker, seconds)
            publisher.start()
            samples = watched(process, tmp_path, erp, seconds)
            publisher.join(timeout=60)
            time.sleep(5)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, 130, 143), log_of(tmp_path)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            erp.stop()
    quarter = len(samples) // 4
    for name in Sample._fields:
        early = max(getattr(sample, name) for sample in samples[quarter : 2 * quarter])
        last = max(getattr(sample, name) for sample in samples[-quarter:])
        assert last <= 1.2 * early + (8 << 20), f"{name} grows from {early} to {last}"
    answers = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line) for line in answers]
    closes = [answer["window"]["close"] for answer in told]
    assert closes == list(range(closes[0], closes[-1] + 1000, 1000)), "each once, in order"
    assert len(closes) >= seconds - 20
    assert sum("faults" in answer["stats"] for answer in told) > 5, "the remote side went away"
    letters = (tmp_path / "letters.jsonl").read_text(encoding="utf-8").count("late")
    assert letters >= publisher.late - 5


def watched(
    process: subprocess.Popen[bytes], folder: Path, erp: Erp, seconds: float
) -> list[Sample]:
    """Take samples until the end; meanwhile the remote side goes away twice, for a tenth."""
    away = [(0.35, erp.stop), (0.45, erp.start), (0.65, erp.stop), (0.75, erp.start)]
    samples, start = [], time.monotonic()
    while (part := (time.monotonic() - start) / seconds) < 1:
        if away and part > away[0][0]:
            away.pop(0)[1]()
        assert process.poll() is None, log_of(folder)
        samples.append(Sample(resident_bytes(process.pid), disk_bytes(folder / "checkpoint")))
        time.sleep(seconds / 400)
    return samples


def log_of(folder: Path) -> str:
    return (folder / "log.txt").read_text(encoding="utf-8")[-3000:]
