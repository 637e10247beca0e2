"""Matching a triple pattern without a store, compared with a store."""

from __future__ import annotations

from collections import Counter

import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.model.terms.numerals import stored_literal
from rsp_engine.operators.sparql.one_pattern import OnePattern
from rsp_engine.operators.sparql.template import Hole

A, B = ox.NamedNode("urn:a"), ox.NamedNode("urn:b")
NODE = ox.BlankNode("n")
XSD = "http://www.w3.org/2001/XMLSchema#"
WRITTEN = [
    *(ox.Literal(text, datatype=ox.NamedNode(XSD + "integer")) for text in ("1", "01", "+1", "2")),
    *(ox.Literal(text, datatype=ox.NamedNode(XSD + "double")) for text in ("1", "1.0", "NaN")),
    ox.Literal("1"),
    ox.Literal("1", language="EN"),
    ox.Literal("1", language="en"),
]
names = st.sampled_from([A, B])
literals = st.sampled_from(WRITTEN)
triples = st.lists(
    st.builds(
        ox.Triple,
        names | st.just(NODE),
        names,
        names | literals.map(stored_literal) | st.just(NODE),
    )
)
holes = st.builds(Hole, st.sampled_from("xyz"))
patterns = st.builds(OnePattern, names | holes, names | holes, names | literals | holes)
VARIABLES = ("x", "y", "z")


def written(term: object) -> str:
    return f"?{term.name}" if isinstance(term, Hole) else str(term)


def asked(pattern: OnePattern, found: list[ox.Triple]) -> Counter[tuple[object, ...]]:
    """Return the solutions of a store, which holds each triple once."""
    store = ox.Store()
    store.extend([ox.Quad(*triple) for triple in found])
    text = " ".join(map(written, (pattern.subject, pattern.predicate, pattern.object)))
    solutions = store.query(f"SELECT ?x ?y ?z {{ {text} }}")
    assert isinstance(solutions, ox.QuerySolutions)
    return Counter(map(tuple, solutions))


@given(patterns, triples)
def test_the_solutions_are_those_of_a_store(pattern, found):
    once = list(dict.fromkeys(found))
    assert Counter(pattern.solutions(once, VARIABLES)) == asked(pattern, found)


@given(patterns, triples)
def test_each_triple_that_matches_has_one_solution(pattern, found):
    matching = pattern.matching(found)
    assert len(pattern.solutions(found, ())) == len(matching)
    assert pattern.solutions(matching, VARIABLES) == pattern.solutions(found, VARIABLES)
    assert Counter(found) == Counter([*matching, *pattern.others(found)])
