"""The graph of a window: after any moves it is the union of the parts that are there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, Store, Triple

from rsp_engine.operators.windows.window_content import WindowContent
from rsp_engine.operators.windows.window_graph import WindowGraph
from tests.operators.streams import A, B, C, D, triple

PARTS = {
    "first": (A, B),
    "second": (B, C),
    "third": (),
    "fourth": (C, C, D),
    "fifth": (A, D),
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
        assert graph_of(store) == union(keys)
        assert len(graph) == len(union(keys))


@given(moves, moves)
def test_windows_of_one_store_do_not_touch_each_other_nor_static_graphs(one, other):
    store = Store()
    static = Quad(A.subject, A.predicate, A.object)
    store.add(static)
    graphs = {NAME: WindowGraph(store, NAME), f"{NAME}2": WindowGraph(store, f"{NAME}2")}
    last = {name: list[str]() for name in graphs}
    for name, keys in [*((NAME, keys) for keys in one), *((f"{NAME}2", keys) for keys in other)]:
        graphs[name].move([(key, PARTS[key]) for key in keys])
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
        WindowGraph(store, NAME).move([(0, part), (1, parts[1])])
        asked.append([quad.triple for quad in store.quads_for_pattern(None, None, None, None)])
    assert asked[0] == asked[1]
    assert set(asked[0]) == {A, B, triple("c")}
