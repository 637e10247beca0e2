"""Kafka, with a folder of Parquet files in place of Spark's connector."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rsp_engine.drivers.spark.kafka import KafkaLink, package
from rsp_engine.engine import Engine
from rsp_engine.errors import BindingError, SourceError
from rsp_engine.io.sources.live.address import address_of
from rsp_engine.io.sources.live.deduplicator import Deduplicator
from rsp_engine.io.sources.live.payloads import Payloads
from rsp_engine.io.sources.live.receiver import Inbox, Receiver
from rsp_engine.io.sources.live.spool import Spool
from rsp_engine.model.streams import Element
from tests.io.live.engine_process import EX, QUERY
from tests.io.live.engine_thread import until
from tests.io.live.numbered_messages import message

if TYPE_CHECKING:
    from pathlib import Path

URL = "kafka://127.0.0.1:9092/messages"
COLUMNS = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"


def write(path: Path, numbers: list[int], last: int) -> None:
    """Write messages in the columns of the connector, in two partitions."""
    rows = [
        {
            "key": None,
            "value": message(number, is_last=number == last).encode(),
            "topic": "messages",
            "partition": number % 2,
            "offset": number // 2,
            "timestamp": 1_700_000_000_000 + number,
        }
        for number in numbers
    ]
    types = [pa.binary(), pa.binary(), pa.string(), pa.int32(), pa.int64()]
    types.append(pa.timestamp("ms", "UTC"))
    names = "key value topic partition offset timestamp".split()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(zip(names, types, strict=True))), path)


def test_messages_that_the_connector_gives_are_spooled_once(tmp_path, spark):
    """The second table repeats some of the first, as after a crash."""
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "1.parquet", list(range(1_500)), 2_500)
    write(tmp_path / "in" / "2.parquet", list(range(1_400, 2_501)), 2_500)
    opened = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    link = KafkaLink(address_of(URL, {}), tmp_path, lambda _: opened.parquet(str(tmp_path / "in")))
    spool = Spool(tmp_path / "spool", room=1 << 30)
    inbox = Inbox(URL, spool, Deduplicator("id"))
    receiver = Receiver(link, inbox)
    receiver.start()
    until(lambda: spool.next_number == 2_502, 90)
    inbox.close()
    receiver.join(timeout=60)
    assert (receiver.failure, inbox.repeated) == (None, 100)
    payloads = Payloads(URL)
    elements = [item for record in spool for item in payloads.elements(record)]
    assert [element.position for element in elements] == list(range(1, 2_502))
    values = [int(e.triples[0].object.value) for e in elements if isinstance(e, Element)]  # type: ignore[union-attr]
    assert values == list(range(2_501)), "in the order of their arrival at Kafka"


def test_without_the_package_an_error_names_it(spark):
    engine = Engine(runner="spark")
    engine.register(QUERY)
    engine.bind(f"{EX}messages", URL)
    with pytest.raises(SourceError, match="Spark lacks the package for Kafka") as refusal:
        next(engine.run())
    assert refusal.value.hint == f"add it: --packages {package()}"


def test_it_is_refused_without_spark():
    engine = Engine(runner="local")
    engine.register(QUERY)
    engine.bind(f"{EX}messages", URL)
    with pytest.raises(BindingError, match="is read through Spark"):
        engine.run()


@pytest.mark.parametrize("url", ["kafka://localhost:9092", "kafka://localhost:9092/"])
def test_a_topic_is_named(url):
    with pytest.raises(SourceError, match="it names no topic"):
        partial(Engine().bind, "urn:s")(url)
