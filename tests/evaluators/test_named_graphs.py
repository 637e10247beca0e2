"""WINDOW ?w and GRAPH ?g: a pattern is evaluated in each graph alone, then joined to its name."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from rsp_engine.engine import Engine
from rsp_engine.model.answers import Solutions

if TYPE_CHECKING:
    from pathlib import Path

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
TURTLE = f"@prefix : <{EX}> . "
CONTENT = {
    "w": ":a :p 1 . :b :p 2 . :w :p 5 . :b :q :w .",
    "w2": ":a :p 3 . :a :q :w2 . :w :p 6 .",
    "g": ":a :name 'A' . :b :p 2 .",
    "g2": ":a :name 'Ann' . :g2 :p 9 .",
}
WINDOWS = "FROM NAMED WINDOW :w ON :s [RANGE 10s] FROM NAMED WINDOW :w2 ON :s2 [RANGE 10s]"
GRAPHS = "FROM NAMED :g FROM NAMED :g2"

Rows = Counter[frozenset[tuple[str, str]]]


def rows_of(solutions: ox.QuerySolutions) -> Rows:
    names = [v.value for v in solutions.variables]
    return Counter(
        frozenset((n, str(t)) for n, t in zip(names, row, strict=True) if t is not None)
        for row in map(tuple, solutions)
    )


def dataset() -> ox.Store:
    """Return all graphs in one store: what constant names read."""
    store = ox.Store()
    for name, text in CONTENT.items():
        store.load(TURTLE + text, format=ox.RdfFormat.TURTLE, to_graph=ox.NamedNode(EX + name))
    return store


def joined(rows: Rows, variable: str, name: str) -> Rows:
    """Join rows with one solution that binds a variable to the name of a graph."""
    term = str(ox.NamedNode(EX + name))
    return Counter(
        row | {(variable, term)} for row in rows.elements() if dict(row).get(variable, term) == term
    )


def rows_by_hand(text: str) -> Rows:
    result = dataset().query(PREFIX + text.replace("WINDOW", "GRAPH"))
    assert isinstance(result, ox.QuerySolutions)
    return rows_of(result)


def answered(text: str, folder: Path, *, dataset: str = f"{WINDOWS} {GRAPHS}", **given: ox.Store):
    """Return the rows that the engine gives for `SELECT * { text }`."""
    engine = Engine()
    for name in ("g", "g2"):
        if f"FROM NAMED :{name}" in dataset.split("WINDOW")[-1]:
            (folder / f"{name}.ttl").write_text(TURTLE + CONTENT[name], encoding="utf-8")
            engine.graph(EX + name, folder / f"{name}.ttl")
    for name, store in given.items():
        engine.service(EX + name, store)
    engine.register(f"{PREFIX} SELECT * {dataset} WHERE {{ {text} }}")
    engine.bind(f"{EX}s", [(1_000, TURTLE + CONTENT["w"])])
    engine.bind(f"{EX}s2", [(1_000, TURTLE + CONTENT["w2"])])
    [answer] = engine.run()
    assert isinstance(answer.content, Solutions)
    return Counter(
        frozenset((name, str(term)) for name, term in row.bindings.items())
        for row in answer.content.rows
    )


PATTERNS = {
    "a triple": "?s :p ?o",
    "nothing": "",
    "a sub-query": "{ SELECT (COUNT(*) AS ?c) { ?s :p ?o } }",
    "a sub-query that ranks": "{ SELECT ?o { ?s :p ?o } ORDER BY DESC(?o) LIMIT 1 }",
    "a sub-query in a group": "?s :p ?o { SELECT (MAX(?m) AS ?c) { ?t :p ?m } } FILTER (?o = ?c)",
    "MINUS without a shared variable": "?s :p ?o MINUS { ?x :p 1 }",
    "MINUS with a shared variable": "?s :p ?o MINUS { ?s :p 1 }",
    "a condition on the name": "?s :p ?o FILTER (BOUND(?n))",
    "a condition that there is no name": "?s :p ?o FILTER (!BOUND(?n))",
    "a condition that compares the name": "?s :p ?o FILTER (?n = :w || ?n = :g)",
    "BIND of the name": "?s :p ?o BIND (?n AS ?m)",
    "BIND to the name": "?s :p ?o BIND (:w AS ?n)",
    "VALUES of the name": "?s :p ?o VALUES ?n { :w2 :g UNDEF }",
    "OPTIONAL with a condition on the name": "?s :p ?o OPTIONAL { ?s :q ?u FILTER (?n = :w) }",
    "EXISTS": "?s :p ?o FILTER EXISTS { ?s :q ?u }",
    "NOT EXISTS": "?s :p ?o FILTER NOT EXISTS { ?s :q ?u }",
    "EXISTS with the name": "?s :p ?o FILTER EXISTS { ?n :p ?u }",
    "the name as subject": "?n :p ?o",
    "the name as object": "?s :q ?n",
    "the name in OPTIONAL": "?s :p ?o OPTIONAL { ?s :q ?n }",
    "a sub-query that gives the name": "{ SELECT ?n (SUM(?o) AS ?all) { ?n :p ?o } GROUP BY ?n }",
    "a sub-query that hides the name": "{ SELECT ?o { ?n :p ?o } }",
    "blank nodes": "_:b :p ?o . _:b :q _:c OPTIONAL { _:d :p 1 } { [] :p ?u }",
    "a path": ":a (:p|:q|:name)+ ?o",
    "UNION": "{ ?s :p ?o } UNION { ?s :q ?o FILTER (BOUND(?n)) }",
    "another graph": "?s :p ?o GRAPH :g { ?s ?k ?m }",
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_evaluated_in_each_window_alone(name, tmp_path):
    pattern = PATTERNS[name]
    alone = (
        joined(rows_by_hand(f"SELECT * {{ GRAPH :{w} {{ {pattern} }} }}"), "n", w)
        for w in ("w", "w2")
    )
    assert answered(f"WINDOW ?n {{ {pattern} }}", tmp_path) == sum(alone, Counter())


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_evaluated_in_each_static_graph_alone(name, tmp_path):
    pattern = PATTERNS[name]
    alone = (
        joined(rows_by_hand(f"SELECT * {{ GRAPH :{g} {{ {pattern} }} }}"), "n", g)
        for g in ("g", "g2")
    )
    found = answered(f"WINDOW :w {{ }} GRAPH ?n {{ {pattern} }}", tmp_path)
    assert found == sum(alone, Counter())


def in_one(variable: str, name: str, pattern: str) -> str:
    return f"{{ GRAPH :{name} {{ {pattern} }} VALUES ?{variable} {{ :{name} }} }}"


def over(variable: str, names: str, pattern: str) -> str:
    """Write a union over constant names by hand; a pattern must have no labels."""
    return " UNION ".join(in_one(variable, name, pattern) for name in names.split())


V = "w w2"
G = "g g2"
WHOLE = {
    "the same name twice": (
        "WINDOW ?v { ?s :p ?o } WINDOW ?v { ?t :p ?u }",
        f"{over('v', V, '?s :p ?o')} {over('v', V, '?t :p ?u')}",
    ),
    "one inside of another": (
        "WINDOW ?v { ?s :p ?o WINDOW ?u { ?s :p ?m } }",
        over("v", V, f"?s :p ?o {over('u', V, '?s :p ?m')}"),
    ),
    "one inside of another of the same name": (
        "WINDOW ?v { ?s :p ?o WINDOW ?v { ?s :p ?m } }",
        over("v", V, f"?s :p ?o {over('v', V, '?s :p ?m')}"),
    ),
    "a graph inside of a window": (
        "WINDOW ?v { ?s :p ?o GRAPH ?k { ?s ?b ?m } }",
        over("v", V, f"?s :p ?o {over('k', G, '?s ?b ?m')}"),
    ),
    "inside of OPTIONAL": (
        "WINDOW :w { ?s :p ?o } OPTIONAL { WINDOW ?v { ?s :p ?m FILTER (?m > 2) } }",
        f"GRAPH :w {{ ?s :p ?o }} OPTIONAL {{ {over('v', V, '?s :p ?m FILTER (?m > 2)')} }}",
    ),
    "inside of OPTIONAL with a condition beside it": (
        "WINDOW :w { ?s :p ?o } OPTIONAL { WINDOW ?v { ?s :p ?m } FILTER (?m > ?o && ?v = :w2) }",
        f"GRAPH :w {{ ?s :p ?o }} OPTIONAL {{ {over('v', V, '?s :p ?m')}"
        " FILTER (?m > ?o && ?v = :w2) }",
    ),
    "inside of EXISTS": (
        "WINDOW :w { ?s :p ?o } FILTER EXISTS { WINDOW ?v { ?s :q ?v } }",
        f"GRAPH :w {{ ?s :p ?o }} FILTER EXISTS {{ {over('v', V, '?s :q ?v')} }}",
    ),
    "inside of EXISTS, with the name from outside": (
        "WINDOW ?v { ?s :p ?o } FILTER NOT EXISTS { WINDOW ?v { ?s :q ?m } }",
        f"{over('v', V, '?s :p ?o')} FILTER NOT EXISTS {{ {over('v', V, '?s :q ?m')} }}",
    ),
    "inside of MINUS": (
        "WINDOW ?v { ?s :p ?o } MINUS { WINDOW ?v { ?s :q ?m } }",
        f"{over('v', V, '?s :p ?o')} MINUS {{ {over('v', V, '?s :q ?m')} }}",
    ),
    "inside of a sub-query": (
        "{ SELECT ?v (COUNT(*) AS ?c) { WINDOW ?v { ?s ?k ?o } } GROUP BY ?v }",
        f"{{ SELECT ?v (COUNT(*) AS ?c) {{ {over('v', V, '?s ?k ?o')} }} GROUP BY ?v }}",
    ),
    "inside of UNION": (
        "{ WINDOW ?v { ?s :p 1 } } UNION { GRAPH ?v { ?s :p 9 } }",
        f"{{ {over('v', V, '?s :p 1')} }} UNION {{ {over('v', G, '?s :p 9')} }}",
    ),
    "a condition on the name outside": (
        "WINDOW ?v { ?s :p ?o } FILTER (?v = :w2)",
        f"{over('v', V, '?s :p ?o')} FILTER (?v = :w2)",
    ),
    "a name from before": (
        "WINDOW :w { ?s :q ?v } WINDOW ?v { ?t :p ?o FILTER (!BOUND(?v)) }",
        f"GRAPH :w {{ ?s :q ?v }} {over('v', V, '?t :p ?o')}",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_variable_name_is_a_union_over_constant_names(name, tmp_path):
    text, by_hand = WHOLE[name]
    expected = rows_by_hand(f"SELECT * {{ {by_hand} }}")
    assert expected
    assert answered(text, tmp_path) == expected


def test_blank_nodes_of_nested_variables_get_labels_of_their_own(tmp_path):
    text = "WINDOW ?v { _:b :p ?o WINDOW ?u { _:rsp0 :q ?m } GRAPH ?k { _:rsp1 :p ?x } }"
    inner = f"{over('u', V, '[] :q ?m')} {over('k', G, '[] :p ?x')}"
    expected = rows_by_hand(f"SELECT * {{ {over('v', V, f'[] :p ?o {inner}')} }}")
    assert expected
    assert answered(text, tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("WINDOW :w { :a :p ?o } GRAPH ?k { ?s ?p ?u }", []),
        ("WINDOW :w { :a :p ?o } GRAPH ?k { }", []),
        ("WINDOW :w { :a :p ?o } GRAPH ?k { { SELECT (COUNT(*) AS ?n) { ?s ?p ?u } } }", []),
        ("WINDOW :w { :a :p ?o } OPTIONAL { GRAPH ?k { ?s ?p ?u } }", [1]),
        ("WINDOW :w { :a :p ?o } FILTER NOT EXISTS { GRAPH ?k { } }", [1]),
        ("WINDOW :w { :a :p ?o } MINUS { GRAPH ?k { :a :p ?o } }", [1]),
    ],
)
def test_without_static_graphs_a_graph_variable_has_no_solution(text, rows, tmp_path):
    integer = ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")
    expected = Counter(frozenset({("o", str(ox.Literal(str(n), datatype=integer)))}) for n in rows)
    assert answered(text, tmp_path, dataset=WINDOWS) == expected


def test_a_service_inside_of_a_window_variable_is_asked_for_the_keys_of_every_window(tmp_path):
    remote = ox.Store()
    remote.load(f"{TURTLE} :a :followers 7 . :b :followers 8 .", format=ox.RdfFormat.TURTLE)
    text = (
        "WINDOW ?v { ?s :p ?o SERVICE :svc { ?s :followers ?f } { SELECT (COUNT(*) AS ?c) "
        "{ ?x :p ?y } } FILTER (!BOUND(?v)) }"
    )
    followers = "VALUES (?s ?f) { (:a 7) (:b 8) }"
    count = "{ SELECT (COUNT(*) AS ?c) { ?x :p ?y } }"
    expected = rows_by_hand(f"SELECT * {{ {over('v', V, f'?s :p ?o {followers} {count}')} }}")
    assert answered(text, tmp_path, dataset=WINDOWS, svc=remote) == expected
