"""The template of a CONSTRUCT."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from rsp_engine.operators.sparql.template import Hole, TemplateTerm, TripleTemplate

EX = "http://example.org/"
P, Q = NamedNode(f"{EX}p"), NamedNode(f"{EX}q")
S, V = Hole("s"), Hole("v")
ONE = Literal(1)
terms = st.sampled_from([NamedNode(f"{EX}a"), NamedNode(f"{EX}b"), BlankNode("n"), ONE])
solutions = st.lists(st.dictionaries(st.sampled_from("spv"), terms), max_size=6)
PATTERN_TERMS: list[TemplateTerm] = [P, ONE, BlankNode("t"), Hole("s"), Hole("p"), Hole("v")]
pattern_terms = st.sampled_from(PATTERN_TERMS)
templates = st.lists(st.tuples(pattern_terms, pattern_terms, pattern_terms), max_size=3).map(
    lambda triples: TripleTemplate(tuple(triples))
)


def nodes(triples: tuple[Triple, ...]) -> set[BlankNode]:
    return {
        term
        for triple in triples
        for term in (triple.subject, triple.object)
        if isinstance(term, BlankNode)
    }


def test_a_template_is_filled_once_per_solution():
    template = TripleTemplate(((S, P, V), (V, Q, S)))
    a, b = NamedNode(f"{EX}a"), NamedNode(f"{EX}b")
    assert template.fill([{"s": a, "v": b}, {"s": b, "v": a}]) == (
        Triple(a, P, b),
        Triple(a, Q, b),
        Triple(b, P, a),
        Triple(b, Q, a),
    )


def test_a_triple_with_an_unbound_variable_is_left_out_and_its_neighbours_are_kept():
    template = TripleTemplate(((S, P, V), (S, Q, ONE)))
    assert template.fill([{"s": P}]) == (Triple(P, Q, ONE),)
    assert template.fill([{}]) == ()


def test_a_literal_cannot_be_a_subject_nor_anything_but_an_iri_a_predicate():
    template = TripleTemplate(((S, Hole("p"), V),))
    assert template.fill([{"s": ONE, "p": P, "v": P}]) == ()
    assert template.fill([{"s": P, "p": ONE, "v": P}]) == ()
    assert template.fill([{"s": P, "p": BlankNode("n"), "v": P}]) == ()
    assert template.fill([{"s": BlankNode("n"), "p": P, "v": ONE}]) == (
        Triple(BlankNode("n"), P, ONE),
    )


def test_blank_nodes_are_new_in_every_solution_and_one_within_it():
    """`_:t :p ?v . _:t :q 1` makes a node of two triples for each solution, equal ones too."""
    template = TripleTemplate(((BlankNode("t"), P, V), (BlankNode("t"), Q, ONE)))
    found = template.fill([{"v": P}, {"v": Q}, {"v": P}])
    assert len(found) == 6
    assert len(nodes(found)) == 3
    for node in nodes(found):
        assert {t.predicate for t in found if t.subject == node} == {P, Q}


def test_blank_nodes_of_the_data_are_not_renamed_and_new_ones_do_not_collide():
    template = TripleTemplate(((S, P, BlankNode("n")),))
    [triple] = template.fill([{"s": BlankNode("n")}])
    assert triple.subject == BlankNode("n") != triple.object


def test_a_solution_that_stays_keeps_its_node_from_one_evaluation_to_the_next():
    template = TripleTemplate(((BlankNode("t"), P, V),))
    a, b, c = (NamedNode(EX + name) for name in "abc")
    before, after = template.fill([{"v": b}, {"v": c}]), template.fill([{"v": a}, {"v": b}])
    assert {t for t in before if t.object == b} == {t for t in after if t.object == b}


@given(templates, solutions)
def test_the_triples_are_a_set_in_term_order_of_terms_that_their_places_allow(template, found):
    triples = template.fill(found)
    assert len(set(triples)) == len(triples)
    assert all(isinstance(t.predicate, NamedNode) for t in triples)
    assert not any(isinstance(t.subject, Literal) for t in triples)


@given(templates, solutions)
def test_each_triple_comes_from_a_solution(template, found):
    one_by_one = {triple for s in found for triple in template.fill([s])}
    plain = {t for t in template.fill(found) if not nodes((t,)) - {BlankNode("n")}}
    assert plain == {t for t in one_by_one if not nodes((t,)) - {BlankNode("n")}}
