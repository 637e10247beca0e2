"""The SPARQL evaluator: the order of rows, blank nodes that a query makes, and scores."""

from __future__ import annotations

from itertools import permutations

import pyoxigraph as ox
import pytest

from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.grammar import check
from rsp_engine.model.answers import Solutions
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.windows.time_windows import TimeScan
from rsp_engine.plan.sparql.general import sparql_path

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"


def answer(select: str, triples: list[ox.Triple], tail: str = "") -> Solutions:
    """Evaluate a query over one window with these triples."""
    window = "FROM NAMED WINDOW :w ON :s [RANGE 1s]"
    text = f"PREFIX : <{EX}> {select} {window} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} {tail}"
    scan = TimeScan(TimeFrame(1000, 1000))
    scan.take(1, triples, 0)
    scan.close(0)
    operator = SparqlEvaluator(sparql_path(check(text), {}), ox.Store(), [f"{EX}w"])
    content = operator.answer([scan], 1000)
    assert isinstance(content, Solutions)
    return content


def triple(subject: str, value: ox.Literal | ox.NamedNode) -> ox.Triple:
    return ox.Triple(ox.NamedNode(EX + subject), ox.NamedNode(f"{EX}p"), value)


def test_random_labels_of_blank_nodes_do_not_order_the_rows():
    """BNODE makes a label of 32 hexadecimal digits, or fewer: leading zeros are not written."""
    many = [triple(f"s{number:03}", ox.Literal(1)) for number in range(200)]
    rows = answer("SELECT (BNODE() AS ?made) ?s", many).rows
    subjects = [str(row.bindings["s"]) for row in rows]
    assert subjects == sorted(subjects)
    assert len({row.bindings["made"] for row in rows}) == 200


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (ox.Literal(3), 3.0),
        (ox.Literal("2.5", datatype=ox.NamedNode(f"{XSD}decimal")), 2.5),
        (ox.Literal("INF", datatype=ox.NamedNode(f"{XSD}double")), float("inf")),
        (ox.Literal("1970-01-01T00:00:02Z", datatype=ox.NamedNode(f"{XSD}dateTime")), 2000.0),
        (ox.Literal("PT3S", datatype=ox.NamedNode(f"{XSD}dayTimeDuration")), 3000.0),
        (ox.Literal("7"), None),
        (ox.Literal("nan"), None),
        (ox.Literal(value=True), None),
        (ox.NamedNode(f"{EX}a"), None),
    ],
)
def test_numbers_are_scores_and_so_are_times_in_milliseconds(value, score):
    [row] = answer("SELECT ?s ?v", [triple("a", value)], "ORDER BY DESC(?v) LIMIT 1").rows
    assert (row.rank, row.score) == (1, score)


@pytest.mark.parametrize("name", ["v", "rsp_score"])
def test_a_query_may_use_any_name_for_its_variables(name):
    """The score of `ORDER BY DESC(?v + 1)` needs a name that the query does not have."""
    window = f"PREFIX : <{EX}> SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE 1s]"
    text = f"{window} WHERE {{ WINDOW :w {{ ?s :p ?{name} }} }} ORDER BY DESC(?{name} + 1) LIMIT 1"
    scan = TimeScan(TimeFrame(1000, 1000))
    scan.take(1, [triple("a", ox.Literal(1)), triple("b", ox.Literal(2))], 0)
    scan.close(0)
    content = SparqlEvaluator(sparql_path(check(text), {}), ox.Store(), [f"{EX}w"]).answer(
        [scan], 0
    )
    assert isinstance(content, Solutions)
    assert [row.score for row in content.rows] == [3.0]


def decimal(text: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(f"{XSD}decimal"))


@pytest.mark.parametrize(
    ("aggregate", "values", "expected"),
    [
        ("MIN", [ox.Literal(100), ox.Literal(20), ox.Literal("15 kg")], '"20"'),
        ("MAX", [ox.Literal(100), ox.Literal(20), ox.Literal("15 kg")], '"15 kg"'),
        ("MAX", [ox.Literal(1), ox.Literal(1.0), decimal("1.0")], '"1"^^<#integer>'),
        ("SUM", [ox.Literal(1e16), ox.Literal(1.0), ox.Literal(-1e16)], '"1"^^<#double>'),
        ("AVG", [ox.Literal(1e16), ox.Literal(2.0), ox.Literal(-1e16)], '"0.6666666666666666"'),
        ("SUM", [ox.Literal(2**63 - 1), ox.Literal(5), ox.Literal(-5)], f'"{2**63 - 1}"'),
        ("SUM", [ox.Literal(0.5), decimal("0.1"), decimal("0.2")], '"0.8"^^<#double>'),
    ],
)
def test_an_aggregate_does_not_depend_on_the_order_of_triples(aggregate, values, expected):
    for order in permutations(values):
        triples = [triple(f"s{number}", value) for number, value in enumerate(order)]
        [row] = answer(f"SELECT ({aggregate}(?v) AS ?n)", triples).rows
        assert str(row.bindings["n"]).replace(XSD, "#").startswith(expected)


def test_the_meaning_of_a_query_is_written_without_functions_of_the_engine():
    window = "FROM NAMED WINDOW :w ON :s [RANGE 1s]"
    text = f"PREFIX : <{EX}> SELECT (SUM(?v) AS ?n) {window} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"
    config = sparql_path(check(text), {})
    assert "SUM(?v)" in config.sparql
    assert config.store_query is not None
    assert "<urn:rsp-engine:builtin:SUM>(?v)" in config.store_query
    assert not config.needs_order
