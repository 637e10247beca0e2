"""Kafka, on librdkafka's mock broker, with aiokafka as the independent client that produces."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import certifi
import pytest

from rsp_engine.engine import Engine
from rsp_engine.errors import SourceError
from rsp_engine.io.sinks import FORMATS
from rsp_engine.io.sinks.delivery.publisher import Publisher
from rsp_engine.io.sources import open_source
from rsp_engine.io.sources.live.kafka import client
from rsp_engine.io.sources.live.kafka.topic import TopicSource
from rsp_engine.io.sources.live.kafka.watch import PartitionExtent, Presence
from rsp_engine.io.sources.memory import MemorySource
from rsp_engine.io.sources.spec import read_spec
from rsp_engine.io.sources.splits import Split
from rsp_engine.model.streams import Element
from tests.io.live.engine_process import new_engine
from tests.io.live.engine_thread import EX, Running, element, until
from tests.io.live.kafka_broker import KafkaBroker, kafka_broker
from tests.io.live.numbered_messages import Listener, message, since

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.streams import DeadLetter
    from tests.io.live.kafka_broker import Sent

MESSAGES = 20_001
PARTITIONS = 4
QUERY = f"""PREFIX : <{EX}> SELECT ?v FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
WHERE {{ WINDOW :w {{ ?s :v ?v }} }} ORDER BY ?v LIMIT 100"""
URL = "kafka://127.0.0.1:9092/readings"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    names = "ahead away big garbage group keys late latest one outage replayed silent".split()
    with kafka_broker(**dict.fromkeys(names, 2)) as started:
        yield started


def turtle(partition: int, second: float, value: int) -> Sent:
    return partition, element(second, value).encode()


@pytest.mark.outside
@pytest.mark.parametrize("runner", ["local", "spark"])
def test_messages_come_once_through_three_kills(tmp_path, runner):
    """A quarter of the messages is sent before each start; the engine is killed in the middle."""
    with kafka_broker(messages=PARTITIONS) as broker:
        listener = Listener(broker.url("messages"), tmp_path, MESSAGES, runner)
        for quarter in range(4):
            first, after = (part * (MESSAGES - 1) // 4 for part in (quarter, quarter + 1))
            numbers = range(first, after)
            sent = [(n % PARTITIONS, message(n).encode()) for n in numbers]
            broker.send("messages", sent)
            if quarter == 3:
                closing = message(MESSAGES - 1, is_last=True).encode()
                broker.send("messages", [(n, closing) for n in range(PARTITIONS)])
            listener.start()
            try:
                if quarter < 3:
                    listener.wait_for_commit()
                else:
                    listener.wait()
            finally:
                listener.kill()
    listed = listener.listed()
    assert set(listed) == since(MESSAGES), "none is lost"
    assert max(listed.values()) == 1, "none is twice"


@pytest.mark.outside
def test_on_spark_executors_read_the_partitions_and_the_answers_are_the_same(tmp_path, spark):
    """Each partition has garbage, and an element that is late even within its partition."""
    texts = [message(number) for number in range(0, 4_000, 4)]
    sent = [(number % 3, text.encode()) for number, text in enumerate(texts)]
    for partition in range(3):
        sent += [(partition, b"garbage"), (partition, message(8_000 + partition).encode())]
        sent += [(partition, message(partition).encode())]
        sent += [(partition, message(20_000, is_last=True).encode())]
    found = {}
    with kafka_broker(messages=3) as broker:
        broker.send("messages", sent)
        for runner in ("local", "spark"):
            (tmp_path / runner).mkdir()
            letters: list[DeadLetter] = []
            answers: list[str] = []
            engine = new_engine(broker.url("messages"), tmp_path / runner, runner, letters.append)
            for answer in engine.run():
                answers.append(str(FORMATS["jsonl"].writer()(answer)))
                if len(answers) == 5:
                    engine.stop()
            set_aside = [(letter.source[-2:], letter.position) for letter in letters]
            found[runner] = answers, sorted(set_aside)
    assert found["spark"] == found["local"]
    answers, faults = found["spark"]
    assert [line.count('"number"') for line in answers] == [250] * 4 + [3]
    assert [source for source, _ in faults] == ["#0", "#0", "#1", "#1", "#2", "#2"]


def test_partitions_are_one_stream_whose_watermark_is_the_least_of_theirs(broker):
    """The window closes only when both partitions have passed it.

    partition 0    1  2 | 11
    partition 1         |      3 | 12
    """
    running = Running(QUERY, {"s": broker.url("ahead", "format=turtle&idle=1h")})
    with running.listening():
        broker.send("ahead", [turtle(0, 1, 1), turtle(0, 2, 2), turtle(0, 11, 11)])
        until(lambda: running.engine.counts.elements == 0 and partition_ends(running) == [3, 0])
        assert running.values() == []
        broker.send("ahead", [turtle(1, 3, 3), turtle(1, 12, 12)])
        until(lambda: running.values() == [[1, 2, 3]])


def partition_ends(running: Running) -> list[int]:
    """Return how far the engine knows the partitions to go."""
    [topic] = running.engine._live()
    assert isinstance(topic, TopicSource)
    watch = topic._watch
    return [] if watch is None else [extent.end for extent in watch.extents.values()]


def test_a_silent_partition_times_out_and_its_later_elements_may_be_late(broker):
    running = Running(QUERY, {"s": broker.url("silent", "format=turtle&idle=300ms")})
    with running.listening():
        broker.send("silent", [turtle(0, 1, 1), turtle(0, 11, 11)])
        until(lambda: running.values() == [[1]])
        broker.send("silent", [turtle(1, 2, 2), turtle(1, 12, 12), turtle(0, 21, 21)])
        until(lambda: running.letters)
    assert [letter.reason.partition(":")[0] for letter in running.letters] == ["late"]
    assert running.letters[0].source.endswith("silent#1")
    assert running.values()[1] == [11, 12]


def test_a_broker_that_is_away_is_reported_and_awaited(broker, caplog, monkeypatch):
    """It is away at the start, and again after a while."""
    monkeypatch.setattr(client, "REQUEST_S", 0.5)
    caplog.set_level(logging.WARNING)
    broker.pause()
    running = Running(QUERY, {"s": broker.url("away", "format=turtle&idle=300ms")})
    try:
        with running.listening():
            until(lambda: "the broker cannot be reached; trying again" in caplog.text)
            broker.go_on()
            until(lambda: "connected again" in caplog.text)
            broker.send("away", [turtle(0, 1, 1), turtle(0, 11, 11)])
            until(lambda: running.values() == [[1]])
            broker.pause()
            until(lambda: caplog.text.count("trying again") == 2)
            broker.go_on()
            broker.send("away", [turtle(0, 12, 12), turtle(0, 21, 21)])
            until(lambda: running.values() == [[1], [11, 12]])
    finally:
        broker.go_on()
    assert not running.letters


def test_what_a_partition_has_is_not_late_after_its_broker_was_away(broker, caplog, monkeypatch):
    """Nobody knows what is there meanwhile: that is no silence, however short the idle timeout.

    partition 0    1 | 11         12
    partition 1    2     (away)    3 | 11
    """
    monkeypatch.setattr(client, "REQUEST_S", 0.5)
    caplog.set_level(logging.WARNING)
    running = Running(QUERY, {"s": broker.url("outage", "format=turtle&idle=3s")})
    try:
        with running.listening():
            broker.send("outage", [turtle(0, 1, 1), turtle(1, 2, 2), turtle(0, 11, 4)])
            until(lambda: running.engine.counts.elements == 2)
            broker.pause()
            until(lambda: "trying again" in caplog.text)
            time.sleep(4)
            broker.go_on()
            broker.send("outage", [turtle(1, 3, 3), turtle(0, 12, 5), turtle(1, 11, 6)])
            until(lambda: running.values() == [[1, 2, 3]])
    finally:
        broker.go_on()
    assert not running.letters


def test_a_topic_that_does_not_exist_is_reported_and_awaited(broker, caplog):
    caplog.set_level(logging.WARNING)
    running = Running(QUERY, {"s": broker.url("later", "format=turtle&idle=300ms")})
    with running.listening():
        until(lambda: "the broker has no topic later (create it)" in caplog.text)
        broker.send("later", [turtle(0, 1, 1), turtle(0, 11, 11)])  # which creates it
        until(lambda: running.values() == [[1]])


@pytest.mark.parametrize(
    "refusal",
    [
        ("kafkas", None, "no connection with TLS is possible"),
        ("kafka", "ann", "the broker refuses the user or the password (check RSP_SOURCE_"),
    ],
)
def test_a_broker_that_refuses_the_connection_is_reported(broker, caplog, monkeypatch, refusal):
    """The mock broker knows neither TLS nor SASL."""
    scheme, user, reason = refusal
    monkeypatch.setattr(client, "REQUEST_S", 1)
    caplog.set_level(logging.WARNING)
    url = broker.url("one").replace("kafka", scheme)
    name = f"RSP_SOURCE_{broker.address.replace('.', '_').replace(':', '_')}"
    if user is not None:
        monkeypatch.setenv(f"{name}_USER", user)
        monkeypatch.setenv(f"{name}_PASSWORD", "secret")
    running = Running(QUERY, {"s": url})
    with running.listening():
        until(lambda: reason in caplog.text)


def test_a_message_of_ten_megabytes_is_read_if_it_is_allowed(broker):
    padding = f" # {'x' * 10_000_000}".encode()
    large = (0, element(1, 1).encode() + padding)
    broker.send("big", [turtle(1, 2, 2), turtle(1, 11, 11), large])
    answers = []
    for options in ("", "&largest=20000000"):
        running = Running(QUERY, {"s": broker.url("big", "format=turtle&idle=1s" + options)})
        with running.listening():
            until(lambda running=running: running.values())  # type: ignore[misc]
        answers.append((running.values()[0], [letter.reason for letter in running.letters]))
    size = len(large[1])
    reason = f"large: the message has {size} bytes, more than 4194304; its start is kept"
    assert answers == [([2], [reason]), ([1, 2], [])]


def test_what_cannot_be_read_is_set_aside_with_its_offset(broker):
    messages = [(1, b"\xff{garbage"), (1, None, {"key": b"k"}), turtle(1, 1, 1), turtle(1, 11, 2)]
    broker.send("garbage", messages)
    running = Running(QUERY, {"s": broker.url("garbage", "format=turtle&idle=300ms")})
    with running.listening():
        until(lambda: running.values() == [[1]])
    letters = [(letter.source[-1], letter.position, letter.reason) for letter in running.letters]
    assert letters[0][:2] == ("1", 0)
    assert "the graph cannot be read" in letters[0][2]
    assert letters[1:] == [("1", 1, "the message has no value")]


@pytest.mark.parametrize("where", ["key", "header:at", "broker"])
def test_the_time_may_be_outside_of_the_payload(broker, where):
    topic = "keys" + where[0]

    def timed(second: int, value: int) -> Sent:
        time = str(1_700_000_000 + second)
        options: dict[str, Any]
        options = {"timestamp_ms": int(time) * 1000} if where == "broker" else {}
        options |= {"key": time.encode()} if where == "key" else {}
        options |= {"headers": [("at", time.encode())]} if where == "header:at" else {}
        return 0, f"<{EX}s> <{EX}v> {value} .".encode(), options

    broker.send(topic, [timed(1, 1), timed(11, 2)])
    broker.send(topic, [(0, b"<urn:a> <urn:b> 1 .", {"timestamp_ms": 1_700_000_000_000})])
    url = broker.url(topic, f"format=turtle&unit=s&idle=300ms&ahead=1000000h&time={where}")
    running = Running(QUERY, {"s": url})
    with running.listening():
        until(lambda: running.values() == [[1]])
    if where != "broker":
        [letter] = running.letters
        assert letter.reason == f"the message has no {where.replace(':', ' ')}"


def test_a_run_may_start_after_the_last_message(broker):
    broker.send("latest", [turtle(0, 1, 1), turtle(1, 1, 2)])
    running = Running(QUERY, {"s": broker.url("latest", "format=turtle&start=latest&idle=300ms")})
    with running.listening():
        until(lambda: partition_ends(running) == [1, 1])
        broker.send("latest", [turtle(0, 2, 3), turtle(0, 11, 4)])
        until(lambda: running.values() == [[3]])


def test_a_resumed_run_continues_where_a_partition_had_no_message_yet(broker, tmp_path):
    """What arrives while the engine is down, after a start at the end, is not skipped."""
    url = broker.url("one", "format=turtle&start=latest&idle=300ms")
    broker.send("one", [turtle(0, 1, 1), turtle(1, 1, 1)])

    def engine() -> Engine:
        made = Engine(checkpoint=tmp_path / "state")
        made.register(QUERY)
        made.bind(f"{EX}s", url)
        return made

    first = engine()
    answers = first.run()
    broker_is_seen = [turtle(0, 2, 2), turtle(0, 11, 3)]

    def send_when_it_listens() -> None:
        [topic] = first._live()
        assert isinstance(topic, TopicSource)
        until(lambda: topic._watch is not None and topic._watch.extents)
        broker.send("one", broker_is_seen)

    threading.Thread(target=send_when_it_listens).start()
    assert [row.bindings["v"].value for row in next(answers).content.rows] == ["2"]  # type: ignore[union-attr]
    first.stop()
    assert list(answers) == []
    broker.send("one", [turtle(1, 12, 5), turtle(0, 21, 6), turtle(1, 21, 7)])
    second = engine()
    rows = next(second.run()).content.rows  # type: ignore[union-attr]
    assert [row.bindings["v"].value for row in rows] == ["3", "5"]
    second.close()


def test_the_offsets_of_a_group_are_those_that_the_committed_state_needs(broker, tmp_path):
    broker.send("group", [turtle(0, 1, 1), turtle(0, 11, 2), turtle(1, 12, 3)])
    url = broker.url("group", "format=turtle&group=monitors&idle=300ms")
    engine = Engine(checkpoint=tmp_path / "state")
    engine.register(QUERY)
    engine.bind(f"{EX}s", url)
    for _ in engine.run():
        engine.stop()
    [first, second] = broker.committed("group", "monitors", 2)
    assert first == 2
    assert second in (0, 1), "the split of an element that waits for others may be needed"


def test_a_recorded_stream_is_replayed_to_a_topic_and_read_from_there(broker):
    recorded = [(1_000 * n, f"<{EX}s> <{EX}v> {n} .") for n in (1, 2, 11)]
    with Publisher(read_spec(broker.url("replayed"))) as publisher:
        for element in MemorySource(recorded):
            assert isinstance(element, Element)
            publisher.send(element)
    running = Running(QUERY, {"s": broker.url("replayed", "idle=300ms")})
    with running.listening():
        until(lambda: running.values() == [[1, 2]])


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("kafka://127.0.0.1:9/t?x=1", "there is no option x"),
        ("kafka://127.0.0.1:9", "it names no topic"),
    ],
)
def test_a_topic_that_nothing_can_be_replayed_to_is_refused(target, reason):
    with pytest.raises(SourceError, match=reason):
        Publisher(read_spec(target))


class _Watch:
    """A watch that has found what a test says."""

    is_away = False
    presence = Presence()
    failure = None

    def __init__(self, *ends: tuple[int, int]) -> None:
        self.extents = {n: PartitionExtent(first, end, end) for n, (first, end) in enumerate(ends)}


def topic_with(*ends: tuple[int, int]) -> TopicSource:
    topic = open_source(URL)
    assert isinstance(topic, TopicSource)
    topic._watch = _Watch(*ends)  # type: ignore[assignment]
    return topic


def test_a_new_partition_is_read_from_its_first_message_on():
    """The other was there at the start, which is at the end by the options."""
    topic = topic_with((0, 5))
    assert [partition.start for partition in topic.partitions()] == [5]
    topic._watch = _Watch((0, 5), (2, 9))  # type: ignore[assignment]
    assert [partition.start for partition in topic.partitions()] == [5, 2]


@pytest.mark.parametrize(
    ("read_to", "message"),
    [
        (7, "the messages 7 to 9 are gone: Kafka keeps those after them"),
        (21, "it ends at 20, and was read up to 21"),
    ],
)
def test_offsets_that_kafka_no_longer_keeps_are_an_error(read_to, message):
    topic = topic_with((10, 20))
    topic.include(0, 0)
    [partition] = topic.partitions()
    with pytest.raises(SourceError, match=message) as refusal:
        next(partition.cut(1, Split(0, read_to)))
    assert "start with an empty checkpoint" in str(refusal.value.hint)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("kafka://localhost:9092", "it names no topic"),
        ("kafka://localhost:9092/", "it names no topic"),
        (URL + "?start=soon", "the time of the option start is not of the form"),
        (URL + "?time=arrival", "the option time cannot be 'arrival'"),
        (URL + "?time=header:", "the option time names no header"),
        (URL + "?room=5", "there is no option room"),
    ],
)
def test_an_address_with_a_mistake_is_refused(url, message):
    with pytest.raises(SourceError, match=message):
        open_source(url)


def test_credentials_come_from_the_environment(monkeypatch, tmp_path):
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("garbage")
    for name, value in {
        "USER": "ann",
        "PASSWORD": "secret",
        "MECHANISM": "SCRAM-SHA-512",
        "CA": certifi.where(),
    }.items():
        monkeypatch.setenv(f"RSP_SOURCE_127_0_0_1_9092_{name}", value)
    topic = open_source(URL.replace("kafka", "kafkas"))
    assert isinstance(topic, TopicSource)
    assert topic.address.settings == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ann",
        "sasl.password": "secret",
        "ssl.ca.location": certifi.where(),
    }
    assert "secret" not in json.dumps([topic.name, repr(topic), repr(topic.address)])
    monkeypatch.setenv("RSP_SOURCE_127_0_0_1_9092_CA", str(garbage))
    with pytest.raises(SourceError, match="a certificate cannot be read") as refusal:
        open_source(URL.replace("kafka", "kafkas"))
    assert "RSP_SOURCE_127_0_0_1_9092_CA" in str(refusal.value)
    monkeypatch.setenv("RSP_SOURCE_127_0_0_1_9092_MECHANISM", "NONE")
    with pytest.raises(SourceError, match="_MECHANISM cannot be 'NONE'"):
        open_source(URL)
