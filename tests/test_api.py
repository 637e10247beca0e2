"""The engine as a library: its names, and what can be done with its answers."""

from __future__ import annotations

import re
import time

import pyarrow as pa
import pytest
import rdflib
from pyoxigraph import BlankNode, Literal, NamedNode

import rsp_engine
from rsp_engine import Answer, Engine, Interval, Row, RspError, Solutions, as_arrow
from rsp_engine.errors import BindingError
from rsp_engine.model.extras import install_command

EX = "http://example.org/"
HEAD = f"PREFIX : <{EX}> REGISTER RSTREAM :q AS"
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s] WHERE { WINDOW :w { ?s :p ?v } }"
SELECT = f"{HEAD} SELECT ?s ?v {WINDOW} ORDER BY DESC(?v) LIMIT 2"
CONSTRUCT = f"{HEAD} CONSTRUCT {{ ?s :best ?v }} {WINDOW}"
ASK = f"{HEAD} ASK {WINDOW}"
DATE_TIME = NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
IRIS = {
    "a": f"{EX}a&b",
    "b": "http://one.org/x",
    "c": "http://two.org/x",
    "d": "urn:b:c",
    "e": f"{EX}e/",
}
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
        "Client",
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
        "as_spark",
    ]
    assert all(getattr(rsp_engine, name) is not None for name in rsp_engine.__all__)
    assert dir(rsp_engine) == sorted(rsp_engine.__all__), "completion offers them"
    with pytest.raises(AttributeError):
        rsp_engine.nothing  # noqa: B018 - that is what is asked


def test_these_are_the_methods_of_an_engine():
    assert [name for name in dir(Engine) if not name.startswith("_")] == [
        "begin",
        "bind",
        "budget_rules",
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
        "prefixes",
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


def test_a_text_is_the_one_that_rdflib_parses():
    parsed = rdflib.Graph().parse(data=f'<{EX}a> <{EX}p> "text", "2024"^^<{EX}year> .')
    rows = (
        Row({"v": Literal("text")}),
        Row({"v": Literal("2024", datatype=NamedNode(f"{EX}year"))}),
    )
    answer = Answer(f"{EX}q", Interval(0, 10_000), Solutions(("v",), rows), {})
    found = answer.to_rdflib()
    assert isinstance(found, list)
    assert {row["v"] for row in found} == set(parsed.objects())


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
    heads, best, *_ = table(run(SELECT)[0])
    assert heads == ["#", "s", "v", "score"]
    assert best == ["1", "b", "x&lt;y", ""]
    assert table(run(CONSTRUCT)[0]) == [["a", "best", "20"], ["b", "best", "x&lt;y"]]
    assert table(run(ASK)[0]) == [["true"]]
    engine = Engine()
    query = engine.register(SELECT)
    assert query._repr_html_().startswith("<pre>query http://example.org/q")
    assert query.explain() == engine.explain()


def table(answer: rsp_engine.Answer) -> list[list[str]]:
    """Return the cells of an answer as a notebook shows it, as text."""
    rows = re.findall("<tr>(.*?)</tr>", answer._repr_html_())
    cells = (re.findall("<t[dh].*?>(.*?)</t[dh]>", row) for row in rows)
    return [[re.sub("<.*?>", "", cell) for cell in row] for row in cells]


def test_a_notebook_shows_iris_by_their_last_part_unless_two_end_alike():
    binding = {name: NamedNode(iri) for name, iri in IRIS.items()}
    answer = Answer(f"{EX}q", Interval(0, 10_000), Solutions(tuple(IRIS), (Row(binding),)), {})
    assert table(answer)[1] == ["a&amp;b", "http://one.org/x", "http://two.org/x", "c", "e/"]
    html = answer._repr_html_()
    assert f'<span title="{EX}a&amp;b">a&amp;b</span>' in html
    assert f'<b><span title="{EX}q">q</span></b>' in html
    assert "0 s – 10 s" in html


def test_a_notebook_shows_times_of_the_clock_of_this_computer(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        zoned, bare, ill = "2024-03-01T09:00:10Z", "2024-03-01T09:00:10", "soon"
        values = [Literal(text, datatype=DATE_TIME) for text in (zoned, bare, ill)]
        binding = dict(zip("abc", values, strict=True))
        window = Interval(1_709_283_550_000, 1_709_283_610_000)
        answer = Answer(f"{EX}q", window, Solutions(("a", "b", "c"), (Row(binding),)), {})
        assert "2024-03-01 17:59:10 – 18:00:10 JST" in answer._repr_html_()
        assert table(answer)[1] == ["2024-03-01 18:00:10", bare, ill]
        assert f'title="{zoned}"' in answer._repr_html_()
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_notebook_shows_numbers_ages_and_what_is_unbound():
    rows = (
        Row({"s": NamedNode(f"{EX}a"), "n": Literal(1234567)}, 1, 0.1 + 0.2, 65_000),
        Row({"s": BlankNode("b")}, 2, None, None),
    )
    answer = Answer(f"{EX}q", Interval(0, 10_000), Solutions(("s", "n"), rows, ranked=True), {})
    assert table(answer) == [
        ["#", "s", "n", "score", "age"],
        ["1", "a", "1,234,567", "0.3", "1 m 05 s"],
        ["2", "_:b", "", "", ""],
    ]


def test_a_data_frame_has_the_columns_of_the_table():
    pytest.importorskip("pandas")
    frame = run(SELECT)[1].to_pandas()
    assert list(frame.columns) == ["query", "open", "close", "rank", "score", "age", "s", "v"]
    assert list(frame["v"]) == [3.0, 2.5]


def test_without_pandas_a_data_frame_is_refused_with_a_hint(monkeypatch):
    monkeypatch.setattr("rsp_engine.model.results.find_spec", lambda _: None)
    with pytest.raises(RspError, match="a data frame needs pandas") as refused:
        run(SELECT)[0].to_pandas()
    assert refused.value.hint == f"install it: {install_command('pandas')}"


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
