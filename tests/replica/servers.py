"""Real servers on free loopback ports, each ended by its own handle.

with OxigraphServer() as server:
    server.update("INSERT DATA { ... }")
    endpoint = HttpEndpoint(server.query_url, ...)
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Self

import requests

__all__ = ["OxigraphServer", "VirtuosoServer", "free_port", "virtuoso_binary"]

_READY_SECONDS = 30.0
_TRIES = 3


class _EndedError(RuntimeError):
    """A server ended before it was ready."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class OxigraphServer:
    """`oxigraph serve`, with its data in memory."""

    def __init__(self, port: int | None = None) -> None:
        self.url = ""
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def query_url(self) -> str:
        return f"{self.url}/query"

    def __enter__(self) -> Self:
        for _ in range(_TRIES):
            try:
                return self._start()
            except _EndedError:  # another process took the free port first
                continue
        return self._start()

    def _start(self) -> Self:
        binary = Path(sysconfig.get_path("scripts")) / "oxigraph"
        bind = f"127.0.0.1:{self._port or free_port()}"
        self.url = f"http://{bind}"
        self._process = subprocess.Popen(  # noqa: S603 - our own server
            [binary, "serve", "--bind", bind],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _wait_until_ready(self.query_url, self._process)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _end(self._process)

    def update(self, text: str) -> None:
        response = requests.post(f"{self.url}/update", data={"update": text}, timeout=30)
        response.raise_for_status()


def virtuoso_binary() -> str | None:
    return shutil.which("virtuoso-t")


class VirtuosoServer:
    """Virtuoso, with its data in a folder of its own; it gives at most `row_cap` rows."""

    _INI = """
[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
[TempDatabase]
DatabaseFile = virtuoso-temp.db
TransactionFile = virtuoso-temp.trx
[Parameters]
ServerPort = 127.0.0.1:{sql_port}
NumberOfBuffers = 10000
MaxDirtyBuffers = 6000
ThreadsPerQuery = 1
[HTTPServer]
ServerPort = 127.0.0.1:{http_port}
ServerRoot = .
ServerThreads = 4
[SPARQL]
ResultSetMaxRows = {row_cap}
"""

    def __init__(self, row_cap: int) -> None:
        self._row_cap = row_cap
        self._sql_port, http_port = free_port(), free_port()
        self.query_url = f"http://127.0.0.1:{http_port}/sparql"
        self._ini = self._INI.format(sql_port=self._sql_port, http_port=http_port, row_cap=row_cap)
        self._folder = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        (Path(self._folder.name) / "virtuoso.ini").write_text(self._ini)
        self._process = subprocess.Popen(  # noqa: S603 - our own server
            [virtuoso_binary() or "virtuoso-t", "+foreground", "+configfile", "virtuoso.ini"],
            cwd=self._folder.name,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _wait_until_ready(self.query_url, self._process)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _end(self._process)
        self._folder.cleanup()

    def update(self, text: str) -> None:
        """Run an update as the administrator, whose password is the one of every new database."""
        where = f"127.0.0.1:{self._sql_port}"
        subprocess.run(  # noqa: S603 - our own server
            [shutil.which("isql-vt") or "isql-vt", where, "dba", "dba", f"exec=SPARQL {text};"],
            check=True,
            capture_output=True,
            timeout=60,
        )


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _READY_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise _EndedError(f"the server ended with {process.returncode}")
        try:
            answer = requests.post(url, data={"query": "ASK { }"}, timeout=5)
        except requests.ConnectionError:
            time.sleep(0.02)
        else:
            if answer.ok:
                return
            time.sleep(0.05)
    _end(process)
    raise RuntimeError("the server does not get ready")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
