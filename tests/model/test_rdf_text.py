"""Terms as text: they parse back to themselves, by the engine's parser and by Oxigraph."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.grammar import parse
from rsp_engine.grammar.tree import InlineData, Literal, find
from rsp_engine.model.terms.numerals import stored_literal
from rsp_engine.model.terms.rdf_text import blank_node_text, iri_text, literal_text, variable_text

XSD = "http://www.w3.org/2001/XMLSchema#"
texts = st.text() | st.text("\\u0041U\"'\n\r\t}{<>.#")
datatypes = st.sampled_from(["string", "integer", "decimal", "double", "boolean", "dateTime"])


def query_with(text: str) -> str:
    return f"SELECT ?x {{ VALUES ?x {{ {text} }} }}"


def read_by_oxigraph(text: str) -> ox.Literal:
    solutions = ox.Store().query(query_with(text))
    assert isinstance(solutions, ox.QuerySolutions)
    [solution] = solutions
    term = solution["x"]
    assert isinstance(term, ox.Literal)
    return term


@given(texts, datatypes.map(XSD.__add__))
def test_a_literal_is_read_back_by_the_parser_and_by_oxigraph(lexical, datatype):
    text = literal_text(lexical, datatype)
    [data] = find(parse(query_with(text)), InlineData)
    assert data.rows == ((Literal(lexical, datatype),),)
    literal = ox.Literal(lexical, datatype=ox.NamedNode(datatype))
    assert read_by_oxigraph(text) == stored_literal(literal)


@given(texts)
def test_a_string_with_a_language_is_read_back(lexical):
    text = literal_text(lexical, language="en-GB")
    assert read_by_oxigraph(text) == ox.Literal(lexical, language="en-GB")


@pytest.mark.parametrize(
    "value", ["a b", "a>", "a\n", 'a"', "a{", "a}", "a|", "a^", "a`", "a\\", "\ud800"]
)
def test_text_that_is_no_iri_is_refused(value):
    with pytest.raises(ValueError, match="not an IRI"):
        iri_text(value)


@pytest.mark.parametrize(
    "write",
    [
        lambda: literal_text("\ud800"),
        lambda: literal_text("a", "x> . } #"),
        lambda: literal_text("a", language="en ."),
        lambda: literal_text("a", language=""),
        lambda: blank_node_text("b ."),
        lambda: blank_node_text("b."),
        lambda: blank_node_text(""),
        lambda: variable_text("x }"),
        lambda: variable_text("x-y"),
    ],
)
def test_hostile_parts_of_a_term_are_refused(write):
    with pytest.raises(ValueError, match="not "):
        write()
