"""Live streams: throughput in messages a second from a broker to answers, and latency of answers.

The broker is a local mosquitto, and the sender is a separate process. The baseline of the
throughput is a client that receives the same messages and drops them. Latency is the time from
sending the message that closes a window to its answer. A second table compares reading the same
quads from files in Jelly and in N-Quads.
"""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

import paho.mqtt.client as mqtt
import pyoxigraph as ox
from paho.mqtt.enums import CallbackAPIVersion

from rsp_engine import Engine
from rsp_engine.io.sinks.jelly_frames import Frames
from rsp_engine.io.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MESSAGES = 20_000
WINDOWS = 20
QUADS = 100_000
EX = "http://example.org/"
START = 1_700_000_000_000
QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :top AS SELECT ?s ?v FROM NAMED WINDOW :w ON STREAM :m [RANGE 1s STEP 1s]
WHERE { WINDOW :w { ?s :v ?v } } ORDER BY DESC(?v) LIMIT 3"""


@contextmanager
def broker(program: str, folder: Path) -> Iterator[int]:
    """Run mosquitto on a free port for the duration of the context."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    config = folder / "mosquitto.conf"
    limits = "max_queued_messages 0\nmax_inflight_messages 0\nset_tcp_nodelay true\n"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n{limits}")
    process = subprocess.Popen([program, "-c", str(config)], stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        time.sleep(0.5)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


def sender(port: int) -> mqtt.Client:
    """Return a connected client."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.max_queued_messages_set(0)
    client.max_inflight_messages_set(500)
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client


def message(number: int, at: int) -> str:
    """Return a message with one triple."""
    graph = f"<{EX}s{number % 100}> <{EX}v> {number % 997} ."
    return json.dumps({"id": number, "timestamp": at, "graph": graph})


def send_all(port: int) -> None:
    """Send all messages as fast as the broker takes them; their timestamps are 1 ms apart."""
    client = sender(port)
    for number in range(MESSAGES):
        client.publish("m", message(number, START + number), qos=1)
    client.publish("m", message(MESSAGES, START + 10 * MESSAGES), qos=1).wait_for_publish(120)
    client.disconnect()
    client.loop_stop()


def seconds(port: int, listen: Callable[[threading.Event], None]) -> float:
    """Return the seconds from the first message sent to the end of a listener."""
    is_ready = threading.Event()
    listener = threading.Thread(target=listen, args=(is_ready,))
    listener.start()
    is_ready.wait()
    time.sleep(1)  # for the subscription
    start = time.perf_counter()
    subprocess.run([sys.executable, __file__, "send", str(port)], check=True)  # noqa: S603 - this
    listener.join()
    return time.perf_counter() - start


def bare(port: int) -> float:
    """Return the seconds of a client that drops all messages."""

    def listen(is_ready: threading.Event) -> None:
        left, is_done = iter(range(MESSAGES)), threading.Event()
        client = sender(port)
        client.on_message = lambda *_: is_done.set() if next(left, None) is None else None
        client.subscribe("m", qos=1)
        is_ready.set()
        is_done.wait()
        client.disconnect()
        client.loop_stop()

    return seconds(port, listen)


def engine_for(port: int) -> Engine:
    """Return an engine that ranks the messages of each second."""
    engine = Engine()
    engine.register(QUERY)
    engine.bind(f"{EX}m", f"mqtt://127.0.0.1:{port}/m")
    return engine


def end_to_end(port: int) -> float:
    """Return the seconds until every message has been in a window that was answered."""

    def listen(is_ready: threading.Event) -> None:
        engine = engine_for(port)
        is_ready.set()
        for answer in engine.run():
            if answer.window.close >= START + MESSAGES - 1:
                engine.stop()

    return seconds(port, listen)


def latencies(port: int) -> list[float]:
    """Return the milliseconds from the message that closes a window to its answer."""
    engine, sent = engine_for(port), dict[int, float]()

    def send() -> None:
        time.sleep(2)
        client = sender(port)
        for number in range(100 * (WINDOWS + 1)):
            at = START + 10 * number + 1
            sent.setdefault((at - 1) // 1000 * 1000, time.perf_counter())
            client.publish("m", message(number, at), qos=1)
            time.sleep(0.002)
        client.disconnect()
        client.loop_stop()
        engine.stop()

    thread = threading.Thread(target=send)
    thread.start()
    answers = [(answer.window.close, time.perf_counter()) for answer in engine.run()]
    thread.join()
    return [1000 * (at - sent[close]) for close, at in answers if close in sent][:WINDOWS]


def read_speed(folder: Path) -> None:
    """Print the quads a second when elements are read from Jelly, and from N-Quads."""
    draw = random.Random(7)  # noqa: S311 - the same stream in every run
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    nquads, jelly = folder / "s.nq", folder / "s.jelly"
    with nquads.open("w") as stream:
        for number in range(QUADS):
            value = f'"{draw.randrange(1_000_000)}"^^<{integer}>'
            subject, graph = f"<{EX}u{number % 5000}>", f"<{EX}g/{START + number // 10 * 10}>"
            stream.write(f"{subject} <{EX}p> {value} {graph} .\n")
    quads = list(ox.parse(path=nquads, format=ox.RdfFormat.N_QUADS))
    frames = Frames()
    cut = [quads[at : at + 1000] for at in range(0, QUADS, 1000)]
    jelly.write_bytes(b"".join(frames.frame([(q.triple, q.graph_name) for q in c]) for c in cut))
    speeds = {}
    for path in (nquads, jelly):
        runs = []
        for _ in range(3):
            start = time.process_time()
            elements = sum(1 for _ in open_source(str(path)))
            runs.append(QUADS / (time.process_time() - start))
        speeds[path.suffix] = median(runs)
        size = path.stat().st_size / 1e6
        print(f"{path.suffix:7} {median(runs):12,.0f} quads a CPU second, {size:5.1f} MB")
    print(f"{elements:,} elements each; Jelly is read at {speeds['.jelly'] / speeds['.nq']:.2f} x")


def print_speed_over_mqtt(program: str, folder: Path) -> None:
    """Print how fast messages come through a broker, and how long an answer takes."""
    with broker(program, folder) as port:
        base, whole = bare(port), end_to_end(port)
        times = latencies(port)
    print(f"{MESSAGES:,} messages over MQTT, QoS 1        messages/s")
    print(f"a client that does nothing {MESSAGES / base:22,.0f}")
    ratio = f"{base / whole:.2f} x"
    print(f"on disk, parsed, ranked, answered {MESSAGES / whole:15,.0f} {ratio:>10}")
    tail = quantiles(times, n=20)[-1]
    latency = f"{median(times):.0f} ms, and {tail:.0f} ms for one in twenty"
    print(f"from a message to the answer of its window: {latency}\n")


def main() -> None:
    """Print everything; without mosquitto, only what needs no broker."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    with tempfile.TemporaryDirectory() as name:
        if program is None:
            print("left out: MQTT, since mosquitto is not installed (apt-get install mosquitto)\n")
        else:
            print_speed_over_mqtt(program, Path(name))
        read_speed(Path(name))


if __name__ == "__main__":
    if sys.argv[1:2] == ["send"]:
        send_all(int(sys.argv[2]))
    else:
        main()
