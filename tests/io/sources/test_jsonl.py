"""JSON lines: what an object needs, and what happens to one that lacks it."""

from __future__ import annotations

import json

import pytest

from rsp_engine.io.sources import open_source
from tests.io.sources.reading import places, read, shown, write

FIRST = '{"timestamp": 1000, "graph": "<http://example.org/a> <http://example.org/p> 1 ."}\n'
LAST = '{"timestamp": 9000, "graph": ""}\n'
XSD_INTEGER = "^^http://www.w3.org/2001/XMLSchema#integer"


def test_an_element_is_an_object_on_a_line(tmp_path):
    path = write(tmp_path / "a.jsonl", f"{FIRST}\n  \r\n{LAST.strip()}")
    elements, letters = read(path)
    assert shown(elements) == [(1000, f'a p "1"{XSD_INTEGER}'), (9000, "")]
    assert [(e.source, e.position, e.raw) for e in elements] == [
        (str(path), 1, FIRST.encode()),
        (str(path), 4, LAST.strip().encode()),
    ]
    assert letters == []


def test_blank_nodes_are_of_their_element(tmp_path):
    assert open_source(str(write(tmp_path / "a.jsonl", ""))).blank_node_scope == "element"


def test_a_triple_stands_in_an_element_once(tmp_path):
    graph = "<http://example.org/a> <http://example.org/p> 'x', 'x' ."
    path = write(tmp_path / "a.jsonl", json.dumps({"timestamp": 1, "graph": graph}))
    assert shown(read(path)[0]) == [(1, 'a p "x"')]


@pytest.mark.parametrize(
    ("name", "graph"),
    [
        (None, "@prefix e: <http://example.org/> . e:a e:p 'x' ."),
        ("turtle", "<http://example.org/a> <http://example.org/p> 'x' ."),
        ("TTL", "<http://example.org/a> <http://example.org/p> 'x' ."),
        ("text/turtle; charset=utf-8", "<http://example.org/a> <http://example.org/p> 'x' ."),
        ("ntriples", '<http://example.org/a> <http://example.org/p> "x" .'),
        ("nt", '<http://example.org/a> <http://example.org/p> "x" .'),
        ("application/n-triples", '<http://example.org/a> <http://example.org/p> "x" .'),
        ("jsonld", '{"@id": "http://example.org/a", "http://example.org/p": "x"}'),
        ("json-ld", '{"@id": "http://example.org/a", "http://example.org/p": "x"}'),
        (
            "rdfxml",
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
            ' xmlns:e="http://example.org/"><rdf:Description rdf:about="http://example.org/a">'
            "<e:p>x</e:p></rdf:Description></rdf:RDF>",
        ),
        ("n3", "<http://example.org/a> <http://example.org/p> 'x' ."),
        ("trig", "<http://example.org/a> <http://example.org/p> 'x' ."),
        ("nquads", '<http://example.org/a> <http://example.org/p> "x" .'),
    ],
)
def test_the_graph_is_read_in_its_format(tmp_path, name, graph):
    value = {"timestamp": 1, "graph": graph} | ({"format": name} if name else {})
    elements, letters = read(write(tmp_path / "a.jsonl", json.dumps(value)))
    assert letters == []
    assert shown(elements) == [(1, 'a p "x"')]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "the line is not JSON"),
        (b"nonsense", "the line is not JSON"),
        (b'{"timestamp": 1, "graph": "\xff"}', "the line is not UTF-8"),
        (b"[1, 2]", "not an object"),
        (b"7", "not an object"),
        (b'{"graph": ""}', 'the object has no "timestamp"'),
        (b'{"timestamp": 1}', 'the object has no "graph"'),
        (b'{"timestamp": 1.5, "graph": ""}', "its time is not a whole number"),
        (b'{"timestamp": NaN, "graph": ""}', "its time is not a whole number"),
        (b'{"timestamp": true, "graph": ""}', "its time is neither a number nor a string"),
        (b'{"timestamp": "soon", "graph": ""}', "its time is not of the form"),
        (b'{"timestamp": 9223372036854775808, "graph": ""}', "its time does not fit"),
        (b'{"timestamp": %s, "graph": ""}' % (b"9" * 5_000), "too long or too deep"),
        (b'{"a": %s' % (b"[" * 100_000), "too long or too deep"),
        (b'{"timestamp": 1, "graph": {}}', "its graph is not a string"),
        (b'{"timestamp": 1, "graph": "<a> <b> <c> ."}', "its graph cannot be read: line 1: "),
        (b'{"timestamp": 1, "graph": "\\n<urn:a> <urn:b>"}', "read: line 2: Unexpected end"),
        (b'{"timestamp": 1, "graph": "\\ud800"}', "half a character"),
        (b'{"timestamp": 1, "graph": "", "format": "yaml"}', "its format 'yaml' is not known"),
        (b'{"timestamp": 1, "graph": "", "format": 7}', "its format is not a string"),
        (
            b'{"timestamp": 1, "graph": "<urn:g> {<urn:a> <urn:b> <urn:c>}", "format": "trig"}',
            "Named graphs are not allowed",
        ),
    ],
)
def test_a_bad_line_is_set_aside_and_its_neighbours_are_kept(tmp_path, line, reason):
    path = write(tmp_path / "a.jsonl", FIRST.encode() + line + b"\n" + LAST.encode())
    elements, letters = read(path)
    assert [element.timestamp for element in elements] == [1000, 9000]
    assert places(letters) == [(2, line + b"\n")]
    assert letters[0].source == str(path)
    assert reason in letters[0].reason
