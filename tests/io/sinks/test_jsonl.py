"""JSON lines."""

from __future__ import annotations

import json
import math

import pyoxigraph as ox
import pytest
from hypothesis import given

from rsp_engine.model.answers import Boolean, Graph, Row, Solutions
from tests.io.sinks.samples import BOB, GRAPH, RANKED, UNRANKED, answer, one, terms, written

JSON = ox.QueryResultsFormat.JSON


def ranked(score: float | None) -> Solutions:
    return Solutions(("x",), (Row({"x": BOB}, 1, score),), ranked=True)


def test_a_line_holds_the_window_the_rows_and_the_statistics_in_a_fixed_order():
    assert written("jsonl", answer(RANKED)) == (
        '{"query":"http://example.org/query","window":{"open":0,"close":5000},"rows":['
        '{"rank":1,"score":7.0,"bindings":{"user":{"type":"uri","value":"http://example.org/bob"},'
        '"count":{"type":"literal","value":"7",'
        '"datatype":"http://www.w3.org/2001/XMLSchema#integer"}}},'
        '{"rank":2,"score":0.1,"bindings":{"user":{"type":"bnode","value":"b0"},'
        '"count":{"type":"literal","value":"bon, jour","xml:lang":"fr"}}},'
        '{"rank":3,"score":null,"bindings":{'
        '"count":{"type":"literal","value":"say \\"hi\\"\\r\\n\\té"}}}'
        '],"stats":{"triples":3,"exact":true}}\n'
    )


def test_rows_without_a_ranking_have_neither_rank_nor_score():
    rows = json.loads(written("jsonl", answer(UNRANKED)))["rows"]
    assert [list(row) for row in rows] == [["bindings"]] * 3


def test_a_row_of_remote_values_tells_how_old_they_are():
    rows = (Row({"x": BOB}, 1, 2.0, 9000), Row({"x": BOB}, 2, 1.0))
    line = json.loads(written("jsonl", answer(Solutions(("x",), rows, ranked=True))))
    assert [list(row) for row in line["rows"]] == [
        ["rank", "score", "age", "bindings"],
        ["rank", "score", "bindings"],
    ]
    assert line["rows"][0]["age"] == 9000


def test_a_window_without_rows_has_a_line():
    assert json.loads(written("jsonl", answer(Solutions(("x",), ()))))["rows"] == []


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (math.inf, "INF"),
        (-math.inf, "-INF"),
        (math.nan, "NaN"),
        (1e300, 1e300),
        (-0.0, -0.0),
        (None, None),
    ],
)
def test_a_score_that_is_no_json_number_is_a_string(score, expected):
    def refuse(constant):
        raise AssertionError(constant)

    line = written("jsonl", answer(ranked(score)))
    [row] = json.loads(line, parse_constant=refuse)["rows"]
    assert row["score"] == expected


def test_a_graph_is_a_line_that_a_stream_can_read():
    line = json.loads(written("jsonl", answer(GRAPH)))
    assert list(line) == ["query", "window", "timestamp", "graph", "format", "stats"]
    assert (line["timestamp"], line["format"]) == (5000, "ntriples")
    read = tuple(quad.triple for quad in ox.parse(line["graph"], ox.RdfFormat.N_TRIPLES))
    assert read == GRAPH.triples
    assert json.loads(written("jsonl", answer(Graph(()))))["graph"] == ""


@pytest.mark.parametrize("value", [True, False, None])
def test_a_truth_value_is_written(value):
    line = json.loads(written("jsonl", answer(Boolean(value))))
    assert list(line) == ["query", "window", "boolean", "stats"]
    assert line["boolean"] is value


@given(terms)
def test_every_term_is_read_back(term):
    text = written("jsonl", one(term))
    assert text.count("\n") == 1
    [row] = json.loads(text)["rows"]
    document = {"head": {"vars": ["x"]}, "results": {"bindings": [row["bindings"]]}}
    solutions = ox.parse_query_results(json.dumps(document), JSON)
    assert isinstance(solutions, ox.QuerySolutions)
    assert [solution["x"] for solution in solutions] == [term]
