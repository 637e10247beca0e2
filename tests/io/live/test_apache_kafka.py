"""Kafka sources and sinks on a real Apache Kafka, with aiokafka as the independent client.

With `RSP_THOROUGH=1`, where Maven is installed.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaProducer

from rsp_engine.engine import Engine
from rsp_engine.errors import SourceError
from tests.io.delivery.kafka_listener import KafkaListener
from tests.io.delivery.sinks import opened, sent
from tests.io.live.apache_kafka import ApacheKafka, apache_kafka
from tests.io.live.engine_thread import EX, Running, element, until
from tests.io.live.numbered_messages import Listener, message, since
from tests.io.sinks.samples import RANKED, answer
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.io.live.kafka_broker import Sent

pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(TIMES == 1, reason="it takes minutes: RSP_THOROUGH=1 runs it"),
]

MESSAGES = 20_001
PARTITIONS = 4
AWAY_S = 10
START = 1_700_000_000
QUERY = f"""PREFIX : <{EX}> SELECT ?v FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
WHERE {{ WINDOW :w {{ ?s :v ?v }} }} ORDER BY ?v LIMIT 100"""
ANSWERS = [answer(RANKED, 5000 * number) for number in range(1, 601)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with apache_kafka(tmp_path_factory.mktemp("kafka")) as started:
        yield started


def turtle(partition: int, second: float, value: int, **options: Any) -> Sent:
    return partition, element(second, value).encode(), options


@pytest.mark.parametrize("runner", ["local", "spark"])
def test_messages_come_once_through_three_kills_and_while_the_broker_is_away(tmp_path, runner):
    """A quarter of the messages is sent before each start; the broker goes while the last runs."""
    with apache_kafka(tmp_path) as broker:
        broker.create("messages", PARTITIONS)
        url = broker.url("messages", "group=monitors")
        listener = Listener(url, tmp_path, MESSAGES, runner)
        for quarter in range(4):
            first, after = (part * (MESSAGES - 1) // 4 for part in (quarter, quarter + 1))
            sent = [(n % PARTITIONS, message(n).encode()) for n in range(first, after)]
            broker.send("messages", sent)
            listener.start()
            try:
                listener.wait_for_commit()
                if quarter == 3:
                    broker.stop()
                    time.sleep(AWAY_S)
                    broker.start()
                    closing = message(MESSAGES - 1, is_last=True).encode()
                    broker.send("messages", [(n, closing) for n in range(PARTITIONS)])
                    listener.wait(300)
            finally:
                listener.kill()
        offsets = broker.committed("messages", "monitors", PARTITIONS)
    listed = listener.listed()
    assert set(listed) == since(MESSAGES), "none is lost"
    assert max(listed.values()) == 1, "none is twice"
    assert all(offset is not None and offset > 0 for offset in offsets), (offsets, listener.log())


def test_a_run_may_start_at_a_time(broker):
    """The time is that of Kafka, here another than that of the elements."""
    broker.create("timed", 2, **{"retention.ms": "-1"})
    hours = [(0, 1, 1), (1, 2, 2), (0, 3, 3), (1, 4, 4)]
    sent = [
        turtle(partition, value, value, timestamp_ms=1000 * (START + 3600 * hour))
        for partition, hour, value in hours
    ]
    closing = [turtle(n, 11, 9, timestamp_ms=1000 * (START + 5 * 3600)) for n in (0, 1)]
    broker.send("timed", [*sent, *closing])
    begin = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + 2 * 3600 + 1))
    running = Running(QUERY, {"s": broker.url("timed", f"format=turtle&start={begin}&idle=1s")})
    with running.listening():
        until(lambda: running.values() == [[3, 4]])


def test_messages_that_retention_has_removed_end_a_run_that_needs_them(broker, tmp_path):
    broker.create("short", **{"retention.ms": "10000", "segment.ms": "200"})
    broker.send("short", [turtle(0, 1, 1), turtle(0, 11, 2)])
    url = broker.url("short", "format=turtle&idle=300ms")

    def engine() -> Engine:
        made = Engine(checkpoint=tmp_path / "state")
        made.register(QUERY)
        made.bind(f"{EX}s", url)
        return made

    first = engine()
    for _ in first.run():
        first.stop()
    # A segment is closed by a message that comes later than `segment.ms`.
    until(lambda: _grow_until_gone(broker), 120)
    with pytest.raises(SourceError, match=r"short#0: the messages \d to \d+ are gone") as refusal:
        next(engine().run())
    assert "a longer retention.ms keeps more" in str(refusal.value.hint)


def _grow_until_gone(broker: ApacheKafka) -> bool:
    from confluent_kafka import Consumer, TopicPartition

    broker.send("short", [turtle(0, 12, 3)])
    time.sleep(0.7)
    asked = Consumer({"bootstrap.servers": broker.plain, "group.id": "looks"})
    try:
        first, _ = asked.get_watermark_offsets(TopicPartition("short", 0), timeout=10)
        return bool(first > 3)
    finally:
        asked.close()


def test_a_message_of_ten_megabytes_is_read_if_it_is_allowed(broker):
    broker.create("large", 2, **{"max.message.bytes": "20000000"})
    padding = f" # {'x' * 10_000_000}".encode()
    large = (0, element(1, 1).encode() + padding)
    broker.send("large", [turtle(1, 2, 2), turtle(1, 11, 11), large])
    url = broker.url("large", "format=turtle&idle=2s&largest=20000000")
    running = Running(QUERY, {"s": url})
    with running.listening():
        until(lambda: running.values() == [[1, 2]])
    assert not running.letters


def test_a_partition_that_is_added_is_read_from_its_first_message_on(broker):
    broker.create("grown")
    running = Running(QUERY, {"s": broker.url("grown", "format=turtle&start=latest&idle=1s")})
    with running.listening():
        until(lambda: running.engine._live()[0].partitions()[0].start == 0)
        broker.add_partitions("grown", 2)
        broker.send("grown", [turtle(1, 1, 1), turtle(1, 2, 2)])
        until(lambda: running.engine._live()[0].partitions()[1:])
        broker.send("grown", [turtle(0, 3, 3), turtle(0, 11, 4), turtle(1, 11, 5)])
        until(lambda: running.values() == [[1, 2, 3]])


def test_a_topic_that_is_created_later_is_awaited(broker, caplog):
    caplog.set_level(logging.WARNING)
    running = Running(QUERY, {"s": broker.url("later", "format=turtle&idle=300ms")})
    with running.listening():
        until(lambda: "the broker has no topic later (create it)" in caplog.text)
        broker.create("later")
        broker.send("later", [turtle(0, 1, 1), turtle(0, 11, 2)])
        until(lambda: running.values() == [[1]])


def test_only_messages_of_committed_transactions_count(broker):
    """An open transaction holds back what follows it, until it ends."""
    broker.create("exactly")
    running = Running(QUERY, {"s": broker.url("exactly", "format=turtle&idle=300ms")})
    with running.listening():
        asyncio.run(_transactions(broker, running))
        until(lambda: running.values() == [[1, 3, 4]])
    assert not running.letters


async def _transactions(broker: ApacheKafka, running: Running) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker.plain, transactional_id="tests")
    await producer.start()
    try:
        for value, is_kept in ((1, True), (2, False), (3, True)):
            await producer.begin_transaction()
            await producer.send_and_wait("exactly", element(value, value).encode())
            if is_kept:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
        await producer.begin_transaction()
        for second, value in ((4, 4), (11, 5)):
            await producer.send_and_wait("exactly", element(second, value).encode())
        await asyncio.sleep(3)
        assert running.values() == []
        await producer.commit_transaction()
    finally:
        await producer.stop()


def test_the_credentials_of_sasl_and_the_certificates_of_tls_are_used(
    tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.WARNING)
    certificate = make_certificate(tmp_path)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = (
        "listener.name.own.sasl.enabled.mechanisms=PLAIN\n"
        f'listener.name.own.plain.sasl.jaas.config={module} required user_ann="t0ps3cret";\n'
        "listener.name.own.ssl.keystore.type=PEM\n"
        f"listener.name.own.ssl.keystore.location={tmp_path}/both.pem\n"
    )
    with apache_kafka(tmp_path, settings, "SASL_SSL") as broker:
        broker.create("safe")
        broker.send("safe", [turtle(0, 1, 1), turtle(0, 11, 2)])
        url = broker.url("safe", "format=turtle&idle=300ms").replace("kafka:", "kafkas:")
        place = broker.address.replace(".", "_").replace(":", "_")
        name = f"RSP_SOURCE_{place}"
        monkeypatch.setenv(f"{name}_USER", "ann")
        monkeypatch.setenv(f"{name}_PASSWORD", "wr0ng")
        with Running(QUERY, {"s": url}).listening():
            until(lambda: f"no connection with TLS is possible ({name}_CA names" in caplog.text)
        monkeypatch.setenv(f"{name}_CA", str(certificate))
        with Running(QUERY, {"s": url}).listening():
            refused = f"the broker refuses the user or the password (check {name}_USER"
            until(lambda: refused in caplog.text)
        monkeypatch.setenv(f"{name}_PASSWORD", "t0ps3cret")
        running = Running(QUERY, {"s": url})
        with running.listening():
            until(lambda: running.values() == [[1]])
        for ending, value in {"USER": "ann", "PASSWORD": "wr0ng", "CA": str(certificate)}.items():
            monkeypatch.setenv(f"RSP_SINK_{place}_{ending}", value)
        target = url.partition("?")[0]
        assert sent(target, ANSWERS[0], patience=3).status.waiting == 1
        assert f"(check RSP_SINK_{place}_USER and RSP_SINK_{place}_PASSWORD)" in caplog.text
        monkeypatch.setenv(f"RSP_SINK_{place}_PASSWORD", "t0ps3cret")
        assert sent(target, ANSWERS[0]).status.waiting == 0
    assert "t0ps3cret" not in caplog.text
    assert "wr0ng" not in caplog.text


def make_certificate(folder: Path) -> Path:
    """Write a certificate of its own for this computer; and with its key, `both.pem`."""
    made, key = folder / "made.pem", folder / "key.pem"
    line = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        f" -subj /CN=test -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {made}"
    )
    subprocess.run(line.split(" "), check=True, capture_output=True)  # noqa: S603 - our own
    (folder / "both.pem").write_text(key.read_text() + made.read_text())
    return made


def test_a_sink_delivers_all_to_a_broker_that_is_away_for_a_while(tmp_path, caplog):
    with apache_kafka(tmp_path) as broker:
        broker.create("ranking", 3)
        with (
            KafkaListener(broker.plain, "ranking") as listener,
            opened(broker.url("ranking"), *ANSWERS[:300]) as sink,
        ):
            until(lambda: sink.status.delivered)
            broker.stop()
            for each in ANSWERS[300:]:
                sink.write(each)
            time.sleep(AWAY_S)
            broker.start()
            until(lambda: sink.status.waiting == 0, 120)
            until(lambda: len({each.id for each in listener.received}) == len(ANSWERS), 120)
    assert len({(each.id, each.body) for each in listener.received}) == len(ANSWERS)
    assert "answers are delivered again" in caplog.text
