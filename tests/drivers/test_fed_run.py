"""A run that is fed answers as a run that reads: element by element, in the same order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine import Engine, Solutions
from rsp_engine.errors import BindingError, SourceError
from rsp_engine.io.sinks.jsonl import JsonLinesWriter
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.model.streams import DeadLetter

EX = "http://example.org/"
WINDOWS = (
    "[RANGE 10s STEP 4s]",
    "[RANGE 4s]",
    "[RANGE 3s STEP 7s]",
    "[ELEMENTS 3 STEP 2]",
)
FORMS = {
    "rank": "SELECT ?s ?v {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 2",
    "group": "SELECT ?s (SUM(?v) AS ?n) {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} GROUP BY ?s",
    "graph": "CONSTRUCT {{ ?s :q ?v }} {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}",
    "ask": "ASK {} WHERE {{ WINDOW :w {{ ?s :p 3 }} }}",
}
ELEMENT = st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.integers(0, 4))


def query(form: str, window: str, word: str) -> str:
    source = f"FROM NAMED WINDOW :w ON :s {window}"
    return f"PREFIX : <{EX}> REGISTER {word} :q AS {FORMS[form].format(source)}"


def rows(answer):
    assert isinstance(answer.content, Solutions)
    return answer.content.rows


def lines(answers):
    return [JsonLinesWriter()(answer) for answer in answers]


@examples(60)
@given(
    st.sampled_from([*FORMS]),
    st.sampled_from(WINDOWS),
    st.sampled_from(["RSTREAM", "ISTREAM", "DSTREAM"]),
    st.lists(ELEMENT, max_size=12),
    st.integers(0, 3),
    st.sampled_from(["nonempty", "every"]),
)
def test_fed_elements_give_the_answers_of_a_run_that_reads_them(  # noqa: PLR0917
    form, window, word, drawn, delay, report
):
    stream = [(s * 1000, f"<{EX}{key}> <{EX}p> {value} .") for s, key, value in drawn]
    settings = {"max_delay": delay * 1000, "report": report}
    late: list[object] = []
    with Engine(dead_letter=late.append, **settings) as engine:
        engine.register(query(form, window, word))
        engine.bind(f"{EX}s", stream)
        expected = lines(engine.run())
        counts = engine.counts
    with Engine(**settings) as engine:
        engine.register(query(form, window, word))
        fed_late: list[object] = []
        run = engine.begin(dead_letter=fed_late.append)
        found = [answer for time, turtle in stream for answer in run.feed(f"{EX}s", time, turtle)]
        found += run.end()
        assert lines(found) == expected
        assert len(fed_late) == len(late)
        assert run.counts == counts


def ranked(**options):
    engine = Engine(**options)
    engine.register(query("rank", "[RANGE 10s STEP 10s]", "RSTREAM"))
    return engine


def test_a_window_closes_when_event_time_has_passed_its_edge():
    run = ranked().begin()
    run.feed(f"{EX}s", 1_000, f"<{EX}a> <{EX}p> 1 .")
    assert run.advance(9_999) == []
    assert run.feed(f"{EX}s", 10_000, f"<{EX}b> <{EX}p> 2 .") == [], "the edge is in the window"
    [answer] = run.advance(10_000)
    assert [row.bindings["s"].value for row in rows(answer)] == [f"{EX}b", f"{EX}a"]
    assert run.advance(5_000) == [], "time does not go back"


def test_an_element_that_time_has_passed_is_late_also_with_a_delay():
    late: list[DeadLetter] = []
    run = ranked(max_delay=60_000).begin(dead_letter=late.append)
    run.feed(f"{EX}s", 1_000, f"<{EX}a> <{EX}p> 1 .")
    assert len(run.advance(10_000)) == 1
    run.feed(f"{EX}s", 9_000, f"<{EX}a> <{EX}p> 3 .")
    assert [letter.kind for letter in late] == ["late"]


def test_a_malformed_element_is_set_aside():
    late: list[DeadLetter] = []
    run = ranked().begin(dead_letter=late.append)
    run.feed(f"{EX}s", 1_000, "<a")
    assert [(letter.kind, letter.position) for letter in late] == [("malformed", 1)]


def test_a_query_reads_the_answers_of_another():
    engine = Engine()
    engine.register(query("graph", "[RANGE 5s STEP 5s]", "STREAM").replace(":q AS", ":t AS", 1))
    engine.register(
        f"PREFIX : <{EX}> SELECT ?s FROM NAMED WINDOW :w ON :t [RANGE 10s STEP 10s]"
        " WHERE { WINDOW :w { ?s :q ?v } }"
    )
    run = engine.begin()
    assert run.streams == [f"{EX}s"]
    run.feed(f"{EX}s", 1_000, f"<{EX}a> <{EX}p> 1 .")
    assert [answer.window.close for answer in run.end()] == [5_000, 10_000]


def test_the_remote_side_may_change_between_two_windows():
    remote = ox.Store()
    followers = ox.NamedNode(f"{EX}followers")
    quad = ox.Quad(ox.NamedNode(f"{EX}a"), followers, ox.Literal(5))
    remote.add(quad)
    with Engine(policy="EXACT") as engine:
        engine.service(f"{EX}people", remote)
        engine.register(
            f"PREFIX : <{EX}> SELECT ?s ?f FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]"
            " WHERE { WINDOW :w { ?s :p ?v } SERVICE :people { ?s :followers ?f } }"
            " ORDER BY DESC(?f) LIMIT 1"
        )
        run = engine.begin()
        run.feed(f"{EX}s", 1_000, f"<{EX}a> <{EX}p> 1 .")
        [first] = run.advance(10_000)
        remote.remove(quad)
        remote.add(ox.Quad(quad.subject, followers, ox.Literal(9)))
        run.feed(f"{EX}s", 11_000, f"<{EX}a> <{EX}p> 1 .")
        [second] = run.advance(20_000)
    assert [rows(a)[0].score for a in (first, second)] == [5.0, 9.0]


def test_pushed_changes_are_fed_too():
    engine = Engine(policy="WST")
    engine.service(f"{EX}people", ox.Store())
    engine.changes(f"{EX}people", [])
    engine.register(
        f"PREFIX : <{EX}> SELECT ?s ?f FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]"
        " WHERE { WINDOW :w { ?s :p ?v } SERVICE :people { ?s :followers ?f } }"
        " ORDER BY DESC(?f) LIMIT 1"
    )
    run = engine.begin()
    run.change(f"{EX}people", 500, f"<{EX}a> <{EX}followers> 7 .")
    run.feed(f"{EX}s", 1_000, f"<{EX}a> <{EX}p> 1 .")
    [answer] = run.advance(10_000)
    assert json.loads(JsonLinesWriter()(answer))["rows"][0]["score"] == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": "there"}, "has no checkpoint"),
        ({"speed": 2.0}, "has no speed"),
        ({"runner": "spark"}, "is not on Spark"),
    ],
)
def test_what_a_fed_run_cannot_have_is_refused(options, message):
    with pytest.raises(BindingError, match=message):
        ranked(**options).begin()


def test_streams_are_fed_or_bound_and_known():
    engine = ranked()
    run = engine.begin()
    with pytest.raises(BindingError, match="no query reads stream <urn:other>"):
        run.feed("urn:other", 0, "")
    with pytest.raises(BindingError, match="has no change stream"):
        run.change("urn:service", 0, "")
    run.end()
    with pytest.raises(SourceError, match="have ended"):
        run.advance(1)
    engine.bind(f"{EX}s", [])
    with pytest.raises(BindingError, match="has no sources"):
        engine.begin()
