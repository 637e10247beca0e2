"""Groups of values of any kind: operator, general path and a naive evaluation agree row by row."""

from __future__ import annotations

import json
from functools import cache
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rsp_engine.evaluators.group_topk import GroupTopkConfig, GroupTopkEvaluator
from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.grammar import check
from rsp_engine.model.terms.numerals import stored_literal
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.aggregates.pane_partials import Totals
from rsp_engine.operators.aggregates.term_partials import TermPartials
from rsp_engine.operators.scoring.exact_scores import NumberKind
from rsp_engine.operators.scoring.value_kinds import ValueKind, column_of
from rsp_engine.operators.sparql.term_aggregates import TERM_AGGREGATES
from rsp_engine.operators.windows.time_windows import TimedScan
from rsp_engine.plan.arrivals import ties
from rsp_engine.plan.logical.query import logical_query
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.shapes.group_topk import group_topk_plan
from rsp_engine.plan.sparql.general import sparql_path
from tests.differential import terms as plain
from tests.differential.aggregates import aggregated
from tests.differential.order import place
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.operators.aggregates.pane_partials import Function

EX = "http://example.org/"
XSD = plain.XSD
HEAD = f"PREFIX : <{EX}> "
WHERE = "FROM NAMED WINDOW :w ON :s [RANGE 1s] WHERE { WINDOW :w { ?s :p ?v } } GROUP BY ?s"
EXPRESSIONS = ("{}", "-{}", "{} * 3", "{} * {}", "{} / 3", "{} + 0.1", "1 / {}", "+{}", "ABS({})")
Came = list[tuple[int, str, ox.Literal | ox.NamedNode]]


def literal(text: str, kind: str) -> ox.Literal:
    return stored_literal(ox.Literal(text, datatype=ox.NamedNode(XSD + kind)))


PLAIN = [
    [ox.Literal(value) for value in (-3, 0, 1, 2, 5, 7)],
    [literal(text, "decimal") for text in ("0.1", "0.2", "0.3", "-2.5", "7.25", "1")],
    [literal(text, "double") for text in ("0.1", "0.2", "0.3", "-1e300", "4", "0", "-0")],
]
ODD = [
    ox.Literal("Anna"), ox.Literal("Bert"), ox.Literal("Anna", language="en"), ox.Literal("9"),
    ox.NamedNode(f"{EX}i"), ox.NamedNode(f"{EX}j"), ox.Literal(True), ox.Literal(False),
    literal("2020-01-01T00:00:00Z", "dateTime"), literal("2019-01-01T00:00:00Z", "dateTime"),
    literal("P1D", "dayTimeDuration"), literal("PT25H", "dayTimeDuration"),
    literal("INF", "double"), literal("-INF", "double"), literal("NaN", "double"),
    literal("1.5", "float"), literal("0.1", "float"), literal("1", "double"),
    ox.Literal(2**63 - 1), ox.Literal(-(2**63)), ox.Literal(2**62), ox.Literal(2**53 + 1),
    literal("0.000000000000000001", "decimal"),
    literal("123456789012345678.123456789012345678", "decimal"),
    ox.Literal("abc", datatype=ox.NamedNode(XSD + "integer")),
]  # fmt: skip


@st.composite
def came(draw: st.DrawFn) -> Came:
    """Draw arrivals: the values of one kind, or of any, or of one with few others among them."""
    some = draw(st.sampled_from(PLAIN))
    odd = draw(st.sampled_from(([], ODD, draw(st.lists(st.sampled_from(ODD), max_size=1)))))
    values: list[Any] = [*some, *odd]
    arrival = st.tuples(st.integers(1, 24), st.sampled_from("abc"), st.sampled_from(values))
    return sorted(draw(st.lists(arrival, max_size=24)), key=lambda each: each[0])


@cache
def query(function: str, expression: str, tail: str) -> Any:
    score = expression.replace("{}", f"{function}(?v)")
    text = f"{HEAD} SELECT ?s ({function}(?v) AS ?n) ({score} AS ?m) {WHERE} ORDER BY {tail}"
    return check(text)


def operator(function: str, expression: str, tail: str) -> GroupTopkEvaluator:
    config, _ = group_topk_plan(logical_query(query(function, expression, tail)), QueryOptions())
    assert isinstance(config, GroupTopkConfig), config
    return GroupTopkEvaluator(config, ox.Store())


def general(function: str, expression: str, tail: str) -> SparqlEvaluator:
    asked = query(function, expression, tail)
    config = sparql_path(asked, {}, ties(logical_query(asked)))
    return SparqlEvaluator(config, ox.Store(), [f"{EX}w"])


class Run:
    """Windows of an operator, one after the other."""

    def __init__(
        self, made: GroupTopkEvaluator | SparqlEvaluator, found: Came, frame: TimeFrame
    ) -> None:
        self.made = made
        self._scan = TimedScan(frame)
        for at, subject, value in found:
            triple = ox.Triple(ox.NamedNode(EX + subject), ox.NamedNode(f"{EX}p"), value)
            self._scan.take(at, [triple], 0)

    def rows(self, window: int) -> list[tuple[str, ...]]:
        self._scan.close(window)
        answer: Any = self.made.answer([self._scan], window)
        return [tuple(str(row.bindings.get(name)) for name in "snm") for row in answer.rows]


def as_plain(term: Any) -> plain.Term | None:
    if isinstance(term, ox.NamedNode):
        return plain.Iri(term.value)
    return (
        None
        if term is None
        else plain.Literal(term.value, term.datatype.value, term.language or "")
    )


def evaluated(expression: str, term: plain.Term | None) -> Any:
    """Return an expression over an aggregate, as Oxigraph has it."""
    value = "UNDEF" if term is None else plain.written(term)
    text = f"SELECT (({expression.replace('{}', '?n')}) AS ?m) {{ VALUES ?n {{ {value} }} }}"
    rows: Any = ox.Store().query(text)
    [row] = rows
    return row[0]


def naive(
    function: str, expression: str, found: Came, window: tuple[int, int], *, descending: bool
) -> list[tuple[str, ...]]:
    """Return all rows of a window, best first."""
    opened, closed = window
    groups: dict[str, dict[Any, int]] = {}
    for at, subject, value in found:
        if opened < at <= closed:
            groups.setdefault(subject, {})[value] = at
    ranked = []
    for subject, values in groups.items():
        term = aggregated(function, [*map(as_plain, values)], distinct=False)
        score = evaluated(expression, term)
        row = (f"<{EX}{subject}>", plain.written(term) or "None", str(score))
        ranked.append((place(as_plain(score)), max(values.values()), subject, row))
    ranked.sort(key=lambda each: each[1:3], reverse=True)
    ranked.sort(key=lambda each: each[0], reverse=descending)
    return [row for *_, row in ranked]


frames = st.builds(TimeFrame, st.integers(1, 10), st.integers(1, 5))
functions = st.sampled_from(("COUNT", "SUM", "AVG", "MIN", "MAX"))
FEW = [(1, "a", ox.Literal("x")), (1, "a", ox.Literal(3)), (2, "b", ox.Literal(2)),
       (7, "b", ox.Literal(1))]  # fmt: skip

TENTHS = [(at, s, literal(text, "decimal")) for at, s, text in (
    (1, "a", "0.3"), (2, "b", "0.1"), (3, "b", "0.2"), (4, "c", "0.5"), (5, "c", "0.1"),
)]  # fmt: skip
ZERO = [(1, "a", literal("0.1", "double")), (1, "b", literal("-0", "double"))]
LARGE = [
    (1 + number % 7, subject, ox.Literal(999_999_999_999_980 + number - (number == 0) * shift))
    for shift, subject in enumerate("abc")
    for number in range(20)
]


@examples(400)
@given(came(), functions, st.sampled_from(EXPRESSIONS), st.booleans(), frames)
@example(FEW, "MIN", "{}", False, TimeFrame(6, 3))
@example(FEW, "SUM", "{} * 3", True, TimeFrame(6, 3))
@example(TENTHS, "SUM", "{}", False, TimeFrame(9, 3))
@example(TENTHS, "AVG", "{} * 3", False, TimeFrame(9, 3))
@example(LARGE, "SUM", "{}", False, TimeFrame(9, 3))
@example(LARGE, "AVG", "-{}", True, TimeFrame(9, 3))
@example(ZERO, "MIN", "1 / {}", False, TimeFrame(9, 3))
def test_groups_are_ranked_by_the_order_of_terms_on_every_path(
    found, function, expression, descending, frame
):
    tail = f"{'DESC' if descending else 'ASC'}(?m) LIMIT 2"
    clever = Run(operator(function, expression, tail), found, frame)
    asked = Run(general(function, expression, tail), found, frame)
    for window in range(8):
        bounds = (window * frame.step, window * frame.step + frame.range)
        expected = naive(function, expression, found, bounds, descending=descending)[:2]
        assert clever.rows(window) == expected
        assert asked.rows(window) == expected


@examples(60)
@given(came(), functions, st.sampled_from(EXPRESSIONS), st.sets(st.integers(0, 7)))
def test_a_run_goes_on_from_its_state(found, function, expression, breaks):
    tail, frame = "DESC(?m) LIMIT 2", TimeFrame(9, 2)
    straight, broken = (Run(operator(function, expression, tail), found, frame) for _ in range(2))
    for window in range(8):
        assert straight.rows(window) == broken.rows(window)
        if window in breaks:
            state = json.loads(json.dumps(broken.made.state()))
            broken.made = operator(function, expression, tail)
            broken.made.restore(state)


def test_terms_are_kept_only_while_they_are_asked_for():
    found: Came = [(1, "a", ox.Literal("x")), *((at, "b", ox.Literal(at)) for at in range(2, 20))]
    made = operator("MAX", "{}", "DESC(?m) LIMIT 1")
    run, are_kept = Run(made, found, TimeFrame(4, 2)), []
    for window in range(6):
        run.rows(window)
        are_kept.append(made._groups._partials is not None)
    assert are_kept == [True, True, False, False, False, False]


def test_an_aggregate_that_many_groups_have_is_scored_once():
    seen = []

    def double(term: ox.Literal) -> ox.Literal:
        seen.append(term.value)
        return ox.Literal(term.value * 2)

    text = f"{HEAD} SELECT ?s {WHERE} ORDER BY F(MAX(?v)) LIMIT 1"
    options = QueryOptions(functions={"F": double})
    config, _ = group_topk_plan(logical_query(check(text)), options)
    assert isinstance(config, GroupTopkConfig)
    found: Came = [(1, subject, ox.Literal("x")) for subject in "abc"]
    Run(GroupTopkEvaluator(config, ox.Store()), found, TimeFrame(4, 2)).rows(0)
    assert seen.count("x") == 2  # and for the row of the answer


@pytest.mark.parametrize("function", ["count", "sum", "avg", "min", "max"])
@examples(60)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from(ODD + PLAIN[0])),
        unique=True,
    ),
    st.lists(st.integers(0, 3)),
)
def test_partials_of_terms_are_those_of_all_terms(function: Function, arrivals, moves):
    """A value may move to another end before it goes."""
    partials = TermPartials(function)
    held = {(number, term): end for end, number, term in arrivals}
    for (number, term), end in held.items():
        partials.add(end, number, term)
    for (number, term), later in zip([*held], moves, strict=False):
        if later > held[number, term]:
            partials.add(held[number, term], number, term, -1)
            partials.add(later, number, term)
            held[number, term] = later
    for window in range(4):
        partials.expire(window)
        groups: dict[int, list[Any]] = {}
        for (number, term), end in held.items():
            if end >= window:
                groups.setdefault(number, []).append(term)
        found = partials.terms()
        for number, terms in groups.items():
            expected = (
                ox.Literal(len(terms))
                if function == "count"
                else TERM_AGGREGATES[function.upper()](terms)
            )
            assert str(found[number]) == str(expected)


def totals(values: list[float], counts: list[int]) -> Totals:
    keys = np.arange(len(values))
    return Totals(keys, keys, np.array(values), np.array(counts))


INTEGERS, ONE_DIGIT = NumberKind("exact"), NumberKind("exact", 1)


@pytest.mark.parametrize(
    ("function", "values", "found", "expected", "kind"),
    [
        ("count", ValueKind(None, 0.0), totals([2.0], [2]), [2.0], INTEGERS),
        ("sum", ValueKind(ONE_DIGIT, 0.2), totals([0.1 + 0.2, 0.3], [2, 1]), [0.3, 0.3], ONE_DIGIT),
        ("sum", ValueKind(INTEGERS, 1e14), totals([1e15], [10]), None, None),
        ("sum", ValueKind(NumberKind("exact", 3), 1e10), totals([5.0], [1000]), None, None),
        ("sum", ValueKind(NumberKind("mixed"), 1.0), totals([5.0], [2]), None, None),
        (
            "sum",
            ValueKind(NumberKind("double"), 1.0),
            totals([inf], [2]),
            [inf],
            NumberKind("double"),
        ),
        ("sum", ValueKind(NumberKind("double"), 1.0), totals([nan], [2]), None, None),
        ("sum", ValueKind(None, 0.0), totals([5.0], [2]), None, None),
        (
            "min",
            ValueKind(NumberKind("mixed", 2), 5.0),
            totals([0.25], [2]),
            [0.25],
            NumberKind("mixed", 2),
        ),
        ("avg", ValueKind(INTEGERS, 5.0), totals([5 / 3], [3]), [5 / 3], NumberKind("mixed")),
        ("avg", ValueKind(INTEGERS, 1e14), totals([1e13], [1000]), None, None),
        (
            "avg",
            ValueKind(ONE_DIGIT, 0.3),
            totals([(0.1 + 0.2) / 2], [2]),
            [0.15],
            NumberKind("mixed", 1),
        ),
    ],
)
def test_what_float64_tells_of_aggregates(function, values, found, expected, kind):
    column = column_of(function, values, found)
    assert (column is None) == (expected is None)
    if column is not None:
        assert column.values.tolist() == expected
        assert column.kind == kind


def test_kinds_of_values_are_joined():
    one, other = ValueKind(ONE_DIGIT, 3.5), ValueKind(NumberKind("double"), 7.0)
    assert ValueKind.joined([one, other]) == ValueKind(NumberKind("mixed", 1), 7.0)
    assert ValueKind.joined([one, ValueKind(None, 9.0)]) == ValueKind(None, 0.0)
    assert ValueKind.read([ox.Literal(3), ox.Literal(-4)]) == ValueKind(INTEGERS, 4.0)
    assert ValueKind.read([ox.Literal("x")]).kind is None
