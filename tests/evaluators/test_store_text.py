"""What Oxigraph cannot read is written in another way: no legal query ends in a raw error of it."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from rsp_engine.engine import Engine
from rsp_engine.model.answers import Graph, Solutions

EX = "http://example.org/"
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s]"
X = "\U0001d4b3"
"""A letter beyond the Basic Multilingual Plane."""


def content_of(text: str) -> Solutions | Graph:
    engine = Engine()
    engine.register(f"PREFIX : <{EX}> {text}")
    turtle = f"@prefix : <{EX}> . :a :p 1 ; :q :b . :b :p 2 ."
    engine.bind(f"{EX}s", [(1_000, turtle)])
    [answer] = engine.run()
    assert isinstance(answer.content, Solutions | Graph)
    return answer.content


def rows(text: str) -> list[dict[str, str]]:
    content = content_of(text)
    assert isinstance(content, Solutions)
    return [
        {name: term.value.removeprefix(EX) for name, term in row.bindings.items()}
        for row in content.rows
    ]


@pytest.mark.parametrize(
    ("clause", "where", "tail", "expected"),
    [
        ("?s", "?s :p ?v", f"ORDER BY DESC(?v) LIMIT 1 VALUES ?{X} {{ 7 }}", [{"s": "b"}]),
        (f"?{X}", f"?{X} :p 1", "", [{X: "a"}]),
        (f"?{X} ?u1d4b3", f"?{X} :q ?u1d4b3", "", [{X: "a", "u1d4b3": "b"}]),
        (f"({X}:a AS ?v)", ":a :p 1", "", [{"v": "a"}]),
        ("?v", f"_:{X} :p ?v . _:{X} :q ?o", "", [{"v": "1"}]),
        (f"?s (?v * 2 AS ?{X})", "?s :p ?v", f"ORDER BY DESC(?{X}) LIMIT 1", [{"s": "b", X: "4"}]),
        (
            f"?s (SUM(?v) AS ?{X})",
            "?s :p ?v",
            f"GROUP BY ?s ORDER BY DESC(?{X} + 1) LIMIT 1",
            [{"s": "b", X: "2"}],
        ),
    ],
)
def test_names_may_have_any_letter_of_sparql(clause, where, tail, expected):
    prefix = f"PREFIX {X}: <{EX}> "
    text = f"{prefix} SELECT {clause} {WINDOW} WHERE {{ WINDOW :w {{ {where} }} }} {tail}"
    assert rows(text) == expected


def test_templates_may_have_them_too():
    text = f"CONSTRUCT {{ ?{X} a :Thing }} {WINDOW} WHERE {{ WINDOW :w {{ ?{X} :q ?o }} }}"
    content = content_of(text)
    assert isinstance(content, Graph)
    assert [triple.subject for triple in content.triples] == [ox.NamedNode(f"{EX}a")]


def test_any_property_matches_a_negated_set_of_none():
    text = f"SELECT ?o {WINDOW} WHERE {{ WINDOW :w {{ :a !() ?o }} }}"
    assert sorted(row["o"] for row in rows(text)) == ["1", "b"]
    text = f"SELECT ?o {WINDOW} WHERE {{ WINDOW :w {{ :a !()/!() ?o }} }}"
    assert rows(text) == [{"o": "2"}]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("ORDER BY EXISTS { WINDOW :w { ?s :q _:b . _:b :p ?o } } LIMIT 1", [{"s": "b"}]),
        ("ORDER BY DESC(EXISTS { WINDOW :w { ?s :q _:b . _:b :p ?o } })", [{"s": "a"}, {"s": "b"}]),
        ("HAVING (EXISTS { WINDOW :w { ?s :q _:b . _:b :p ?o } })", [{"s": "a"}]),
    ],
)
def test_a_pattern_with_blank_nodes_may_stand_in_an_order(tail, expected):
    assert rows(f"SELECT ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} {tail}") == expected
