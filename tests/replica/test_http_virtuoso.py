"""The HTTP endpoint against a real Virtuoso, which cuts rows and refuses what is long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyoxigraph import Literal, NamedNode

from rsp_engine.replica.endpoints.endpoint import UNLIMITED
from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint
from rsp_engine.replica.pattern import RemotePattern
from tests.replica.patterns import FOLLOWERS, SERVICE, count, insert, user, users
from tests.replica.servers import VirtuosoServer, virtuoso_binary

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.virtuoso,
    pytest.mark.skipif(virtuoso_binary() is None, reason="virtuoso-t is not installed"),
]

ROWS = 120
ROW_CAP = 50
TRUTH = {user(n): (count(n),) for n in range(ROWS)}


@pytest.fixture(scope="module")
def virtuoso() -> Iterator[VirtuosoServer]:
    with VirtuosoServer(row_cap=ROW_CAP) as server:
        server.update(insert(ROWS, "http://example.org/graph"))
        yield server


def endpoint(
    server: VirtuosoServer, pattern: RemotePattern = FOLLOWERS, **settings: int
) -> HttpEndpoint:
    config = HttpConfig(allowed=(server.query_url,), **settings)  # type: ignore[arg-type]
    return HttpEndpoint(server.query_url, pattern, config, {})


def test_a_snapshot_that_the_server_cuts_is_noticed_and_read_in_pages(virtuoso):
    remote = endpoint(virtuoso, page_rows=40)
    got = remote.snapshot(UNLIMITED, 0)
    remote.close()
    counted, cut, pages = 1, 1, 4  # the count says 120, and 50 rows come
    assert (got.answers, got.requests, got.faults) == (TRUTH, counted + cut + pages, {})


def test_a_snapshot_that_may_not_be_read_at_once_is_read_in_pages(virtuoso):
    remote = endpoint(virtuoso, page_rows=40, whole_rows=0)
    got = remote.snapshot(UNLIMITED, 0)
    remote.close()
    assert (got.answers, got.requests, got.faults) == (TRUTH, 4, {})


def test_a_snapshot_is_whole_though_the_server_cuts_and_will_not_sort_so_many_rows(virtuoso):
    remote = endpoint(virtuoso, page_rows=20_000)
    got = remote.snapshot(UNLIMITED, 0)
    remote.close()
    assert got.answers == TRUTH
    assert got.faults == {"status 500": 1}


def test_rows_that_the_server_cut_are_no_answer_and_the_batch_is_halved(virtuoso):
    remote = endpoint(virtuoso)
    got = remote.fetch(users(ROWS + 1), UNLIMITED, 0)
    remote.close()
    assert got.answers == TRUTH | {user(ROWS): ()}
    # 100 keys, then 50 and 50: fifty rows may be all or not; 21 keys are sure.
    assert got.faults == {"rows cut": 3}
    assert got.requests == 8


def test_a_values_list_that_the_server_refuses_is_halved(virtuoso):
    remote = endpoint(virtuoso, batch_keys=10_000, batch_bytes=1_000_000)
    # Keys that are not there have no rows, so nothing is cut; so many make too long a program.
    got = remote.fetch([user(n) for n in range(ROWS, ROWS + 4000)], UNLIMITED, 0)
    remote.close()
    assert len(got.answers) == 4000
    assert set(got.answers.values()) == {()}
    assert (got.requests, got.faults) == (3, {"status 500": 1})


def test_a_change_by_an_update_is_seen(virtuoso):
    remote = endpoint(virtuoso)
    key = (NamedNode("http://example.org/user/new"),)
    assert remote.fetch([key], UNLIMITED, 0).answers == {key: ()}
    triple = f"{key[0]} <http://example.org/followers> 7"
    virtuoso.update(f"INSERT DATA {{ GRAPH <http://example.org/graph> {{ {triple} }} }}")
    assert remote.fetch([key], UNLIMITED, 0).answers == {key: (count(7),)}
    virtuoso.update(f"DELETE DATA {{ GRAPH <http://example.org/graph> {{ {triple} }} }}")
    assert remote.fetch([key], UNLIMITED, 0).answers == {key: ()}
    remote.close()


def test_hostile_literals_change_nothing_that_is_asked(virtuoso):
    remote = endpoint(virtuoso, RemotePattern(SERVICE, "{ ?s ?p ?k }", ("k",), ("s",)))
    hostile = [(Literal(text),) for text in ('") } #', "\\u0022 } #", "\n> . }", "é \x01", "\\")]
    got = remote.fetch(hostile, UNLIMITED, 0)
    remote.close()
    assert got.answers == dict.fromkeys(hostile, ())
    assert (got.requests, got.faults) == (1, {})
