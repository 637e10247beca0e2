"""A SPARQL server that answers from a store, or fails by a given behaviour.

Loopback only, on a free port, with connections that stay open and Nagle's algorithm off.
"""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs

from pyoxigraph import QueryResultsFormat, QuerySolutions, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Exchange", "FaultServer"]

JSON = "application/sparql-results+json"


class Exchange(BaseHTTPRequestHandler):
    """One request. A behaviour reads `query`, and answers by the methods below."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FaultServer

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.query = parse_qs(form)["query"][0]
        self.server.queries.append(self.query)
        self.server.seen_headers.append(dict(self.headers))
        try:
            self.server.behave(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    @property
    def number(self) -> int:
        """Which request this is, from 1."""
        return len(self.server.queries)

    def truth(self, query: str | None = None) -> bytes:
        """Return the answer of a server without faults."""
        found = self.server.store.query(query or self.query)
        assert isinstance(found, QuerySolutions)
        document = found.serialize(format=QueryResultsFormat.JSON)
        assert document is not None
        return document

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def answer(
        self, body: bytes | None = None, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        body = self.truth() if body is None else body
        length = {"Content-Type": JSON, "Content-Length": str(len(body))}
        self.head(status, length | dict(headers or {}))
        self.wfile.write(body)

    def wait(self, seconds: float) -> bool:
        """Wait; return False if the server is shutting down."""
        return not self.server.ending.wait(seconds)

    def drip(self, body: bytes, seconds: float) -> None:
        for byte in body:
            self.wfile.write(bytes([byte]))
            if not self.wait(seconds):
                break


class FaultServer(ThreadingHTTPServer):
    """A server with a given behaviour. It records queries, headers and connections."""

    daemon_threads = True

    def __init__(self, behave: Callable[[Exchange], None] = Exchange.answer) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.behave = behave
        self.store = Store()
        self.queries: list[str] = []
        self.seen_headers: list[dict[str, str]] = []
        self.connections = 0
        self.ending = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def get_request(self):
        self.connections += 1
        return super().get_request()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: a client that disconnects is none."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.shutdown()
        self._thread.join(10)
        self.server_close()


def bomb(size: int) -> bytes:
    """Return a gzip body that expands to `size` bytes of a valid document."""
    start = b'{"head": {"vars": []}, "results": {"bindings": ['
    end = b"]}}"
    return gzip.compress(start + b" " * (size - len(start) - len(end)) + end)
