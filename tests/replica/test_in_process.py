"""A store in the same process, judged by a scan of its triples."""

from __future__ import annotations

from dataclasses import replace

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import ServiceError
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, Limits
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from rsp_engine.replica.pattern import RemotePattern
from tests.replica.drawn import PATTERN, iris, literals, person, user, value

FOLLOWERS = ox.NamedNode("http://example.org/followers")
ANY = RemotePattern("http://example.org/sparql", "{ ?s ?p ?o }", ("o",), ("s",))


def store_of(*triples: tuple[int, int]) -> ox.Store:
    store = ox.Store()
    for who, count in triples:
        store.add(ox.Quad(person(who), FOLLOWERS, ox.Literal(count)))
    return store


def test_keys_are_answered_with_all_their_solutions_and_others_with_none():
    endpoint = InProcessEndpoint(PATTERN, store_of((1, 10), (2, 20), (2, 21)))
    found = endpoint.fetch([user(2), user(1), user(3), user(2)], UNLIMITED, 0)
    assert found.answers == {user(1): (value(10),), user(2): (value(20), value(21)), user(3): ()}
    assert (found.requests, found.faults) == (1, {})
    assert endpoint.snapshot(UNLIMITED, 0).answers == {
        user(1): (value(10),),
        user(2): (value(20), value(21)),
    }
    endpoint.close()


def test_a_change_of_the_store_is_seen_by_the_next_fetch():
    store = store_of((1, 10))
    endpoint = InProcessEndpoint(PATTERN, store)
    store.update(
        "DELETE { ?u ?p ?n } INSERT { ?u ?p 11 } WHERE { ?u ?p ?n }",
    )
    assert endpoint.fetch([user(1)], UNLIMITED, 0).answers == {user(1): (value(11),)}


def test_a_dataset_serves_as_well():
    dataset = ox.Dataset(store_of((1, 10)))
    endpoint = InProcessEndpoint(PATTERN, dataset)
    dataset.add(ox.Quad(person(2), FOLLOWERS, ox.Literal(5)))
    assert endpoint.snapshot(UNLIMITED, 0).answers == {user(1): (value(10),), user(2): (value(5),)}


@given(st.sets(st.tuples(iris, iris | literals), max_size=6), st.lists(iris | literals))
def test_any_term_can_be_a_key(triples, asked):
    store = ox.Store()
    for subject, thing in triples:
        store.add(ox.Quad(subject, FOLLOWERS, thing))
    found = InProcessEndpoint(ANY, store).fetch([(term,) for term in asked], UNLIMITED, 0)
    assert set(found.answers) == {(term,) for term in asked}
    for (key,), solutions in found.answers.items():
        naive = sorted(str(s) for s, o in triples if o == key)
        assert sorted(str(solution["s"]) for solution in solutions) == naive


def test_more_keys_than_go_into_one_text_are_one_request():
    endpoint = InProcessEndpoint(PATTERN, store_of(*((n, n) for n in range(250))))
    found = endpoint.fetch([user(n) for n in range(250)], UNLIMITED, 0)
    assert found.answers == {user(n): (value(n),) for n in range(250)}
    assert found.requests == 1


def test_a_clause_without_keys_is_fetched_whole():
    whole = replace(PATTERN, keys=(), variables=("user", "n"))
    found = InProcessEndpoint(whole, store_of((1, 10))).fetch([()], UNLIMITED, 0)
    assert found.answers == {(): ({"user": user(1)[0], **value(10)},)}
    assert InProcessEndpoint(whole, ox.Store()).snapshot(UNLIMITED, 0).answers == {(): ()}


def test_a_blank_node_cannot_be_asked_for_and_stays_unknown():
    found = InProcessEndpoint(PATTERN, store_of((1, 10))).fetch(
        [(ox.BlankNode("b"),), user(1)], UNLIMITED, 0
    )
    assert set(found.answers) == {user(1)}
    assert found.faults == {"blank node key": 1}


def test_limits_of_nothing_are_kept():
    endpoint = InProcessEndpoint(PATTERN, store_of((1, 10)))
    for ask in (
        lambda limits: endpoint.fetch([user(1)], limits, 0),
        lambda limits: endpoint.snapshot(limits, 0),
    ):
        found = ask(Limits(max_requests=0))
        assert (found.answers, found.requests, found.faults) == ({}, 0, {"no requests left": 1})
        assert ask(Limits(deadline_ms=0)).faults == {"no time left": 1}


def test_a_nested_service_is_refused_before_anything_is_called():
    nested = replace(PATTERN, body="{ SERVICE <http://127.0.0.1:9/> { ?user ?p ?n } }")
    with pytest.raises(ServiceError, match="contains another SERVICE"):
        InProcessEndpoint(nested, ox.Store())


@pytest.mark.parametrize("body", ["{ ?user }", "{ ?user ?p ?x BIND(<urn:f>(?x) AS ?n) }"])
def test_a_group_that_oxigraph_cannot_evaluate_is_refused(body):
    with pytest.raises(ServiceError, match="cannot be evaluated"):
        InProcessEndpoint(replace(PATTERN, body=body), ox.Store())
