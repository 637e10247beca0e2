"""An expression of SELECT may be used by its name: later in SELECT, in HAVING and in ORDER BY."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from rsp_engine.engine import Engine
from rsp_engine.errors import QueryError
from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.grammar import check
from rsp_engine.model.answers import Answer, Boolean, Graph, Solutions

if TYPE_CHECKING:
    from rsp_engine.options import OperatorName

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
TURTLE = f"@prefix : <{EX}> . "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s]"
STREAM = [
    (1_000, ":a :p 1 ."),
    (2_000, ":b :p 2 . :b :p 3 ."),
    (3_000, ":c :p 4 . :c :p 5 . :c :p 6 ."),
]
"""Counts 1, 2, 3 and sums 1, 5, 15."""
REMOTE = ":a :followers 80 . :b :followers 10 . :c :followers 9 ."


def engine_of(text: str, operator: OperatorName = "auto") -> Engine:
    engine = Engine(operator=operator)
    if "SERVICE" in text:
        store = ox.Store()
        store.load(TURTLE + REMOTE, format=ox.RdfFormat.TURTLE)
        engine.service(f"{EX}svc", store)
    engine.register(PREFIX + text)
    engine.bind(f"{EX}s", [(time, TURTLE + triples) for time, triples in STREAM])
    return engine


def answer_of(text: str, operator: OperatorName = "auto") -> Answer:
    [answer] = engine_of(text, operator).run()
    return answer


def table(text: str, operator: OperatorName = "auto") -> list[str]:
    """Return the rows, each as its values in the order of the names; `-` where there is none."""
    content = answer_of(text, operator).content
    assert isinstance(content, Solutions)
    rows = ((row.bindings.get(name) for name in content.variables) for row in content.rows)
    return [" ".join("-" if t is None else t.value.removeprefix(EX) for t in row) for row in rows]


def select(clause: str, tail: str, where: str = "WINDOW :w { ?s :p ?v }") -> str:
    return f"SELECT {clause} {WINDOW} WHERE {{ {where} }} {tail}"


ROWS = {
    "a score of a name": (
        select("?s (COUNT(?v) AS ?m)", "GROUP BY ?s ORDER BY DESC(?m + 1) LIMIT 2"),
        ["c 3", "b 2"],
    ),
    "a score with a name": (
        select("?s (COUNT(?v) AS ?m) (?m * 2 AS ?k)", "GROUP BY ?s ORDER BY DESC(?k) LIMIT 2"),
        ["c 3 6", "b 2 4"],
    ),
    "a score of names of names": (
        select(
            "?s (COUNT(?v) AS ?m) (?m * 2 AS ?k) (?k + 1 AS ?l)",
            "GROUP BY ?s ORDER BY (?l - 10 * ?m) LIMIT 2",
        ),
        ["c 3 6 7", "b 2 4 5"],
    ),
    "without an order": (
        select("?s (COUNT(?v) AS ?m) (?m * 2 AS ?k)", "GROUP BY ?s"),
        ["a 1 2", "b 2 4", "c 3 6"],
    ),
    "without a cut": (
        select("?s (COUNT(?v) AS ?m)", "GROUP BY ?s ORDER BY DESC(?m + 1)"),
        ["c 3", "b 2", "a 1"],
    ),
    "two aggregates": (
        select(
            "?s (COUNT(?v) AS ?m) (SUM(?v) AS ?t) (?t / ?m AS ?k)",
            "GROUP BY ?s ORDER BY DESC(?t - ?m) LIMIT 2",
        ),
        ["c 3 15 5", "b 2 5 2.5"],
    ),
    "another aggregate beside a name": (
        select("?s (COUNT(?v) AS ?m)", "GROUP BY ?s ORDER BY DESC(10 * ?m - MAX(?v) * 2) LIMIT 3"),
        ["c 3", "b 2", "a 1"],
    ),
    "an aggregate that is not projected": (
        select("?s (COUNT(?v) AS ?m) (?m + MAX(?v) AS ?k)", "GROUP BY ?s ORDER BY ?k LIMIT 1"),
        ["a 1 2"],
    ),
    "a name in HAVING": (
        select("?s (COUNT(?v) AS ?m)", "GROUP BY ?s HAVING (?m > 1)"),
        ["b 2", "c 3"],
    ),
    "a name of a name in HAVING": (
        select(
            "?s (COUNT(?v) AS ?m) (?m * 2 AS ?k)",
            "GROUP BY ?s HAVING (?k > 2) (SUM(?v) < 15) ORDER BY DESC(?m + 1) LIMIT 3",
        ),
        ["b 2 4"],
    ),
    "a name in HAVING without groups": (
        select("?s (?v * 2 AS ?m)", "HAVING (?m > 9)"),
        ["c 10", "c 12"],
    ),
    "a name in the EXISTS of HAVING": (
        select("?s (COUNT(?v) AS ?m)", "GROUP BY ?s HAVING (EXISTS { WINDOW :w { ?s :p ?m } })"),
        ["a 1", "b 2"],
    ),
    "HAVING without a name beside a name": (
        select("?s (SUM(?v) AS ?m) (?m + 1 AS ?k)", "GROUP BY ?s HAVING (COUNT(?v) > 1)"),
        ["b 5 6", "c 15 16"],
    ),
    "one group": (
        select("(COUNT(?v) AS ?m) (?m * 2 AS ?k)", "ORDER BY DESC(?k + 1) LIMIT 2"),
        ["6 12"],
    ),
    "a key that is an expression": (
        select(
            "?odd (COUNT(?v) AS ?m) (?m + ?odd AS ?k)",
            "GROUP BY (?v - 2 * FLOOR(?v / 2) AS ?odd) ORDER BY DESC(?k + ?odd)",
        ),
        ["1 3 4", "0 3 3"],
    ),
    "a key with another name": (
        select("?t (COUNT(?v) AS ?m)", "GROUP BY (?s AS ?t) ORDER BY DESC(?m + 1) LIMIT 1"),
        ["c 3"],
    ),
    "a key with two names": (
        select("?s ?t (COUNT(?v) AS ?m)", "GROUP BY (?s AS ?t) ORDER BY DESC(?m) LIMIT 1"),
        ["c c 3"],
    ),
    "a key without a name": (
        select("(COUNT(?v) AS ?m) (?m + 1 AS ?k)", "GROUP BY STR(?s) ORDER BY DESC(?k)"),
        ["3 4", "2 3", "1 2"],
    ),
    "a name and no aggregate": (
        select("(1 AS ?m) (?m + 1 AS ?k)", "GROUP BY STR(?s)"),
        ["1 2", "1 2", "1 2"],
    ),
    "DISTINCT": (
        select("DISTINCT (COUNT(?v) AS ?m) (?m * 0 AS ?k)", "GROUP BY ?s ORDER BY DESC(?m + 1)"),
        ["3 0", "2 0", "1 0"],
    ),
    "VALUES behind the query": (
        select(
            "?s (COUNT(?v) AS ?m) (?m * 2 AS ?k)",
            "GROUP BY ?s ORDER BY DESC(?k + 1) LIMIT 1 VALUES ?s { :a :b }",
        ),
        ["b 2 4"],
    ),
    "a sub-query": (
        select(
            "?s ?m ?k",
            "",
            "{ SELECT ?s (COUNT(?v) AS ?m) (?m * 2 AS ?k) { WINDOW :w { ?s :p ?v } } GROUP BY ?s"
            " HAVING (?k < 6) ORDER BY DESC(?k + 1) LIMIT 1 }",
        ),
        ["b 2 4"],
    ),
    "the same aggregate in an EXISTS": (
        select(
            "?s (COUNT(?v) AS ?m) (?m + 1 AS ?k)",
            "GROUP BY ?s HAVING (COUNT(?v) > 2 && ?k > 1 && EXISTS"
            " { { SELECT (COUNT(?v) AS ?all) { WINDOW :w { ?t :p ?v } } } FILTER (?all = 6) })",
        ),
        ["c 3 4"],
    ),
}


@pytest.mark.parametrize("operator", ["auto", "general"])
@pytest.mark.parametrize("name", ROWS)
def test_a_name_means_its_expression(name, operator):
    text, rows = ROWS[name]
    assert table(text, operator) == rows


def test_a_score_over_the_name_of_an_aggregate_is_ranked_on_pane_partials():
    text, _ = ROWS["a score of names of names"]
    [query] = engine_of(text)._plans
    assert isinstance(query.physical.operator, GroupTopkConfig)


@pytest.mark.parametrize(
    ("clause", "order", "rows"),
    [
        ("?s (COUNT(?v) AS ?m)", "DESC(?m * 35 + ?f)", ["a 1", "c 3"]),
        (
            "?s (COUNT(?v) AS ?m) (?m * 35 + ?f AS ?score)",
            "DESC(?score)",
            ["a 1 115", "c 3 114"],
        ),
        (
            "?s (COUNT(?v) AS ?m) (?m * 35 AS ?part) (?part + ?f AS ?score)",
            "DESC(?score * 2)",
            ["a 1 35 115", "c 3 105 114"],
        ),
    ],
)
def test_so_is_a_score_over_a_service_and_it_means_the_same_on_the_general_path(
    clause, order, rows
):
    where = "WINDOW :w { ?s :p ?v } SERVICE :svc { ?s :followers ?f }"
    text = select(clause, f"GROUP BY ?s ?f ORDER BY {order} LIMIT 2", where)
    [query] = engine_of(text)._plans
    assert isinstance(query.physical.operator, AcquaTopConfig)
    assert table(text) == table(text, "general") == rows


@pytest.mark.parametrize(
    ("tail", "value"),
    [
        ("GROUP BY ?s HAVING (COUNT(?v) > 2)", True),
        ("GROUP BY ?s HAVING (COUNT(?v) > 3)", False),
        ("GROUP BY ?s", True),
        ("HAVING (COUNT(?v) > 5)", True),
        ("HAVING (COUNT(?v) > 6)", False),
        ("HAVING (COUNT(?nothing) = 0)", True),
        ("GROUP BY (?v + 1 AS ?k) HAVING (?k > 6)", True),
        ("GROUP BY (?v + 1 AS ?k) HAVING (?k > 7)", False),
        ("GROUP BY ?s ORDER BY COUNT(?v) OFFSET 2", True),
        ("GROUP BY ?s ORDER BY COUNT(?v) OFFSET 3", False),
        ("GROUP BY ?s HAVING (SUM(?v) > 5) LIMIT 0", False),
        ("GROUP BY ?s HAVING (COUNT(?v) > 2) VALUES ?s { :a :b }", False),
        ("GROUP BY ?s HAVING (COUNT(?v) > 1) VALUES ?s { :a :b }", True),
    ],
)
def test_ask_is_true_if_there_is_a_group(tail, value):
    text = f"ASK {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} {tail}"
    assert answer_of(text).content == Boolean(value)


@pytest.mark.parametrize(
    ("template", "tail", "triples"),
    [
        ("?s a :Many", "GROUP BY ?s HAVING (COUNT(?v) > 2)", ["c"]),
        ("?s a :Many", "GROUP BY ?s HAVING (COUNT(?v) > 1) ORDER BY COUNT(?v) LIMIT 1", ["b"]),
        ("?s a :Many", "GROUP BY ?s ORDER BY DESC(SUM(?v) * 2) LIMIT 1", ["c"]),
        ("?t a :Many", "GROUP BY (?s AS ?t) ORDER BY DESC(COUNT(?v)) LIMIT 1", ["c"]),
        (":all a :Many", "HAVING (COUNT(?v) > 5)", ["all"]),
        (":all a :Many", "HAVING (COUNT(?v) > 6)", []),
        (":all a :Many . ?s a :Many", "HAVING (COUNT(?v) > 5)", ["all"]),
    ],
)
def test_construct_fills_its_template_once_for_each_group(template, tail, triples):
    text = f"CONSTRUCT {{ {template} }} {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} {tail}"
    content = answer_of(text).content
    assert isinstance(content, Graph)
    subjects = [t.subject for t in content.triples]
    assert subjects == [ox.NamedNode(EX + name) for name in triples]


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        (select("?s", "GROUP BY ?s ORDER BY ?v LIMIT 2"), "v"),
        (select("?s", "GROUP BY ?s ORDER BY DESC(COUNT(?v) + ?v)"), "v"),
        (select("(COUNT(*) AS ?n)", "ORDER BY ?s LIMIT 2"), "s"),
        (select("?s", "GROUP BY ?s HAVING (?v > 1)"), "v"),
        (select("?s (COUNT(?v) AS ?m)", "GROUP BY ?s HAVING (?m > ?v)"), "v"),
        (
            select("*", "", "{ SELECT (COUNT(*) AS ?n) { WINDOW :w { ?s :p ?v } } ORDER BY ?s }"),
            "s",
        ),
        (f"ASK {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} GROUP BY ?s HAVING (?v > 1)", "v"),
        (select("(COUNT(*) AS ?n)", "GROUP BY STR(?s) ORDER BY STR(?s)"), "s"),
    ],
)
def test_what_has_no_one_value_in_a_group_is_refused_by_name(text, variable):
    with pytest.raises(QueryError) as refused:
        check(PREFIX + text)
    [wrong] = refused.value.diagnostics
    assert wrong.message == f"?{variable} is neither in GROUP BY nor inside an aggregate"
    assert (PREFIX + text)[wrong.span.start : wrong.span.end] == f"?{variable}"


def test_what_values_give_after_the_groups_may_order_them():
    tail = "ORDER BY DESC(?x) LIMIT 1 VALUES ?x { 1 2 }"
    assert table(select("(COUNT(*) AS ?n)", tail)) == ["6"]
    assert table(select("(COUNT(*) AS ?n)", tail.replace("LIMIT 1", "LIMIT 3"))) == ["6", "6"]
