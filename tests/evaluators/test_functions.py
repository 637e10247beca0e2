"""Functions of the user's own."""

from __future__ import annotations

import logging

from rsp_engine import Engine
from rsp_engine.model.answers import Solutions

QUERY = """
    PREFIX : <http://example.org/>
    SELECT ?x (F(?n, ?x) AS ?score) FROM NAMED WINDOW :w ON :s [RANGE 10s]
    WHERE { WINDOW :w { ?x :p ?n } } ORDER BY DESC(?score) LIMIT 3"""
STREAM = [(1000, "@prefix : <http://example.org/> . :a :p 1 . :b :p 2.5 . :c :p 0 .")]


def rows(function) -> list[tuple[str, float | None]]:
    engine = Engine()
    engine.function("F", function)
    engine.register(QUERY)
    engine.bind("http://example.org/s", STREAM)
    [answer] = engine.run()
    assert isinstance(answer.content, Solutions)
    return [(row.bindings["x"].value[-1], row.score) for row in answer.content.rows]


def test_a_function_gets_python_values_and_gives_one():
    assert rows(lambda n, x: n * 2 + len(x)) == [("b", 25.0), ("a", 22.0), ("c", 20.0)]


def test_a_function_that_fails_gives_no_value_and_says_so_once(caplog):
    with caplog.at_level(logging.WARNING):
        found = rows(lambda n, _: 1 / 0 if n < 2 else n)
    assert found[0] == ("b", 2.5)
    assert [score for _, score in found[1:]] == [None, None]
    assert len(caplog.records) == 1
    assert "ZeroDivisionError" in caplog.text
