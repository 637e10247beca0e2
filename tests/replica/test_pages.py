"""A snapshot in pages: all of it, whatever the server cuts, and no mixture of two states."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.replica.endpoints.endpoint import UNLIMITED, Limits
from rsp_engine.replica.endpoints.http import HttpConfig, HttpEndpoint
from rsp_engine.replica.pattern import RemotePattern
from rsp_engine.replica.sparql_client.request_text import batch_of
from rsp_engine.replica.sparql_client.results import answers_of_batch, answers_of_whole
from tests.replica.fault_server import Exchange, FaultServer
from tests.replica.patterns import FOLLOWERS, SERVICE, count, insert, user, users

if TYPE_CHECKING:
    from collections.abc import Callable

TRUTH = {user(n): (count(n),) for n in range(20)}


def snapshot(
    behave: Callable[[Exchange], None], limits: Limits = UNLIMITED, *, whole_rows: int = 0
):
    """Read twenty rows in pages of eight, or at once if `whole_rows` allows it."""
    with FaultServer(behave) as server:
        server.store.update(insert(20))
        config = HttpConfig(allowed=(server.url,), page_rows=8, whole_rows=whole_rows)
        remote = HttpEndpoint(server.url, FOLLOWERS, config, {})
        got = remote.snapshot(limits, 0)
        remote.close()
    return got, server


def cap(size: int, *, is_said: bool) -> Callable[[Exchange], None]:
    def behave(exchange: Exchange) -> None:
        document = json.loads(exchange.truth())
        rows = document["results"]["bindings"]
        headers = {"X-SPARQL-MaxRows": str(size)} if is_said and len(rows) >= size else {}
        document["results"]["bindings"] = rows[:size]
        exchange.answer(json.dumps(document).encode(), headers=headers)

    return behave


@pytest.mark.parametrize("is_said", [True, False])
@pytest.mark.parametrize("size", [2, 5, 8, 9, 50])
def test_a_server_that_cuts_pages_is_read_to_the_end(size, is_said):
    got, _ = snapshot(cap(size, is_said=is_said))
    assert (got.answers, got.faults) == (TRUTH, {})


def test_a_server_that_gives_single_rows_is_given_up():
    got, _ = snapshot(cap(1, is_said=True))
    assert (got.answers, got.faults) == ({}, {"rows cut": 1})


@pytest.mark.parametrize("kind", ["uri", "bnode", "new bnode"])
@pytest.mark.parametrize("counts", [(0, 1, 2), (5, 5, 5)])
def test_a_server_that_takes_no_heed_of_the_page_comes_to_an_end(kind, counts):
    """All its rows are of one key, or of keys without names: each page seems to go on."""

    def behave(exchange: Exchange) -> None:
        label = f"http://example.org/{exchange.number if kind == 'new bnode' else 1}"
        rows = [
            {
                "user": {"type": kind.split()[-1], "value": label},
                "count": {"type": "literal", "value": str(number)},
            }
            for number in counts
        ]
        exchange.answer(json.dumps({"results": {"bindings": rows}}).encode())

    got, _ = snapshot(behave)
    assert (got.answers, got.faults) == ({}, {"OFFSET ignored": 1})
    assert got.requests == 3


@pytest.mark.parametrize("kind", ["<http://example.org/1>", "_:b"])
def test_many_equal_rows_are_read_to_the_end(kind):
    """A page repeats the one before, and so it must: all rows are equal."""
    pattern = RemotePattern(
        SERVICE,
        "{ ?k <http://example.org/p> ?v . ?other <http://example.org/q> ?v }",
        ("k",),
        ("v",),
    )
    with FaultServer(Exchange.answer) as server:
        rows = " ".join(f"<http://example.org/{n}> <http://example.org/q> 5 ." for n in range(20))
        server.store.update(f"INSERT DATA {{ {kind} <http://example.org/p> 5 . {rows} }}")
        config = HttpConfig(allowed=(server.url,), page_rows=3, whole_rows=0)
        remote = HttpEndpoint(server.url, pattern, config, {})
        got = remote.snapshot(UNLIMITED, 0)
        remote.close()
    assert got.faults == {}
    assert [len(solutions) for solutions in got.answers.values()] == [20] * (kind != "_:b")


def test_a_server_that_sorts_only_so_many_rows_is_asked_in_another_way():
    def behave(exchange: Exchange) -> None:
        limit, offset = int(exchange.query.split()[-3]), int(exchange.query.split()[-1])
        if limit + offset > 6 and exchange.query.count("SELECT") == 1:
            exchange.answer(b"Sorted TOP clause specifies more than 6 rows", 500)
        else:
            exchange.answer()

    got, server = snapshot(behave)
    assert (got.answers, got.faults) == (TRUTH, {"status 500": 1})
    assert all(query.count("SELECT") == 2 for query in server.queries[1:])


def test_a_page_that_is_too_large_is_halved():
    def behave(exchange: Exchange) -> None:
        if int(exchange.query.split()[-3]) > 4:
            exchange.answer(b"too large", 413)
        else:
            exchange.answer()

    got, _ = snapshot(behave)
    assert got.answers == TRUTH


def test_rows_that_go_between_two_pages_make_the_reading_start_again():
    def behave(exchange: Exchange) -> None:
        if exchange.number == 2:
            exchange.server.store.update(f"DELETE WHERE {{ {user(0)[0]} ?p ?o }}")
        exchange.answer()

    got, _ = snapshot(behave)
    assert got.answers == {key: found for key, found in TRUTH.items() if key != user(0)}
    assert got.faults == {"changed between pages": 1}


def test_a_new_value_between_two_pages_moves_nothing():
    def behave(exchange: Exchange) -> None:
        if exchange.number == 2:  # the value of the row that the second page repeats
            exchange.server.store.update(
                f"DELETE {{ {user(7)[0]} ?p ?o }} INSERT {{ {user(7)[0]} ?p 99 }}"
                f"WHERE {{ {user(7)[0]} ?p ?o }}"
            )
        exchange.answer()

    got, _ = snapshot(behave)
    assert (got.answers, got.faults) == (TRUTH, {})


def test_data_that_never_rest_end_in_a_part_that_says_so():
    def behave(exchange: Exchange) -> None:
        first = f"<http://example.org/user/-{exchange.number}>"
        exchange.server.store.update(f"INSERT DATA {{ {first} <http://example.org/followers> 1 }}")
        exchange.answer()

    got, _ = snapshot(behave)
    assert got.faults == {"changed between pages": 3}
    assert set(got.answers) < set(TRUTH) | {
        (NamedNode(f"http://example.org/user/-{n}"),) for n in range(20)
    }


@pytest.mark.parametrize("most", range(1, 4))
def test_a_part_of_the_pages_holds_whole_answers_only(most):
    got, _ = snapshot(Exchange.answer, Limits(max_requests=most))
    assert list(got.answers) == users(min(20, 8 * most) - 1)
    assert got.faults == {"no requests left": 1}


# At once.


@pytest.mark.parametrize("whole_rows", [20, 1000])
def test_a_snapshot_is_read_at_once_and_unsorted(whole_rows):
    got, server = snapshot(Exchange.answer, whole_rows=whole_rows)
    assert (got.answers, got.faults, got.requests) == (TRUTH, {}, 2)
    assert list(got.answers) == sorted(got.answers, key=str)
    assert not any("ORDER BY" in query for query in server.queries)


def test_a_snapshot_of_too_many_rows_is_read_in_pages():
    got, server = snapshot(Exchange.answer, whole_rows=19)
    assert (got.answers, got.faults) == (TRUTH, {})
    assert all("ORDER BY" in query for query in server.queries[1:])


@pytest.mark.parametrize("is_said", [True, False])
@pytest.mark.parametrize("size", [2, 8, 19, 20])
def test_an_answer_that_is_cut_is_noticed_by_the_count_and_read_in_pages(size, is_said):
    got, server = snapshot(cap(size, is_said=is_said), whole_rows=1000)
    assert (got.answers, got.faults) == (TRUTH, {})
    assert any("ORDER BY" in query for query in server.queries) == (size < 20 or is_said)


@pytest.mark.parametrize(
    "behave", [(b"no aggregates here", 400), (b'{"results": {"bindings": []}}', 200)]
)
def test_a_server_that_cannot_count_is_read_in_pages(behave):
    def answer(exchange: Exchange) -> None:
        exchange.answer(*behave) if "COUNT" in exchange.query else exchange.answer()

    got, _ = snapshot(answer, whole_rows=1000)
    assert (got.answers, got.faults) == (TRUTH, {})


def test_a_whole_answer_that_is_refused_is_read_in_pages():
    def answer(exchange: Exchange) -> None:
        if "LIMIT" in exchange.query or "COUNT" in exchange.query:
            exchange.answer()
        else:
            exchange.answer(b"too large", 413)

    got, _ = snapshot(answer, whole_rows=1000)
    assert (got.answers, got.faults) == (TRUTH, {})


def test_rows_that_go_after_they_were_counted_are_no_fault():
    def behave(exchange: Exchange) -> None:
        if exchange.number == 2:
            exchange.server.store.update(f"DELETE WHERE {{ {user(0)[0]} ?p ?o }}")
        exchange.answer()

    got, _ = snapshot(behave, whole_rows=1000)
    assert got.answers == {key: found for key, found in TRUTH.items() if key != user(0)}
    assert got.faults == {}


KEYED = RemotePattern(SERVICE, "{ ?k <urn:p> ?v }", ("k",), ("v", "w"))
values = st.sampled_from(
    [Literal(1), Literal(2), NamedNode("urn:x"), BlankNode("a"), BlankNode("b")]
)
rows = st.fixed_dictionaries({}, optional={"v": values, "w": values})


@given(st.lists(rows, max_size=5), st.randoms(use_true_random=False), st.permutations("cdef"))
def test_the_same_rows_in_any_order_and_with_any_labels_are_the_same_answer(bag, chance, labels):
    def again(term):
        return BlankNode(labels["ab".index(term.value)]) if isinstance(term, BlankNode) else term

    key = (Literal("k"),)
    batch = batch_of(KEYED, [key])
    marked = [row | {"place": Literal(0)} for row in bag]
    # Of two rows that differ in their blank nodes alone, which is which is a matter of names.
    named = [
        str([(name, "" if isinstance(row[name], BlankNode) else row[name]) for name in sorted(row)])
        for row in bag
    ]
    assume(len(set(named)) == len(named))
    other = [{name: again(term) for name, term in row.items()} for row in marked]
    chance.shuffle(other)
    assert answers_of_batch(batch, marked) == answers_of_batch(batch, other)


def test_rows_without_a_key_and_keys_of_blank_nodes_belong_to_nobody():
    answers, faults = answers_of_whole(
        KEYED,
        [
            {"v": Literal(1)},
            {"k": None, "v": Literal(1)},
            {"k": BlankNode("b"), "v": Literal(2)},
            {"k": Literal("a"), "v": Literal(3)},
            {"k": Literal("b"), "v": None},
            {"k": Literal("b"), "v": Literal(4)},
        ],
    )
    assert answers == {(Literal("a"),): ({"v": Literal(3)},)}
    assert faults == {"row without key": 1, "bad term": 2}


@pytest.mark.parametrize("place", [None, Literal(-1), Literal(2), Literal("x"), NamedNode("urn:0")])
def test_a_place_that_is_none_makes_the_whole_document_foreign(place):
    batch = batch_of(KEYED, [(Literal("a"),), (Literal("b"),)])
    document = [{"place": Literal(0)}, {} if place is None else {"place": place}]
    assert answers_of_batch(batch, document) == ({}, {"row of no key": 1})
