"""A change feed: what is pushed is known without asking."""

from __future__ import annotations

from dataclasses import replace

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import ServiceError
from rsp_engine.replica.changes import ChangeFeed
from rsp_engine.replica.endpoints.endpoint import UNLIMITED, FetchResult
from rsp_engine.replica.pattern import RemotePattern
from rsp_engine.replica.store.estimator import DeclaredIntervals
from rsp_engine.replica.store.replica import Replica, ReplicaConfig
from tests.replica.drawn import PATTERN, person, user, value

FOLLOWERS = ox.NamedNode("http://example.org/followers")


def says(who: int, count: int) -> ox.Triple:
    return ox.Triple(person(who), FOLLOWERS, ox.Literal(count))


def test_an_element_says_the_new_values_of_the_keys_that_it_names():
    changes = ChangeFeed(PATTERN)
    other = ox.Triple(person(9), ox.NamedNode("http://example.org/name"), ox.Literal("x"))
    changes.push(5, [says(1, 10), says(2, 20), says(2, 21), other])
    (change,) = changes.due(5)
    assert change.time == 5
    assert change.fetched == FetchResult({user(1): (value(10),), user(2): (value(20), value(21))})


def test_a_change_waits_until_it_is_due_and_is_given_once():
    changes = ChangeFeed(PATTERN)
    changes.push(20, [says(1, 2)])
    changes.push(10, [says(1, 1)])
    changes.push(30, [says(1, 3)])
    assert [change.time for change in changes.due(9)] == []
    assert [change.time for change in changes.due(20)] == [10, 20]
    assert len(changes) == 1
    assert [change.time for change in changes.due(99)] == [30]
    assert changes.due(99) == []


events = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)), max_size=8)


@given(events, st.randoms(use_true_random=False))
def test_the_replica_does_not_depend_on_the_order_of_arrival(drawn, chance):
    shuffled = list(drawn)
    chance.shuffle(shuffled)
    assert replica_after(drawn) == replica_after(shuffled)


def replica_after(pushed):
    changes, replica = ChangeFeed(PATTERN), Replica(ReplicaConfig(PATTERN, DeclaredIntervals(10)))
    for time, who, count in pushed:
        changes.push(time, [says(who, count)])
    for change in changes.due(5):
        replica.apply(change.fetched, change.time)
    keys = [user(n) for n in range(3)]
    return replica.values(replica.keys.numbers(keys))


def test_a_late_change_does_not_overwrite_what_was_fetched_since():
    replica = Replica(ReplicaConfig(PATTERN))
    replica.apply(FetchResult({user(1): (value(7),)}), 100)
    changes = ChangeFeed(PATTERN)
    changes.push(50, [says(1, 6)])
    for change in changes.due(100):
        assert replica.apply(change.fetched, change.time).tolist() == []
    assert replica.values([0]) == [(value(7),)]


def test_a_group_of_several_triples_with_an_option_needs_all_of_them_in_one_element():
    pattern = RemotePattern(
        "http://example.org/sparql",
        "{ ?user <http://example.org/followers> ?n . ?user <http://example.org/in> ?where"
        " OPTIONAL { ?user <http://example.org/name> ?name } FILTER(?n > 5) }",
        ("user",),
        ("n", "where", "name"),
    )
    place = ox.Triple(person(1), ox.NamedNode("http://example.org/in"), ox.Literal("Rome"))
    changes = ChangeFeed(pattern)
    assert changes.push(0, [says(1, 10)]).fetched == FetchResult()
    assert changes.push(0, [says(1, 5), place]).fetched == FetchResult()
    whole = changes.push(0, [says(1, 10), place]).fetched
    assert whole.answers == {user(1): ({**value(10), "where": ox.Literal("Rome")},)}


def test_an_element_without_news_says_nothing_of_a_clause_without_keys():
    whole = replace(PATTERN, keys=(), variables=("user", "n"))
    assert ChangeFeed(whole).push(0, []).fetched == FetchResult()


def test_a_feed_is_an_endpoint_that_has_nothing_to_ask():
    changes = ChangeFeed(PATTERN)
    changes.push(0, [says(1, 10)])
    assert changes.fetch([user(1)], UNLIMITED, 5) == FetchResult()
    replica = Replica(ReplicaConfig(PATTERN))
    replica.apply(FetchResult({user(1): (value(7),)}), 0)
    replica.load(changes.snapshot(UNLIMITED, 5), 5)
    assert replica.values([0]) == [(value(7),)]
    changes.close()


def test_a_nested_service_is_refused():
    with pytest.raises(ServiceError, match="contains another SERVICE"):
        ChangeFeed(replace(PATTERN, body="{ SERVICE <http://127.0.0.1:9/> { ?user ?p ?n } }"))
