"""Ranked queries: a top-k operator gives what the general path gives, and each other the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.drivers.user_functions import as_sparql
from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.evaluators.topk import TopkConfig, TopkEvaluator
from rsp_engine.grammar import check
from rsp_engine.model.answers import Solutions
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.topk.rankers import RANKERS
from rsp_engine.operators.windows.time_windows import TimedScan
from rsp_engine.options import RankingOptions
from rsp_engine.plan.logical.query import logical_query
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.shapes.shape import NoMatchError
from rsp_engine.plan.shapes.topk import topk_config
from rsp_engine.plan.sparql.general import sparql_path
from tests.thoroughness import examples

EX = "http://example.org/"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
HEAD = f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 1s]"
FUNCTIONS = {"F": as_sparql(lambda a: 2 * a + 1)}
ASKED = (
    "SELECT ?s ?v {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 3",
    "SELECT ?s ?v {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?v LIMIT 2",
    "SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 2 OFFSET 1",
    "SELECT * {} WHERE {{ WINDOW :w {{ ?s ?p ?v FILTER (?v > 4) }} }} ORDER BY DESC(?v) LIMIT 3",
    "SELECT ?s (?v * 2 - 1 AS ?x) {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?x LIMIT 3",
    "SELECT ?s (F(?v) AS ?x) {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?x) LIMIT 3",
    "SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(IF(?v > 5, ?v, -?v)) LIMIT 3",
    "SELECT ?v (xsd:string(?v) AS ?t) {} WHERE {{ WINDOW :w {{ :a :p ?v }} }}"
    " ORDER BY DESC(?v / 4) LIMIT 3",
    "SELECT ?s ?v {} WHERE {{ WINDOW :w {{ ?s :p ?v }} FILTER NOT EXISTS {{ ?s a :Known }} }}"
    " ORDER BY DESC(?v) LIMIT 3",
)  # fmt: skip


@cache
def planned(asked: str, ranker: str = "MinTopk") -> TopkConfig:
    query = logical_query(check(HEAD + asked.format(WINDOW)))
    config = topk_config(query, QueryOptions(functions=FUNCTIONS))
    return replace(config, ranker=ranker)  # type: ignore[arg-type]


def store() -> ox.Store:
    made = ox.Store()
    known, kind = ox.NamedNode(f"{EX}b"), ox.NamedNode(f"{EX}Known")
    made.add(ox.Quad(known, ox.NamedNode(RDF_TYPE), kind))
    return made


subjects = st.sampled_from([*(ox.NamedNode(EX + name) for name in "abc"), ox.BlankNode("n")])
verbs = st.sampled_from([ox.NamedNode(f"{EX}p"), ox.NamedNode(f"{EX}q")])


@st.composite
def elements(draw: st.DrawFn, *, ties: bool) -> list[tuple[int, list[ox.Triple]]]:
    """Draw elements in the order of time; without ties every value comes with one subject only."""
    found = []
    owners: dict[int, tuple[Any, Any]] = {}
    least = draw(st.sampled_from((0, 15)))
    for timestamp in sorted(draw(st.lists(st.integers(1, 30), min_size=least, max_size=25))):
        value = draw(st.integers(0, 12))
        pair: tuple[Any, Any] = (draw(subjects), draw(verbs))
        if not ties:
            pair = owners.setdefault(value, pair)
        found.append((timestamp, [ox.Triple(*pair, ox.Literal(value))]))
    return found


def answers(
    made: TopkEvaluator | SparqlEvaluator,
    found: list[tuple[int, list[ox.Triple]]],
    frame: TimeFrame,
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


@pytest.mark.parametrize("asked", ASKED)
@examples(60)
@given(elements(ties=False), st.integers(1, 12), st.integers(1, 6))
def test_without_ties_a_top_k_operator_gives_the_answer_of_the_general_path(
    asked, found, size, step
):
    frame = TimeFrame(size, step)
    general = sparql_path(check(HEAD + asked.format(WINDOW)), FUNCTIONS)
    expected = answers(SparqlEvaluator(general, store(), [f"{EX}w"]), found, frame)
    assert answers(TopkEvaluator(planned(asked), store()), found, frame) == expected


SEVERAL = (
    "SELECT ?t (?v * ?n AS ?x) {} WHERE {{ WINDOW :w {{ ?t :p ?v ; :q ?n }} }}"
    " ORDER BY DESC(?x) LIMIT 3",
    "SELECT ?t {} WHERE {{ WINDOW :w {{ ?t a :Trade ; :p ?v . FILTER (?v > 10) }} }}"
    " ORDER BY ?v LIMIT 2",
)


@pytest.mark.parametrize("asked", SEVERAL)
@examples(60)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 5), st.booleans()), max_size=20),
    st.integers(1, 12),
    st.integers(1, 6),
)
def test_several_patterns_that_one_element_matches_are_ranked_as_on_the_general_path(
    asked, trades, size, step
):
    """A trade has its own values, so it is the same whenever it comes; its kind comes or not."""
    found = []
    for timestamp, number, has_kind in sorted(trades):
        trade, p, q = (ox.NamedNode(EX + name) for name in (f"t{number}", "p", "q"))
        kind = [ox.Triple(trade, ox.NamedNode(RDF_TYPE), ox.NamedNode(f"{EX}Trade"))]
        price = [ox.Triple(trade, p, ox.Literal(7 * number)), ox.Triple(trade, q, ox.Literal(3))]
        found.append((timestamp, price + kind * (has_kind or number % 2)))
    query, frame = check(HEAD + asked.format(WINDOW)), TimeFrame(size, step)
    if "Trade" in asked:  # where the kind of a trade comes by itself, solutions span elements
        found = [(timestamp, part) for timestamp, part in found if len(part) == 3]
    options = QueryOptions(functions=FUNCTIONS, ranking=RankingOptions(match="element"))
    config = topk_config(logical_query(query), options)
    expected = answers(
        SparqlEvaluator(sparql_path(query, FUNCTIONS), store(), [f"{EX}w"]), found, frame
    )
    assert answers(TopkEvaluator(config, store()), found, frame) == expected


@pytest.mark.parametrize("asked", [ASKED[0], ASKED[3], ASKED[6]])
@examples(60)
@given(elements(ties=True), st.integers(1, 12), st.integers(1, 6), st.randoms())
def test_all_top_k_operators_give_the_same_answer_whatever_the_order_of_elements(
    asked, found, size, step, chance
):
    frame = TimeFrame(size, step)
    given_answers = []
    for ranker in RANKERS:
        shuffled = list(found)
        chance.shuffle(shuffled)
        made = TopkEvaluator(planned(asked, ranker), store())
        given_answers.append(answers(made, shuffled, frame))
    assert all(given == given_answers[0] for given in given_answers)


def test_of_equal_scores_the_later_arrival_is_first_then_the_larger_term():
    p = ox.NamedNode(f"{EX}p")
    came = (1, "c"), (2, "a"), (2, "b")
    found = [(t, [ox.Triple(ox.NamedNode(EX + s), p, ox.Literal(1))]) for t, s in came]
    made = TopkEvaluator(planned(ASKED[0]), store())
    rows = answers(made, found, TimeFrame(5, 5))[0].rows
    assert [row.bindings["s"].value for row in rows] == [f"{EX}b", f"{EX}a", f"{EX}c"]


def test_what_is_no_number_ranks_in_the_order_of_terms():
    p = ox.NamedNode(f"{EX}p")
    values: Any = (ox.Literal("x"), ox.Literal(5), ox.Literal(2.5), ox.NamedNode(f"{EX}y"))
    found = [(n, [ox.Triple(ox.NamedNode(f"{EX}s{n}"), p, v)]) for n, v in enumerate(values, 1)]
    for asked, best in ((ASKED[0], [None, 5.0, 2.5]), (ASKED[1], [None, 2.5])):
        rows = answers(TopkEvaluator(planned(asked), store()), found, TimeFrame(9, 9))[0].rows
        assert [row.score for row in rows] == best


def test_large_panes_with_the_same_triples_again_and_again_are_ranked_right():
    p = ox.NamedNode(f"{EX}p")
    triples = [ox.Triple(ox.NamedNode(f"{EX}s{n % 7}"), p, ox.Literal(n % 7)) for n in range(2000)]
    found = [(n + 1, [triple]) for n, triple in enumerate(triples)]
    rows = answers(TopkEvaluator(planned(ASKED[0]), store()), found, TimeFrame(2000, 2000))[0].rows
    assert [row.score for row in rows] == [6.0, 5.0, 4.0]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?v ?s LIMIT 1", "one number"),
        ("SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v ; :q ?u }} }} ORDER BY ?v LIMIT 1", "span"),
        ("SELECT DISTINCT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?s LIMIT 1", "DIST"),
        ("SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY RAND() LIMIT 1", "RAND"),
        ("SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} ?s a :X }} ORDER BY ?v LIMIT 1", "static"),
        ("SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY ?v LIMIT 0", "LIMIT 0"),
        ("SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} }} GROUP BY ?s ORDER BY ?s LIMIT 1", "g"),
        (
            "SELECT ?s {} WHERE {{ WINDOW :w {{ ?s :p ?v }} FILTER EXISTS "
            "{{ WINDOW :w {{ ?s :q ?u }} }} }} ORDER BY ?v LIMIT 1",
            "whole window",
        ),
    ],
)  # fmt: skip
def test_a_query_that_no_top_k_operator_can_run_is_told_why(asked, reason):
    with pytest.raises(NoMatchError, match=reason):
        topk_config(logical_query(check(HEAD + asked.format(WINDOW))), QueryOptions())


@pytest.mark.parametrize("asked", SEVERAL)
def test_a_window_of_triples_may_cut_through_the_element_of_several_patterns(asked):
    window = "FROM NAMED WINDOW :w ON :s [TRIPLES 5 STEP 2]"
    query = logical_query(check(HEAD + asked.format(window)))
    with pytest.raises(NoMatchError, match="cut through an element"):
        topk_config(query, QueryOptions(ranking=RankingOptions(match="element")))
