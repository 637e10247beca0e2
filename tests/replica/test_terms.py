"""Terms in files and states: what is written reads back, and one text is one term."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.terms.ntriples import read_terms
from rsp_engine.replica.store.terms import read_term, solution_text
from tests.replica.drawn import XSD, terms


@given(st.lists(terms, max_size=6))
def test_terms_read_back_as_they_were(drawn):
    assert read_terms([str(term) for term in drawn]) == drawn


@given(terms)
def test_a_term_of_a_table_may_be_written_in_full(term):
    assert read_term(f"  {term} ") == term


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "<urn:a",
        "<urn:a> <urn:b>",
        '"a" . <urn:b> <urn:c> "d"',
        '"a" .\n<urn:b> <urn:c> "d"',
        "<urn:a> . #",
        "<<( <urn:a> <urn:b> <urn:c> )>>",
        "_:",
        "_:a b",
        '"\n"',
    ],
)
def test_a_text_that_is_not_one_term_is_refused_alone_and_among_others(text):
    with pytest.raises(ValueError, match="not a term"):
        read_terms([text])
    with pytest.raises(ValueError, match="not a term"):
        read_terms(["<urn:a>", text, '"b"'])
    with pytest.raises(ValueError, match="not a term"):
        read_term(text)


def test_two_texts_that_make_two_terms_together_are_refused():
    # Split elsewhere the lines would be fine: "a" ends the first statement and begins a comment.
    with pytest.raises(ValueError, match="not a term"):
        read_terms(['"a" . #', '"b"'])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("12", "integer"),
        ("-3", "integer"),
        ("1.5", "decimal"),
        ("1e3", "double"),
        ("1.5E-3", "double"),
        ("true", "boolean"),
    ],
)
def test_numbers_and_truth_values_may_stand_bare_in_a_table(text, kind):
    assert read_term(text) == ox.Literal(text, datatype=ox.NamedNode(XSD + kind))


def test_variables_of_a_solution_are_written_in_order():
    assert list(solution_text({"b": ox.Literal("x"), "a": ox.NamedNode("urn:y")})) == ["a", "b"]
