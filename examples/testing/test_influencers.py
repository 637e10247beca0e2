"""Tests of a query with remote data, step by step: `pytest examples/testing`.

The remote side is a store, which a test changes between two windows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from rsp_engine import Engine
from rsp_engine.testing import StreamTest

if TYPE_CHECKING:
    from collections.abc import Iterator

EX = "http://example.org/"
QUERY = Path(__file__).parents[2] / "queries" / "influencers-expression.rspql"


@pytest.fixture
def remote() -> ox.Store:
    """Two users, followed by about a million each."""
    store = ox.Store()
    follow(store, ann=1_000_000, bob=900_000)
    return store


@pytest.fixture
def stream(remote: ox.Store) -> Iterator[StreamTest]:
    """Two mentions; the budget of the query is one fetch a window."""
    engine = Engine(policy="AT-TSM", budget=1)
    engine.service(f"{EX}users/sparql", remote)
    engine.register_file(str(QUERY))
    with StreamTest(engine) as test:
        test.feed(":S", "1m  :ann :hasMentions 10 .")
        test.feed(":S", "2m  :bob :hasMentions 5 .")
        yield test


def follow(store: ox.Store, **followers: int) -> None:
    """Set how many follow each user."""
    predicate = ox.NamedNode(f"{EX}hasFollowers")
    for name, number in followers.items():
        user = ox.NamedNode(EX + name)
        for quad in store.quads_for_pattern(user, predicate, None, None):
            store.remove(quad)
        store.add(ox.Quad(user, predicate, ox.Literal(number)))


def test_the_best_user_is_fetched_again(stream: StreamTest, remote: ox.Store) -> None:
    stream.expect_nothing()
    stream.advance("9m")
    follow(remote, ann=3_000_000)
    stream.feed(":S", "10m  :ann :hasMentions 10 .")
    stream.advance("12m")
    stream.expect("""
        close  rank  ?user  ?score  exact  budget_spent
        9m     1     :ann   1.1     false  1
        9m     2     :bob   0.95    false  1
        12m    1     :ann   3.1     true   1
    """)


def test_an_element_after_its_last_window_is_late(stream: StreamTest) -> None:
    stream.advance("12m")
    stream.feed(":S", "2m  :bob :hasMentions 5 .")
    stream.expect_dead_letters("late")
