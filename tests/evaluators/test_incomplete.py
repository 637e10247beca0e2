"""Queries that collect attributes from several streams give what the general path gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Triple

from rsp_engine import Engine
from rsp_engine.errors import BindingError, PlanError
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import check
from rsp_engine.model.answers import Answer, Solutions
from rsp_engine.options import RankingOptions
from rsp_engine.plan.explain.text import explain
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from tests.drivers.cut import ALWAYS, cut, texts
from tests.thoroughness import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

EX = "http://example.org/"
WINDOWS = (
    ("RANGE 10ms STEP 4ms",) * 3,
    ("RANGE 6ms STEP 2ms",) * 3,
    ("RANGE 9ms STEP 3ms", "RANGE 4ms STEP 2ms", "RANGE 3ms STEP 7ms"),
)
Stream = list[tuple[int, str]]


def union(windows: tuple[str, ...], tail: str, score: str = "SUM(?v)", kept: str = "") -> str:
    blocks = " UNION ".join(
        f"{{ WINDOW :w{n} {{ ?o :p{n} ?v {kept} }} }}" for n in range(len(windows))
    )
    return text_of(windows, f"?o ({score} AS ?score)", blocks, f"GROUP BY ?o {tail}")


def optional(windows: tuple[str, ...], tail: str, score: str | None = None) -> str:
    others = range(1, len(windows))
    blocks = "WINDOW :w0 { ?o :p0 ?v0 } " + " ".join(
        f"OPTIONAL {{ WINDOW :w{n} {{ ?o :p{n} ?v{n} }} }}" for n in others
    )
    added = "?v0" + "".join(f" + {n} * COALESCE(?v{n}, 0)" for n in others)
    return text_of(windows, f"?o ({score or added} AS ?score)", blocks, tail)


def text_of(windows: tuple[str, ...], select: str, where: str, tail: str) -> str:
    declared = " ".join(
        f"FROM NAMED WINDOW :w{n} ON :s{n} [{window}]" for n, window in enumerate(windows)
    )
    return f"""PREFIX : <{EX}> REGISTER RSTREAM :q AS SELECT {select} {declared}
    WHERE {{ {where} }} {tail}"""


@st.composite
def streams(draw: st.DrawFn, count: int = 3) -> list[Stream]:
    """Draw elements of each stream in the order of time, some of them the same as before."""
    numbers = st.sampled_from(["0", "0.25", "0.5", "1", "0.1", "0.7"])
    larger = st.sampled_from(["3", "7", "0.3", "12", "2.5"])
    doubles = st.sampled_from(["1e-1", "7e-1", "3e0", "2e-1"])
    odd = st.sampled_from(["-1", '"x"', ":iri", '"1"^^<http://www.w3.org/2001/XMLSchema#float>'])
    value = draw(st.sampled_from((numbers, numbers | larger, doubles, numbers | odd)))
    triple = st.tuples(st.sampled_from([":a", ":b", ":c", ":d", ":e", "_:n"]), value)
    found = []
    for number in range(count):
        times = sorted(draw(st.lists(st.integers(1, 40), max_size=14)))
        found.append([
            (time, f"@prefix : <{EX}> . " + "".join(f"{s} :p{number} {v} . " for s, v in each))
            for time in times
            for each in [draw(st.lists(triple, min_size=1, max_size=3))]
        ])  # fmt: skip
    return found


def engine_of(text: str, found: list[Stream], **options: Any) -> Engine:
    engine = Engine(**options)
    engine.register(text)
    for number, stream in enumerate(found):
        engine.bind(f"{EX}s{number}", stream)
    return engine


def run(text: str, found: list[Stream], **options: Any) -> list[Answer]:
    return list(engine_of(text, found, **options).run())


def rows_of(answers: list[Answer]) -> list[Any]:
    assert all(isinstance(answer.content, Solutions) for answer in answers)
    return [(a.window, a.content.rows) for a in answers]  # type: ignore[union-attr]


def explained(text: str, ranking: RankingOptions | None = None, **options: Any) -> str:
    made = QueryOptions(ranking=ranking or RankingOptions(), **options)
    return explain(plan(check(text), text, "q", made))


tails = st.builds(
    "ORDER BY DESC(?score) LIMIT {}{}".format,
    st.integers(1, 4),
    st.sampled_from(["", "", " OFFSET 1"]),
)
shapes = st.one_of(
    st.builds(union, st.sampled_from(WINDOWS), tails),
    st.builds(union, st.sampled_from(WINDOWS), tails, st.sampled_from(["MAX(?v)", "2*SUM(?v)+1"])),
    st.builds(union, st.sampled_from(WINDOWS), tails, st.just("SUM(?v)"), st.just("FILTER(?v<5)")),
    st.builds(optional, st.sampled_from(WINDOWS), tails),
)


@pytest.fixture(autouse=True, scope="module")
def eager() -> Iterator[None]:
    """Let instances be dropped as soon as they can be."""
    at = "rsp_engine.operators.incomplete.eaa."
    with patch(f"{at}_FEW", 0), patch(f"{at}_SHARE", 0.0):
        yield


@pytest.mark.parametrize("operator", ["auto", "sla", "oracle"])
@examples(15)
@given(shapes, streams(), st.sampled_from(["(]", "[)"]))
def test_the_answer_is_that_of_the_general_path(operator, text, found, bounds):
    name = {"auto": "EAA", "sla": "SLA", "oracle": "Oracle"}[operator]
    assert f"operator {name}, the best" in explained(text, RankingOptions(operator=operator))
    whole = run(text, found, operator="general", bounds=bounds)
    answers = run(text, found, operator=operator, bounds=bounds)
    assert rows_of(answers) == rows_of(whole)
    assert all(answer.stats == {"exact": True} for answer in answers)


@examples(15)
@given(streams(1), st.integers(1, 8), st.integers(1, 5), st.sampled_from(["ELEMENTS", "TRIPLES"]))
def test_attributes_of_one_window_that_counts(found, size, step, unit):
    """The second attribute is the same as the first one, but for its name."""
    both = [[(t, x.replace(":p0", ":p1") if n % 2 else x) for n, (t, x) in enumerate(found[0])]]
    blocks = "{ WINDOW :w0 { ?o :p0 ?v } } UNION { WINDOW :w0 { ?o :p1 ?v } }"
    tail = "GROUP BY ?o ORDER BY DESC(?score) LIMIT 2"
    window = (f"{unit} {size} STEP {step}",)
    text = text_of(window, "?o (SUM(?v) AS ?score) (COUNT(*) AS ?n)", blocks, tail)
    assert "operator EAA" in explained(text)
    assert rows_of(run(text, both)) == rows_of(run(text, both, operator="general"))


@examples(15)
@given(shapes, streams(), st.randoms(use_true_random=False), st.integers(0, 9))
def test_elements_that_come_late_count_where_a_window_is_open(text, found, chance, delay):
    for stream in found:
        head = stream[:6]
        chance.shuffle(head)
        stream[:6] = head
    answers = run(text, found, max_delay=delay)
    assert rows_of(answers) == rows_of(run(text, found, operator="general", max_delay=delay))


@pytest.mark.parametrize("operator", ["auto", "approximate"])
@examples(15)
@given(shapes, streams(), st.just(ALWAYS) | st.sets(st.integers(0, 30), min_size=1, max_size=3))
def test_a_run_can_be_cut_anywhere(operator, text, found, where):
    expected = texts(engine_of(text, found, operator=operator))
    with cut(where):
        assert texts(engine_of(text, found, operator=operator)) == expected


def test_of_values_that_are_equal_but_not_the_same_the_same_is_told_after_a_cut():
    """Which of `1` and `1.0` is the largest is a matter of their order in the window."""
    text = union(WINDOWS[1][:2], "ORDER BY DESC(?score) LIMIT 2", "MAX(?v)")
    one, kind = f"<{EX}b> <{EX}p1> 1 .", "<http://www.w3.org/2001/XMLSchema#decimal>"
    same = f'<{EX}b> <{EX}p1> "1.0"^^{kind} .'
    for first, second in ((one, same), (same, one)):
        found: list[Stream] = [
            [(time, f"<{EX}a> <{EX}p0> 0 .") for time in range(1, 40)],
            [(23, first), (27, second), (27, first), (31, second)],
        ]
        expected = texts(engine_of(text, found))
        with cut(ALWAYS):
            assert texts(engine_of(text, found)) == expected
        assert rows_of(run(text, found)) == rows_of(run(text, found, operator="general"))


@examples(15)
@given(shapes, streams())
def test_the_approximate_answer_says_so_and_holds_objects_of_the_window(text, found):
    answers = run(text, found, operator="approximate")
    whole = run(text.split("LIMIT")[0] + "LIMIT 1000", found, operator="general")
    assert [a.window for a in answers] == [a.window for a in whole]
    assert all(a.stats == {"exact": False, "approximate": True} for a in answers)
    for mine, every in zip(rows_of(answers), rows_of(whole), strict=True):
        known = {str(row.bindings["o"]) for row in every[1]}
        assert {str(row.bindings["o"]) for row in mine[1]} <= known


def test_a_bound_of_instances_makes_the_answer_approximate():
    text = union(WINDOWS[0][:2], "ORDER BY DESC(?score) LIMIT 1")
    found: list[Stream] = [
        [(t, f"<{EX}o{t}> <{EX}p{n}> {t / 64} .") for t in range(1, 33)] for n in (0, 1)
    ]
    assert "approximate, the best 1, at most 3 instances" in explained(
        text, RankingOptions(max_instances=3)
    )
    answers = run(text, found, max_instances=3)
    assert rows_of(answers) == rows_of(run(text, found, operator="general"))  # which rise
    assert {answer.stats["exact"] for answer in answers} == {False}
    with pytest.raises(BindingError, match="1 instances are too few for the 2 best"):
        run(text.replace("LIMIT 1", "LIMIT 2"), found, max_instances=1)
    with pytest.raises(ValueError, match="max_instances=0: it must be at least 1"):
        run(text, found, max_instances=0)
    with pytest.raises(BindingError, match="no query has instances to bound"):
        run(text, found, max_instances=3, operator="general")


def test_the_approximate_operator_gives_back_what_it_does_not_keep():
    """Of 300 objects, of which a few count, the windows and the operator hold a few."""
    text = union(("RANGE 1s STEP 100ms",) * 2, "ORDER BY DESC(?score) LIMIT 2")
    made = plan(
        check(text), text, "q", QueryOptions(ranking=RankingOptions(operator="approximate"))
    )
    step = Step(made.physical)
    for time in range(1, 951):
        for number in (0, 1):
            thing = NamedNode(f"{EX}o{time // 2}")
            value = Literal(0.9 if time % 50 == 0 else (time * 37 % 100) / 250)
            triple = Triple(thing, NamedNode(f"{EX}p{number}"), value)
            step.take(f"{EX}s{number}", time, [triple], time)
        list(step.due(time))
    list(step.due(float("inf")))
    operator: Any = step._evaluator
    assert len(operator._observations.numbers()) < 250
    assert all(not triples for scan in step._scans for _, triples in scan.content())


def test_a_range_is_declared_by_the_stream():
    text = union(WINDOWS[0][:2], "ORDER BY DESC(?score) LIMIT 1")
    ranges = {f"{EX}s0": (0.0, 250.0)}
    assert f"up to 250 of <{EX}s0>, 1 of <{EX}s1>" in explained(text, ranges=ranges)
    engine = Engine()
    engine.range(f"{EX}s0", 0, 250)
    with pytest.raises(BindingError, match="cannot be from -1"):
        engine.range(f"{EX}s1", -1, 2)
    engine.range(f"{EX}other", 0, 1)
    engine.register(text)
    for number in (0, 1):
        engine.bind(f"{EX}s{number}", [])
    with pytest.raises(BindingError, match="no query collects attributes from stream"):
        list(engine.run())


W2 = ("RANGE 5s", "RANGE 5s")
UNION = "{ WINDOW :w0 { ?o :p ?v } } UNION { WINDOW :w1 { ?o :q ?v } }"
TAIL = "GROUP BY ?o ORDER BY DESC(?score) LIMIT 3"
SUM = "?o (SUM(?v) AS ?score)"
OPTIONAL = "WINDOW :w0 { ?o :p ?v } OPTIONAL { WINDOW :w1 { ?o :q ?u } }"
ADDED = "?o (?v + COALESCE(?u, 0) AS ?score)"
LAST = "ORDER BY DESC(?score) LIMIT 3"


@pytest.mark.parametrize(
    ("windows", "select", "where", "tail", "reason"),
    [
        (W2, SUM, UNION, TAIL.replace("DESC", "ASC"), "lower scores rank first"),
        (W2, SUM, UNION, TAIL.replace("DESC(?score)", "DESC(?score) ?o"), "more than one cond"),
        (W2, SUM, UNION, TAIL.replace("ORDER", "HAVING (SUM(?v) > 1) ORDER"), "HAVING removes"),
        (W2, SUM.replace("?o", "?k"), UNION, TAIL.replace("?o", "(STR(?o) AS ?k)"), "expression"),
        (W2, "?o (AVG(?v) AS ?score)", UNION, TAIL, "AVG may fall when an attribute arrives"),
        (W2, "?o (SUM(DISTINCT ?v) AS ?score)", UNION, TAIL, "DISTINCT drops equal values"),
        (W2, "?o (SUM(?v) * COUNT(*) AS ?score)", UNION, TAIL, "one SUM or MAX"),
        (W2, "?o (-SUM(?v) AS ?score)", UNION, TAIL, "does not rise"),
        (W2, "?o (ABS(SUM(?v)) AS ?score)", UNION, TAIL, "not a weighted sum"),
        (W2, SUM, UNION.replace(":q ?v", ":q ?x"), TAIL, "does not bind ?v"),
        (W2, SUM, f"{UNION} FILTER (?v > 1)", TAIL, "UNION of WINDOW blocks alone"),
        (W2, SUM, UNION.replace("?o :p ?v", "?o :p ?v ; :r ?x"), TAIL, "--match element"),
        (W2, SUM, UNION.replace("?o :p ?v", "?o :p+ ?v"), TAIL, "more than plain triple"),
        (("ELEMENTS 5", "RANGE 5s"), SUM, UNION, TAIL, "the order of expiry is not known"),
        (W2, "?o (?v + ?u AS ?score)", OPTIONAL, LAST, "may be missing: write COALESCE(?u, 0)"),
        (W2, "?o (?v - COALESCE(?u, 0) AS ?score)", OPTIONAL, LAST, "does not rise with ?u"),
        (W2, "?o (?v + COALESCE(?u, 1) AS ?score)", OPTIONAL, LAST, "may be missing"),
        (W2, "?o (?v * COALESCE(?u, 0) AS ?score)", OPTIONAL, LAST, "not a weighted sum"),
        (W2, "?o (?v AS ?score)", OPTIONAL, LAST, "exactly one value of each block"),
        (W2, ADDED, OPTIONAL.replace("?o :q", "?x :q"), LAST, "no variable in common"),
        (W2, ADDED, f"{OPTIONAL} FILTER (?v > 1)", LAST, "more than one WINDOW"),
    ],
)
def test_what_keeps_a_query_on_the_general_path_is_told(windows, select, where, tail, reason):
    text = text_of(windows, select, where, tail)
    said = explained(text)
    assert "operator general path" in said
    assert reason in said
    with pytest.raises(PlanError, match="the operator eaa cannot run this query"):
        explained(text, RankingOptions(operator="eaa"))


def test_a_query_of_one_window_is_not_for_these_operators():
    text = text_of(("RANGE 5s",), "*", "WINDOW :w0 { ?o :p ?v }", "ORDER BY DESC(?v) LIMIT 2")
    with pytest.raises(PlanError, match="the operator sla cannot run this query"):
        explained(text, RankingOptions(operator="sla"))
