"""The HTTP endpoint against a server whose answers are cut, refused or wrong.

What is refused is asked for in halves, and only whole answers come back.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from rsp_engine.replica.endpoints.endpoint import UNLIMITED, Limits
from tests.replica.behaviours import (
    TOLERANCE,
    TRUTH,
    endpoint,
    gives_half_the_rows,
    sends_a_bomb,
    serving,
    status,
    timed,
)
from tests.replica.patterns import user, users

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.replica.fault_server import Exchange


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
