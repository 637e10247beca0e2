"""The HTTP endpoint against a server that fails in every way.

Whatever the server does: the deadline holds, no more requests are sent than allowed, only whole
answers come back, and the cause has its name.
"""

from __future__ import annotations

import gzip
import json
import socket
import time
from typing import TYPE_CHECKING

import pytest

from rsp_engine.replica.endpoint import UNLIMITED, Fetched, Limits
from rsp_engine.replica.http import HttpConfig, HttpEndpoint
from tests.replica.fault_server import Exchange, FaultServer, bomb
from tests.replica.patterns import FOLLOWERS, count, insert, user, users
from tests.replica.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

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


def timed(act: Callable[[], Fetched]) -> tuple[Fetched, float]:
    start = time.monotonic()
    return act(), time.monotonic() - start


@pytest.mark.parametrize("is_snapshot", [False, True], ids=["fetch", "snapshot"])
@pytest.mark.parametrize(
    ("behave", "cause"),
    [
        (slow, "time-out"),
        (drips_its_body, "time-out"),
        (drips_its_head, "time-out"),
        (status(429), "status 429"),
        (status(429, Retry_After="60"), "status 429"),
        (status(503), "status 503"),
        (status(503, Retry_After="60"), "status 503"),
        (status(503, Retry_After="0"), "status 503"),
        (status(503, Retry_After="yesterday"), "status 503"),
        (status(500), "status 500"),
        (status(413), "status 413"),
        (status(404), "status 404"),
        (says_html, "not JSON"),
        (lambda exchange: exchange.answer(b"{}"), "not SPARQL results"),
        (lambda exchange: exchange.answer(b""), "truncated"),
        (lambda exchange: exchange.answer(b"[" * 100_000), "not JSON"),
        (lambda exchange: exchange.answer(headers={"Content-Encoding": "br"}), "unknown encoding"),
        (cuts_its_json, "truncated"),
        (cuts_its_connection, "truncated"),
        (cuts_its_chunks, "truncated"),
        (ran_out_of_time, "rows cut"),
        (sends_a_bomb, "too large"),
        (hangs_up, "broken connection"),
    ],
)
def test_nothing_is_answered_in_time_and_the_cause_has_its_name(behave, cause, is_snapshot):
    limits = Limits(max_requests=3, deadline_ms=400)
    with serving(behave) as server:
        remote = endpoint(server.url)
        act = remote.snapshot if is_snapshot else lambda *more: remote.fetch(users(8), *more)
        got, seconds = timed(lambda: act(limits, 0))
        remote.close()
    assert seconds < 0.4 + TOLERANCE
    assert got.answers == {}
    assert cause in got.faults
    assert set(got.faults) <= {cause, "no requests left", "no time left", "time-out"}
    assert got.requests == len(server.queries) <= 3


def test_a_server_that_is_down_is_asked_once():
    url = f"http://127.0.0.1:{free_port()}"
    got, seconds = timed(lambda: endpoint(url).fetch(users(200), Limits(deadline_ms=1000), 0))
    assert (got.answers, got.requests, got.faults) == ({}, 1, {"refused connection": 1})
    assert seconds < TOLERANCE


def test_a_server_that_takes_no_connections_is_waited_for_until_the_deadline():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:  # fill the queue, which nobody empties
            one.setblocking(False)
            one.connect_ex(address)
        remote = endpoint(f"http://127.0.0.1:{address[1]}")
        got, seconds = timed(lambda: remote.fetch(users(1), Limits(deadline_ms=300), 0))
        for one in waiting:
            one.close()
    assert got.faults == {"time-out": 1}
    assert 0.25 < seconds < 0.3 + TOLERANCE


def test_a_look_up_that_hangs_does_not_pass_the_deadline(monkeypatch):
    look_up = socket.getaddrinfo

    def hang(*more, **named):
        if "flags" not in named:  # an address is not looked up
            time.sleep(1)
        return look_up(*more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    remote = endpoint("http://localhost:9")
    got, seconds = timed(lambda: remote.fetch(users(1), Limits(deadline_ms=300), 0))
    assert got.faults == {"time-out": 1}
    assert seconds < 0.3 + TOLERANCE


def test_a_host_that_nobody_knows_has_its_cause(monkeypatch):
    def fail(*_, **__):
        raise socket.gaierror("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    got = endpoint("http://nowhere.invalid").fetch(users(1), UNLIMITED, 0)
    assert got.faults == {"unknown host": 1}


def test_a_query_is_never_repeated_after_a_time_out():
    with serving(slow) as server:
        remote = endpoint(server.url, timeout_ms=100)
        got = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    assert (len(server.queries), got.requests, got.faults) == (1, 1, {"time-out": 1})


def test_a_time_out_per_request_holds_where_there_is_no_deadline():
    with serving(drips_its_body) as server:
        remote = endpoint(server.url, timeout_ms=200)
        got, seconds = timed(lambda: remote.snapshot(UNLIMITED, 0))
        remote.close()
    assert got.faults == {"time-out": 1}
    assert seconds < 0.2 + TOLERANCE


@pytest.mark.parametrize("number", [429, 503])
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "1"}])
def test_a_server_that_asks_for_patience_is_asked_again(number, headers):
    def behave(exchange: Exchange) -> None:
        if exchange.number == 1:
            exchange.answer(b"later", number, headers)
        else:
            exchange.answer()

    with serving(behave) as server:
        remote = endpoint(server.url)
        got, seconds = timed(lambda: remote.fetch(users(8), Limits(deadline_ms=3000), 0))
        remote.close()
    assert got.answers == TRUTH
    assert (got.requests, got.faults) == (2, {f"status {number}": 1})
    assert seconds >= (1 if headers else 0.1)
    assert server.connections == 1


def test_a_wait_that_would_pass_the_deadline_is_not_begun():
    with serving(status(503, Retry_After="2")) as server:
        remote = endpoint(server.url)
        got, seconds = timed(lambda: remote.fetch(users(8), Limits(deadline_ms=1500), 0))
        remote.close()
    assert (got.requests, got.faults) == (1, {"status 503": 1})
    assert seconds < TOLERANCE


def test_a_wait_for_a_request_that_may_not_be_sent_is_not_begun():
    with serving(status(503, Retry_After="2")) as server:
        remote = endpoint(server.url)
        got, seconds = timed(lambda: remote.fetch(users(8), Limits(max_requests=1), 0))
        remote.close()
    assert got.requests == 1
    assert seconds < TOLERANCE


def test_a_server_that_is_never_ready_is_left_alone_even_without_limits():
    with serving(status(503)) as server:
        remote = endpoint(server.url, retries=2)
        got = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    assert (got.requests, got.faults) == (3, {"status 503": 3})


def test_a_server_that_always_fails_is_left_alone_after_two_single_keys():
    with serving(status(500)) as server:
        remote = endpoint(server.url, retries=0)
        got = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    # 8, 4, 2, 1 and 1 keys.
    assert (got.requests, got.faults) == (5, {"status 500": 5})


def most_keys(size: int, number: int) -> Callable[[Exchange], None]:
    def behave(exchange: Exchange) -> None:
        if exchange.query.count("/user/") > size:
            exchange.answer(b"too long", number)
        else:
            exchange.answer()

    return behave


@pytest.mark.parametrize("number", [400, 413, 414, 500, 504])
def test_a_refused_batch_is_halved(number):
    with serving(most_keys(3, number)) as server:
        remote = endpoint(server.url)
        got = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    assert got.answers == TRUTH
    # 8, then 4 and 4, of which each is halved: 3 refused, 4 answered.
    assert (got.requests, got.faults) == (7, {f"status {number}": 3})


def test_one_poisoned_key_costs_only_itself():
    def behave(exchange: Exchange) -> None:
        if str(user(0)[0]) in exchange.query:
            exchange.answer(b"no", 400)
        else:
            exchange.answer()

    with serving(behave) as server:
        remote = endpoint(server.url)
        got = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    assert got.answers == {key: found for key, found in TRUTH.items() if key != user(0)}


@pytest.mark.parametrize("most", range(1, 8))
def test_halves_and_retries_never_pass_the_most_requests(most):
    with serving(most_keys(1, 500)) as server:
        remote = endpoint(server.url)
        got = remote.fetch(users(8), Limits(max_requests=most), 0)
        remote.close()
    assert got.requests == len(server.queries) == most
    assert got.answers.items() <= TRUTH.items()
    assert got.faults["no requests left"] == 1


def test_half_the_rows_are_no_answer_and_the_batch_is_halved_until_it_is_sure():
    def cap(exchange: Exchange) -> None:
        document = json.loads(exchange.truth())
        rows = document["results"]["bindings"]
        document["results"]["bindings"] = rows[:3]
        capped = {"X-SPARQL-MaxRows": "3"} if len(rows) >= 3 else {}
        exchange.answer(json.dumps(document).encode(), headers=capped)

    with serving(cap) as server:
        remote = endpoint(server.url)
        got = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    assert got.answers == TRUTH
    assert got.faults == {"rows cut": 3}


def test_half_the_rows_of_each_batch_are_never_an_answer():
    with serving(gives_half_the_rows) as server:
        remote = endpoint(server.url)
        got = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    assert got.answers == {}
    assert got.faults == {"rows cut": got.requests}


def test_a_bomb_is_not_unpacked_further_than_the_bound():
    with serving(sends_a_bomb) as server:
        remote = endpoint(server.url, answer_bytes=1_000_000)
        got, seconds = timed(lambda: remote.fetch(users(1), UNLIMITED, 0))
        remote.close()
    assert (got.answers, got.faults) == ({}, {"too large": 1})
    assert seconds < TOLERANCE


def test_a_packed_answer_within_the_bound_is_read():
    def behave(exchange: Exchange) -> None:
        exchange.answer(gzip.compress(exchange.truth()), headers={"Content-Encoding": "gzip"})

    with serving(behave) as server:
        remote = endpoint(server.url)
        assert remote.fetch(users(8), UNLIMITED, 0).answers == TRUTH
        remote.close()


@pytest.mark.parametrize("number", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(number):
    with serving() as elsewhere, serving(status(number, Location=elsewhere.url)) as server:
        remote = endpoint(server.url)
        got = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    assert (got.answers, got.requests, got.faults) == ({}, 1, {"redirect": 1})
    assert elsewhere.connections == 0


def test_a_connection_that_was_closed_meanwhile_is_opened_again():
    def behave(exchange: Exchange) -> None:
        exchange.answer()
        exchange.close_connection = True

    with serving(behave) as server:
        remote = endpoint(server.url)
        for _ in range(3):
            got = remote.fetch(users(8), Limits(max_requests=2), 0)
            assert got.answers == TRUTH
        remote.close()
    assert server.connections == 3


def test_a_value_that_is_no_term_leaves_its_key_unknown_and_others_answered():
    def behave(exchange: Exchange) -> None:
        document = json.loads(exchange.truth())
        row = next(r for r in document["results"]["bindings"] if r["count"]["value"] == "3")
        row["count"] = {"type": "uri", "value": "http://example.org/> . }"}
        exchange.answer(json.dumps(document).encode())

    with serving(behave) as server:
        remote = endpoint(server.url)
        fetched = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    assert fetched.answers == {key: found for key, found in TRUTH.items() if key != user(3)}
    assert fetched.faults == {"bad term": 1}


def test_rows_that_were_not_asked_for_are_no_answer():
    def behave(exchange: Exchange) -> None:
        exchange.answer(exchange.truth("SELECT ?count WHERE { ?user ?p ?count }"))

    with serving(behave) as server:
        remote = endpoint(server.url)
        got = remote.fetch(users(8), UNLIMITED, 0)
        remote.close()
    assert (got.answers, got.faults) == ({}, {"row of no key": 1})


def test_no_time_and_no_requests_mean_that_nothing_is_sent():
    with serving() as server:
        remote = endpoint(server.url)
        assert remote.fetch(users(1), Limits(deadline_ms=0), 0).faults == {"no time left": 1}
        assert remote.fetch(users(1), Limits(max_requests=0), 0).faults == {"no requests left": 1}
        assert remote.snapshot(Limits(max_requests=0), 0).faults == {"no requests left": 1}
        remote.close()
    assert server.connections == 0


def test_a_server_without_tls_has_its_cause():
    with serving() as server:
        remote = endpoint(server.url.replace("http:", "https:"))
        got = remote.fetch(users(1), Limits(deadline_ms=2000), 0)
        remote.close()
    assert got.faults == {"TLS": 1}
