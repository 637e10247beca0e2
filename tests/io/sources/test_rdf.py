"""RDF text that would harm its reader is refused before it is parsed."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from rsp_engine.io.sources.files.rdf import MalformedRdfError, graph_of, quads_of

TRIPLE = b"<urn:a> <urn:b> "


def nested_triple(depth: int) -> bytes:
    return TRIPLE + b"<<( <urn:a> <urn:b> " * depth + b"<urn:c>" + b" )>>" * depth + b" ."


def nested_json(depth: int) -> bytes:
    return b'{"urn:p":' * depth + b'"["' + b"}" * depth


@pytest.mark.parametrize(
    ("data", "syntax", "reason"),
    [
        (nested_triple(300_000), ox.RdfFormat.N_QUADS, "more than 1000 deep"),
        (nested_triple(300_000), ox.RdfFormat.TURTLE, "more than 1000 deep"),
        (nested_json(20_000), ox.RdfFormat.JSON_LD, "more than 100 deep"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a/>', ox.RdfFormat.RDF_XML, "entities are not read"),
    ],
)
def test_a_text_that_would_exhaust_the_reader_is_refused(data, syntax, reason):
    with pytest.raises(MalformedRdfError, match=reason):
        quads_of(data, syntax)


def test_what_is_nested_a_little_is_read():
    assert len(quads_of(nested_triple(900), ox.RdfFormat.N_QUADS)) == 1
    assert len(quads_of(nested_json(90), ox.RdfFormat.JSON_LD)) == 90
    many = b"\n".join([nested_triple(1)] * 2_000)
    assert len(quads_of(many, ox.RdfFormat.N_QUADS)) == 2_000


def test_a_graph_holds_each_triple_once_in_the_order_of_the_text():
    found = graph_of(b"<urn:a> <urn:p> 2, 1, 2 .", ox.RdfFormat.TURTLE)
    assert [triple.object for triple in found] == [ox.Literal(2), ox.Literal(1)]


def test_what_is_wrong_is_reported_with_its_line_and_without_the_words_of_the_parser():
    with pytest.raises(MalformedRdfError) as failure:
        graph_of(b"<urn:a>\n<urn:b c> 1 .", ox.RdfFormat.TURTLE)
    assert failure.value.line == 2
    assert failure.value.what == "Invalid IRI code point ' '"
