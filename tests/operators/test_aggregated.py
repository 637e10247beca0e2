"""Rankings of groups on pane partials: as the general path has them, and each tie as decided."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.drivers.user_functions import as_sparql
from rsp_engine.evaluators.group_topk import GroupTopkConfig, GroupTopkEvaluator
from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.grammar import check
from rsp_engine.model.answers import Row, Solutions
from rsp_engine.model.terms.numerals import stored_literal
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.windows.time_windows import TimedScan
from rsp_engine.plan.logical.query import logical_query
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.shapes.group_topk import group_topk_plan
from rsp_engine.plan.shapes.shape import NoMatchError
from rsp_engine.plan.sparql.general import sparql_path
from tests.thoroughness import examples

EX = "http://example.org/"
HEAD = f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 1s]"
FUNCTIONS = {"F": as_sparql(lambda a: 2 * a + 1)}
PATTERN = "WHERE {{ WINDOW :w {{ ?s :p ?v }} }} GROUP BY ?s"
ASKED = (
    f"SELECT ?s (COUNT(*) AS ?n) {{}} {PATTERN} ORDER BY DESC(?n) LIMIT 2",
    f"SELECT ?s (COUNT(?v) AS ?n) {{}} {PATTERN} ORDER BY ?n LIMIT 2",
    f"SELECT ?s {{}} {PATTERN} ORDER BY DESC(COUNT(DISTINCT ?v)) LIMIT 2 OFFSET 1",
    f"SELECT ?s (SUM(?v) AS ?n) {{}} {PATTERN} ORDER BY DESC(?n) LIMIT 2",
    f"SELECT (SUM(?v) AS ?n) (STR(?s) AS ?name) {{}} {PATTERN} ORDER BY ?n LIMIT 3 OFFSET 1",
    f"SELECT ?s (AVG(?v) AS ?n) {{}} {PATTERN} ORDER BY DESC(?n) LIMIT 2",
    f"SELECT ?s (MIN(?v) AS ?n) {{}} {PATTERN} ORDER BY ?n LIMIT 2",
    f"SELECT ?s (MAX(DISTINCT ?v) AS ?n) {{}} {PATTERN} ORDER BY DESC(?n) LIMIT 2",
    f"SELECT ?s (SUM(?v) * 2 - 1 AS ?n) (xsd:string(SUM(?v)) AS ?t) {{}} {PATTERN}"
    " ORDER BY DESC(?n) LIMIT 2",
    f"SELECT ?s (F(SUM(?v)) AS ?n) {{}} {PATTERN} ORDER BY DESC(?n) LIMIT 2",
    f"SELECT (ABS(SUM(?v) - 5) AS ?n) {{}} {PATTERN} ORDER BY ?n LIMIT 2",
    "SELECT ?p ?s (SUM(?v) AS ?n) {} WHERE {{ WINDOW :w {{ ?s ?p ?v FILTER (?v > 0) }} }}"
    " GROUP BY ?p ?s ORDER BY DESC(?n) LIMIT 3",
    "SELECT ?v (COUNT(?s) AS ?n) {} WHERE {{ WINDOW :w {{ ?s :p ?v }}"
    " FILTER NOT EXISTS {{ ?s a :Known }} }} GROUP BY ?v ORDER BY DESC(?n) LIMIT 3",
    "SELECT ?p (MAX(?v) AS ?n) {} WHERE {{ WINDOW :w {{ :a ?p ?v }} }}"
    " GROUP BY ?p ORDER BY DESC(?n) LIMIT 1",
)  # fmt: skip


@cache
def planned(asked: str) -> GroupTopkConfig:
    query = logical_query(check(HEAD + asked.format(WINDOW)))
    config, _ = group_topk_plan(query, QueryOptions(functions=FUNCTIONS))
    assert isinstance(config, GroupTopkConfig), config
    return config


def store() -> ox.Store:
    made = ox.Store()
    kind = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    made.add(ox.Quad(ox.NamedNode(f"{EX}b"), kind, ox.NamedNode(f"{EX}Known")))
    return made


def literal(text: str, kind: str) -> ox.Literal:
    kind = f"http://www.w3.org/2001/XMLSchema#{kind}"
    return stored_literal(ox.Literal(text, datatype=ox.NamedNode(kind)))


INTEGERS = [ox.Literal(value) for value in (-3, 0, 1, 2, 5)]
DECIMALS = [literal(text, "decimal") for text in ("0.1", "-2.50", "0.000000000000000001", "7.3")]
DOUBLES = [ox.Literal(value) for value in (0.25, -1.5, 4.0)]
FLOATS = [literal(text, "float") for text in ("0.5", "3")]
NUMBERS = st.one_of([st.sampled_from(kind) for kind in (INTEGERS, DECIMALS, DOUBLES, FLOATS)])
subjects = st.sampled_from([*(ox.NamedNode(EX + name) for name in "abc"), ox.BlankNode("n")])
verbs = st.sampled_from([ox.NamedNode(f"{EX}{name}") for name in "ppppq"])
Elements = list[tuple[int, list[ox.Triple]]]


@st.composite
def elements(draw: st.DrawFn, values: st.SearchStrategy[Any] = NUMBERS) -> Elements:
    """Draw elements in the order of time; the same few triples come again and again."""
    least = draw(st.sampled_from((0, 20)))
    times = sorted(draw(st.lists(st.integers(1, 30), min_size=least, max_size=30)))
    triple = st.builds(ox.Triple, subjects, verbs, values)
    some = draw(st.lists(triple, min_size=1, max_size=8, unique_by=str))
    return [(at, [draw(st.sampled_from(some))]) for at in times]


def answers(
    made: GroupTopkEvaluator | SparqlEvaluator, found: Elements, frame: TimeFrame
) -> list[Solutions]:
    scan = TimedScan(frame)
    for timestamp, part in found:
        assert scan.take(timestamp, part, 0) is None or frame.range < frame.step
    given = []
    for index in range(12):
        scan.close(index)
        answer = made.answer([scan], index)
        assert isinstance(answer, Solutions)
        given.append(answer)
    return given


def general(asked: str) -> SparqlEvaluator:
    config = sparql_path(check(HEAD + asked.format(WINDOW)), FUNCTIONS)
    return SparqlEvaluator(config, store(), [f"{EX}w"])


def without_limit(asked: str) -> str:
    return asked.partition("LIMIT")[0] + "LIMIT 1000"


def check_same(found: tuple[Row, ...], everything: tuple[Row, ...], asked: str) -> None:
    """Of all rows that there are, these are the best; ties may stand in any order."""
    _, _, tail = asked.partition("LIMIT ")
    limit, _, offset = tail.partition(" OFFSET ")
    cut = everything[int(offset or 0) :][: int(limit)]
    assert [row.score for row in found] == [row.score for row in cut]
    left = [(row.bindings, row.score) for row in everything]
    for row in found:
        left.remove((row.bindings, row.score))


@pytest.mark.parametrize("asked", ASKED)
@examples(25)
@given(elements(), st.integers(1, 12), st.integers(1, 6))
def test_groups_are_ranked_as_on_the_general_path(asked, found, size, step):
    frame = TimeFrame(size, step)
    expected = answers(general(without_limit(asked)), found, frame)
    given_answers = answers(GroupTopkEvaluator(planned(asked), store()), found, frame)
    for answer, everything in zip(given_answers, expected, strict=True):
        check_same(answer.rows, everything.rows, asked)
        assert answer.variables == everything.variables


@examples(60)
@given(
    elements(st.sampled_from([*INTEGERS, *DECIMALS, *map(ox.Literal, (0.1, 1e16, -1e16, 0.7))])),
    st.sampled_from(("SUM", "AVG")),
    st.integers(1, 12),
    st.integers(1, 6),
)
def test_sums_are_told_to_the_last_digit(found, function, size, step):
    """A sum of doubles depends on the order of adding; of a decimal every digit counts."""
    asked = f"SELECT ?s ({function}(?v) AS ?n) {{}} {PATTERN} ORDER BY ?n LIMIT 1000"
    frame = TimeFrame(size, step)
    expected = answers(general(asked), found, frame)
    given_answers = answers(GroupTopkEvaluator(planned(asked), store()), found, frame)
    for answer, everything in zip(given_answers, expected, strict=True):
        assert told(answer) == told(everything)


def told(answer: Solutions) -> set[tuple[str, str]]:
    return {(str(row.bindings["s"]), str(row.bindings["n"])) for row in answer.rows}


ODD = [ox.Literal("x"), ox.NamedNode(f"{EX}i"), literal("2020-01-01T00:00:00Z", "dateTime")]


@pytest.mark.parametrize("function", ["SUM", "AVG"])
@examples(30)
@given(elements(st.sampled_from(INTEGERS + ODD)), st.integers(1, 12), st.integers(1, 6))
def test_a_group_with_a_value_that_is_no_number_has_no_sum_and_ranks_last(
    function, found, size, step
):
    asked = f"SELECT ?s ({function}(?v) AS ?n) {{}} {PATTERN} ORDER BY DESC(?n) LIMIT 3"
    frame = TimeFrame(size, step)
    expected = answers(general(without_limit(asked)), found, frame)
    given_answers = answers(GroupTopkEvaluator(planned(asked), store()), found, frame)
    for answer, everything in zip(given_answers, expected, strict=True):
        check_same(answer.rows, everything.rows, asked)


def test_of_a_group_with_a_text_the_least_is_told_and_ranked():
    p = ox.NamedNode(f"{EX}p")
    values = (("a", ox.Literal(1)), ("a", ox.Literal("x")), ("b", ox.Literal(5)))
    found = [(1, [ox.Triple(ox.NamedNode(EX + s), p, v)]) for s, v in values]
    rows = answers(GroupTopkEvaluator(planned(ASKED[6]), store()), found, TimeFrame(5, 5))[0].rows
    assert [row.bindings["n"] for row in rows] == [ox.Literal(1), ox.Literal(5)]


def test_the_earliest_of_dates_is_ranked():
    p = ox.NamedNode(f"{EX}p")
    came = (("a", 2021), ("a", 2019), ("b", 2020))
    dates = [(s, literal(f"{year}-01-01T00:00:00Z", "dateTime")) for s, year in came]
    found = [(1, [ox.Triple(ox.NamedNode(EX + s), p, date)]) for s, date in dates]
    rows = answers(GroupTopkEvaluator(planned(ASKED[6]), store()), found, TimeFrame(5, 5))[0].rows
    assert [row.bindings["n"] for row in rows] == [dates[1][1], dates[2][1]]


@examples(100)
@given(elements(st.sampled_from(INTEGERS)), st.integers(1, 12), st.integers(1, 6), st.randoms())
def test_of_equal_counts_the_later_arrival_is_first_then_the_larger_key(found, size, step, chance):
    """Windows are (open, close], each solution counts once, in whatever order elements are read."""
    frame = TimeFrame(size, step)
    shuffled = list(found)
    chance.shuffle(shuffled)
    given_answers = answers(GroupTopkEvaluator(planned(ASKED[0]), store()), shuffled, frame)
    for index, answer in enumerate(given_answers):
        held: dict[str, dict[ox.Triple, int]] = {}
        for at, [triple] in found:
            if index * step < at <= index * step + size and triple.predicate.value == f"{EX}p":
                held.setdefault(str(triple.subject), {})[triple] = at
        ranked = sorted(((len(t), max(t.values()), s) for s, t in held.items()), reverse=True)
        rows = [(int(r.bindings["n"].value), str(r.bindings["s"])) for r in answer.rows]
        assert rows == [(count, subject) for count, _, subject in ranked[:2]]


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(?v)", "AVG(?v)", "MIN(?v)", "MAX(?v)"])
def test_a_group_that_comes_again_is_later_even_where_it_lives_no_longer(aggregate):
    """Both panes end with the same window, so the solution counts in the first of them.

    panes   ..  | b     | b a   | ..
    W0      (           ]
    W1        (                   ]         of equals at one time the larger term: b
    W3          (                     ]
    """
    asked = f"SELECT ?s ({aggregate} AS ?n) {{}} {PATTERN} ORDER BY DESC(?n) LIMIT 2"
    p = ox.NamedNode(f"{EX}p")
    came = ((10, "b"), (11, "b"), (11, "a"))
    found = [(at, [ox.Triple(ox.NamedNode(EX + s), p, ox.Literal(1))]) for at, s in came]
    given_answers = answers(GroupTopkEvaluator(planned(asked), store()), found, TimeFrame(10, 3))
    names = ["".join(r.bindings["s"].value[-1] for r in a.rows) for a in given_answers]
    assert names[:5] == ["b", "ba", "ba", "ba", ""]


PLAIN = "WINDOW :w { ?s :p ?v }"
BY = "GROUP BY ?s ORDER BY ?n LIMIT 1"
COUNTED = "SELECT ?s (COUNT(*) AS ?n)"


@pytest.mark.parametrize(
    ("select", "where", "tail", "reason"),
    [
        ("SELECT (COUNT(*) AS ?n)", PLAIN, "ORDER BY ?n LIMIT 1", "all solutions are one group"),
        (COUNTED, PLAIN, "GROUP BY ?s HAVING (COUNT(*) > 1) ORDER BY ?n LIMIT 1", "HAVING"),
        (COUNTED, PLAIN, "GROUP BY ?s ORDER BY ?n ?s LIMIT 1", "more than one condition"),
        (COUNTED, PLAIN, "GROUP BY ?s ORDER BY ?s LIMIT 1", "not depend on the aggregate"),
        (COUNTED, PLAIN, "GROUP BY ?s ORDER BY (?n + ?s) LIMIT 1", "depends on the key"),
        (COUNTED, PLAIN, "GROUP BY ?s ORDER BY IF(?n > 1, 1, 2) LIMIT 1", "more than arithmetic"),
        (COUNTED, PLAIN, "GROUP BY ?s ?x ORDER BY ?n LIMIT 1", r"does not bind the key \?x"),
        ("SELECT (COUNT(*) AS ?n)", PLAIN, "GROUP BY (?v + 1) ORDER BY ?n LIMIT 1", "expression"),
        (f"{COUNTED} (SUM(?v) AS ?m)", PLAIN, BY, "exactly one"),
        ("SELECT ?s", PLAIN, "GROUP BY ?s ORDER BY ?s LIMIT 1", "exactly one"),
        ("SELECT ?s (SUM(?v + 1) AS ?n)", PLAIN, BY, "not a variable"),
        ("SELECT ?s (SAMPLE(?v) AS ?n)", PLAIN, BY, "SAMPLE"),
        ("SELECT DISTINCT ?s (COUNT(*) AS ?n)", PLAIN, BY, "DISTINCT"),
        ("SELECT ?s (COUNT(DISTINCT ?v) AS ?n)", "WINDOW :w { ?s ?p ?v }",
         BY, r"differ only in \?p"),
        (COUNTED, "WINDOW :w { ?s :p ?v ; :q ?u }", BY, "span panes"),
    ],
)  # fmt: skip
def test_what_cannot_be_put_together_from_panes_is_left_to_the_general_path(
    select, where, tail, reason
):
    query = check(f"{HEAD} {select} {WINDOW} WHERE {{ {where} }} {tail}")
    with pytest.raises(NoMatchError, match=reason):
        group_topk_plan(logical_query(query), QueryOptions())


def test_what_has_gone_is_forgotten():
    p = ox.NamedNode(f"{EX}p")
    made = GroupTopkEvaluator(planned(ASKED[3]), store())
    scan = TimedScan(TimeFrame(4, 2))
    for index in range(200):
        triple = ox.Triple(ox.NamedNode(f"{EX}s{index % 50}"), p, ox.Literal(index % 3))
        scan.take(2 * index + 1, [triple], 0)
        scan.close(index)
        made.answer([scan], index)
        assert len(made._groups) <= 2
        assert sum(map(len, made._groups.state()["ends"].values())) <= 2
        assert len(made._groups._table.ends) <= 100, "rows that are gone are removed at times"
        assert len(made._aggregates.state()["panes"]["panes"]) <= 2
