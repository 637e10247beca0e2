"""N-Quads: graphs that can be read as a stream."""

from __future__ import annotations

import re

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.nquads import graph_name
from rsp_engine.model.answers import Boolean, Graph
from tests.io.sinks.samples import (
    BOB,
    EX,
    GRAPH,
    NODE,
    UNRANKED,
    answer,
    iris,
    literals,
    written,
)


def read(text: str) -> list[ox.Quad]:
    return list(ox.parse(text, ox.RdfFormat.N_QUADS))


def test_a_graph_is_named_after_its_query_and_the_close_of_its_window():
    quads = read(written("nquads", answer(GRAPH, 5000), answer(GRAPH, 6000)))
    assert [str(quad.graph_name) for quad in quads] == [
        *[f"<{EX}query/5000>"] * 2,
        *[f"<{EX}query/6000>"] * 2,
    ]


def test_a_blank_node_is_one_node_in_a_window_and_another_in_the_next():
    first, _, second, _ = read(written("nquads", answer(GRAPH, 5000), answer(GRAPH, 6000)))
    assert first.subject == first.object == ox.BlankNode("w5000-b0")
    assert second.subject == second.object == ox.BlankNode("w6000-b0")


def test_a_blank_node_in_a_triple_term_is_the_same_node():
    graph = Graph((ox.Triple(NODE, BOB, ox.Triple(NODE, BOB, ox.Literal("x"))),))
    assert written("nquads", answer(graph, -5)).count("_:w-5-b0 ") == 2


def test_an_empty_graph_has_no_quads():
    assert written("nquads", answer(Graph(()))) == ""


@given(st.lists(st.builds(ox.Triple, iris, iris, iris | literals)))
def test_every_triple_is_read_back(triples):
    text = written("nquads", answer(Graph(tuple(triples))))
    assert [quad.triple for quad in read(text)] == triples
    assert text.count("\n") == len(triples)


@given(
    st.text() | st.sampled_from(["", "a b", "urn:x", "a:b>c", "/q#ü%", "\ud800"]), st.integers(0)
)
def test_every_name_of_a_query_gives_an_iri_that_ends_in_the_time(query, close):
    name = graph_name(query, close)
    assert ox.NamedNode(name.value) == name
    time = re.search("[0-9]+$", name.value)
    assert time is not None
    assert int(time[0]) == close


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_two_queries_never_share_a_graph(queries):
    first, second = queries
    assert graph_name(first, 5) != graph_name(second, 5)


@pytest.mark.parametrize(
    ("content", "reason", "hint"),
    [
        (UNRANKED, "the rows that a SELECT answers", "jsonl, csv"),
        (Boolean(True), "the truth values that an ASK answers", "sparql-json"),
    ],
)
def test_other_answers_are_refused(content, reason, hint):
    with pytest.raises(SinkError, match=f"nquads cannot hold {reason}") as refusal:
        written("nquads", answer(content))
    assert hint in str(refusal.value.hint)
