"""Kafka, through Spark's own connector: a query of Spark hands messages to the spool.

    kafka://host:9092/topic    with  --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION

Spark writes down how far it has read, beside the spool, after a batch is on disk there; what it
reads again after a crash is known by its partition and its offset.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine.drivers.spark.session import start_session
from rsp_engine.errors import SourceError
from rsp_engine.io.sources.live.receiver import Away
from rsp_engine.io.sources.live.records import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["KafkaLink", "package"]

_POLL_S = 0.2
_AT_ONCE = 20_000


def package() -> str:
    """Return the package that connects this Spark to Kafka."""
    import pyspark

    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


class KafkaLink:
    """Listens to a topic, from its start unless it was listened to before."""

    def __init__(
        self,
        address: Address,
        folder: Path,
        opened: Callable[[Address], DataFrame] | None = None,
    ) -> None:
        """Take where the spool is; `opened` gives the stream of messages."""
        self._checkpoint = Path(folder) / "kafka"
        self._stream = (opened or _opened)(address)

    def listen(self, inbox: Inbox) -> None:
        """Let Spark read, until it is closed or Spark breaks off."""
        query = (
            self._stream.writeStream.option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime="200 milliseconds")
            .foreachBatch(lambda batch, _: inbox.put(_messages(batch.collect())))
            .start()
        )
        inbox.is_well()
        try:
            while query.isActive and not inbox.is_closed:
                inbox.pause(_POLL_S)
            if not inbox.is_closed:
                told = str(query.exception() or "nobody knows why").strip().splitlines()
                raise Away(f"Spark does not read the topic any more: {told[0]}")
        finally:
            query.stop()


def _messages(rows: Iterable[Any]) -> list[Message]:
    """Return the messages of a batch; those of several partitions as they came to Kafka."""
    found = sorted(rows, key=lambda row: (row["timestamp"], row["partition"], row["offset"]))
    return [
        Message(bytes(row["value"] or b""), row["topic"], f"{row['partition']} {row['offset']}")
        for row in found
    ]


def _opened(address: Address) -> DataFrame:
    """Return the stream of a topic; without the package say which it is."""
    options = {
        "kafka.bootstrap.servers": f"{address.host}:{address.port}",
        "subscribe": address.path,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(_AT_ONCE),
    }
    if address.is_safe:
        options["kafka.security.protocol"] = "SSL"
    user = address.user()
    if user is not None:
        name, password = (text.replace("\\", "\\\\").replace('"', '\\"') for text in user)
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        options["kafka.security.protocol"] = "SASL_SSL" if address.is_safe else "SASL_PLAINTEXT"
        options["kafka.sasl.mechanism"] = "PLAIN"
        options["kafka.sasl.jaas.config"] = (
            f'{module} required username="{name}" password="{password}";'
        )
    try:
        return start_session().readStream.format("kafka").options(**options).load()
    except Exception as error:
        if "kafka" in str(error).lower() and "find" in str(error).lower():
            hint = f"give it to Spark: --packages {package()}"
            message = f"{address.name}: Spark lacks its package for Kafka"
            raise SourceError(message, hint) from None
        raise
