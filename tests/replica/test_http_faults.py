"""The HTTP endpoint against a server that fails in every way.

Whatever the server does: the deadline holds, no more requests are sent than allowed, only whole
answers come back, and the cause has its name.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from rsp_engine.replica.endpoints.endpoint import UNLIMITED, Limits
from tests.replica.behaviours import (
    TOLERANCE,
    TRUTH,
    cuts_its_chunks,
    cuts_its_connection,
    cuts_its_json,
    drips_its_body,
    drips_its_head,
    endpoint,
    hangs_up,
    ran_out_of_time,
    says_html,
    sends_a_bomb,
    serving,
    slow,
    status,
    timed,
)
from tests.replica.patterns import users
from tests.replica.servers import free_port

if TYPE_CHECKING:
    from tests.replica.fault_server import Exchange


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
    assert len(server.queries) <= got.requests <= 3
    if not {"no time left", "time-out"} & set(got.faults):  # else the last one may be on its way
        assert got.requests == len(server.queries)


def test_a_server_that_is_down_is_asked_once():
    url = f"http://127.0.0.1:{free_port()}"
    got, seconds = timed(lambda: endpoint(url).fetch(users(200), Limits(deadline_ms=1000), 0))
    assert (got.answers, got.requests, got.faults) == ({}, 1, {"refused connection": 1})
    assert seconds < TOLERANCE


def test_a_server_that_takes_no_connections_is_waited_for_until_the_deadline():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:  # fill the accept queue, which is never emptied
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
