"""Behaviours of the fault server, and an endpoint for it."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint
from tests.patience import stopwatch
from tests.replica.fault_server import Exchange, FaultServer, bomb
from tests.replica.patterns import FOLLOWERS, count, insert, user

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.replica.endpoints.endpoint import FetchResult
    from rsp_engine.replica.pattern import RemotePattern

TOLERANCE = 0.2
TRUTH = {user(n): (count(n),) for n in range(8)}
HTML = b"<!DOCTYPE html><html><body>Down for maintenance {</body></html>"


def slow(exchange: Exchange) -> None:
    exchange.wait(30)
    exchange.close_connection = True


def drips_its_body(exchange: Exchange) -> None:
    body = exchange.truth()
    exchange.head(200, {"Content-Length": str(len(body))})
    exchange.drip(body, 0.02)


def drips_its_head(exchange: Exchange) -> None:
    exchange.drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 1000, 0.02)
    exchange.close_connection = True


def status(number: int, **headers: str) -> Callable[[Exchange], None]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.answer(b"no", number, named)


def says_html(exchange: Exchange) -> None:
    exchange.answer(HTML, headers={"Content-Type": "text/html"})


def cuts_its_json(exchange: Exchange) -> None:
    exchange.answer(exchange.truth()[:-20])


def cuts_its_connection(exchange: Exchange) -> None:
    body = exchange.truth()
    exchange.head(200, {"Content-Length": str(len(body))})
    exchange.wfile.write(body[:-20])
    exchange.close_connection = True


def cuts_its_chunks(exchange: Exchange) -> None:
    body = exchange.truth()
    exchange.head(200, {"Transfer-Encoding": "chunked"})
    exchange.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
    exchange.close_connection = True


def gives_half_the_rows(exchange: Exchange) -> None:
    document = json.loads(exchange.truth())
    rows = document["results"]["bindings"]
    document["results"]["bindings"] = rows[: len(rows) // 2]
    body = json.dumps(document).encode()
    exchange.answer(body, headers={"X-SPARQL-MaxRows": str(len(rows) // 2)})


def ran_out_of_time(exchange: Exchange) -> None:
    exchange.answer(headers={"X-SQL-State": "S1TAT"})


BOMB = bomb(50 * 1024 * 1024)


def sends_a_bomb(exchange: Exchange) -> None:
    exchange.answer(BOMB, headers={"Content-Encoding": "gzip"})


def hangs_up(exchange: Exchange) -> None:
    exchange.close_connection = True
    exchange.connection.shutdown(socket.SHUT_RDWR)


def endpoint(url: str, pattern: RemotePattern = FOLLOWERS, **settings: int) -> HttpEndpoint:
    config = HttpConfig(allowed=(url,), **settings)  # type: ignore[arg-type]
    return HttpEndpoint(url, pattern, config)


def serving(behave: Callable[[Exchange], None] = Exchange.answer) -> FaultServer:
    server = FaultServer(behave)
    server.store.update(insert(8))
    return server


def timed(act: Callable[[], FetchResult]) -> tuple[FetchResult, float]:
    with stopwatch() as seconds:
        return act(), seconds()
