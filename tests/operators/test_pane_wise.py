"""Evaluation pane by pane, compared with evaluation of the whole window."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.evaluators.per_pane import PerPaneConfig, PerPaneEvaluator
from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.grammar import check
from rsp_engine.model.answers import Solutions
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.windows.time_windows import TimeScan
from rsp_engine.plan.logical.query import logical_query
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.shapes.per_pane import per_pane_config
from rsp_engine.plan.sparql.general import sparql_path

if TYPE_CHECKING:
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig

EX = "http://example.org/"
WINDOW = f"{EX}w"
SELECTS = (
    "SELECT *",
    "SELECT ?v ?s ?k",
    "SELECT ?s ?k ?v (?v + 1 AS ?more)",
    "SELECT ?s ?k ?v (STR(?v) AS ?text) (?v < 2 AS ?low)",
)
PATTERNS = (
    "WINDOW :w { ?s ?k ?v }",
    "WINDOW :w { ?s ?k ?v FILTER (?v > 1) }",
    "WINDOW :w { ?s ?k ?v } FILTER (isBlank(?s) || ?v <= 2)",
    "WINDOW :w { ?s ?k ?v FILTER (!BOUND(?nothing)) }",
)
FEW = (
    "SELECT * | WINDOW :w { :a :p 1 }",
    "SELECT * | WINDOW :w { ?s ?k ?s }",
    "SELECT * | WINDOW :w { ?s :p 01 }",
    "SELECT ?v ?nothing | WINDOW :w { :a :p ?v }",
)
ASKED = (*(f"{select} | {pattern}" for select in SELECTS for pattern in PATTERNS), *FEW)


@cache
def configs(asked: str) -> tuple[PerPaneConfig, SparqlConfig]:
    select, pattern = asked.split(" | ")
    window = "FROM NAMED WINDOW :w ON :s [RANGE 1s]"
    query = check(f"PREFIX : <{EX}> {select} {window} WHERE {{ {pattern} }}")
    return per_pane_config(logical_query(query), QueryOptions()), sparql_path(query, {})


terms = st.sampled_from([ox.NamedNode(f"{EX}a"), ox.BlankNode("n")])
predicates = st.sampled_from([ox.NamedNode(f"{EX}p"), ox.NamedNode(f"{EX}q")])
LITERALS = [*map(ox.Literal, (1, 2)), ox.Literal(2.5), ox.Literal("1"), ox.Literal("a\nb\tc\\")]
values = st.sampled_from(LITERALS) | terms
triples = st.lists(st.builds(ox.Triple, terms, predicates, values), max_size=3)
elements = st.lists(st.tuples(st.integers(0, 12), triples), max_size=8)


@given(st.sampled_from(ASKED), elements, st.integers(1, 6), st.integers(1, 6))
def test_pane_by_pane_is_the_same_as_the_whole_window(asked, found, size, step):
    by_panes, general = configs(asked)
    scan = TimeScan(TimeFrame(size, step))
    for timestamp, part in found:
        scan.take(timestamp, part, 0)
    one, other = PerPaneEvaluator(by_panes), SparqlEvaluator(general, ox.Store(), [WINDOW])
    for index in range(12):
        scan.close(index)
        assert one.answer([scan], index) == other.answer([scan], index)
        assert one.stats() == other.stats()


def test_a_triple_that_is_in_two_panes_gives_one_row():
    """0     3     6          [RANGE 6 STEP 3]
    (  A  |  A  ]
    """
    by_panes, _ = configs(ASKED[0])
    scan = TimeScan(TimeFrame(6, 3))
    a = ox.NamedNode(f"{EX}a")
    for timestamp in (2, 5):
        scan.take(timestamp, [ox.Triple(a, a, a)], 0)
    scan.close(0)
    answer = PerPaneEvaluator(by_panes).answer([scan], 6)
    assert isinstance(answer, Solutions)
    assert len(answer.rows) == 1
