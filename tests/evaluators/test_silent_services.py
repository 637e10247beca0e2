"""SERVICE SILENT of a service that is not bound gives one solution that binds nothing."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app
from rsp_engine.engine import Engine
from rsp_engine.errors import PlanError
from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.model.answers import Boolean, Solutions

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
TURTLE = f"@prefix : <{EX}> . "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s]"
NONE = "SERVICE SILENT :none { ?s :followers ?f }"
WARNING = "this SERVICE is not bound and is SILENT, so it adds nothing"


def engine_of(text: str) -> Engine:
    engine = Engine()
    if "SERVICE :svc" in text:
        store = ox.Store()
        store.load(f"{TURTLE} :a :likes 7 . :b :likes 8 .", format=ox.RdfFormat.TURTLE)
        engine.service(f"{EX}svc", store)
    engine.register(PREFIX + text)
    engine.bind(f"{EX}s", [(1_000, f"{TURTLE} :a :p 1 . :b :p 2 .")])
    return engine


def rows(text: str) -> tuple[tuple[str, ...], list[str]]:
    [answer] = engine_of(text).run()
    content = answer.content
    assert isinstance(content, Solutions)
    found = ((row.bindings.get(name) for name in content.variables) for row in content.rows)
    shown = [" ".join("-" if t is None else t.value.removeprefix(EX) for t in row) for row in found]
    return content.variables, shown


@pytest.mark.parametrize(
    ("select", "where", "expected"),
    [
        ("?s ?f", f"WINDOW :w {{ ?s :p ?v }} {NONE}", ["a -", "b -"]),
        ("?s ?f", f"{NONE} WINDOW :w {{ ?s :p ?v }}", ["a -", "b -"]),
        ("?s ?f", f"WINDOW :w {{ ?s :p ?v {NONE} ?s :p 1 }}", ["a -"]),
        ("?s ?f", f"WINDOW :w {{ ?s :p ?v }} OPTIONAL {{ {NONE} }}", ["a -", "b -"]),
        (
            "?s ?f",
            f"WINDOW :w {{ ?s :p ?v }} OPTIONAL {{ {NONE} FILTER (?f > 1) }}",
            ["a -", "b -"],
        ),
        ("?s ?f", f"WINDOW :w {{ ?s :p ?v }} {NONE} FILTER (?f > 1)", []),
        ("?s ?f", f"WINDOW :w {{ ?s :p ?v }} MINUS {{ {NONE} }}", ["a -", "b -"]),
        ("?s ?f", f"WINDOW :w {{ ?s :p ?v }} FILTER NOT EXISTS {{ {NONE} }}", []),
        ("?s ?f", f"{{ WINDOW :w {{ ?s :p 1 }} }} UNION {{ {NONE} }}", ["a -", "- -"]),
        ("?s ?x", "WINDOW :w { ?s :p ?v } SERVICE SILENT ?x { ?s :q ?f }", ["a -", "b -"]),
        ("?s ?x", "WINDOW :w { ?s :p 1 BIND (1 AS ?x) } SERVICE SILENT ?x { ?s :q ?f }", ["a 1"]),
        ("?s ?f", f"WINDOW :w {{ ?s :p ?v }} {{ SELECT ?f {{ {NONE} }} }}", ["a -", "b -"]),
        (
            "?s ?f ?l",
            f"WINDOW :w {{ ?s :p ?v }} {NONE} SERVICE :svc {{ ?s :likes ?l }}",
            ["a - 7", "b - 8"],
        ),
        ("?s ?c", f"WINDOW :w {{ ?s :p 1 }} {NONE} BIND (COALESCE(?f, 0) AS ?c)", ["a 0"]),
    ],
)
def test_the_other_solutions_stay_as_they_are(select, where, expected):
    text = f"SELECT {select} {WINDOW} WHERE {{ {where} }}"
    assert sorted(rows(text)[1]) == sorted(expected)


def test_its_variables_stay_among_those_of_select_star():
    assert rows(f"SELECT * {WINDOW} WHERE {{ WINDOW :w {{ ?s :p 1 }} {NONE} }}") == (
        ("f", "s"),
        ["- a"],
    )
    inner = f"{{ SELECT * {{ WINDOW :w {{ ?s :p 1 }} {NONE} }} }}"
    assert rows(f"SELECT * {WINDOW} WHERE {{ {inner} }}") == (("f", "s"), ["- a"])


def test_ask_is_true_of_it_alone():
    [answer] = engine_of(f"ASK {WINDOW} WHERE {{ WINDOW :w {{ }} {NONE} }}").run()
    assert answer.content == Boolean(True)


def test_a_ranking_is_run_as_if_the_clause_were_not_there():
    where = f"WINDOW :w {{ ?s :p ?v }} {NONE}"
    engine = Engine()
    text = f"{PREFIX} SELECT ?s ?f {WINDOW} WHERE {{ {where} }} ORDER BY DESC(?v) LIMIT 1"
    assert isinstance(engine.register(text).physical.operator, TopkConfig)
    engine.service(f"{EX}svc", ox.Store())
    joined = text.replace(NONE, f"{NONE} SERVICE :svc {{ ?s :likes ?l }}")
    named = joined.replace("SELECT", "REGISTER STREAM :other AS SELECT")
    assert isinstance(engine.register(named).physical.operator, AcquaTopConfig)


def test_the_user_is_warned_at_the_place(caplog):
    text = f"{PREFIX} SELECT ?s ?f {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} {NONE} }}"
    query = Engine().register(text)
    [warning] = query.warnings
    assert warning.message == WARNING
    assert warning.hint == "give its URL: --service http://example.org/none=URL"
    assert text[warning.span.start : warning.span.end] == NONE
    assert [record.getMessage().splitlines()[0] for record in caplog.records] == [
        f"<query>:1:{text.index(NONE) + 1}: warning: {WARNING}"
    ]
    assert "Service SILENT" in query.explain()


def test_rsp_explain_warns_too(tmp_path):
    path = tmp_path / "q.rspql"
    path.write_text(f"{PREFIX} SELECT ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} {NONE} }}")
    result = CliRunner().invoke(app, ["explain", str(path)])
    assert result.exit_code == 0
    assert f"warning: {WARNING}" in result.stderr


def test_what_stands_inside_of_a_service_is_its_own_business():
    inner = "SERVICE :svc { ?s :likes ?l SERVICE SILENT :none { ?s :likes ?l } }"
    text = f"{PREFIX} SELECT ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} {inner} }}"
    engine = Engine()
    engine.service(f"{EX}svc", "http://localhost:1/query")
    query = engine.register(text)
    assert query.warnings == ()
    [service] = query.physical.services
    assert "SERVICE SILENT" in service.pattern.body


@pytest.mark.parametrize("name", [":none", "?x"])
def test_without_silent_it_is_refused_as_ever(name):
    clause = f"SERVICE {name} {{ ?s :followers ?f }}"
    with pytest.raises(PlanError, match="SERVICE needs a service binding"):
        engine_of(f"SELECT ?s ?f {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} {clause} }}")
