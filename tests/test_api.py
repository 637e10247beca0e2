"""The engine as a library: its names, and what can be done with its answers."""

from __future__ import annotations

import pyarrow as pa
import pytest
import rdflib

import rsp_engine
from rsp_engine import Engine, as_arrow
from rsp_engine.errors import BindingError

EX = "http://example.org/"
HEAD = f"PREFIX : <{EX}> REGISTER RSTREAM :q AS"
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s] WHERE { WINDOW :w { ?s :p ?v } }"
SELECT = f"{HEAD} SELECT ?s ?v {WINDOW} ORDER BY DESC(?v) LIMIT 2"
CONSTRUCT = f"{HEAD} CONSTRUCT {{ ?s :best ?v }} {WINDOW}"
ASK = f"{HEAD} ASK {WINDOW}"
STREAM = [
    (1_000, f'<{EX}a> <{EX}p> 20 . <{EX}b> <{EX}p> "x<y"@en .'),
    (12_000, f"<{EX}a> <{EX}p> 2.5 ."),
    (13_000, f"<{EX}b> <{EX}p> 3 ."),
]


def run(text: str) -> list[rsp_engine.Answer]:
    with Engine() as engine:
        engine.register(text)
        engine.bind(f"{EX}s", STREAM)
        return list(engine.run())


def test_these_are_the_public_names():
    assert sorted(rsp_engine.__all__) == [
        "Answer",
        "Boolean",
        "Engine",
        "Graph",
        "Interval",
        "Policy",
        "Query",
        "RankedPolicy",
        "Row",
        "RspError",
        "Solutions",
        "__version__",
        "as_arrow",
    ]
    assert all(getattr(rsp_engine, name) is not None for name in rsp_engine.__all__)
    with pytest.raises(AttributeError):
        rsp_engine.nothing  # noqa: B018 - that is what is asked


def test_these_are_the_methods_of_an_engine():
    assert [name for name in dir(Engine) if not name.startswith("_")] == [
        "bind",
        "changes",
        "check",
        "close",
        "define",
        "explain",
        "forms",
        "function",
        "graph",
        "is_live",
        "is_on_spark",
        "is_stoppable",
        "policy",
        "range",
        "register",
        "register_file",
        "run",
        "runner_choice",
        "service",
        "stop",
        "unseen_predicates",
        "watched_by",
    ]


def test_rows_in_terms_of_rdflib():
    first, second = run(SELECT)
    assert first.to_rdflib() == [
        {"s": rdflib.URIRef(f"{EX}b"), "v": rdflib.Literal("x<y", lang="en")},
        {"s": rdflib.URIRef(f"{EX}a"), "v": rdflib.Literal(20)},
    ]
    assert second.to_rdflib() == [
        {"s": rdflib.URIRef(f"{EX}b"), "v": rdflib.Literal(3)},
        {"s": rdflib.URIRef(f"{EX}a"), "v": rdflib.Literal("2.5", datatype=rdflib.XSD.decimal)},
    ]


def test_a_graph_and_a_verdict_in_terms_of_rdflib():
    graph = run(CONSTRUCT)[1].to_rdflib()
    assert isinstance(graph, rdflib.Graph)
    assert (rdflib.URIRef(f"{EX}b"), rdflib.URIRef(f"{EX}best"), rdflib.Literal(3)) in graph
    assert len(graph) == 2
    assert run(ASK)[0].to_rdflib() is True


def test_rows_as_a_table_of_arrow():
    answers = run(SELECT)
    assert answers[1].to_arrow().to_pylist() == [
        {"query": f"{EX}q", "open": 10_000, "close": 20_000, "rank": 1, "score": 3.0, "age": None}
        | {"s": f"{EX}b", "v": 3.0},
        {"query": f"{EX}q", "open": 10_000, "close": 20_000, "rank": 2, "score": 2.5, "age": None}
        | {"s": f"{EX}a", "v": 2.5},
    ]
    whole = as_arrow(answers)
    assert whole.num_rows == 4
    assert whole.schema.field("v").type == pa.string(), "one of them is a text"
    assert as_arrow(run(ASK)).num_rows == 0


def test_a_variable_may_be_called_like_a_column():
    [answer, _] = run(SELECT.replace("?v", "?rank"))
    assert answer.to_arrow().column_names[-1] == "?rank"


def test_answers_and_plans_show_themselves_in_a_notebook():
    answers = run(SELECT)
    assert "<th>#</th><th>s</th><th>v</th><th>score</th>" in answers[0]._repr_html_()
    assert "x&lt;y" in answers[0]._repr_html_()
    assert "<td>http://example.org/best</td>" in run(CONSTRUCT)[0]._repr_html_()
    assert "<td>True</td>" in run(ASK)[0]._repr_html_()
    engine = Engine()
    query = engine.register(SELECT)
    assert query._repr_html_().startswith("<pre>query http://example.org/q")
    assert query.explain() == engine.explain()


def test_a_run_can_be_left_in_the_middle():
    with Engine() as engine:
        engine.register(SELECT)
        engine.bind(f"{EX}s", STREAM)
        answers = engine.run()
        next(answers)
    assert list(answers) == []


def test_what_a_run_would_refuse_can_be_asked_before():
    engine = Engine()
    engine.register(SELECT)
    with pytest.raises(BindingError, match="has no source"):
        engine.check()
    engine.bind(f"{EX}s", STREAM)
    engine.check()
