"""Queries of pairs: the skyband gives what the general path gives, alone or shared, in any batches.

Where scores are equal the two order rows otherwise, so scores are compared, and that each row is a
row of the window; where no two are equal, all rows are.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rsp_engine import Engine
from rsp_engine.drivers.user_functions import as_sparql
from rsp_engine.errors import BindingError
from rsp_engine.evaluators.pairs.config import PairsConfig
from rsp_engine.evaluators.pairs.evaluator import PairsEvaluator
from rsp_engine.grammar import check
from rsp_engine.model.answers import Answer, Solutions
from rsp_engine.operators.pairs.shared_skyband import LEAST_LISTED
from rsp_engine.options import RankingOptions
from rsp_engine.plan.explain.text import explain
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from tests.drivers.cut import ALWAYS, cut, texts
from tests.thoroughness import examples

EX = "http://example.org/"
many = examples(50)

SCORES = (
    "ABS(?x - ?y)",
    "-ABS(?x - ?y)",
    "?x + ?y",
    "?x - ?y",
    "ABS(?x - ?y) * ?x",
    "ABS(?x - ?y) / (?x + ?y)",
    "F(?x, ?y)",
)
FILTERS = (
    "FILTER (STR(?a) < STR(?b))",
    "FILTER (?x < ?y)",
    "FILTER (?y > ?x) FILTER (?x != 3 && ?y != 3)",
    "FILTER (STR(?b) > STR(?a) && ?x != ?y)",
    "FILTER (STR(?a) < STR(?b) && ?x + 1 < ?y * 2)",
)
WINDOWS = ("RANGE 10ms STEP 4ms", "RANGE 6ms STEP 2ms", "RANGE 3ms STEP 7ms", "ELEMENTS 5 STEP 2")
TRIPLES = ("TRIPLES 4 STEP 3",)


def f(x: float, y: float) -> float:
    return x * 2 + y % 3


def text_of(score: str, kept: str, window: str, tail: str, name: str = "q") -> str:
    order, limit = tail.split(" ", 1)
    return f"""PREFIX : <{EX}> REGISTER RSTREAM :{name} AS
    SELECT ?a ?b ?x ?y ({score} AS ?score) FROM NAMED WINDOW :w{name} ON :s [{window}]
    WHERE {{ WINDOW :w{name} {{ ?a :p ?x . ?b :p ?y . {kept} }} }}
    ORDER BY {order}(?score) {limit}"""


Stream = list[tuple[int, str]]
numbers = st.sampled_from(["1", "2", "3", "4.5", "7", "0.5"])
doubles = st.sampled_from(["1e0", "2.5e0", "3e0", "7e0"])
others = st.sampled_from(['"text"', ":iri", '"1"^^<http://www.w3.org/2001/XMLSchema#float>'])


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Draw elements in the order of time, some of them the same as before."""
    value = draw(st.sampled_from((numbers, doubles, numbers | doubles, numbers | others)))
    triple = st.tuples(st.sampled_from([":a", ":b", ":c", ":d", "_:n"]), value)
    times = sorted(draw(st.lists(st.integers(1, 40), min_size=1, max_size=20)))
    return [
        (time, f"@prefix : <{EX}> . " + "".join(f"{s} :p {v} . " for s, v in found))
        for time in times
        for found in [draw(st.lists(triple, min_size=1, max_size=2))]
    ]


def run(queries: list[str], stream: Stream, operator: Any, **options: Any) -> list[Answer]:
    engine = Engine(operator=operator, **options)
    engine.function("F", f)
    for text in queries:
        engine.register(text)
    engine.bind(f"{EX}s", stream)
    return list(engine.run())


def rows_of(answer: Answer) -> list[tuple[tuple[str, str], ...]]:
    assert isinstance(answer.content, Solutions)
    return [
        tuple(
            (name, "_:" if isinstance(term, ox.BlankNode) else str(term))  # labels are as they come
            for name, term in sorted(row.bindings.items())
        )
        for row in answer.content.rows
    ]


def scores_of(answer: Answer) -> list[float | None]:
    assert isinstance(answer.content, Solutions)
    return [None if row.score is None else round(row.score, 9) for row in answer.content.rows]


def assert_same(found: list[Answer], whole: list[Answer], k: int) -> None:
    """Compare answers with the best of all pairs of their windows, in order."""
    assert [(a.query, a.window) for a in found] == [(a.query, a.window) for a in whole]
    for mine, every in zip(found, whole, strict=True):
        assert rows_of(mine) == rows_of(every)[:k]
        assert scores_of(mine) == scores_of(every)[:k]


def assert_alike(found: list[Answer], whole: list[Answer], k: int) -> None:
    """Compare answers with the best of all pairs of their windows, but for the order of equals."""
    assert [(a.query, a.window) for a in found] == [(a.query, a.window) for a in whole]
    for mine, every in zip(found, whole, strict=True):
        assert scores_of(mine) == scores_of(every)[:k]
        assert Counter(rows_of(mine)) <= Counter(rows_of(every))


@many
@given(
    streams(),
    st.sampled_from(SCORES),
    st.sampled_from(FILTERS),
    st.sampled_from(WINDOWS + TRIPLES),
    st.tuples(st.sampled_from(["ASC", "DESC"]), st.integers(1, 4), st.sampled_from(["(]", "[)"])),
)
def test_the_skyband_gives_the_best_of_all_pairs(stream, score, kept, window, how):
    order, k, bounds = how
    limited = text_of(score, kept, window, f"{order} LIMIT {k}")
    unlimited = text_of(score, kept, window, f"{order} LIMIT 1000")
    assert "K-skyband" in explained(limited)
    found = run([limited], stream, "auto", bounds=bounds)
    whole = run([unlimited], stream, "general", bounds=bounds)
    assert_same(found, whole, k)


@many
@given(
    streams(),
    st.sampled_from(SCORES),
    st.lists(st.tuples(st.sampled_from(WINDOWS[:3]), st.integers(1, 5)), min_size=2, max_size=3),
)
def test_queries_that_share_a_skyband_answer_as_if_they_were_alone(stream, score, queries):
    asked = [
        text_of(score, FILTERS[0], window, f"ASC LIMIT {k}", f"q{n}")
        for n, (window, k) in enumerate(queries)
    ]
    together = run(asked, stream, "auto")
    for n, text in enumerate(asked):
        alone = run([text], stream, "auto")
        assert [a for a in together if a.query == f"{EX}q{n}"] == alone


edges = st.sampled_from(["0e0", "-0e0", "1e0", "-2e0", "1e308", "-1e308", "1e-300"])


@many
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcd"), edges), min_size=2, max_size=9),
    st.sampled_from(("?x / ?y", "?x * ?y", "?x - ?y", "?x / (?x - ?y)", "?x / ?y - ?y / ?x")),
    st.sampled_from((*FILTERS[:2], "FILTER (STR(?a) < STR(?b) && ?x / ?y != 1)")),
    st.sampled_from(WINDOWS),
    st.sampled_from(["ASC", "DESC"]),
)
@example(
    [(0, "a", "1e0"), (1, "a", "-0e0"), (0, "b", "-0e0")],
    "?x / ?y",
    FILTERS[0],
    WINDOWS[0],
    "DESC",
)
def test_infinite_scores_and_nan_rank_as_on_the_general_path(items, score, kept, window, order):
    """SPARQL tells no value, NaN and -INF apart; a skyband of float64 does not."""
    time, stream = 1, []
    for gap, subject, value in items:
        time += gap
        stream.append((time, f"@prefix : <{EX}> . :{subject} :p {value} ."))
    text = text_of(score, kept, window, f"{order} LIMIT 3")
    found, whole = (run([text], stream, operator) for operator in ("auto", "general"))
    assert list(map(rows_of, found)) == list(map(rows_of, whole))


def test_an_infinite_score_is_left_to_the_general_path_only_while_its_objects_live():
    values = {1: ":a :p 1e0", 2: ":b :p 0e0", **{t: f":c{t} :p {t}e0" for t in range(20, 30)}}
    stream = [(t, f"@prefix : <{EX}> . {text} .") for t, text in values.items()]
    text = text_of("-(?x / ?y)", FILTERS[0], WINDOWS[0], "DESC LIMIT 3")
    with patch.object(
        PairsEvaluator, "_whole", autospec=True, side_effect=PairsEvaluator._whole
    ) as whole:
        found = run([text], stream, "auto")
    assert list(map(rows_of, found)) == list(map(rows_of, run([text], stream, "general")))
    assert 0 < whole.call_count < len(found)


def test_a_skyband_of_integers_that_are_gone_knows_no_doubles():
    """It would round: 0.5 and 0 would be equal."""
    triples = ("_:n :p 3e0", ":a :p 2.5e0 . :a :p 3e0", ":b :p 2.5e0 . :a :p 3e0", ":a :p 1")
    times = (11, 15, 17, 20)
    stream = [(t, f"@prefix : <{EX}> . {text} .") for t, text in zip(times, triples, strict=True)]
    stream.append((34, f"@prefix : <{EX}> . :a :p 2.5e0 . :b :p 1 ."))
    asked = [
        text_of(SCORES[0], FILTERS[0], window, f"ASC LIMIT {k}", f"q{k}")
        for window, k in ((WINDOWS[0], 1), (WINDOWS[2], 3))
    ]
    together = run(asked, stream, "auto")
    assert [a for a in together if a.query == f"{EX}q3"] == run(asked[1:], stream, "auto")


@many
@given(streams(), st.sampled_from(SCORES), st.integers(1, 9), st.integers(1, 9))
def test_count_windows_share_a_skyband_too(stream, score, size, step):
    asked = [
        text_of(score, FILTERS[0], window, "ASC LIMIT 2", f"q{n}")
        for n, window in enumerate((f"ELEMENTS {size} STEP {step}", "ELEMENTS 6 STEP 1"))
    ]
    together = run(asked, stream, "auto")
    for n, text in enumerate(asked):
        assert [a for a in together if a.query == f"{EX}q{n}"] == run([text], stream, "auto")


@many
@given(streams(), st.permutations(range(8)), st.sampled_from(WINDOWS[:2]), st.integers(0, 9))
def test_elements_that_come_late_count_where_a_window_is_open(stream, order, window, delay):
    shuffled = [stream[n] for n in order if n < len(stream)] + stream[8:]
    limited = text_of(SCORES[0], FILTERS[0], window, "ASC LIMIT 2")
    unlimited = text_of(SCORES[0], FILTERS[0], window, "ASC LIMIT 1000")
    found = run([limited], shuffled, "auto", max_delay=delay)
    whole = run([unlimited], shuffled, "general", max_delay=delay)
    assert_same(found, whole, 2)


@many
@given(
    streams(),
    st.sampled_from(SCORES),
    st.sampled_from(WINDOWS + TRIPLES),
    st.sampled_from((ALWAYS, (0,))) | st.sets(st.integers(0, 20), min_size=1, max_size=3),
)
def test_a_run_can_be_cut_anywhere(stream, score, window, where):
    def made() -> Engine:
        engine = Engine()
        engine.function("F", f)
        engine.register(text_of(score, FILTERS[0], window, "ASC LIMIT 3"))
        engine.bind(f"{EX}s", stream)
        return engine

    expected = texts(made())
    with cut(where):
        assert texts(made()) == expected


ITEMS = st.tuples(*[st.integers(0, 6)] * 3, st.integers(0, 5))


@many
@given(st.lists(ITEMS, min_size=1, max_size=20), st.sampled_from(WINDOWS), st.integers(1, 3))
def test_objects_of_several_triples_come_in_one_element(items, window, k):
    stream = [
        (n, f"@prefix : <{EX}> . :o{n} :p {p} ; :q {q} ; :kind {kind} . :other :r {r} .")
        for n, (p, q, r, kind) in enumerate(items, 1)
    ]
    asked = [
        f"""PREFIX : <{EX}> REGISTER RSTREAM :q AS
        SELECT ?a ?b (ABS(?p - ?s) * ABS(?q - ?t) AS ?score)
        FROM NAMED WINDOW :w ON :s [{window}] WHERE {{ WINDOW :w {{
        ?a :p ?p ; :q ?q ; :kind ?k . ?b :p ?s ; :q ?t ; :kind ?l . FILTER (STR(?b) > STR(?a))
        FILTER (?k > 1 && ?l > 1) }} FILTER (?k = ?l) }} ORDER BY DESC(?score) LIMIT {limit}"""
        for limit in (k, 1000)
    ]
    assert "K-skyband" in explained(asked[0], ranking=RankingOptions(match="element"))
    found = run(asked[:1], stream, "auto", match="element")
    assert_alike(found, run(asked[1:], stream, "general"), k)


@many
@given(streams(), st.sampled_from(SCORES), st.sampled_from(WINDOWS))
def test_the_threshold_algorithm_finds_the_same_pairs(stream, score, window):
    text = text_of(score, FILTERS[3], window, "DESC LIMIT 3")
    expected = run([text], stream, "auto")
    with patch("rsp_engine.operators.pairs.shared_skyband.LEAST_LISTED", 0):
        assert run([text], stream, "auto") == expected


def test_keys_may_come_ever_closer_to_each_other():
    """Between `a` and `aa...b` there is always one more text, but not one more float64."""
    names = ["b", "a", *("a" * n + "b" for n in range(1, 80))]
    stream = [(n, f"<{EX}{name}> <{EX}p> {n * n} .") for n, name in enumerate(names, 1)]
    asked = [
        text_of("?x - ?y", FILTERS[0], "RANGE 100ms STEP 20ms", f"ASC LIMIT {limit}")
        for limit in (5, 10_000)
    ]
    assert_same(run(asked[:1], stream, "auto"), run(asked[1:], stream, "general"), 5)


def explained(text: str, **options: Any) -> str:
    made = QueryOptions(functions={"F": as_sparql(f)}, **options)
    return explain(plan(check(text), text, "q", made))


def test_the_planner_tells_what_a_pair_is_and_why():
    said = explained(text_of(SCORES[0], FILTERS[0], WINDOWS[0], "ASC LIMIT 2"))
    assert "K-skyband, the best 2 pairs" in said
    assert "?a before ?b by text" in said
    assert "ABS(?x - ?y) is monotone in its only local score" in said
    said = explained(text_of(SCORES[5], FILTERS[0], WINDOWS[0], "ASC LIMIT 2"))
    assert "is not known to be global (its divisor may be zero)" in said


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("?a :p ?x . ?b :p ?y", "no filter orders the pair"),
        ("?a :p ?x . ?b :q ?y FILTER (STR(?a) < STR(?b))", "differ in more than the names"),
        ("?a :p ?x . ?b :p ?y FILTER (STR(?a) < STR(?b) && ?x > 1)", "only one of the two objects"),
        ("?a :p ?x ; :q ?z . ?b :p ?y ; :q ?v FILTER (STR(?a) < STR(?b))", "--match element"),
        ("?a :p ?x . ?b :p ?y FILTER (STR(?a) < STR(?b) || ?x > ?y)", "no filter orders|more than"),
        (
            "?a :p ?x . ?b :p ?y FILTER (STR(?a) < STR(?b) && STRLEN(STR(?x)) < ?y)",
            "more than arithmetic",
        ),
    ],
)
def test_what_keeps_a_query_of_pairs_off_the_skyband_is_told(where, reason):
    text = f"""PREFIX : <{EX}> SELECT * FROM NAMED WINDOW :w ON :s [RANGE 5s]
    WHERE {{ WINDOW :w {{ {where} }} }} ORDER BY ABS(?x - ?y) LIMIT 2"""
    said = explained(text)
    assert "general path" in said
    assert any(each in said for each in reason.split("|"))


def test_a_declared_distance_is_a_local_score():
    text = text_of("F(?x, ?y)", FILTERS[0], WINDOWS[0], "ASC LIMIT 2")
    assert "is monotone in its only" in explained(text, monotone={"F": "distance"})
    assert f"windows of {LEAST_LISTED:,} objects or more" in explained(
        text, monotone={"F": "distance"}
    )
    assert "when the objects are exchanged" in explained(text)


def test_queries_with_one_score_share_one_skyband_whatever_their_variables_are_called():
    first = text_of(SCORES[0], FILTERS[0], WINDOWS[0], "ASC LIMIT 2", "one")
    second = first.replace("?x", "?price").replace("?a", "?stock").replace(":wone", ":v")
    second = second.replace("RSTREAM :one", "RSTREAM :two").replace("LIMIT 2", "LIMIT 5")
    shapes = []
    for text in (first, second):
        config = plan(check(text), text, "q", QueryOptions()).physical.operator
        assert isinstance(config, PairsConfig)
        shapes.append(config.shape)
    assert shapes[0] == shapes[1]


def test_a_snapshot_can_be_asked_for_while_the_engine_runs():
    engine = Engine()
    stream = [(n, f"@prefix : <{EX}> . :s{n} :p {n * n} .") for n in range(1, 13)]
    small = engine.register(
        text_of(SCORES[0], FILTERS[0], "RANGE 4ms STEP 4ms", "ASC LIMIT 1", "q")
    )
    engine.register(text_of(SCORES[0], FILTERS[0], "RANGE 12ms STEP 4ms", "ASC LIMIT 3", "big"))
    engine.bind(f"{EX}s", stream)
    with pytest.raises(BindingError, match="no snapshots yet"):
        small.now()
    for answer in engine.run():
        if answer.query == f"{EX}big" and answer.window.close == 12:
            found = small.now(k=3, range=12)
            assert found == answer.content
            assert isinstance(found, Solutions)
            assert [row.score for row in found.rows] == [3.0, 5.0, 7.0]
            last = small.now()
            assert isinstance(last, Solutions)
            [row] = last.rows
            assert row.score == 19.0
            with pytest.raises(BindingError, match="at most 3"):
                small.now(k=4)
            with pytest.raises(BindingError, match="at most 12"):
                small.now(range=13)
            return
    pytest.fail("the largest window closes")


def test_only_queries_of_pairs_have_snapshots():
    engine = Engine()
    query = engine.register(
        f"PREFIX : <{EX}> SELECT * FROM NAMED WINDOW :w ON :s [RANGE 5ms]"
        " WHERE { WINDOW :w { ?s :p ?v } }"
    )
    engine.bind(f"{EX}s", [(1, f"<{EX}a> <{EX}p> 1 .")])
    for _ in engine.run():
        with pytest.raises(BindingError, match="no snapshots"):
            query.now()


def test_a_blank_node_has_no_text_to_be_ordered_by():
    stream = [(1, f"@prefix : <{EX}> . _:n :p 1 . :a :p 2 . :b :p 5 .")]
    text = text_of(SCORES[0], FILTERS[0], WINDOWS[0], "ASC LIMIT 5")
    [*answers] = run([text], stream, "auto")
    assert all(scores_of(answer) == [3.0] for answer in answers)
    assert ox.Literal(3) == answers[0].content.rows[0].bindings["score"]  # type: ignore[union-attr]
