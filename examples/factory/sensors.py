"""The sensors: each machine tells twice a second how it shakes, as RDF, over MQTT.

python sensors.py HOST PORT SECONDS
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from plant import FACTORY, MACHINES, vibration

EVERY_S = 0.5


def reading(machine: int, second: float, now: datetime) -> str:
    """Return what a machine says at a moment, in Turtle."""
    at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"""@prefix : <{FACTORY}> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:machine{machine} :vibration {vibration(machine, second)} .
:reading{machine} prov:generatedAtTime "{at}"^^xsd:dateTime ."""


def main(host: str, port: int, seconds: float) -> None:
    """Publish until the time is over."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="sensors")
    client.connect(host, port)
    client.loop_start()
    begun = time.monotonic()
    while (second := time.monotonic() - begun) < seconds:
        now = datetime.now(UTC)
        for machine in range(MACHINES):
            topic = f"factory/machine{machine}/vibration"
            client.publish(topic, reading(machine, second, now), qos=1)
        time.sleep(EVERY_S)
    client.disconnect()
    client.loop_stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
