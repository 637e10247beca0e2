"""Answers as tables of Arrow and as HTML."""

from __future__ import annotations

import pyarrow as pa
import pyoxigraph as ox
import pytest

from rsp_engine.model.answers import Answer, Interval, Row, Solutions
from rsp_engine.model.html_table import as_html
from rsp_engine.model.results import as_arrow
from rsp_engine.model.terms.xsd import XSD


def answer(*values: tuple[str, str], age: int | None = None) -> Answer:
    """Return an answer with a row for each literal, given by text and datatype."""
    terms = [ox.Literal(text, datatype=ox.NamedNode(XSD + kind)) for text, kind in values]
    rows = tuple(Row({"v": term}, age=age) for term in terms)
    return Answer("q", Interval(0, 5), Solutions(("v",), rows), {})


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([("7", "integer"), ("8", "unsignedByte")], pa.int64(), [7, 8]),
        ([("7", "integer"), ("0.5", "decimal")], pa.float64(), [7.0, 0.5]),
        ([("-INF", "double")], pa.float64(), [float("-inf")]),
        ([("abc", "integer"), ("7", "integer")], pa.string(), ["abc", "7"]),
        ([("1_0", "integer")], pa.string(), ["1_0"]),
        ([("9" * 30, "integer")], pa.string(), ["9" * 30]),
        ([("7", "integer"), ("x", "string")], pa.string(), ["7", "x"]),
        ([], pa.string(), []),
    ],
)
def test_a_column_is_numeric_if_all_its_values_are_numbers(values, kind, expected):
    column = as_arrow([answer(*values)]).column("v")
    assert column.type == kind
    assert column.to_pylist() == expected


def test_a_variable_without_a_value_leaves_a_gap():
    rows = (Row({"v": ox.Literal(7)}), Row({}))
    table = as_arrow([Answer("q", Interval(0, 5), Solutions(("v", "w"), rows), {})])
    assert table.column("v").to_pylist() == [7, None]
    assert table.column("w").to_pylist() == [None, None]


def test_every_row_of_a_page_has_as_many_cells_as_the_heading():
    rows = tuple(Row({"v": ox.Literal(1)}, age=age) for age in (2000, None))
    lines = as_html(Answer("q", Interval(0, 5), Solutions(("v",), rows), {})).split("<tr>")[1:]
    assert [line.count("</th>") + line.count("</td>") for line in lines] == [2, 2, 2]
    assert "2 s" in lines[1]
