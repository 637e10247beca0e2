"""Variables that nothing binds are legal: every row has no value there, so all of them tie."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from rsp_engine.engine import Engine
from rsp_engine.model.answers import Graph, Solutions

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
TURTLE = f"@prefix : <{EX}> . "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 5s]"
STREAM = [(1_000, ":a :p 3 ."), (2_000, ":b :p 1 ."), (3_000, ":c :p 2 .")]
RANKERS = ["auto", "mintopk", "sap", "sap-dynamic", "sap-equal", "pretopk", "skyband", "sma",
           "sma-ring", "oracle"]  # fmt: skip


def content_of(text: str, operator: str = "auto") -> Solutions | Graph:
    engine = Engine(operator=operator)  # type: ignore[arg-type]
    if "SERVICE" in text:
        store = ox.Store()
        remote = ":a :followers 1 . :b :followers 2 . :c :followers 3 ."
        store.load(TURTLE + remote, format=ox.RdfFormat.TURTLE)
        engine.service(f"{EX}svc", store)
    engine.register(PREFIX + text)
    engine.bind(f"{EX}s", [(time, TURTLE + triples) for time, triples in STREAM])
    [answer] = engine.run()
    assert isinstance(answer.content, Solutions | Graph)
    return answer.content


def rows(text: str, operator: str = "auto") -> list[str]:
    content = content_of(text, operator)
    assert isinstance(content, Solutions)
    found = ((row.bindings.get(name) for name in content.variables) for row in content.rows)
    return [" ".join("-" if t is None else t.value.removeprefix(EX) for t in row) for row in found]


def select(clause: str, tail: str, where: str = "WINDOW :w { ?s :p ?v }") -> str:
    return f"SELECT {clause} {WINDOW} WHERE {{ {where} }} {tail}"


@pytest.mark.parametrize("operator", RANKERS)
@pytest.mark.parametrize(
    ("clause", "order"),
    [
        ("?s", "?zz"),
        ("?s", "DESC(?zz)"),
        ("?s", "DESC(?zz + ?v)"),
        ("?s", "DESC(?v * 2 + ?zz)"),
        ("?s", "DESC(STR(?zz))"),
        ("?s (?zz AS ?k)", "DESC(?k)"),
        ("?s (?zz + 1 AS ?k)", "?k"),
        ("?s ?zz", "DESC(?zz)"),
    ],
)
def test_an_order_by_nothing_leaves_ties_which_the_later_wins(clause, order, operator):
    found = rows(select(clause, f"ORDER BY {order} LIMIT 2"), operator)
    assert [row[0] for row in found] == ["c", "b"]


@pytest.mark.parametrize("operator", ["auto", "general"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (select("?s ?zz", "ORDER BY DESC(?v) LIMIT 2"), ["a -", "c -"]),
        (select("?s", "ORDER BY DESC(COALESCE(?zz, ?v)) LIMIT 2"), ["a", "c"]),
        (select("?s", "ORDER BY ?zz ?v LIMIT 2"), ["b", "c"]),
        (select("?s", "ORDER BY DESC(?v)", "WINDOW :w { ?s :p ?v } FILTER (?zz > 1)"), []),
        (select("?s", "ORDER BY ?v LIMIT 1", "WINDOW :w { ?s :p ?v FILTER (!BOUND(?zz)) }"), ["b"]),
        (select("?zz (SUM(?v) AS ?n)", "GROUP BY ?zz ORDER BY DESC(?n) LIMIT 2"), ["- 6"]),
        (select("?k (SUM(?v) AS ?n)", "GROUP BY (?zz AS ?k) ORDER BY DESC(?n) LIMIT 2"), ["- 6"]),
        (select("?s (SUM(?v) AS ?n)", "GROUP BY ?s ?zz ORDER BY DESC(?n) LIMIT 1"), ["a 3"]),
        (select("(COUNT(?zz) AS ?n) (SUM(?zz) AS ?m)", ""), ["0 -"]),
        (select("?s (COUNT(?zz) AS ?n)", "GROUP BY ?s ORDER BY ?n ?s LIMIT 1"), ["a 0"]),
        (select("?s (MAX(?zz) AS ?n)", "GROUP BY ?s ORDER BY ?n DESC(?s) LIMIT 1"), ["c -"]),
        (select("?s (MAX(?v) AS ?n)", "GROUP BY ?s ORDER BY ?zz DESC(?n) LIMIT 1"), ["a 3"]),
        (select("?s (MAX(?v) AS ?n)", "GROUP BY ?s HAVING (?zz > 1)"), []),
        (select("?s (MAX(?v) AS ?n)", "GROUP BY ?s HAVING (!BOUND(?zz) && ?n > 2)"), ["a 3"]),
        (
            select("?s", "", "{ SELECT ?s { WINDOW :w { ?s :p ?v } } ORDER BY ?zz ?v LIMIT 1 }"),
            ["b"],
        ),
    ],
)
def test_an_expression_over_nothing_is_an_error_and_the_rest_is_as_ever(text, expected, operator):
    assert rows(text, operator) == expected


@pytest.mark.parametrize("operator", ["auto", "general"])
@pytest.mark.parametrize("order", ["?zz", "DESC(?zz + ?f)", "DESC(?n + ?zz)"])
@pytest.mark.parametrize("clause", ["?s ?f", "?s (COUNT(?v) AS ?n)"])
def test_with_a_service_too(clause, order, operator):
    where = "WINDOW :w { ?s :p ?v } SERVICE :svc { ?s :followers ?f }"
    by = "GROUP BY ?s ?f " if "COUNT" in clause else ""
    assert len(rows(select(clause, f"{by}ORDER BY {order} LIMIT 2", where), operator)) == 2


@pytest.mark.parametrize("order", ["?zz", "DESC(?zz + ?v)", "DESC(?v + ?u + ?zz)"])
def test_pairs_too(order):
    where = "WINDOW :w { ?a :p ?v . ?b :p ?u } FILTER (?v < ?u)"
    assert len(rows(select("?a ?b", f"ORDER BY {order} LIMIT 2", where))) == 2


def test_construct_leaves_out_triples_without_a_value():
    where = f"{WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?zz DESC(?v) LIMIT 1"
    content = content_of(f"CONSTRUCT {{ ?s :is ?zz . ?s a :Thing }} {where}")
    assert isinstance(content, Graph)
    assert [triple.subject for triple in content.triples] == [ox.NamedNode(f"{EX}a")]
