"""The HTTP endpoint against a real Oxigraph server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.replica.endpoints.endpoint import UNLIMITED, Limits
from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint
from rsp_engine.replica.pattern import RemotePattern
from tests.replica.patterns import FOLLOWERS, SERVICE, count, insert, user, users
from tests.replica.proxy import CountingProxy
from tests.replica.servers import OxigraphServer

if TYPE_CHECKING:
    from collections.abc import Iterator

E = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture(scope="module")
def oxigraph() -> Iterator[OxigraphServer]:
    with OxigraphServer() as server:
        yield server


@pytest.fixture
def server(oxigraph: OxigraphServer) -> OxigraphServer:
    oxigraph.update("CLEAR ALL")
    return oxigraph


def endpoint(
    server: OxigraphServer, pattern: RemotePattern = FOLLOWERS, **settings: int
) -> HttpEndpoint:
    config = HttpConfig(allowed=(server.url,), **settings)  # type: ignore[arg-type]
    return HttpEndpoint(server.query_url, pattern, config)


def test_a_snapshot_is_read_in_pages(server):
    server.update(insert(25))
    got = endpoint(server, page_rows=10, whole_rows=0).snapshot(UNLIMITED, 0)
    assert got.answers == {user(n): (count(n),) for n in range(25)}
    assert got.faults == {}
    # Three pages, and one with nothing new.
    assert got.requests == 4


def test_the_snapshot_of_nothing_is_empty_and_whole(server):
    got = endpoint(server).snapshot(UNLIMITED, 0)
    assert (got.answers, got.requests, got.faults) == ({}, 2, {})


def test_a_snapshot_that_runs_out_of_requests_leaves_out_the_key_that_may_be_cut(server):
    triples = " ".join(f"<{E}{s}> <{E}followers> {n} ." for s in "abc" for n in range(4))
    server.update(f"INSERT DATA {{ {triples} }}")
    got = endpoint(server, page_rows=6).snapshot(Limits(max_requests=1), 0)
    assert set(got.answers) == {(NamedNode(E + "a"),)}
    assert len(got.answers[NamedNode(E + "a"),]) == 4
    assert got.faults == {"no requests left": 1}


def test_a_change_by_an_update_is_seen_by_the_next_fetch(server):
    server.update(insert(3))
    remote = endpoint(server)
    before = remote.fetch(users(4), UNLIMITED, 0)
    assert before.answers == {user(n): (count(n),) for n in range(3)} | {user(3): ()}
    server.update(
        f"DELETE DATA {{ {user(0)[0]} <{E}followers> 0 }} ;"
        f"INSERT DATA {{ {user(3)[0]} <{E}followers> 9 }}"
    )
    after = remote.fetch(users(4), UNLIMITED, 0)
    assert after.answers[user(0)] == ()
    assert after.answers[user(3)] == (count(9),)
    assert (after.requests, after.faults) == (1, {})
    remote.close()


def test_a_hundred_keys_travel_in_one_request_and_one_more_in_a_second(server):
    server.update(insert(101))
    remote = endpoint(server)
    hundred = remote.fetch(users(100), UNLIMITED, 0)
    assert (len(hundred.answers), hundred.requests) == (100, 1)
    more = remote.fetch(users(101), UNLIMITED, 0)
    assert (len(more.answers), more.requests) == (101, 2)


def test_fifty_fetches_go_over_one_connection(server):
    server.update(insert(50))
    with CountingProxy(server.url) as proxy:
        config = HttpConfig(allowed=(proxy.url,))
        remote = HttpEndpoint(f"{proxy.url}/query", FOLLOWERS, config)
        for number in range(50):
            assert remote.fetch([user(number)], UNLIMITED, 0).answers == {
                user(number): (count(number),)
            }
        remote.close()
    assert proxy.connections == 1


def test_a_clause_may_hold_several_triples_a_filter_and_an_optional(server):
    server.update(
        f"INSERT DATA {{ <{E}a> <{E}p> <{E}x> . <{E}x> <{E}q> 1 . <{E}a> <{E}name> 'A' ."
        f"<{E}b> <{E}p> <{E}y> . <{E}y> <{E}q> 2 . <{E}c> <{E}p> <{E}z> . <{E}z> <{E}q> 7 }}"
    )
    body = f"{{ ?k <{E}p> ?m . ?m <{E}q> ?v . OPTIONAL {{ ?k <{E}name> ?n }} FILTER(?v < 5) }}"
    remote = endpoint(server, RemotePattern(SERVICE, body, ("k",), ("v", "n")))
    a, b, c = ((NamedNode(E + name),) for name in "abc")
    answers = {a: ({"v": Literal(1), "n": Literal("A")},), b: ({"v": Literal(2)},)}
    assert remote.fetch([a, b, c], UNLIMITED, 0).answers == answers | {c: ()}
    assert remote.snapshot(UNLIMITED, 0).answers == answers


def test_a_composite_key_joins_on_all_of_its_terms(server):
    server.update(f"INSERT DATA {{ <{E}a> <{E}en> 1 . <{E}a> <{E}de> 2 }}")
    remote = endpoint(server, RemotePattern(SERVICE, "{ ?s ?p ?o }", ("s", "p"), ("o",)))
    a, en, de = (NamedNode(E + name) for name in ("a", "en", "de"))
    got = remote.fetch([(a, en), (a, de), (en, a)], UNLIMITED, 0)
    assert got.answers == {
        (a, en): ({"o": Literal(1)},),
        (a, de): ({"o": Literal(2)},),
        (en, a): (),
    }


def test_a_clause_without_keys_is_asked_for_as_a_whole(server):
    server.update(insert(3))
    remote = endpoint(server, RemotePattern(SERVICE, f"{{ ?s <{E}followers> ?o }}", (), ("s", "o")))
    everything = tuple({"s": user(n)[0], "o": Literal(n)} for n in range(3))
    asked = remote.fetch([()], UNLIMITED, 0)
    assert (asked.answers, asked.requests) == ({(): everything}, 1)
    assert remote.snapshot(UNLIMITED, 0).answers == {(): everything}
    assert remote.fetch([], UNLIMITED, 0).requests == 0


def test_a_clause_without_keys_and_answers_is_answered(server):
    remote = endpoint(server, RemotePattern(SERVICE, "{ ?s ?p ?o }", (), ("s",)))
    assert remote.fetch([()], UNLIMITED, 0).answers == {(): ()}


def test_a_key_that_the_server_writes_in_its_own_way_is_still_answered(server):
    server.update(f"INSERT DATA {{ <{E}a> <{E}p> 5 ; <{E}q> 'x'@en }}")
    remote = endpoint(server, RemotePattern(SERVICE, "{ ?s ?p ?k }", ("k",), ("s",)))
    five = (Literal("05", datatype=NamedNode(XSD + "integer")),)
    got = remote.fetch([five, (Literal("x", language="EN"),)], UNLIMITED, 0)
    assert [len(solutions) for solutions in got.answers.values()] == [1, 1]
    assert five in got.answers


def test_a_blank_node_is_never_asked_for_and_counted(server):
    server.update(f"INSERT DATA {{ _:b <{E}followers> 1 }}")
    remote = endpoint(server)
    got = remote.fetch([(BlankNode("b"),)], UNLIMITED, 0)
    assert (got.answers, got.requests, got.faults) == ({}, 0, {"blank node key": 1})
    assert remote.snapshot(UNLIMITED, 0).answers == {}


def test_an_answer_with_blank_nodes_is_equal_to_itself(server):
    server.update(f"INSERT DATA {{ <{E}a> <{E}p> [ <{E}q> 1 ] , [ <{E}q> 2 ] }}")
    body = f"{{ ?k <{E}p> ?b . ?b <{E}q> ?v }}"
    remote = endpoint(server, RemotePattern(SERVICE, body, ("k",), ("b", "v")))
    first, second = (remote.fetch([(NamedNode(E + "a"),)], UNLIMITED, 0) for _ in range(2))
    assert first.answers == second.answers
    (one, two) = first.answers[NamedNode(E + "a"),]
    assert one["b"] != two["b"]


def test_a_hostile_key_cannot_change_what_is_asked(server):
    server.update(insert(2))
    hostile = (Literal('") } } UNION { ?user ?p ?count } #'),)
    remote = endpoint(server)
    assert remote.fetch([hostile, user(1)], UNLIMITED, 0).answers == {
        hostile: (),
        user(1): (count(1),),
    }


def test_a_refused_query_ends_after_a_few_requests(server):
    broken = RemotePattern(SERVICE, "{ ?user ?p }", ("user",), ("p",))
    got = endpoint(server, broken).fetch(users(100), UNLIMITED, 0)
    assert got.answers == {}
    assert got.faults == {"status 400": got.requests}
    assert got.requests <= 10
