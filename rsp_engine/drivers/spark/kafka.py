"""Kafka, through Spark's own connector: a streaming query writes messages to the spool.

    kafka://host:9092/topic    with  --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION

Spark commits its offsets, next to the spool, after a micro-batch is on disk there. Messages that it
reads again after a crash are recognized by their partition and offset.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine.drivers.spark.session import start_session
from rsp_engine.errors import SourceError
from rsp_engine.io.sources.live.receiver import SenderUnreachable
from rsp_engine.io.sources.live.records import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame

    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.live.receiver import Inbox

__all__ = ["KafkaLink", "package"]

_POLL_S = 0.2
_AT_ONCE = 20_000
"""The most messages of a micro-batch."""


def package() -> str:
    """Return the Maven package of the Kafka connector for this version of Spark."""
    import pyspark

    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


class KafkaLink:
    """A listener to a topic: from its start, or from the committed offsets."""

    def __init__(
        self,
        address: Address,
        folder: Path,
        open_stream: Callable[[Address], DataFrame] | None = None,
    ) -> None:
        """Open a topic with its spool in `folder`; `open_stream` replaces Spark's connector."""
        self._checkpoint = Path(folder) / "kafka"
        self._stream = (open_stream or _open_topic)(address)

    def listen(self, inbox: Inbox) -> None:
        """Let Spark read until the inbox is closed, or Spark fails."""
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
                lines = str(query.exception() or "it reports no cause").strip().splitlines()
                raise SenderUnreachable(f"Spark no longer reads the topic: {lines[0]}")
        finally:
            query.stop()


def _messages(rows: Iterable[Any]) -> list[Message]:
    """Return the messages of a micro-batch, in the order in which Kafka received them."""
    ordered = sorted(rows, key=lambda row: (row["timestamp"], row["partition"], row["offset"]))
    return [
        Message(bytes(row["value"] or b""), row["topic"], f"{row['partition']} {row['offset']}")
        for row in ordered
    ]


def _open_topic(address: Address) -> DataFrame:
    """Return the stream of a topic; raise if Spark lacks the Kafka package."""
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
            hint = f"add it: --packages {package()}"
            message = f"{address.name}: Spark lacks the package for Kafka"
            raise SourceError(message, hint) from None
        raise
