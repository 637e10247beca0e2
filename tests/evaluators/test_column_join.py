"""Joins on columns, compared with the general path over whole windows."""

from __future__ import annotations

import json
from functools import cache
from unittest.mock import patch

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.evaluators import column_join as evaluators
from rsp_engine.evaluators.column_join import ColumnJoinConfig, ColumnJoinEvaluator
from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.grammar import check
from rsp_engine.io.canonical_literals import canonical_triples
from rsp_engine.model.answers import Solutions
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.joins import column_join as joins
from rsp_engine.operators.windows.time_windows import MatchedScan, TimeScan
from rsp_engine.plan.planner import plan
from tests.thoroughness import examples

EX = "http://example.org/"
HEAD = f"PREFIX : <{EX}> PREFIX xsd: <{XSD}>"
WINDOW = "FROM NAMED WINDOW :w ON :stream [RANGE 5s STEP 2s]"
STAR = "?s :p ?a ; :q ?b"
ON_COLUMNS = (
    f"SELECT ?s ?a ?b | {STAR}",
    f"SELECT * | {STAR} FILTER (?a > 1) OPTIONAL {{ ?s :r ?c }}",
    f"SELECT ?c ?a | {STAR} OPTIONAL {{ ?s :r ?c FILTER (?c < 2.5) }} OPTIONAL {{ ?d :p ?s }}",
    f"SELECT DISTINCT ?a ?nothing | {STAR} FILTER (1.5 <= ?a && ?b != 2)",
    f"SELECT ?s | {STAR} FILTER (isIRI(?b) || LANG(?b) = 'en' || STRSTARTS(STR(?b), '1'))",
    f"SELECT ?s ?b | {STAR} FILTER (?a = 2) FILTER (?b >= '2024-01-01'^^xsd:date || BOUND(?b))",
    "SELECT ?a ?b ?c | ?a :p ?b . ?b :q ?c FILTER (?c > 1)",
    "SELECT ?a ?b ?c | ?a :p ?b . ?b :q ?c . ?c :r ?a",
    "SELECT ?a ?b | ?a :p ?b . ?b :q ?a OPTIONAL { ?a :r ?c }",
    "SELECT ?s ?a | ?s :p ?a ; :q 2.0 ; :r ?a",
    "SELECT ?s | ?s :p ?s . ?s :q ?b",
    "SELECT ?s ?b | ?s :p [ :q ?b ]",
    "SELECT ?a ?b | :n :p ?a . ?a :q ?b",
    f"SELECT ?s ?b | {STAR} | LIMIT 2 OFFSET 1",
    "SELECT ?a ?b | ?s :p ?a . ?t :p ?a ; :q ?b FILTER (?b = :n || ?b = 'a')",
    f"SELECT ?b (SUM(?a) AS ?t) (COUNT(*) AS ?n) | {STAR} FILTER (?a > 1) | GROUP BY ?b",
    f"SELECT ?s (AVG(?a) AS ?x) (MIN(?a) AS ?y) (MAX(?b) AS ?z) | {STAR} | GROUP BY ?s",
    f"SELECT (SUM(DISTINCT ?a) AS ?x) (AVG(DISTINCT ?a) AS ?y) | {STAR} | GROUP BY ?b ?s LIMIT 3",
    f"SELECT DISTINCT (COUNT(?c) AS ?n) ?c | {STAR} OPTIONAL {{ ?s :r ?c }} | GROUP BY ?c",
    f"SELECT (COUNT(DISTINCT ?c) AS ?n) ?b | {STAR} OPTIONAL {{ ?s :r ?c }} | GROUP BY ?b ?nothing",
)
BY_OXIGRAPH = (
    f"SELECT ?s ?a | {STAR} FILTER (?a > 1 && ?a < ?b)",
    f"SELECT ?s ?x | {STAR} BIND (?a + 1 AS ?x) FILTER (?b > 1)",
    f"SELECT ?b (SUM(?a + 1) AS ?t) | {STAR} FILTER (?a > 1) | GROUP BY ?b",
    f"SELECT (SUM(?a) AS ?t) (COUNT(*) AS ?n) | {STAR} FILTER (?b > 1)",
    f"SELECT ?b (SUM(?c) AS ?t) | {STAR} OPTIONAL {{ ?s :r ?c }} | GROUP BY ?b",
    f"SELECT ?b (AVG(?a) AS ?t) | {STAR} | GROUP BY ?b HAVING (COUNT(?s) > 1) ORDER BY ?t",
    f"SELECT ?s ?a | {STAR} FILTER (?b = 2) | ORDER BY DESC(?a) LIMIT 2",
    f"SELECT ?s ?c | {STAR} OPTIONAL {{ ?s :r ?c }} FILTER (!BOUND(?c) || ?c > 1)",
    f"SELECT ?s ?c ?d | {STAR} OPTIONAL {{ ?s :r ?c ; :q ?d . ?s :p :n }} FILTER (?a >= 2)",
    f"SELECT ?s ?c | {STAR} FILTER (?a >= 2) OPTIONAL {{ ?s :r ?c }} OPTIONAL {{ ?s :p ?c }}",
    f"SELECT ?s ?c | {STAR} OPTIONAL {{ ?s :r ?c FILTER (?c > ?a) }} FILTER (?b < 3)",
    f"SELECT ?s ?a | {STAR} VALUES ?a {{ 1 2.5 :n }} FILTER (?b > 1)",
    f"SELECT ?s (xsd:double(?a) AS ?d) | {STAR} FILTER (xsd:double(?a) > 1.5 && ?b > 1)",
    f"CONSTRUCT {{ ?s :x ?b }} | {STAR} FILTER (?a > 1)",
    f"ASK | {STAR} FILTER (?a > 2)",
    "SELECT * | ?a :p ?b . ?b :q ?c FILTER (?a != ?c)",
)


@cache
def config_of(asked: str) -> ColumnJoinConfig:
    """Return the configuration of a query: its form, its pattern, and its modifiers."""
    form, pattern, modifiers = (*asked.split(" | "), "")[:3]
    text = f"{HEAD} {form} {WINDOW} WHERE {{ WINDOW :w {{ {pattern} }} }} {modifiers}"
    config = plan(check(text), text, "q").physical.operator
    assert isinstance(config, ColumnJoinConfig), text
    assert config.join.is_complete == (asked in ON_COLUMNS)
    return config


def typed(text: str, kind: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + kind))


NODES = [ox.NamedNode(EX + name) for name in "nmo"] + [ox.BlankNode("b")]
LITERALS = [
    *map(ox.Literal, (1, 2, 3, 2.0, 2.5)),
    typed("2.0", "decimal"),
    typed("2.50", "decimal"),
    typed("1e0", "double"),
    typed("NaN", "double"),
    typed("02", "integer"),
    typed("x", "integer"),
    typed("2", "float"),
    typed("1234567890123456789", "integer"),
    typed("2024-01-01", "date"),
    typed("true", "boolean"),
    ox.Literal("a"),
    ox.Literal("1 kg", language="en"),
    ox.Literal('q"\\\n\té'),
]
subjects, verbs = st.sampled_from(NODES), st.sampled_from([ox.NamedNode(EX + p) for p in "pqrx"])
values = st.sampled_from(NODES) | st.sampled_from(LITERALS)
triples = st.builds(ox.Triple, subjects, verbs, values)
KINDS = (
    [ox.Literal(n) for n in (-3, 0, 2, 2, 10**11)],
    [typed(text, "decimal") for text in ("0.1", "-2.25", "7", "0.000001")],
    [ox.Literal(n) for n in (0.1, 0.2, -1e16, 1e16, 3.5, 1e300)],
    [ox.Literal(2), typed("0.5", "decimal"), typed("1.000000000001", "decimal")],
    [ox.Literal(2), ox.Literal(2.5), typed("1.5", "float")],
)
parts = st.lists(st.tuples(st.integers(0, 9), st.lists(triples, max_size=4), st.booleans()))
many = st.sampled_from(KINDS).flatmap(
    lambda kind: st.lists(
        st.tuples(
            st.integers(0, 9),
            st.lists(st.builds(ox.Triple, subjects, verbs, st.sampled_from(kind)), max_size=9),
            st.booleans(),
        )
    )
)
contents = parts | many


def scans_of(
    config: ColumnJoinConfig, found: list[tuple[int, list[ox.Triple], bool]]
) -> tuple[MatchedScan, TimeScan]:
    """Return scans of windows of five panes, with the triples that match, and with all.

    Some triples arrive selected, the others are selected when a window closes.
    """
    frame = TimeFrame(5000, 1000)
    selection = config.join.selection
    scan, other = MatchedScan(frame, selection), TimeScan(frame)
    for second, part, is_selected in found:
        canonical = canonical_triples(part)
        time = second * 1000 + 500
        other.take(time, canonical, 0)
        if is_selected:
            pane = frame.pane(time)
            assert pane is not None
            scan.put(pane, selection.of(canonical))
        else:
            scan.take(time, canonical, 0)
    return scan, other


def evaluators_of(config: ColumnJoinConfig) -> tuple[ColumnJoinEvaluator, SparqlEvaluator]:
    general = SparqlEvaluator(config.query, ox.Store(), [EX + "w"])
    return ColumnJoinEvaluator(
        config, SparqlEvaluator(config.query, ox.Store(), [EX + "w"])
    ), general


SMALL = {
    "more solutions than columns hold": (joins, "_MOST_SOLUTIONS", 1),
    "a new dictionary for each window": (joins, "_NEW_TERMS", -1_000_000),
    "the general path for one window": (evaluators, "_GENERAL_WINDOWS", 1),
}


def check_windows(config: ColumnJoinConfig, found: list[tuple[int, list[ox.Triple], bool]]) -> None:
    """Check that both evaluators answer each window alike."""
    scan, every = scans_of(config, found)
    one, other = evaluators_of(config)
    for index in range(10):
        scan.close(index)
        every.close(index)
        if index % 4 == 3:
            saved = json.loads(json.dumps(scan.state()))
            scan = MatchedScan(scan.frame, config.join.selection)
            scan.restore(saved)
            assert json.loads(json.dumps(scan.state())) == saved
            restored, _ = evaluators_of(config)
            restored.restore(one.state())
            one = restored
        assert one.answer([scan], index) == other.answer([every], index)
        assert one.stats() == other.stats()
        assert one.may_give_blank_nodes >= other.may_give_blank_nodes


@pytest.mark.parametrize("asked", [*ON_COLUMNS, *BY_OXIGRAPH])
@examples(60)
@given(found=contents)
def test_a_join_on_columns_gives_the_answers_of_the_general_path(asked, found):
    check_windows(config_of(asked), found)


@pytest.mark.parametrize("limit", SMALL)
@examples(60)
@given(asked=st.sampled_from((*ON_COLUMNS, *BY_OXIGRAPH)), found=many)
def test_the_limits_of_columns_do_not_change_answers(limit, asked, found):
    module, name, value = SMALL[limit]
    with patch.object(module, name, value):
        check_windows(config_of(asked), found)


def test_where_few_triples_contribute_oxigraph_gets_only_these():
    config = config_of(BY_OXIGRAPH[2])
    one, _ = evaluators_of(config)
    found = [
        ox.Triple(ox.NamedNode(f"{EX}{n}"), ox.NamedNode(EX + verb), ox.Literal(int(n == 7) * 2))
        for n in range(20)
        for verb in "pq"
    ]
    scan, _ = scans_of(config, [(0, found, True)])
    scan.close(0)
    answer = one.answer([scan], 0)
    assert isinstance(answer, Solutions)
    assert [row.bindings["t"] for row in answer.rows] == [ox.Literal(3)]
    assert one.stats() == {"triples": 40, "exact": True}
    assert one._general.stats()["triples"] == 2
