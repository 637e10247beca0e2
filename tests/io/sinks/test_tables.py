"""The tables of the SPARQL standard: csv and tsv."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest
from hypothesis import given
from rdflib.query import Result

from rsp_engine.errors import SinkError
from rsp_engine.model.answers import Answer, Boolean, Row, Solutions
from tests.io.sinks.samples import (
    BOB,
    GRAPH,
    RANKED,
    UNRANKED,
    XSD,
    answer,
    one,
    terms,
    written,
)

if TYPE_CHECKING:
    from rsp_engine.model.terms.term import Term

TABLES = pytest.mark.parametrize("name", ["csv", "tsv"])
DOUBLE = ox.NamedNode(f"{XSD}double")


def rows_of_csv(*answers: Answer) -> list[list[str]]:
    return list(csv.reader(io.StringIO(written("csv", *answers), newline=""), strict=True))


def rows_of_tsv(*answers: Answer) -> list[dict[str, object]]:
    solutions = ox.parse_query_results(written("tsv", *answers), ox.QueryResultsFormat.TSV)
    assert isinstance(solutions, ox.QuerySolutions)
    variables = [variable.value for variable in solutions.variables]
    return [{v: s[v] for v in variables if s[v] is not None} for s in solutions]


def test_csv_has_the_window_the_place_and_the_values():
    assert written("csv", answer(RANKED)) == (
        "open,close,rank,score,user,count\r\n"
        "0,5000,1,7.0,http://example.org/bob,7\r\n"
        '0,5000,2,0.1,_:b0,"bon, jour"\r\n'
        '0,5000,3,,,"say ""hi""\r\n\té"\r\n'
    )


def test_tsv_has_the_window_the_place_and_the_terms():
    assert written("tsv", answer(RANKED)) == (
        "?open\t?close\t?rank\t?score\t?user\t?count\n"
        "0\t5000\t1\t7.0e0\t<http://example.org/bob>\t7\n"
        '0\t5000\t2\t0.1e0\t_:b0\t"bon, jour"@fr\n'
        '0\t5000\t3\t\t\t"say \\"hi\\"\\r\\n\\té"\n'
    )


@TABLES
def test_the_header_is_written_once_even_before_an_empty_answer(name):
    empty = answer(Solutions(UNRANKED.variables, ()))
    header, *rows = written(name, empty, answer(UNRANKED), empty, answer(UNRANKED)).split("\n0")
    assert header.rstrip("\r").lstrip("?").startswith("open")
    assert len(rows) == 2 * len(UNRANKED.rows)


@TABLES
def test_answers_with_other_columns_are_refused(name):
    with pytest.raises(SinkError, match="other columns than those before"):
        written(name, answer(RANKED), answer(UNRANKED))


def test_a_column_gives_way_to_a_variable_of_its_name():
    terms: dict[str, Term] = {"score": ox.Literal("a"), "open": BOB, "_score": ox.Literal("b")}
    content = Solutions(("score", "open", "_score"), (Row(terms, 1, 2.5),), ranked=True)
    assert rows_of_csv(answer(content))[0] == [
        *("_open", "close", "rank", "__score"),
        *("score", "open", "_score"),
    ]
    [row] = rows_of_tsv(answer(content))
    assert {name: row[name] for name in terms} == terms
    assert row["__score"] == ox.Literal("2.5e0", datatype=DOUBLE)


@pytest.mark.parametrize(
    ("score", "expected"),
    [(math.inf, "INF"), (-math.inf, "-INF"), (math.nan, "NaN"), (1e300, "1e+300")],
)
def test_a_score_is_a_double(score, expected):
    content = answer(Solutions(("x",), (Row({"x": BOB}, 1, score),), ranked=True))
    assert rows_of_csv(content)[1][3] == expected
    assert rows_of_tsv(content)[0]["score"] == ox.Literal(expected, datatype=DOUBLE)


@TABLES
def test_a_truth_value_is_a_row(name):
    text = written(name, *(answer(Boolean(value)) for value in (True, False, None)))
    cells = text.replace("\t", ",").replace("?", "").split()
    assert cells == ["open,close,boolean", "0,5000,true", "0,5000,false", "0,5000,"]


@TABLES
def test_a_graph_is_refused(name):
    with pytest.raises(SinkError, match=f"{name} cannot hold the graphs") as refusal:
        written(name, answer(GRAPH))
    assert refusal.value.hint == "use nquads or jsonl"


def test_a_blank_node_that_no_reader_of_tsv_takes_is_refused():
    with pytest.raises(SinkError, match="tsv cannot hold a term of an answer: not a blank node"):
        written("tsv", one(ox.BlankNode("a:b")))


def test_csv_is_read_by_rdflib():
    result = Result.parse(io.BytesIO(written("csv", answer(UNRANKED)).encode()), format="csv")
    assert [{str(v): str(t) for v, t in row.items()} for row in result.bindings] == [
        {"open": "0", "close": "5000", "user": str(BOB.value), "count": "7"},
        {"open": "0", "close": "5000", "user": "_:b0", "count": "bon, jour"},
        {"open": "0", "close": "5000", "count": 'say "hi"\r\n\té'},
    ]


@given(terms)
def test_every_term_is_read_back_from_tsv(term):
    assert rows_of_tsv(one(term))[0]["x"] == term
    assert written("tsv", one(term)).count("\n") == 2


@given(terms)
def test_the_value_of_every_term_is_read_back_from_csv(term):
    expected = f"_:{term.value}" if isinstance(term, ox.BlankNode) else term.value
    assert rows_of_csv(one(term)) == [["open", "close", "x"], ["0", "5000", expected]]


def test_an_empty_string_is_not_a_missing_value_in_csv():
    rows = (Row({"x": ox.Literal("")}), Row({}))
    text = written("csv", answer(Solutions(("x",), rows)))
    assert text == 'open,close,x\r\n0,5000,""\r\n0,5000,\r\n'
