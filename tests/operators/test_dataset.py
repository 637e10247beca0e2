"""The graph of a window: after any moves it is the union of the parts that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store, Triple

from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.model.terms.lazy_text import WrittenTriples
from rsp_engine.model.terms.ntriples import triples_text
from rsp_engine.operators.sparql.sparql_query import SparqlConfig
from rsp_engine.operators.windows.window_content import WindowContent
from rsp_engine.operators.windows.window_graph import WindowGraph
from tests.operators.streams import A, B, C, D, triple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

NODE = Triple(BlankNode("n"), A.predicate, BlankNode("m"))
TAGGED = Triple(A.subject, A.predicate, Literal('a "b"\n\té\\', language="en-gb"))
COLON = Triple(A.subject, A.predicate, Literal("_:c"))
NUMBER = Triple(A.subject, A.predicate, Literal(7))
PARTS: dict[str, Sequence[Triple]] = {
    "first": (A, B, TAGGED),
    "second": (B, C),
    "third": (),
    "fourth": (C, C, D, NUMBER),
    "fifth": (A, D, COLON),
    "with blank nodes": (A, NODE),
    "as text": WrittenTriples(triples_text([B, NODE, TAGGED])),
    "as other text": WrittenTriples(triples_text([C, NUMBER])),
    "as no text": WrittenTriples(),
}
moves = st.lists(st.lists(st.sampled_from(sorted(PARTS)), unique=True), max_size=8)
in_order = st.booleans()
NAME = "http://example.org/w"


def graph_of(store: Store, name: str = NAME) -> set[Triple]:
    return {quad.triple for quad in store.quads_for_pattern(None, None, None, NamedNode(name))}


def union(keys: list[str]) -> set[Triple]:
    return {t for key in keys for t in PARTS[key]}


@given(moves, in_order)
def test_after_any_moves_the_graph_is_the_union_of_its_parts(contents, ordered):
    store = Store()
    graph = WindowGraph(store, NAME, in_order=ordered)
    for keys in contents:
        graph.move([(key, PARTS[key]) for key in keys])
        graph.update_store()
        assert graph_of(store) == union(keys)
        assert len(graph) == len(union(keys))


@given(moves, in_order, st.integers(2, 4))
def test_moves_take_effect_together_in_the_store_or_in_a_new_one(contents, ordered, every):
    store = Store()
    graph = WindowGraph(store, NAME, in_order=ordered)
    for number, keys in enumerate(contents):
        graph.move([(key, PARTS[key]) for key in keys])
        if number % every == 0:
            continue
        if number % every == 1:
            graph.update_store()
        else:
            store = Store()
            graph.move_to(store)
            assert graph.gone == 0
        assert graph_of(store) == union(keys)
        assert (graph.entering, graph.leaving) == (0, 0)


@given(moves, moves)
def test_windows_of_one_store_do_not_touch_each_other_nor_static_graphs(one, other):
    store = Store()
    static = Quad(A.subject, A.predicate, A.object)
    store.add(static)
    graphs = {NAME: WindowGraph(store, NAME), f"{NAME}2": WindowGraph(store, f"{NAME}2")}
    last = {name: list[str]() for name in graphs}
    for name, keys in [*((NAME, keys) for keys in one), *((f"{NAME}2", keys) for keys in other)]:
        graphs[name].move([(key, PARTS[key]) for key in keys])
        graphs[name].update_store()
        last[name] = keys
        assert all(graph_of(store, n) == union(last[n]) for n in graphs)
        assert static in store


def test_an_empty_window_is_a_graph_as_well():
    store = Store()
    WindowGraph(store, NAME)
    assert list(store.named_graphs()) == [NamedNode(NAME)]


@given(moves)
def test_content_tells_what_comes_and_what_goes(contents):
    content = WindowContent[object]()
    held: set[object] = set()
    parts: list[str] = []
    for keys in contents:
        coming, going = content.coming(keys), content.going(keys)
        assert set(coming) == set(keys) - set(parts)
        assert set(going) == set(parts) - set(keys)
        for key in coming:
            new = content.add(key, PARTS[str(key)])
            assert set(new) == set(PARTS[str(key)]) - held
            held |= set(new)
        for key in going:
            gone = content.remove(key)
            assert set(gone) <= held
            held -= set(gone)
        parts = keys
        assert held == union(keys)
        assert len(content) == len(held)


@pytest.mark.parametrize("parts", [[(A, B), (C,)], [(B, A), (C,)]])
def test_triples_of_a_part_come_in_order_however_they_were_read(parts):
    """Where an answer depends on the order of triples, only the parts and their order count."""
    asked = []
    for part in (parts[0], parts[0][::-1]):
        store = Store()
        graph = WindowGraph(store, NAME)
        graph.move([(0, part), (1, parts[1])])
        graph.update_store()
        asked.append([quad.triple for quad in store.quads_for_pattern(None, None, None, None)])
    assert asked[0] == asked[1]
    assert set(asked[0]) == {A, B, triple("c")}


class _Content:
    """A scan with parts of `size` triples each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.keys = range(0)

    def content(self) -> Iterable[tuple[Hashable, Sequence[Triple]]]:
        for key in self.keys:
            yield key, [triple(f"{key}-{number}") for number in range(self.size)]


def _stores(size: int, panes: int, moves: int) -> tuple[int, int]:
    """Slide a window by one part; return how many stores it needed, and what the last one holds."""
    config = SparqlConfig(f"SELECT * WHERE {{ GRAPH <{NAME}> {{ ?s ?p ?o }} }}", "SELECT", ("s",))
    evaluator, scan = SparqlEvaluator(config, Store(), [NAME]), _Content(size)
    stores, last = 0, None
    for start in range(moves):
        scan.keys = range(start, start + panes)
        evaluator.move([scan])
        stores += evaluator.store is not last
        last = evaluator.store
    return stores, len(graph_of(evaluator.store))


def test_a_store_is_rebuilt_once_ten_thousand_more_have_left_than_are_there():
    assert _stores(1000, 2, moves=13) == (1, 2000)  # 12,000 left
    assert _stores(1000, 2, moves=14) == (2, 2000)
    assert _stores(1000, 2, moves=27) == (3, 2000)


def test_a_window_that_shares_nothing_with_the_last_one_has_a_new_store():
    assert _stores(10, 1, moves=5) == (5, 10)
