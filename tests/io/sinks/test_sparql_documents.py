"""The documents of the SPARQL standard, read by Oxigraph, by rdflib, and as plain JSON and XML."""

from __future__ import annotations

import io
import json
import re
from xml.etree import ElementTree as ET

import pyoxigraph as ox
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rdflib.query import Result

from rsp_engine.errors import SinkError
from rsp_engine.model.answers import Boolean, Solutions
from tests.io.sinks.samples import (
    GRAPH,
    RANKED,
    UNRANKED,
    answer,
    literals,
    one,
    terms,
    written,
)

OXIGRAPH = {"sparql-json": ox.QueryResultsFormat.JSON, "sparql-xml": ox.QueryResultsFormat.XML}
RDFLIB = {"sparql-json": "json", "sparql-xml": "xml"}
UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
DOCUMENTS = pytest.mark.parametrize("name", OXIGRAPH)
CONTENTS = pytest.mark.parametrize("solutions", [UNRANKED, RANKED, Solutions(("x",), ())])


def read(name: str, text: str) -> list[dict[str, object]]:
    solutions = ox.parse_query_results(text, OXIGRAPH[name])
    assert isinstance(solutions, ox.QuerySolutions)
    variables = [variable.value for variable in solutions.variables]
    return [{v: s[v] for v in variables if s[v] is not None} for s in solutions]


@DOCUMENTS
@CONTENTS
def test_solutions_are_read_by_oxigraph(name, solutions):
    text = written(name, answer(solutions))
    assert read(name, text) == [row.bindings for row in solutions.rows]


@DOCUMENTS
@CONTENTS
def test_solutions_are_read_by_rdflib(name, solutions):
    text = written(name, answer(solutions))
    result = Result.parse(io.BytesIO(text.encode()), format=RDFLIB[name])
    assert [str(variable) for variable in result.vars or ()] == list(solutions.variables)
    assert [{str(v): str(t) for v, t in row.items()} for row in result.bindings] == [
        {v: t.value for v, t in row.bindings.items()} for row in solutions.rows
    ]


@DOCUMENTS
@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_read_by_oxigraph_and_by_rdflib(name, value):
    text = written(name, answer(Boolean(value)))
    assert bool(ox.parse_query_results(text, OXIGRAPH[name])) is value
    result = Result.parse(io.BytesIO(text.encode()), format=RDFLIB[name])
    assert result.askAnswer is value


@DOCUMENTS
def test_an_ask_with_nothing_to_say_has_no_document(name):
    assert written(name, answer(Boolean(None))) == ""


@DOCUMENTS
def test_a_graph_is_refused(name):
    with pytest.raises(SinkError, match=f"{name} cannot hold the graphs") as refusal:
        written(name, answer(GRAPH))
    assert refusal.value.hint == "use nquads or jsonl"


def test_a_document_of_json_is_a_line_that_tells_its_window():
    lines = written("sparql-json", answer(RANKED), answer(UNRANKED, 6000)).splitlines()
    assert [json.loads(line)["window"] for line in lines] == [
        {"open": 0, "close": 5000},
        {"open": 1000, "close": 6000},
    ]


def test_a_document_of_xml_starts_with_its_declaration_and_tells_its_window():
    text = written("sparql-xml", answer(RANKED), answer(Boolean(True), -1))
    first, second = re.findall(r"<\?xml.*?</sparql>\n", text, re.DOTALL)
    assert first + second == text
    assert "\n<!-- window 0 5000 -->\n" in first
    assert "\n<!-- window -5001 -1 -->\n" in second


@given(terms)
def test_every_term_is_read_back_from_json(term):
    assert read("sparql-json", written("sparql-json", one(term))) == [{"x": term}]


@given(terms)
def test_every_term_that_xml_can_hold_is_read_back_from_it(term):
    assume(not UNWRITABLE.search(term.value))
    text = written("sparql-xml", one(term))
    assert read("sparql-xml", text) == [{"x": term}]
    [value] = ET.fromstring(text.encode()).iterfind(".//{*}binding/*")  # noqa: S314 - our own
    assert (value.text or "") == term.value


@given(literals, st.sampled_from("\x00\x08\x0b\x0c\x0e\x1f\ufffe\uffff"))
def test_a_character_that_xml_cannot_hold_is_refused_by_name(literal, character):
    with pytest.raises(SinkError, match=r"XML cannot hold the character U\+[0-9A-F]{4}") as refusal:
        written("sparql-xml", one(ox.Literal(literal.value + character)))
    assert refusal.value.hint == "use sparql-json, which can"


def test_a_long_run_of_blanks_is_written_in_no_time():
    blanks = " " * 200_000
    assert read("sparql-xml", written("sparql-xml", one(ox.Literal(f"a{blanks}b")))) == [
        {"x": ox.Literal(f"a{blanks}b")}
    ]
