"""The stream test: it sees what a run gives, and says readably where that is not what one expects.

The text of a failure is a golden file of `tests/cases/testing`, named after the test.
"""

from __future__ import annotations

import pytest

from rsp_engine import Engine
from rsp_engine.errors import BindingError, CaseError
from rsp_engine.testing import StreamTest
from tests.data import PROJECT

GOLDEN = PROJECT / "tests" / "cases" / "testing"
EX = "http://example.org/"
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]"
HEAD = f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
RANKED = (
    f"{HEAD} SELECT ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 2"
)
PLAIN = f"{HEAD} SELECT ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"
GRAPH = f"{HEAD} CONSTRUCT {{ ?s :q ?v }} {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"
ASK = f"{HEAD} ASK {WINDOW} WHERE {{ WINDOW :w {{ ?s :p 3 }} }}"
OPTIONAL = (
    f"{HEAD} SELECT ?s ?v ?q {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?v OPTIONAL {{ ?s :q ?q }} }} }}"
)


def opened(*queries: str, **options) -> StreamTest:
    engine = Engine(**options)
    for query in queries:
        engine.register(query)
    return StreamTest(engine)


def fed(query: str, elements: str = "1s  :a :p 1 .\n2s  :b :p 3 .\n3s  :c :p 2 .") -> StreamTest:
    test = opened(query)
    test.feed(":s", elements)
    test.end()
    return test


@pytest.mark.parametrize(
    ("query", "table"),
    [
        (RANKED, "open close rank ?s ?v\n0 10s 1 :b 3\n0 10s 2 :c 2"),
        (RANKED, "rank ?s score\n1 :b 3.0\n2 <http://example.org/c> 2"),
        (RANKED, "| close | rank |\n|---|---|\n| 10000 | 1 |\n| 10000 | 2 |"),
        (PLAIN, "?s ?v\n:c 2\n:a '1'^^xsd:integer\n:b 3"),
        (GRAPH, "subject predicate object\n:b :q 3\n:a :q 1\n:c :q 2"),
        (ASK, "close answer\n10s true"),
        (ASK, "close triples exact\n10s 3 true"),
        (OPTIONAL, "?s ?q\n:a -\n:b -\n:c -"),
        (f"{RANKED} OFFSET 5", "close rank ?s\n10s - -"),
    ],
)
def test_answers_are_compared_in_the_columns_that_one_chooses(query, table):
    fed(query).expect(table.replace(" ", "  "))


def test_every_kind_of_term_has_a_cell():
    elements = """
        1s  :a :p 1, 1.5, 1e0, true, "a  b", "x|y"@en, "2024-01-01"^^xsd:date, :b, <urn:c> .
        2s  [] :p "01"^^xsd:integer .
    """
    fed(PLAIN, elements).expect("""
        ?v
        1
        1.5
        1e0
        true
        "a  b"
        "x|y"@en
        "2024-01-01"^^xsd:date
        :b
        <urn:c>
        1
    """)


def test_answers_are_compared_once():
    test = opened(RANKED)
    test.feed(":s", "1s  :a :p 1 .")
    test.expect_nothing()
    test.advance("10s")
    test.expect("close  ?s\n10s  :a")
    test.expect_nothing()
    test.feed(":s", [("12s", ":b :p 1 ."), (13_000, ":c :p 2 .")])
    test.end()
    test.expect("close  ?s\n20s  :c\n20s  :b")
    assert [answer.window.close for answer in test.answers] == [10_000, 20_000]


def test_rows_of_a_ranked_answer_have_an_order_and_others_have_none():
    fed(PLAIN).expect("?s\n:c\n:b\n:a")
    with pytest.raises(AssertionError):
        fed(RANKED).expect("?s\n:c\n:b")


def test_dead_letters_are_told_by_kind_or_reason():
    test = fed(RANKED, "11s  :a :p 1 .\n1s  :b :p 2 .\n12s  nonsense")
    test.expect_dead_letters("late", "malformed")
    test.expect_dead_letters("late: all its windows are closed", "malformed")


def refusal(act) -> str:
    with pytest.raises(AssertionError) as failure:
        act()
    return f"{failure.value}\n"


FAILURES = {
    "another-row": lambda: fed(RANKED).expect("close  rank  ?s\n10s  1  :b\n10s  2  :a"),
    "a-row-too-few": lambda: fed(RANKED).expect("close  rank  ?s\n10s  1  :b"),
    "no-such-window": lambda: fed(RANKED).expect("open  close  ?s\n0  5s  :b\n0  5s  :c"),
    "not-exact": lambda: fed(ASK).expect("close  answer  exact\n10s  true  false"),
    "no-such-figure": lambda: fed(ASK).expect("close  budget\n10s  2"),
    "a-triple": lambda: fed(GRAPH).expect("subject  object\n:a  1\n:b  3\n:d  2"),
    "an-answer-too-many": lambda: fed(ASK).expect_nothing(),
    "dead-letters": lambda: fed(ASK, "11s  :a :p 1 .\n1s  :b :p 2 .").expect_dead_letters(),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_shows_the_difference(name):
    assert refusal(FAILURES[name]) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_every_golden_file_is_compared():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(FAILURES)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "a table needs a header"),
        ("close  ?s\n10s", "has 1 cells, the header has 2"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(table, message):
    with pytest.raises(CaseError, match=message):
        fed(RANKED).expect(table)


def test_an_element_without_a_time_is_refused():
    with pytest.raises(CaseError, match="does not begin with a time"):
        opened(RANKED).feed(":s", ":a :p 1 .")


def test_a_stream_that_no_query_reads_is_refused():
    with pytest.raises(BindingError, match=f"no query reads stream <{EX}t>"):
        opened(RANKED).feed(":t", "1s  :a :p 1 .")


def test_queries_are_told_apart_by_their_names():
    other = PLAIN.replace("SELECT", "REGISTER RSTREAM :other AS SELECT", 1)
    test = opened(RANKED.replace("SELECT", "REGISTER RSTREAM :first AS SELECT", 1), other)
    test.feed(":s", "1s  :a :p 1 .")
    test.end()
    test.expect("query  rank  ?s\n:first  1  :a\n:other  -  :a")
