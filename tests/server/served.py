"""A server in a process of its own, on a free port, which tests stop and kill."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rsp_engine import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = ["Served", "eventually", "lines_of_run", "served"]

EX = "http://example.org/"
_PATIENCE_S = 120


class Served:
    """A server that is started, killed and started again on the same port and data folder."""

    def __init__(self, folder: Path, *flags: str, environment: dict[str, str] | None = None):
        self.data = folder / "data"
        self._messages = folder / "server.log"
        self._flags = flags
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self._port = "0"

    def start(self) -> None:
        begin = self._messages.stat().st_size if self._messages.exists() else 0
        command = [sys.executable, "-m", "rsp_engine.cli", "serve", "--data", str(self.data)]
        with self._messages.open("ab") as messages:
            self._process = subprocess.Popen(  # noqa: S603 - it is our own
                [*command, "--port", self._port, *self._flags],
                stderr=messages,
                env=self._environment,
                start_new_session=True,
            )

        def address() -> str | None:
            assert self._process is not None
            text = self._messages.read_text()[begin:]
            assert self._process.poll() is None, text
            found = re.search(r"serving on (https?://\S+)", text)
            return found and found.group(1)

        self.url = eventually(address)
        self._port = self.url.rpartition(":")[2]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.stop()
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def client(self, token: str | None = None) -> Client:
        return Client(self.url, token)

    @property
    def messages(self) -> str:
        return self._messages.read_text()


@contextmanager
def served(
    folder: Path, *flags: str, environment: dict[str, str] | None = None
) -> Iterator[Served]:
    server = Served(folder, *flags, environment=environment)
    try:
        server.start()
        yield server
    finally:
        server.close()


def eventually(call: Callable[[], Any], patience: float = _PATIENCE_S) -> Any:
    """Return what a function returns, once that is true."""
    until = time.monotonic() + patience
    while True:
        found = call()
        if found:
            return found
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


def lines_of_run(
    server: Served, tmp_path: Path, streams: list[str], *texts: str, flags: Sequence[str] = ()
) -> list[str]:
    """Return what `rsp run` prints of the logs of streams, but not what their end closes."""
    files = []
    for number, text in enumerate(texts):
        file = tmp_path / f"query-{number}.rspql"
        file.write_text(text)
        files.append(str(file))
    number = len(list(tmp_path.glob("checkpoint-*")))
    output = tmp_path / f"run-{number}.jsonl"
    bound = [
        f"--stream={EX}{name}=log://{server.data / 'streams' / name}?end=here" for name in streams
    ]
    command = [sys.executable, "-m", "rsp_engine.cli", "run", *files, *bound]
    checkpoint = tmp_path / f"checkpoint-{number}"
    subprocess.run(  # noqa: S603 - it is our own
        [*command, "--output", str(output), "--checkpoint", str(checkpoint), "--quiet", *flags],
        check=True,
    )
    with server.client() as client:
        greatest = min(s["watermark"] for s in client.streams() if s["name"] in streams)
    lines = output.read_text().splitlines()
    return [line for line in lines if json.loads(line)["window"]["close"] < greatest]
