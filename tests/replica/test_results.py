"""Results in JSON: what is sloppy is read, what is not whole is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from rsp_engine.http_client.faults import FaultError
from rsp_engine.replica.pattern import RemotePattern
from rsp_engine.replica.sparql_client.result_table import ResultTable
from rsp_engine.replica.sparql_client.results import in_key_order, read_results

XSD = "http://www.w3.org/2001/XMLSchema#"


def document(*rows: object) -> bytes:
    return json.dumps({"results": {"bindings": rows}}).encode()


def value(**member: object) -> object:
    (row,) = read_results(
        document({"a": {k.replace("_", ":"): v for k, v in member.items()}}), ["a"]
    )
    return row["a"]


def cause(data: bytes) -> str:
    with pytest.raises(FaultError) as error:
        read_results(data, ["a"])
    return error.value.cause


def test_terms_are_read_in_every_way_that_servers_write_them():
    five = Literal("5", datatype=NamedNode(XSD + "integer"))
    assert value(type="uri", value="urn:a") == NamedNode("urn:a")
    assert value(type="literal", value="5", datatype=XSD + "integer") == five
    assert value(type="typed-literal", value="5", datatype=XSD + "integer") == five
    assert value(type="literal", value="a", xml_lang="en") == Literal("a", language="en")
    assert value(type="literal", value="a", lang="en") == Literal("a", language="en")
    assert value(type="literal", value="a", xml_lang="", datatype=None) == Literal("a")
    assert value(type="literal", value="") == Literal("")


def test_a_blank_node_keeps_its_identity_whatever_its_label():
    same, other = "nodeID://b1", "_:x y"
    ((one, two, three),) = [
        [row["a"] for row in read_results(document(*({"a": b} for b in blanks)), ["a"])]
        for blanks in [[{"type": "bnode", "value": label} for label in (same, same, other)]]
    ]
    assert one == two != three


def test_what_is_no_term_is_nothing_and_what_is_not_there_is_absent():
    for wrong in (
        {"type": "uri", "value": "no iri"},
        {"type": "uri", "value": "urn:a> } #"},
        {"type": "literal", "value": "a", "xml:lang": "e n"},
        {"type": "literal", "value": "a", "datatype": "x y"},
        {"type": "literal", "value": "\ud800"},
        {"type": "literal", "value": 5},
        {"type": "literal", "value": "a", "xml:lang": "ar", "its:dir": "rtl"},
        {"type": "triple", "value": {}},
        {"value": "a"},
        "a",
    ):
        assert read_results(document({"a": wrong}), ["a"]) == [{"a": None}], wrong
    assert read_results(document({"a": None}), ["a"]) == [{}]
    assert read_results(document({}), ["a"]) == [{}]


def test_what_is_only_sloppy_is_read():
    whole = document({"a": {"type": "literal", "value": "é", "more": 1}})
    assert read_results(b"\xef\xbb\xbf" + whole, ["a"]) == [{"a": Literal("é")}]
    assert read_results(b"\n\n" + whole + b"\n\n", ["a"]) == [{"a": Literal("é")}]
    assert read_results(b'{"results": {"bindings": [], "distinct": false}, "head": 3}', ["a"]) == []


def test_what_is_something_else_has_its_cause():
    assert cause(b"<html>") == "not JSON"
    assert cause(b"Virtuoso 37000 Error") == "not JSON"
    assert cause(b"\xff\xfe\xff") == "not JSON"
    assert cause(b"{not json at all, but long enough}") == "not JSON"
    assert cause(b'{"boolean": true}') == "not SPARQL results"
    assert cause(b'{"results": {"bindings": {}}}') == "not SPARQL results"
    assert cause(b'{"results": {"bindings": [1]}}') == "not SPARQL results"
    assert cause(b"null") == "not SPARQL results"


@given(st.data())
def test_a_document_that_breaks_off_anywhere_is_truncated(data):
    rows = [{"a": {"type": "literal", "value": text}} for text in ("é", '"', "x\\", "true")]
    whole = json.dumps(
        {"head": {"vars": ["a"], "n": None, "t": True}, "results": {"bindings": rows}},
        ensure_ascii=False,
    ).encode()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert cause(cut) == "truncated"


def test_reading_can_be_ended_between_rows():
    calls = 0

    def heed() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise FaultError("time-out")

    many = document(*[{"a": {"type": "literal", "value": "x"}}] * 2500)
    with pytest.raises(FaultError, match="time-out"):
        read_results(many, ["a"], heed)
    assert len(read_results(many, ["a"])) == 2500


def test_only_variables_that_were_asked_for_are_read():
    one = {"type": "literal", "value": "1"}
    rows = read_results(document({"a": one, "b": one}, {"b": one}), ["a", "c"])
    assert rows == [{"a": Literal("1")}, {}]


rows = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.none() | st.builds(Literal, st.sampled_from("xyz")))
)


@given(rows, st.integers(0, 5), st.integers(0, 5))
def test_a_table_is_the_sequence_of_its_rows(given_rows, start, stop):
    table = ResultTable.of(given_rows)
    assert list(table) == given_rows
    assert table == given_rows
    assert table[start:stop] == given_rows[start:stop]
    assert [table[place] for place in range(len(table))] == given_rows
    assert table.take(range(len(table))[::-1]) == given_rows[::-1]
    with pytest.raises(IndexError):
        table[len(given_rows)]


@given(rows)
def test_rows_are_sorted_by_their_keys_and_otherwise_stay(given_rows):
    pattern = RemotePattern("http://e.org/s", "{}", ("b", "a"), ("c",))
    whole = [row for row in given_rows if {"a", "b"} <= row.keys()]
    ordered = sorted(whole, key=lambda row: (str(row["b"]), str(row["a"])))
    assert in_key_order(pattern, whole) == ordered


cells = st.sampled_from(
    [
        {"type": "uri", "value": "urn:a"},
        {"type": "iri", "value": "urn:b"},
        {"type": "uri", "value": "no iri"},
        {"type": "literal", "value": "5", "datatype": XSD + "integer"},
        {"type": "literal", "value": "6", "datatype": XSD + "integer"},
        {"type": "typed-literal", "value": "5", "datatype": XSD + "decimal"},
        {"type": "literal", "value": 5, "datatype": XSD + "integer"},
        {"type": "literal", "value": "a", "datatype": ""},
        {"type": "literal", "value": "a", "datatype": None},
        {"type": "literal", "value": "a", "datatype": ["x"]},
        {"type": "literal", "value": "a", "xml:lang": "en"},
        {"type": "literal", "value": "a", "datatype": XSD + "string", "its:dir": "ltr"},
        {"type": "literal", "value": "a"},
        {"type": "bnode", "value": "b"},
        {"type": ["uri"], "value": "urn:a"},
        {"value": "a"},
        {},
        None,
        "a",
    ]
)


@given(
    st.lists(cells, max_size=4) | st.builds(lambda cell, n: [cell] * n, cells, st.integers(1, 3))
)
def test_cells_are_read_together_as_each_on_its_own(column):
    together = read_results(document(*({"a": cell} for cell in column)), ["a"])
    each = [read_results(document({"a": cell}, {}), ["a"])[0] for cell in column]
    assert together == each
