"""Real MQTT brokers on free local ports."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Mosquitto",
    "free_port",
    "mosquitto",
    "needs_mosquitto",
    "password_file",
    "wait_for_port",
]

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
needs_mosquitto = pytest.mark.skipif(
    MOSQUITTO is None, reason="mosquitto is not installed: apt-get install mosquitto"
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError(f"nobody listens on port {port}")


def password_file(folder: Path, user: str, password: str) -> Path:
    """Write the passwords of a broker; skip the test if its program is not installed."""
    users = folder / "users"
    program = ["mosquitto_passwd", "-b", "-c", str(users), user, password]
    try:
        subprocess.run(program, check=True, capture_output=True)  # noqa: S603
    except FileNotFoundError:
        pytest.skip("mosquitto_passwd is not installed: apt-get install mosquitto")
    users.chmod(0o644)
    return users


class Mosquitto:
    """A broker that keeps sessions and messages on disk, so that it can be restarted."""

    def __init__(self, folder: Path, settings: str = "allow_anonymous true") -> None:
        self.port = free_port()
        self._config = folder / "mosquitto.conf"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.configure(settings)

    def configure(self, settings: str) -> None:
        self._config.write_text(
            f"listener {self.port} 127.0.0.1\n"
            f"persistence true\npersistence_location {self._folder}/\n"
            "max_queued_messages 0\nmax_inflight_messages 0\nset_tcp_nodelay true\n"
            f"log_dest file {self._folder}/mosquitto.log\nlog_type subscribe\n"
            f"user {Path('~').expanduser().owner()}\n{settings}\n"
        )

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        assert MOSQUITTO is not None
        self._process = subprocess.Popen(  # noqa: S603 - our own broker
            [MOSQUITTO, "-c", str(self._config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for_port(self.port)

    def wait_for_subscriber(self, topic: str, seconds: float = 60) -> None:
        """Wait until a client has subscribed to a topic."""
        log, until = self._folder / "mosquitto.log", time.monotonic() + seconds
        while not (log.exists() and f" 1 {topic}\n" in log.read_text()):
            if time.monotonic() > until:
                raise TimeoutError(f"nobody subscribes to {topic}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=30)
            self._process = None


@contextmanager
def mosquitto(folder: Path, settings: str = "allow_anonymous true") -> Iterator[Mosquitto]:
    broker = Mosquitto(folder, settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
