"""Rows that are written alike: they are read as the parser of JSON reads them, or left to it."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.http_client.faults import FaultError
from rsp_engine.replica.sparql_client import results
from rsp_engine.replica.sparql_client.result_table import alike_rows
from rsp_engine.replica.sparql_client.results import read_results
from tests.thoroughness import examples

XSD = "http://www.w3.org/2001/XMLSchema#"
texts = st.sampled_from(
    ("urn:a", "urn:b", "urn:c", "urn:é", "urn:d]}}", "7", "a b", "", 'a"b', "a\\b", "a\nb", "]")
)
plain_texts = st.sampled_from(("urn:a", "urn:b", "urn:é", "urn:d]}}"))
forms: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    (
        *(
            {"type": "uri"},
            {"type": "uri"},
            {"type": "iri"},
            {"type": "bnode"},
            {"type": "literal"},
        ),
        {"type": "literal", "datatype": XSD + "integer"},
        {"type": "typed-literal", "datatype": XSD + "integer"},
        {"type": "literal", "datatype": "no iri"},
        {"type": "literal", "xml:lang": "en"},
        {"type": "literal", "xml:lang": ""},
        {"type": "literal", "lang": "en"},
        {"type": "literal", "xml:lang": "en", "its:dir": "ltr"},
        {"type": "literal", "datatype": None},
        {"type": "literal", "note": {"value": "x"}},
        {"type": "triple"},
    )
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Draw a document whose rows are mostly alike."""
    names = draw(st.lists(st.sampled_from("abc"), unique=True, min_size=draw(st.integers(0, 2))))
    words = draw(st.sampled_from((plain_texts, plain_texts, texts)))
    usual = {name: draw(forms) for name in names}
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        other = draw(st.sampled_from((*[None] * 30, "form", "absent", "order", "number")))
        row = {name: {**usual[name], "value": draw(words)} for name in names}
        if names and other == "form":
            row[names[0]] = {**draw(forms), "value": draw(texts)}
        elif names and other == "absent":
            del row[names[0]]
        elif other == "order":
            row = dict(reversed(row.items()))
        elif names and other == "number":
            row[names[0]]["value"] = 7
        rows.append(row)
    before: tuple[dict[str, Any], ...]
    before = ({}, {"head": {"vars": ["]"]}}, {"x": [1]}, {"bindings": []})
    after: tuple[dict[str, Any], ...]
    after = (*[{}] * 6, {"bindings": [[]]}, {"x": "]"}, {"results": 5})
    around, behind = draw(st.sampled_from(before)), draw(st.sampled_from(after))
    document = {**around, "results": {"distinct": False, "bindings": rows}, **behind}
    separators = draw(st.sampled_from(((",", ":"), (", ", ": "), (" ,\n", " : "))))
    is_ascii, indent = draw(st.booleans()), draw(st.sampled_from((None, None, 1)))
    text = json.dumps(document, ensure_ascii=is_ascii, separators=separators, indent=indent)
    cut = draw(st.sampled_from((*[None] * 9, -1, -3)))
    odd = draw(st.sampled_from((*[("", "")] * 9, ("},", "}, ,"), ("]", ",]"), ("}", "}\x01"))))
    return text[:cut].replace(*odd).encode()


def _read(data: bytes) -> list[object] | str:
    try:
        return list(read_results(data, ["a", "b"]))
    except FaultError as fault:
        return fault.cause


@examples(3000)
@given(documents())
def test_alike_rows_are_what_the_parser_reads(data):
    with patch.object(results, "alike_rows", lambda _: None):
        expected = _read(data)
    event("alike" if alike_rows(data.decode()) else "parsed")
    assert _read(data) == expected


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("form", [{"type": "uri"}, {"type": "literal", "datatype": XSD + "int"}])
def test_rows_as_servers_write_them_are_not_parsed(form, indent):
    rows = [{"a": {**form, "value": f"urn:{n}"}, "b": {**form, "value": "é"}} for n in range(3)]
    document = {"head": {"vars": ["a", "b"]}, "results": {"bindings": rows}}
    found = alike_rows(json.dumps(document, ensure_ascii=False, indent=indent))
    assert found is not None
    assert found.columns == {"a": ("urn:0", "urn:1", "urn:2"), "b": ("é", "é", "é")}
