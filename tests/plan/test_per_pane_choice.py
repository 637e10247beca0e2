"""The choice of the per-pane evaluator, where its answers are those of the general path."""

from __future__ import annotations

import pytest

from rsp_engine.drivers.user_functions import as_sparql
from rsp_engine.evaluators.per_pane import PerPaneConfig
from rsp_engine.grammar import check
from rsp_engine.plan.explain.text import explain
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import QueryPlan, plan

TIME = "FROM NAMED WINDOW :w ON :s [RANGE 9s STEP 3s]"
COUNT = "FROM NAMED WINDOW :w ON :s [ELEMENTS 9 STEP 3]"
TWO = f"{TIME} FROM NAMED WINDOW :x ON :s [RANGE 5s]"


def planned(select: str, windows: str, where: str, tail: str = "") -> QueryPlan:
    text = f"PREFIX : <http://example.org/> {select} {windows} WHERE {{ {where} }} {tail}"
    return plan(check(text), text, "<query>", QueryOptions(functions={"F": as_sparql(abs)}))


@pytest.mark.parametrize(
    ("select", "where"),
    [
        ("SELECT *", "WINDOW :w { ?s :p ?v }"),
        ("SELECT ?v ?s", "WINDOW :w { ?s :p ?v }"),
        ("SELECT ?v", "WINDOW :w { :a :p ?v }"),
        ("SELECT ?s ?v (?v + 1 AS ?more)", "WINDOW :w { ?s :p ?v FILTER (?v > 1) }"),
        ("SELECT *", "WINDOW :w { ?s ?k ?v } FILTER (?v > 1)"),
    ],
)
def test_one_triple_pattern_with_all_variables_projected_is_evaluated_pane_by_pane(select, where):
    made = planned(select, TIME, where)
    assert isinstance(made.physical.operator, PerPaneConfig)
    assert "pane by pane" in explain(made)


@pytest.mark.parametrize(
    ("select", "windows", "where", "tail"),
    [
        ("SELECT ?s", TIME, "WINDOW :w { ?s :p ?v }", ""),  # two triples can give equal rows
        ("SELECT *", TIME, "WINDOW :w { ?s :p ?v ; :q ?u }", ""),  # of two panes
        ("SELECT *", TIME, "WINDOW :w { ?s :p+ ?v }", ""),
        ("SELECT *", TIME, "WINDOW :w { ?s :p _:b }", ""),
        ("SELECT *", TIME, "WINDOW :w { ?s :p ?v OPTIONAL { ?s :q ?u } }", ""),
        ("SELECT *", TIME, "WINDOW :w { ?s :p ?v FILTER NOT EXISTS { ?s :q ?v } }", ""),
        ("SELECT *", TIME, "WINDOW :w { ?s :p ?v FILTER (NOW() > ?v) }", ""),
        ("SELECT ?s ?v (F(?v) AS ?n)", TIME, "WINDOW :w { ?s :p ?v }", ""),
        ("SELECT (COUNT(?v) AS ?n)", TIME, "WINDOW :w { ?s :p ?v }", ""),
        ("SELECT ?s ?v", TIME, "WINDOW :w { ?s :p ?v }", "ORDER BY ?v"),
        ("SELECT ?s ?v", TIME, "WINDOW :w { ?s :p ?v }", "LIMIT 3"),
        ("SELECT DISTINCT ?s ?v", TIME, "WINDOW :w { ?s :p ?v }", ""),
        ("SELECT ?s ?v", TIME, "WINDOW :w { ?s :p ?v }", "VALUES ?v { 1 }"),
        ("SELECT *", TIME, "WINDOW ?w { ?s :p ?v }", ""),
        ("SELECT *", TIME, "{ WINDOW :w { ?s :p ?v } } UNION { WINDOW :w { ?s :q ?v } }", ""),
        ("SELECT *", COUNT, "WINDOW :w { ?s :p ?v }", ""),
        ("SELECT *", TWO, "WINDOW :w { ?s :p ?v }", ""),
        ("ASK", TIME, "WINDOW :w { ?s :p ?v }", ""),
        ("CONSTRUCT { ?s :q ?v }", TIME, "WINDOW :w { ?s :p ?v }", ""),
    ],
)
def test_any_other_query_is_evaluated_over_the_whole_window(select, windows, where, tail):
    made = planned(select, windows, where, tail)
    assert not isinstance(made.physical.operator, PerPaneConfig)
    assert "pane by pane" not in explain(made)


def test_a_cut_that_the_engine_makes_is_explained():
    """Without an order Oxigraph would cut anywhere, so the rows are sorted and cut afterwards."""
    text = explain(planned("SELECT ?s", TIME, "WINDOW :w { ?s :p ?v }", "OFFSET 1 LIMIT 3"))
    assert "LIMIT 3" in text.split("Physical plan")[1]
