"""`--match element`: no solution spans two elements, in any query, on any path, in any batches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rsp_engine import Engine
from rsp_engine.errors import PlanError, QueryError
from rsp_engine.grammar import check
from rsp_engine.model.answers import Answer, Boolean, Graph, Solutions
from rsp_engine.options import OperatorName, RankingOptions
from rsp_engine.plan.explain.text import explain
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from tests.drivers.cut import cut
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
W = "FROM NAMED WINDOW :w ON :s [RANGE 10s]"
READINGS = (("b", 8, 0.12), ("b", 15, 0.03), ("b", 28, 0.32), ("h", 20, 0.38))
BOTH = "?s :free ?f ; :rain ?r"

Stream = list[tuple[int, str]]


def stream_of(readings: Sequence[tuple[str, int, float]], times: Sequence[int] = ()) -> Stream:
    """Return an element for each reading, all in one pane."""
    came = times or range(1, len(readings) + 1)
    return [
        (time, f"@prefix : <{EX}> . :{s} :free {f} ; :rain {r} .")
        for time, (s, f, r) in zip(came, readings, strict=True)
    ]


def run(text: str, stream: Stream, **options: Any) -> list[Answer]:
    engine = Engine(match="element", **options)
    engine.register(f"PREFIX : <{EX}> {text}")
    engine.bind(f"{EX}s", stream)
    return list(engine.run())


def values(text: str, *names: str, stream: Stream | None = None, **options: Any) -> list[Any]:
    """Return the values of the only window: those of one variable, or tuples of several."""
    [answer] = run(text, stream_of(READINGS) if stream is None else stream, **options)
    assert isinstance(answer.content, Solutions)
    rows = [tuple(short(row.bindings.get(name)) for name in names) for row in answer.content.rows]
    return [row[0] for row in rows] if len(names) == 1 else rows


@pytest.mark.parametrize("operator", ["auto", "general"])
def test_equal_solutions_are_in_the_order_of_the_elements_that_gave_them_last(operator):
    readings = (("b", 28, 1), ("a", 28, 2), ("c", 28, 0), ("b", 28, 1), ("d", 28, 5), ("e", 28, 5))
    stream = stream_of(readings, times=(1, 2, 3, 4, 2, 2))
    text = f"SELECT * {W} WHERE {{ WINDOW :w {{ {BOTH} }} }} ORDER BY ?f LIMIT 4"
    assert values(text, "s", stream=stream, max_delay=9, operator=operator) == ["b", "c", "e", "d"]


@pytest.mark.parametrize("operator", ["auto", "general"])
def test_equal_pairs_are_in_the_order_of_their_later_object(operator):
    readings = (("b", 28, 1), ("a", 28, 2), ("c", 28, 0), ("b", 28, 1))
    text = (
        f"SELECT * {W} WHERE {{ WINDOW :w {{ ?a :free ?x ; :rain ?k . ?b :free ?y ; :rain ?l ."
        " FILTER (STR(?a) < STR(?b)) } } ORDER BY DESC(?x + ?y) LIMIT 3"
    )
    found = values(text, "a", "b", stream=stream_of(readings), operator=operator)
    assert found == [("b", "c"), ("a", "b"), ("a", "c")]


@pytest.mark.parametrize("operator", ["auto", "general"])
@pytest.mark.parametrize(
    ("arrivals", "expected"), [("latest", ["c", "b"]), ("all", ["b", "b", "c"])]
)
def test_the_latest_solution_of_a_key_is_that_of_its_last_element(operator, arrivals, expected):
    readings = (("b", 28, 1), ("b", 20, 2), ("c", 15, 0), ("b", 5, 1))
    engine = Engine(match="element", operator=operator, arrivals=arrivals, policy="EXACT")
    engine.service(f"{EX}svc", remote({"b": 1, "c": 2}))
    engine.register(
        f"PREFIX : <{EX}> SELECT ?s {W} WHERE {{ WINDOW :w {{ {BOTH} }}"
        " SERVICE :svc { ?s :has ?h } } ORDER BY DESC(?f + ?h) LIMIT 3"
    )
    engine.bind(f"{EX}s", stream_of(readings))
    [answer] = engine.run()
    assert isinstance(answer.content, Solutions)
    assert [short(row.bindings["s"]) for row in answer.content.rows] == expected


def remote(values: dict[str, int]) -> ox.Store:
    store = ox.Store()
    store.extend(
        ox.Quad(ox.NamedNode(EX + name), ox.NamedNode(f"{EX}has"), ox.Literal(value))
        for name, value in values.items()
    )
    return store


def short(term: Any) -> str | None:
    return None if term is None else term.value.removeprefix(EX)


def explained(text: str, operator: OperatorName = "auto", **options: Any) -> str:
    text = f"PREFIX : <{EX}> {text}"
    ranking = RankingOptions(match="element", operator=operator)
    return explain(plan(check(text), text, "q", QueryOptions(ranking=ranking, **options)))


OPERATORS = ("auto", "mintopk", "sap", "pretopk", "skyband", "sma", "oracle", "general")


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_ranking_of_readings_has_no_reading_that_nobody_sent(operator):
    text = f"SELECT ?s ?f ?r {W} WHERE {{ WINDOW :w {{ {BOTH} }} }} ORDER BY DESC(?f) LIMIT 3"
    found = values(text, "s", "f", "r", operator=operator)
    assert found == [("b", "28", "0.32"), ("h", "20", "0.38"), ("b", "15", "0.03")]


@pytest.mark.parametrize("operator", OPERATORS)
def test_elements_of_one_time_are_two_elements(operator):
    text = f"SELECT ?f ?r {W} WHERE {{ WINDOW :w {{ {BOTH} }} }} ORDER BY DESC(?f) LIMIT 9"
    stream = stream_of(READINGS, [5] * len(READINGS))
    found = values(text, "f", "r", stream=stream, operator=operator)
    assert found == [("28", "0.32"), ("20", "0.38"), ("15", "0.03"), ("8", "0.12")]


@pytest.mark.parametrize("operator", ["auto", "general"])
@pytest.mark.parametrize(
    ("aggregate", "best"),
    [("SUM(?f)", "51"), ("COUNT(*)", "3"), ("MAX(?f)", "28"), ("SUM(?f * ?r)", "10.37")],
)
def test_groups_are_of_solutions_of_one_element(operator, aggregate, best):
    text = f"""SELECT ?s ({aggregate} AS ?n) {W} WHERE {{ WINDOW :w {{ {BOTH} }} }}
    GROUP BY ?s ORDER BY DESC(?n) LIMIT 1"""
    assert values(text, "s", "n", operator=operator) == [("b", best)]


def test_a_window_of_elements_is_matched_by_element():
    window = "FROM NAMED WINDOW :w ON :s [ELEMENTS 4]"
    for tail in ("", "ORDER BY ?f", "ORDER BY ?f LIMIT 9"):
        text = f"SELECT ?f ?r {window} WHERE {{ WINDOW :w {{ {BOTH} }} }} {tail}"
        pairs = {(f, r) for _, f, r in ((s, str(f), str(r)) for s, f, r in READINGS)}
        assert set(values(text, "f", "r")) == pairs


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (BOTH, {("b", "8", "0.12"), ("b", "15", "0.03"), ("b", "28", "0.32"), ("h", "20", "0.38")}),
        (f"{BOTH} FILTER (?f > 10 && ?r > 0.1)", {("b", "28", "0.32"), ("h", "20", "0.38")}),
        ("?s :free ?f OPTIONAL { ?s :rain ?r FILTER (?r > 0.35) }",
         {("b", "8", None), ("b", "15", None), ("b", "28", None), ("h", "20", "0.38")}),
        ("?s :free ?f MINUS { ?s :rain 0.12 }",
         {("b", "15", None), ("b", "28", None), ("h", "20", None)}),
        ("?s :free ?f FILTER NOT EXISTS { ?s :rain 0.12 }",
         {("b", "15", None), ("b", "28", None), ("h", "20", None)}),
        ("?s :free ?f { SELECT ?s (MAX(?x) AS ?r) { ?s :rain ?x } GROUP BY ?s }",
         {("b", "8", "0.12"), ("b", "15", "0.03"), ("b", "28", "0.32"), ("h", "20", "0.38")}),
        ("{ ?s :free 8 ; :rain ?r } UNION { ?s :free ?f ; :rain 0.03 }",
         {("b", None, "0.12"), ("b", "15", None)}),
        ("?s :free ?f . ?s ^:near|:rain ?r",
         {("b", "8", "0.12"), ("b", "15", "0.03"), ("b", "28", "0.32"), ("h", "20", "0.38")}),
        ("?s :free ?f , 28 ; :rain ?r BIND (?f * 2 AS ?g) FILTER (?g < 40)", set()),
    ],
)  # fmt: skip
def test_whatever_a_block_holds_sees_one_element(pattern, found):
    text = f"SELECT ?s ?f ?r {W} WHERE {{ WINDOW :w {{ {pattern} }} }}"
    rows = values(text, "s", "f", "r")
    assert set(rows) == found
    assert len(rows) == len(found)


def test_ask_and_construct_obey_too():
    pattern = "WINDOW :w {{ ?s :free 8 ; :rain {} }}"
    for rain, is_there in ((0.12, True), (0.38, False), (0.32, False)):
        [answer] = run(f"ASK {W} WHERE {{ {pattern.format(rain)} }}", stream_of(READINGS))
        assert answer.content == Boolean(is_there)
    text = f"CONSTRUCT {{ ?s :both [ :f ?f ; :r ?r ] }} {W} WHERE {{ WINDOW :w {{ {BOTH} }} }}"
    [answer] = run(text, stream_of(READINGS))
    assert isinstance(answer.content, Graph)
    assert len(answer.content.triples) == 3 * len(READINGS)


def test_what_nobody_needs_outside_of_a_block_does_not_leave_it():
    text = f"""SELECT * {W} WHERE {{ WINDOW :w {{
    ?s :free ?f {{ SELECT ?s {{ ?s :rain ?x }} }} FILTER EXISTS {{ ?s :rain ?y }} }} }}"""
    [answer] = run(text, stream_of(READINGS))
    assert isinstance(answer.content, Solutions)
    assert answer.content.variables == ("f", "s")


def test_a_block_without_variables_has_one_solution_or_none():
    for where, count in (
        ("", "1"),
        (":b :free 8 ; :rain 0.12", "1"),
        (":b :free 8 ; :rain 1", "0"),
    ):
        text = f"SELECT (COUNT(*) AS ?n) {W} WHERE {{ WINDOW :w {{ {where} }} }}"
        assert values(text, "n") == [count]


def test_an_identical_arrival_adds_nothing_and_keeps_the_solution_for_longer():
    """RANGE 4 STEP 2: the same element at 1 and 5, and another at 2 that shares one triple."""
    stream = stream_of([("b", 8, 0.5), ("b", 8, 0.25), ("b", 8, 0.5)], [1, 2, 5])
    window = "FROM NAMED WINDOW :w ON :s [RANGE 4ms STEP 2ms]"
    text = f"SELECT ?f ?r {window} WHERE {{ WINDOW :w {{ {BOTH} }} }}"
    found = [
        (answer.window.close, sorted(row.bindings["r"].value for row in answer.content.rows))
        for answer in run(text, stream)
        if isinstance(answer.content, Solutions)
    ]
    assert found == [(4, ["0.25", "0.5"]), (6, ["0.5"]), (8, ["0.5"])]


def test_a_solution_is_there_as_often_as_in_the_element_that_has_it_most_often():
    stream = [
        (1, f"@prefix : <{EX}> . :a :p 1 , 2 , 3 . :b :p 1 ."),
        (2, f"@prefix : <{EX}> . :a :p 4 , 5 ."),
    ]
    text = f"SELECT ?s {W} WHERE {{ WINDOW :w {{ {{ SELECT ?s {{ ?s :p ?v }} }} }} }}"
    assert values(text, "s", stream=stream) == ["a", "a", "a", "b"]


def test_blank_nodes_of_the_data_stay_what_they_are():
    stream = [
        (n, f"@prefix : <{EX}> . _:x :free {n} ; :rain {n} ; :at [ :in :city{n} ] .")
        for n in (1, 2)
    ]
    text = f"""SELECT ?s ?t ?f {W} WHERE {{ WINDOW :w {{ ?s :free ?f ; :rain ?f }}
    WINDOW :w {{ ?s :rain ?r ; :at ?t . ?t :in ?c }} FILTER (isBlank(?s) && ?s != ?t) }}"""
    rows = values(text, "s", "t", "f", stream=stream)
    assert sorted(f for _, _, f in rows) == ["1", "2"]
    assert len({node for s, t, _ in rows for node in (s, t)}) == 4


def test_blank_nodes_of_a_pattern_are_matched_in_one_element():
    text = f"SELECT ?f ?r {W} WHERE {{ WINDOW :w {{ [] :free ?f ; :rain ?r }} }}"
    assert len(values(text, "f", "r")) == len(READINGS)
    text = f"SELECT ?r {W} WHERE {{ WINDOW :w {{ _:a :free ?f . _:a :rain ?r }} }}"
    assert len(values(text, "r")) == len(READINGS)


def test_two_blocks_may_match_two_elements():
    text = f"""SELECT ?f ?g {W} WHERE {{ WINDOW :w {{ {BOTH} }}
    WINDOW :w {{ ?s :free ?g ; :rain ?q }} FILTER (?f < ?g) }}"""
    assert set(values(text, "f", "g")) == {("8", "15"), ("8", "28"), ("15", "28")}
    text = f"SELECT ?f ?r {W} WHERE {{ WINDOW :w {{ ?s :free ?f }} WINDOW :w {{ ?s :rain ?r }} }}"
    assert len(values(text, "f", "r")) == 3 * 3 + 1


PAIRED = {
    "without an order": ("?a :free ?x ; :rain ?p . ?b :free ?y ; :rain ?q", 16),
    "with an order": (
        "?a :free ?x ; :rain ?p . ?b :free ?y ; :rain ?q FILTER (STR(?a) < STR(?b))",
        3,
    ),
    "of two shapes": ("?a :free ?x ; :rain ?p . ?b :free ?y", 16),
    "with a shared variable": ("?a :free ?x ; :rain ?p . ?a :free ?y ; :rain ?q", 10),
    "side by side": ("?a :free ?x . ?a :free ?y . ?a :rain ?p . ?a :rain ?q", 10),
    "with an OR": (
        "?a :free ?x ; :rain ?p . ?b :free ?y ; :rain ?q FILTER (?a = ?b || ?x < ?y)",
        4 + 6 + 3,
    ),
    "of single triples": ("?a :free ?x . ?b :free ?y", 16),
    "with a filter on one": (
        "?a :free ?x ; :rain ?p . ?b :free ?y ; :rain ?q FILTER (?p > 0.1)",
        12,
    ),
    "that look for triples": (
        "?a :free ?x ; :rain ?p . ?b :free ?y ; :rain ?q FILTER EXISTS { ?a :rain 0.12 }",
        4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("operator", ["auto", "general"])
@pytest.mark.parametrize("shape", PAIRED)
def test_each_object_of_a_pair_comes_in_one_element_and_the_pair_in_two(shape, operator):
    where, count = PAIRED[shape]
    text = f"""SELECT ?x ?y ?p ?q {W} WHERE {{ WINDOW :w {{ {where} }} }}
    ORDER BY DESC(?x - ?y) LIMIT 100"""
    rows = values(text, "x", "y", "p", "q", operator=operator)
    assert len(rows) == count
    rain = {str(f): str(r) for _, f, r in READINGS}
    assert all(p in (None, rain[x]) and q in (None, rain[y]) for x, y, p, q in rows)
    said = explained(text)
    assert ("K-skyband" in said) == (shape == "with an order")
    assert "MinTopk" not in said


def test_a_pair_that_is_not_ranked_comes_in_one_element():
    where = "?a :free ?x ; :rain ?p . ?b :free ?y ; :rain ?q"
    assert len(values(f"SELECT * {W} WHERE {{ WINDOW :w {{ {where} }} }}", "x")) == 4


def test_pairs_with_values_that_no_skyband_can_calculate_with_are_asked_by_element_too():
    stream = [
        *stream_of(READINGS),
        (9, f"@prefix : <{EX}> . :z :free '2.5'^^<{XSD}float> ; :rain 1 ."),
    ]
    text = f"""SELECT ?x ?y ?p ?q {W} WHERE {{ WINDOW :w {{ ?a :free ?x ; :rain ?p .
    ?b :free ?y ; :rain ?q FILTER (STR(?a) < STR(?b)) }} }} ORDER BY DESC(?x - ?y) LIMIT 100"""
    assert "K-skyband" in explained(text)
    rows = values(text, "x", "y", "p", "q", stream=stream)
    assert len(rows) == 3 + 4
    rain = {**{str(f): str(r) for _, f, r in READINGS}, "2.5": "1"}
    assert all(p == rain[x] and q == rain[y] for x, y, p, q in rows)


@pytest.mark.parametrize(
    ("window", "where", "reason"),
    [
        ("[TRIPLES 5]", "WINDOW :w { ?s :p ?v ; :q ?u }", "cut through an element"),
        ("[TRIPLES 5]", "WINDOW ?w { ?s :p ?v ; :q ?u }", "cut through an element"),
        (
            "[RANGE 5s]",
            "WINDOW :w { ?s :p ?v ; :q ?u BIND (NOW() AS ?t) }",
            "NOW() is not allowed in",
        ),
        (
            "[RANGE 5s]",
            "WINDOW :w { ?s :p ?v ; :q ?u . WINDOW :w { ?s :r ?x } }",
            "WINDOW is not allowed",
        ),
        (
            "[RANGE 5s]",
            "WINDOW :w { ?s :r ?z } FILTER EXISTS { WINDOW :w { ?s :p 1, 2 BIND (?z AS ?k) } }",
            "EXISTS would pass ?z",
        ),
    ],
)
def test_what_cannot_be_matched_by_element_is_refused_by_name(window, where, reason):
    text = f"SELECT * FROM NAMED WINDOW :w ON :s {window} WHERE {{ {where} }}"
    with pytest.raises(PlanError) as refusal:
        explained(text)
    assert reason in str(refusal.value)
    assert "hint" in str(refusal.value) or "=" in str(refusal.value)


def test_an_operator_that_would_lose_pairs_is_refused():
    where, _ = PAIRED["with a shared variable"]
    text = f"SELECT * {W} WHERE {{ WINDOW :w {{ {where} }} }} ORDER BY ?x LIMIT 1"
    with pytest.raises(PlanError, match="mintopk cannot run this query: a solution is a pair"):
        explained(text, operator="mintopk")


def test_registered_functions_are_called_for_each_element():
    engine = Engine(match="element")
    engine.function("TWICE", lambda value: 2 * value)
    engine.register(f"""PREFIX : <{EX}> SELECT ?f ?r {W} WHERE {{
    WINDOW :w {{ {BOTH} FILTER (TWICE(?f) > 35) }} }}""")
    engine.bind(f"{EX}s", stream_of(READINGS))
    [answer] = engine.run()
    assert isinstance(answer.content, Solutions)
    assert len(answer.content.rows) == 2


def test_a_window_of_triples_is_fine_where_blocks_have_one_triple():
    window = "FROM NAMED WINDOW :w ON :s [TRIPLES 4]"
    for tail in ("", "ORDER BY ?f LIMIT 3"):
        text = f"SELECT ?f {window} WHERE {{ WINDOW :w {{ ?s :free ?f }} }} {tail}"
        assert [len(answer.content.rows) for answer in run(text, stream_of(READINGS))] == [2, 2]  # type: ignore[union-attr]


def test_a_pair_with_exists_on_both_objects_is_refused():
    text = f"""SELECT * {W} WHERE {{ WINDOW :w {{ ?a :p ?x ; :q ?u . ?b :p ?y ; :q ?v
    FILTER NOT EXISTS {{ ?a :knows ?b }} }} }} ORDER BY ?x LIMIT 1"""
    with pytest.raises(PlanError, match="on both objects of a pair"):
        explained(text)


def test_a_filter_that_needs_the_instant_or_the_outside_is_decided_there():
    text = f"SELECT ?f {W} WHERE {{ WINDOW :w {{ {BOTH} FILTER (?f < SECONDS(NOW()) + 9) }} }}"
    assert values(text, "f") == ["15", "8"]
    text = f"""SELECT ?f {W} WHERE {{ WINDOW :w {{ ?s :free ?f }} FILTER EXISTS {{
    WINDOW :w {{ ?t :free ?g ; :rain ?r FILTER (?g > ?f && ?r > 0.35) }} }} }}"""
    assert values(text, "f") == ["15", "8"]
    text = f"SELECT ?f {W} WHERE {{ BIND (9 AS ?z) WINDOW :w {{ {BOTH} FILTER (?f > ?z) }} }}"
    assert values(text, "f") == []


def test_static_graphs_are_seen_from_within_a_block(tmp_path):
    path = tmp_path / "g.ttl"
    path.write_text(f"@prefix : <{EX}> . :b :in :c1 . :h :in :c2 . :c1 :wet true .", "utf-8")
    wheres = (
        f"{BOTH} GRAPH :g {{ ?s :in ?c . ?c :wet true }}",
        f"{BOTH} GRAPH ?g {{ ?s :in ?c . ?c :wet true }}",
        f"{BOTH} FILTER EXISTS {{ GRAPH :g {{ ?s :in/:wet true }} }}",
    )
    for where in wheres:
        for tail in ("", "ORDER BY ?f LIMIT 9"):
            engine = Engine(match="element")
            text = f"""PREFIX : <{EX}> SELECT ?f ?r FROM NAMED :g {W}
            WHERE {{ WINDOW :w {{ {where} }} }} {tail}"""
            engine.graph(f"{EX}g", path)
            engine.register(text)
            engine.bind(f"{EX}s", stream_of(READINGS * 3))
            [answer] = engine.run()
            assert isinstance(answer.content, Solutions)
            assert len(answer.content.rows) == 3


def test_explain_says_how_blocks_are_matched():
    text = f"SELECT ?s {W} WHERE {{ WINDOW :w {{ {BOTH} }} }}"
    said = explained(text)
    assert "general path" in said
    assert "each WINDOW block is matched within one element" in said
    assert "store the solutions of the elements of each pane" in said
    assert "GRAPH :w" in said
    assert "block" not in explained(f"SELECT ?s {W} WHERE {{ WINDOW :w {{ ?s :free ?f }} }}")
    pairs = f"""SELECT ?a {W} WHERE {{ WINDOW :w {{
    ?a :free ?x ; :rain ?p . ?b :free ?y ; :rain ?q }} }} ORDER BY ABS(?x - ?y) LIMIT 1"""
    assert "no filter orders the pair" in explained(pairs)
    shared = pairs.replace("?b", "?a")
    assert "a pair of objects, which may arrive in two elements" in explained(shared)


CAPACITY = {"b": 30, "h": 20}


def with_service(text: str, **options: Any) -> list[tuple[str | None, ...]]:
    """Return the rows of the only window, whose variables are ?f, ?r and ?c."""
    remote = ox.Store()
    verb = ox.NamedNode(f"{EX}capacity")
    quads = (ox.Quad(ox.NamedNode(EX + s), verb, ox.Literal(c)) for s, c in CAPACITY.items())
    remote.extend(quads)
    engine = Engine(match="element", **options)
    engine.service(f"{EX}svc", remote)
    engine.register(f"PREFIX : <{EX}> {text}")
    engine.bind(f"{EX}s", stream_of(READINGS))
    [answer] = engine.run()
    assert isinstance(answer.content, Solutions)
    return [tuple(short(row.bindings.get(n)) for n in "frc") for row in answer.content.rows]


ALL = {("8", "0.12", "30"), ("15", "0.03", "30"), ("28", "0.32", "30"), ("20", "0.38", "20")}


@pytest.mark.parametrize("policy", ["WST", "EXACT"])
@pytest.mark.parametrize(
    ("where", "found"),
    [
        (f"WINDOW :w {{ {BOTH} }} SERVICE :svc {{ ?s :capacity ?c }}", ALL),
        (f"SERVICE :svc {{ ?s :capacity ?c }} WINDOW :w {{ {BOTH} }} FILTER (?c - ?f < 10)",
         {("28", "0.32", "30"), ("20", "0.38", "20")}),
        (f"WINDOW :w {{ {BOTH} }}"
         " OPTIONAL { SERVICE :svc { ?s :capacity ?c FILTER (?c > 25) } }",
         {*ALL, ("20", "0.38", None)} - {("20", "0.38", "20")}),
        ("SERVICE :svc { ?s :capacity ?c }"
         " FILTER EXISTS { WINDOW :w { ?s :free 20 ; :rain 0.38 } }",
         {(None, None, "20")}),
        ("SERVICE :svc { ?s :capacity ?c } FILTER EXISTS { WINDOW :w { ?s :free 8 ; :rain 0.32 } }",
         set()),
        ("WINDOW :w { ?s :free ?f OPTIONAL { ?s :rain ?r FILTER (?r < 0.1) } }"
         " SERVICE :svc { ?s :capacity ?c }",
         {("8", None, "30"), ("15", "0.03", "30"), ("28", None, "30"), ("20", None, "20")}),
    ],
)  # fmt: skip
def test_blocks_beside_a_service_are_matched_by_element(where, found, policy):
    rows = with_service(f"SELECT * {W} WHERE {{ {where} }}", policy=policy)
    assert set(rows) == found
    assert len(rows) == len(found)


@pytest.mark.parametrize("operator", ["auto", "general"])
def test_a_ranking_with_a_service_is_matched_by_element(operator):
    text = f"""SELECT ?f ?r ?c {W} WHERE {{ WINDOW :w {{ {BOTH} }}
    SERVICE :svc {{ ?s :capacity ?c }} }} ORDER BY DESC(?f + ?c) LIMIT 9"""
    if operator == "auto":
        assert "Topk+N" in explained_with_service(text)
    rows = with_service(text, operator=operator, policy="WST", arrivals="all")
    best = [("28", "0.32", "30"), ("15", "0.03", "30"), ("20", "0.38", "20"), ("8", "0.12", "30")]
    assert rows == best


def test_the_latest_arrival_of_a_key_is_one_element():
    text = f"""SELECT ?f ?r ?c {W} WHERE {{ WINDOW :w {{ {BOTH} }}
    SERVICE :svc {{ ?s :capacity ?c }} }} ORDER BY DESC(?f + ?c) LIMIT 9"""
    assert with_service(text) == [("28", "0.32", "30"), ("20", "0.38", "20")]


def explained_with_service(text: str) -> str:
    def connect(*_: object) -> Any:
        raise AssertionError("nobody runs it")

    return explained(text, endpoints={f"{EX}svc": connect})


def test_a_service_inside_of_a_block_is_refused_unless_the_block_has_one_triple():
    where = "WINDOW :w {{ {} SERVICE :svc {{ ?s :capacity ?c }} }}"
    with pytest.raises(PlanError, match="SERVICE is not allowed in a WINDOW"):
        explained_with_service(f"SELECT * {W} WHERE {{ {where.format(BOTH)} }}")
    rows = with_service(f"SELECT * {W} WHERE {{ {where.format('?s :free ?f')} }}", policy="WST")
    assert {(f, c) for f, _, c in rows} == {(f, c) for f, _, c in ALL}


COLLECTED = {
    "UNION": """SELECT ?s (SUM(?f) AS ?n) {} WHERE {{ {{ WINDOW :w {{ ?s :free ?f ; :rain ?r }} }}
    UNION {{ WINDOW :x {{ ?s :rain ?f ; :free ?r }} }} }}
    GROUP BY ?s ORDER BY DESC(?n) LIMIT {}""",
    "OPTIONAL": """SELECT * {} WHERE {{ WINDOW :w {{ ?s :free ?f ; :rain ?r FILTER (?r > 0.1) }}
    OPTIONAL {{ WINDOW :x {{ ?s :free ?g ; :rain ?q }} }} }}
    ORDER BY DESC(?f + 2 * COALESCE(?g, 0)) LIMIT {}""",
}


@pytest.mark.parametrize("operator", ["auto", "sla", "oracle", "approximate"])
@pytest.mark.parametrize("shape", COLLECTED)
@examples(8)
@given(
    st.lists(
        st.tuples(st.integers(1, 20), st.sampled_from("abc"), st.integers(1, 9), st.booleans()),
        max_size=15,
    ),
    st.integers(1, 4),
)
def test_attributes_of_several_triples_are_collected_by_element(shape, operator, came, limit):
    windows = "FROM NAMED WINDOW :w ON :s [RANGE 8ms STEP 4ms]"
    windows += " FROM NAMED WINDOW :x ON :s [RANGE 6ms STEP 2ms]"
    text = COLLECTED[shape].format(windows, limit)
    stream = [
        (time, f"@prefix : <{EX}> . :{s} :free {f} . :{s if is_whole else 'd'} :rain {f / 8} .")
        for time, s, f, is_whole in sorted(came)
    ]
    name = {"auto": "EAA", "sla": "SLA", "oracle": "Oracle"}.get(operator, operator)
    assert f"operator {name}, the best" in explained(text, operator=operator)
    whole = [(a.window, a.content) for a in run(text, stream, operator="general")]
    found = [(a.window, a.content) for a in run(text, stream, operator=operator)]
    if operator == "approximate":
        assert [window for window, _ in found] == [window for window, _ in whole]
    else:
        assert found == whole
    with cut():
        assert [(a.window, a.content) for a in run(text, stream, operator=operator)] == found


# ── Any block ───────────────────────────────────────────────────────────────────────────────


def pattern(chance: Random) -> str:
    return f"?{chance.choice('stv')} :{chance.choice('pq')} ?{chance.choice('vut')} ."


def condition(chance: Random, depth: int) -> str:
    if depth > 0 and chance.random() < 0.4:
        return f"{chance.choice(['EXISTS', 'NOT EXISTS'])} {group(chance, depth - 1)}"
    one, other = chance.choice("stvu"), chance.choice("stvu")
    return chance.choice([f"BOUND(?{one})", f"?{one} != ?{other}", f"?{one} > 1", f"!(?{one} > 1)"])


def part(chance: Random, depth: int) -> str:
    """Draw an element of a group."""
    kind = chance.random()
    if depth == 0 or kind < 0.4:
        return pattern(chance)
    if kind < 0.55:
        return f"FILTER ({condition(chance, depth)})"
    inner, other = group(chance, depth - 1), group(chance, depth - 1)
    return chance.choice(
        [
            f"OPTIONAL {inner}",
            f"OPTIONAL {inner}",
            f"MINUS {inner}",
            f"{inner} UNION {other}",
            inner,
            f"{{ SELECT {chance.choice(['?s', '?v ?u', 'DISTINCT ?s', '*'])} {inner} }}",
            f"{{ SELECT ?s (COUNT(*) AS ?v) {inner} GROUP BY ?s }}",
            "VALUES ?v { 1 :a }",
            "?s :p/:q ?u .",
            "?s :p* ?t .",
            "[] :q ?u ; :p ?v .",
        ]
    )


def group(chance: Random, depth: int) -> str:
    return f"{{ {' '.join(part(chance, depth) for _ in range(chance.randint(1, 3)))} }}"


def table(block: str, stream: Sequence[tuple[int, str]]) -> str:
    """Return the solutions of a block, asked of one element after the other."""
    found: Counter[tuple[str, ...]] = Counter()
    names: list[str] = []
    for _, text in stream:
        store = ox.Store()
        store.load(text.encode(), format=ox.RdfFormat.TURTLE)
        solutions: Any = store.query(f"PREFIX : <{EX}> SELECT * WHERE {block}")
        names = [str(variable) for variable in solutions.variables]
        rows = [tuple(map(str, row)) for row in solutions]
        found |= Counter(tuple(t.replace("None", "UNDEF") for t in row) for row in rows)
    lines = " ".join(f"({' '.join(row)})" for row in found.elements())
    return f"{{ VALUES ({' '.join(names)}) {{ {lines} }} }}"


@examples(150)
@given(st.randoms(use_true_random=True))
def test_any_block_means_what_it_means_for_one_element_after_the_other(chance):
    first, second = group(chance, 2), group(chance, 2)
    joined = chance.choice(["{} {}", "{} OPTIONAL {{ {} }}", "{} MINUS {{ {} }}", "{}"])
    terms = [":a", ":b", "1", "2"]
    stream = [
        (
            time,
            f"@prefix : <{EX}> . "
            + " ".join(
                f"{chance.choice([':a', ':b'])} :{chance.choice('pq')} {chance.choice(terms)} ."
                for _ in range(chance.randint(0, 4))
            ),
        )
        for time in (1, 2, 2)
    ]
    select = chance.choice(["SELECT *", "SELECT DISTINCT ?s", "SELECT ?s ?v"])
    where = joined.format(f"WINDOW :w {first}", f"WINDOW :w {second}")
    try:
        [answer] = run(f"{select} {W} WHERE {{ {where} }}", stream)
    except QueryError:  # a variable of SELECT is not new, say
        assume(False)
    naive = joined.format(table(first, stream), table(second, stream))
    solutions: Any = ox.Store().query(f"PREFIX : <{EX}> {select} WHERE {{ {naive} }}")
    names = [variable.value for variable in solutions.variables]
    expected = Counter(
        frozenset((n, str(t)) for n, t in zip(names, row, strict=True) if t is not None)
        for row in solutions
    )
    assert isinstance(answer.content, Solutions)
    found = Counter(
        frozenset((n, str(t)) for n, t in row.bindings.items()) for row in answer.content.rows
    )
    assert found == expected, where
