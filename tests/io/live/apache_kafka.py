"""Apache Kafka on free local ports: one process of Java that is broker and controller (KRaft).

Maven fetches the jars by their name, into its own cache. The clients are independent: aiokafka.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic

from tests.io.live.kafka_broker import KafkaServer
from tests.io.live.servers import free_port, wait_for_port

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ApacheKafka", "apache_kafka"]

VERSION = "4.1.0"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
    <version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""
GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"]
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"


@cache
def class_path() -> str:
    """Return the class path of a broker; skip the test if it cannot be fetched."""
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        pytest.skip("Apache Kafka needs Maven and Java: apt-get install maven")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pom.xml").write_text(POM)
        command = [maven, "-q", "-B", GOAL, "-Dmdep.outputFile=path"]
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
        if made.returncode:
            pytest.skip(f"Maven cannot fetch Apache Kafka: {made.stdout.strip()[:300]}")
        return (Path(folder) / "path").read_text().strip()


class ApacheKafka(KafkaServer):
    """A broker whose log is on disk, so that it can be stopped and started again."""

    def __init__(self, folder: Path, settings: str = "", protocol: str = "PLAINTEXT") -> None:
        """Format its storage; the engine connects by a protocol, the tests plainly."""
        self._folder = folder
        self._ports = [free_port() for _ in range(3)]
        own, internal, controller = (f"127.0.0.1:{port}" for port in self._ports)
        self.address, self.plain = own, internal
        self._config = folder / "server.properties"
        self._config.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@{controller}\n"
            f"listeners=OWN://{own},INTERNAL://{internal},CONTROLLER://{controller}\n"
            f"advertised.listeners=OWN://{own},INTERNAL://{internal}\n"
            "controller.listener.names=CONTROLLER\ninter.broker.listener.name=INTERNAL\n"
            "listener.security.protocol.map="
            f"OWN:{protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            f"log.dirs={folder}/log\nauto.create.topics.enable=false\n"
            "offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
            "log.retention.check.interval.ms=300\nlog.segment.delete.delay.ms=100\n"
            "log.initial.task.delay.ms=300\nmessage.max.bytes=33554432\n"
            f"group.initial.rebalance.delay.ms=0\n{settings}\n"
        )
        self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._config))
        self._process: subprocess.Popen[bytes] | None = None

    def _run(self, *arguments: str) -> None:
        command = [*JAVA, "-cp", class_path(), *arguments]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own broker

    def start(self) -> None:
        with (self._folder / "server.txt").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own broker
                [*JAVA, "-cp", class_path(), "kafka.Kafka", str(self._config)],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        for port in self._ports[:2]:
            wait_for_port(port, 120)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=120)
            self._process = None

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic, and wait until it is there."""
        new = NewTopic(topic, partitions, 1, topic_configs=settings)

        async def create() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.plain)
            await admin.start()
            try:
                await admin.create_topics([new], timeout_ms=60_000)
            finally:
                await admin.close()

        asyncio.run(create())

    def add_partitions(self, topic: str, count: int) -> None:
        """Let a topic have so many partitions."""

        async def add() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.plain)
            await admin.start()
            try:
                await admin.create_partitions({topic: NewPartitions(count)})
            finally:
                await admin.close()

        asyncio.run(add())


@contextmanager
def apache_kafka(
    folder: Path, settings: str = "", protocol: str = "PLAINTEXT"
) -> Iterator[ApacheKafka]:
    """Run a broker whose log is in a folder."""
    broker = ApacheKafka(folder, settings, protocol)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop(signal.SIGKILL)
