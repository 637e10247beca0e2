"""Without BASE, a relative IRI is a path in `file:`, in a query and in what is bound to it."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app
from rsp_engine.engine import Engine
from rsp_engine.model.answers import Graph, Solutions

TURTLE = "<http://example.org/a> <http://example.org/p> 1 ."
WINDOW = "FROM NAMED WINDOW <w> ON <s> [RANGE 10s]"


def rows(engine: Engine) -> list[dict[str, str]]:
    found = [answer.content for answer in engine.run()]
    assert all(isinstance(content, Solutions) for content in found)
    return [
        {name: term.value for name, term in row.bindings.items()}
        for content in found
        if isinstance(content, Solutions)
        for row in content.rows
    ]


@pytest.mark.parametrize("stream", ["s", "file:s"])
def test_names_of_queries_windows_and_streams_may_be_relative(stream):
    engine = Engine()
    text = f"REGISTER RSTREAM <out> AS SELECT ?w ?s {WINDOW} WHERE {{ WINDOW ?w {{ ?s ?p ?o }} }}"
    query = engine.register(text)
    assert query.physical.name == "file:out"
    engine.bind(stream, [(1_000, TURTLE)])
    assert rows(engine) == [{"w": "file:w", "s": "http://example.org/a"}]


def test_a_query_reads_the_stream_of_another_by_its_relative_name():
    engine = Engine()
    where = "WHERE { WINDOW <w> { ?s ?p ?o } }"
    engine.register(f"REGISTER RSTREAM <out> AS CONSTRUCT {{ ?s <is> ?o }} {WINDOW} {where}")
    engine.register(
        f"REGISTER RSTREAM <end> AS {f'SELECT ?p {WINDOW}'.replace('<s>', '<out>')} {where}"
    )
    engine.bind("s", [(1_000, TURTLE)])
    first, second = (answer.content for answer in engine.run())
    assert isinstance(first, Graph)
    assert isinstance(second, Solutions)
    assert [row.bindings["p"] for row in second.rows] == [ox.NamedNode("file:is")]


@pytest.mark.parametrize(
    ("prologue", "window", "stream"),
    [
        ("BASE <http://example.org/x/>", "http://example.org/x/w", "http://example.org/x/s"),
        ("BASE <x/>", "file:x/w", "x/s"),
        ("", "file:w", "s"),
    ],
)
def test_they_are_resolved_against_the_base_if_there_is_one(prologue, window, stream):
    engine = Engine()
    engine.register(f"{prologue} SELECT ?w {WINDOW} WHERE {{ WINDOW ?w {{ ?s ?p ?o }} }}")
    engine.bind(stream, [(1_000, TURTLE)])
    assert rows(engine) == [{"w": window}]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("<x>", "file:x"),
        ("p:x", "file:rel#x"),
        ("IRI('x')", "file:x"),
        ("URI('http://example.org/./x')", "http://example.org/./x"),
        ("DATATYPE('1'^^<kind>)", "file:kind"),
        ("IRI(STR(<../x>))", "file:../x"),
    ],
)
def test_terms_may_be_relative_too(expression, value):
    engine = Engine()
    where = "WHERE { WINDOW <w> { ?s ?p ?o } }"
    engine.register(f"PREFIX p: <rel#> SELECT ({expression} AS ?v) {WINDOW} {where}")
    engine.bind("s", [(1_000, TURTLE)])
    assert rows(engine) == [{"v": value}]


def test_services_are_bound_by_relative_names():
    engine = Engine()
    store = ox.Store()
    store.load("<http://example.org/a> <file:q> 7 .", format=ox.RdfFormat.TURTLE)
    engine.service("svc", store)
    where = "WHERE { WINDOW <w> { ?s ?p ?o } SERVICE <svc> { ?s <q> ?v } }"
    engine.register(f"SELECT ?v {WINDOW} {where}")
    engine.bind("s", [(1_000, TURTLE)])
    assert rows(engine) == [{"v": "7"}]


def test_rsp_run_and_explain_take_relative_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.ttl").write_text("<http://example.org/a> a <http://example.org/Person> .")
    (tmp_path / "s.ttl").write_text(TURTLE)
    (tmp_path / "s.jsonl").write_text(
        '{"timestamp": 1000, "graph": "<http://example.org/a> <http://example.org/p> 1 ."}\n'
    )
    (tmp_path / "q.rspql").write_text(
        f"SELECT ?g ?f FROM NAMED <people.ttl> {WINDOW} WHERE {{ WINDOW <w> {{ ?s ?p ?o }} "
        "GRAPH ?g { ?s a ?t } SERVICE SILENT <svc> { ?s <q> ?f } }"
    )
    run = ["run", "q.rspql", "--runner=local", "--format=csv"]
    for stream in ("s=s.jsonl", "<s>=s.jsonl", "file:s=s.jsonl"):
        result = CliRunner().invoke(app, [*run, f"--stream={stream}"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert "file:people.ttl" in result.stdout
    bound = ["explain", "q.rspql", "--service=svc=http://localhost:1/query"]
    result = CliRunner().invoke(app, bound, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "not bound" not in result.stderr
