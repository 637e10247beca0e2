"""IRIs: relative references are resolved against BASE, and absolute IRIs are left as they are."""

from __future__ import annotations

import pytest

from rsp_engine.engine import Engine
from rsp_engine.grammar import parse, serialise
from rsp_engine.grammar.iris import resolve
from rsp_engine.grammar.tree import Iri, QueryUnit, find
from rsp_engine.model.answers import Solutions

BASE = "http://a/b/c/d;p?q"
RESOLVED = {  # RFC 3986, section 5.4
    "g:h": "g:h",
    "g": "http://a/b/c/g",
    "./g": "http://a/b/c/g",
    "g/": "http://a/b/c/g/",
    "/g": "http://a/g",
    "//g": "http://g",
    "?y": "http://a/b/c/d;p?y",
    "g?y": "http://a/b/c/g?y",
    "#s": "http://a/b/c/d;p?q#s",
    "g#s": "http://a/b/c/g#s",
    "g?y#s": "http://a/b/c/g?y#s",
    ";x": "http://a/b/c/;x",
    "g;x": "http://a/b/c/g;x",
    "g;x?y#s": "http://a/b/c/g;x?y#s",
    "": "http://a/b/c/d;p?q",
    ".": "http://a/b/c/",
    "./": "http://a/b/c/",
    "..": "http://a/b/",
    "../": "http://a/b/",
    "../g": "http://a/b/g",
    "../..": "http://a/",
    "../../": "http://a/",
    "../../g": "http://a/g",
    "../../../g": "http://a/g",
    "../../../../g": "http://a/g",
    "/./g": "http://a/g",
    "/../g": "http://a/g",
    "g.": "http://a/b/c/g.",
    ".g": "http://a/b/c/.g",
    "g..": "http://a/b/c/g..",
    "..g": "http://a/b/c/..g",
    "./../g": "http://a/b/g",
    "./g/.": "http://a/b/c/g/",
    "g/./h": "http://a/b/c/g/h",
    "g/../h": "http://a/b/c/h",
    "g;x=1/./y": "http://a/b/c/g;x=1/y",
    "g;x=1/../y": "http://a/b/c/y",
    "g?y/./x": "http://a/b/c/g?y/./x",
    "g?y/../x": "http://a/b/c/g?y/../x",
    "g#s/./x": "http://a/b/c/g#s/./x",
    "g#s/../x": "http://a/b/c/g#s/../x",
    "http:g": "http:g",
}
ABSOLUTE = [
    "http://a/b/../c",
    "http://a/./b/.",
    "http://a/..",
    "HTTP://A/B",
    "http://a:80/",
    "http://a",
    "http://a/%7Eb%2f..%2e",
    "http://a/\N{LATIN SMALL LETTER E WITH ACUTE}/../e\N{COMBINING ACUTE ACCENT}",
    "urn:a:../b",
    "file:///a/../b",
    "mailto:a@b/./c",
]


@pytest.mark.parametrize("reference", RESOLVED)
def test_references_are_resolved_as_in_rfc_3986(reference):
    assert resolve(BASE, reference) == RESOLVED[reference]


@pytest.mark.parametrize("iri", ABSOLUTE)
def test_absolute_iris_are_left_as_they_are(iri):
    assert resolve(BASE, iri) == iri


def test_a_reference_to_a_base_without_a_path_gets_one():
    """RFC 3986, section 5.2.3."""
    assert resolve("http://a", "b/c") == "http://a/b/c"
    assert iris(parse("BASE <http://a> ASK { <b> <?p> <#o> }")) == [
        "http://a/b",
        "http://a?p",
        "http://a#o",
    ]


def iris(query: QueryUnit) -> list[str]:
    return [iri.value for iri in find(query.form, Iri)]


@pytest.mark.parametrize("iri", ABSOLUTE)
def test_a_base_changes_no_absolute_iri_of_a_query(iri):
    text = f"BASE <{BASE}> PREFIX p: <{iri}> ASK {{ <{iri}> p:x <g/../h> }}"
    query = parse(text)
    assert iris(query) == [iri, f"{iri}x", "http://a/b/c/h"]
    assert iris(parse(serialise(query))) == iris(query)


def test_a_base_and_a_namespace_with_dots_stay_too():
    query = parse("BASE <http://a/b/../c/> PREFIX p: <../d/> ASK { <> p:x <g>, p:x..%2e }")
    assert iris(query) == ["http://a/b/../c/", "http://a/d/x", "http://a/c/g", "http://a/d/x..%2e"]


@pytest.mark.parametrize("base", ["", "BASE <http://other.example/x/> "])
def test_a_query_finds_what_is_written_in_the_data(base):
    engine = Engine()
    engine.register(
        f"{base}PREFIX : <http://example.org/x/../> "
        "SELECT ?v FROM NAMED WINDOW :w ON :s [RANGE 10s] "
        "WHERE { WINDOW :w { <http://example.org/./a> :p ?v } }"
    )
    turtle = "<http://example.org/./a> <http://example.org/x/../p> 1 ."
    other = "<http://example.org/a> <http://example.org/p> 2 ."
    engine.bind("http://example.org/x/../s", [(1_000, turtle), (2_000, other)])
    [answer] = engine.run()
    assert isinstance(answer.content, Solutions)
    assert [row.bindings["v"].value for row in answer.content.rows] == ["1"]
