"""Kafka to answers: messages a second of a topic of four partitions, on both runners.

The broker is the mock cluster of librdkafka, in a process of its own, and all messages are there
before a run begins. The baseline is a consumer of confluent-kafka that takes the same messages and
drops them. CPU seconds are those of the run and of all processes below it, without the start of
Spark; executors are those of one computer, with a core each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.bench_scale import cpu_of_all
from rsp_engine.drivers.spark.session import start_context
from rsp_engine.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGES = 100_000
PARTITIONS = 4
EX = "http://example.org/"
START = 1_700_000_000_000
TEMPLATE = '@prefix : <http://example.org/> . :{sensor} :value "{value}"^^xsd:integer .'
QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :top AS SELECT ?s ?v FROM NAMED WINDOW :w ON STREAM :m [RANGE 10s STEP 2s]
WHERE { WINDOW :w { ?s :value ?v } } ORDER BY DESC(?v) LIMIT 3"""
RUNS = {
    "a consumer that does nothing": "bare",
    "local, jsonl": "jsonl local",
    "local, JSON with a template": "json local",
    "Spark, JSON, one executor": "json local-cluster[1,1,1024]",
    "Spark, JSON, two executors": "json local-cluster[2,1,1024]",
}


def serve() -> None:
    """Run a broker until the standard input ends; print its address."""
    broker = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [address] = [f"{each.host}:{each.port}" for each in broker.list_topics().brokers.values()]
    print(address, flush=True)
    sys.stdin.read()


@contextmanager
def kafka() -> Iterator[str]:
    """Run a broker in a process of its own, with the messages of both topics; yield its address."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(  # noqa: S603 - this
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        address = broker.stdout.readline().strip()
        producer = Producer({"bootstrap.servers": address, "log_level": 0})
        for topic in ("json", "jsonl"):
            for number in range(MESSAGES):
                text = message(topic, number, START + number)
                producer.produce(topic, text, partition=number % PARTITIONS)
                producer.poll(0)
            for partition in range(PARTITIONS):  # they close the last windows
                text = message(topic, MESSAGES, START + MESSAGES + 20_000)
                producer.produce(topic, text, partition=partition)
        producer.flush()
        yield address
        broker.stdin.close()


def message(topic: str, number: int, at: int) -> str:
    """Return a message with one triple."""
    sensor, value = f"s{number % 100}", number * 7_919 % 9_973
    if topic == "json":
        return json.dumps({"sensor": sensor, "value": value, "timestamp": at})
    return json.dumps({"timestamp": at, "graph": f"<{EX}{sensor}> <{EX}value> {value} ."})


def bare(address: str) -> None:
    """Take all messages, and drop them."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bare"})
    consumer.assign([TopicPartition("json", number, 0) for number in range(PARTITIONS)])
    left = MESSAGES + PARTITIONS
    while left:
        left -= len(consumer.consume(min(500, left), timeout=10))  # no errors are expected
    consumer.close()


def answer(address: str, topic: str, template: Path, master: str) -> None:
    """Answer the query until the last window that has a message."""
    runner: Any = "local" if master == "local" else "spark"
    engine = Engine(runner=runner, master=None if master == "local" else master)
    engine.register(QUERY)
    options = f"format=json&template={template}" if topic == "json" else "format=jsonl"
    engine.bind(":m", f"kafka://{address}/{topic}?{options}&ahead=99999d")
    for found in engine.run():
        if found.window.close >= START + MESSAGES - 1:
            engine.stop()


def measure(address: str, what: str, template: Path) -> dict[str, float]:
    """Run one of the cases in this process, and return what it took."""
    topic, _, master = what.partition(" ")
    if master.startswith("local-"):
        context = start_context(master)
        cores = context.defaultParallelism
        context.parallelize(range(4 * cores), 4 * cores).map(lambda _: time.sleep(0.1)).collect()
    cpu, start = cpu_of_all(), time.perf_counter()
    if topic == "bare":
        bare(address)
    else:
        answer(address, topic, template, master)
    return {"wall": time.perf_counter() - start, "cpu": cpu_of_all() - cpu}


def main() -> None:
    """Print a line for each case."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--serve", action="store_true")
    flags.add_argument("--one", nargs=3, metavar=("ADDRESS", "CASE", "TEMPLATE"))
    options = flags.parse_args()
    if options.serve:
        serve()
        return
    if options.one is not None:
        address, case, template = options.one
        print(json.dumps(measure(address, case, Path(template))))
        return
    head = f"{MESSAGES:,} messages of Kafka"
    print(f"{head:32}   messages/s   a CPU second   the baseline's CPU")
    with tempfile.TemporaryDirectory() as folder, kafka() as address:
        template = Path(folder) / "values.ttl"
        template.write_text(TEMPLATE)
        base = 0.0
        for name, case in RUNS.items():
            command = [sys.executable, __file__, "--one", address, case, str(template)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
            found = json.loads(done.stdout.splitlines()[-1])
            base = base or found["cpu"]
            speeds = f"{MESSAGES / found['wall']:12,.0f} {MESSAGES / found['cpu']:14,.0f}"
            print(f"{name:32} {speeds} {found['cpu'] / base:18.1f} x", flush=True)
    print()


if __name__ == "__main__":
    main()
