"""SUM, AVG, MIN and MAX of terms: exact in any order, and otherwise equal to Oxigraph's."""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.grammar import parse
from rsp_engine.grammar.write import serialise
from rsp_engine.model.terms.numerals import stored_literal
from rsp_engine.operators.sparql.sparql_query import SparqlConfig, SparqlQuery
from rsp_engine.operators.sparql.term_aggregates import (
    TERM_AGGREGATES,
    ExactSum,
    average_of,
    largest,
    least,
    sum_of,
)
from rsp_engine.plan.sparql.oxigraph_dialect import exactly_aggregated
from tests.thoroughness import examples

XSD = "http://www.w3.org/2001/XMLSchema#"


def literal(text: str, kind: str) -> ox.Literal:
    return stored_literal(ox.Literal(text, datatype=ox.NamedNode(XSD + kind)))


def double(value: float) -> ox.Literal:
    return literal("INF" if value == inf else "-INF" if value == -inf else repr(value), "double")


def short(value: float | np.float32) -> ox.Literal:
    return literal(str(np.float32(value)), "float")


def asked(aggregate: str, *values: object) -> Any:
    """Return the aggregate of Oxigraph itself."""
    data = f"VALUES ?v {{ {' '.join(map(str, values))} }}"
    rows: Any = ox.Store().query(f"SELECT ({aggregate} AS ?n) WHERE {{ {data} }}")
    [row] = rows
    return row[0]


integers = st.integers(-(2**62), 2**62).map(ox.Literal)
decimals = st.decimals(-(10**12), 10**12, places=12).map(lambda v: literal(f"{v:f}", "decimal"))
few = st.sampled_from([literal("0.1", "decimal"), literal("0.2", "decimal"), ox.Literal(3)])
doubles = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 1.0, 1e308, 2.0**-1074]),
).map(double)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False).map(short)


def exact(term: ox.Literal) -> Fraction:
    """Return the value of a number of any type."""
    if term.datatype.value == XSD + "float":
        return Fraction(float(np.float32(term.value)))
    if term.datatype.value == XSD + "double":
        return Fraction(float(term.value))
    return Fraction(Decimal(term.value))


@examples(200)
@given(st.lists(st.one_of(integers, decimals, few), min_size=1, max_size=8))
def test_integers_and_decimals_are_added_to_the_last_digit(values):
    total = sum(map(exact, values))
    is_decimal = any(value.datatype.value == XSD + "decimal" for value in values)
    found = sum_of(values)
    if is_decimal:
        assert found is not None
        assert exact(found) == total
        assert found.datatype.value == XSD + "decimal"
    elif -(2**63) <= total < 2**63:
        assert found == ox.Literal(int(total))
    else:
        assert found is None
    mean = average_of(values)
    assert mean is not None
    assert mean.datatype.value == XSD + "decimal"
    below = total / len(values) - exact(mean)
    assert 0 <= below * (1 if total >= 0 else -1) < Fraction(1, 10**18)


@examples(300)
@given(st.lists(st.one_of(doubles, integers, few), min_size=1, max_size=8), doubles)
def test_a_sum_with_a_double_is_the_double_nearest_to_the_exact_sum(values, one):
    total = sum(map(exact, [*values, one]))
    try:
        nearest = float(total)
    except OverflowError:
        nearest = inf if total > 0 else -inf
    found, mean = sum_of([*values, one]), average_of([*values, one])
    assert found == double(nearest + 0.0)
    assert mean == double(nearest / (len(values) + 1) + 0.0)


@examples(300)
@given(st.lists(st.one_of(floats, few), min_size=1, max_size=6), floats)
def test_a_sum_with_a_float_is_the_float_nearest_to_the_exact_sum(values, one):
    total = sum(map(exact, [*values, one]))
    found = sum_of([*values, one])
    assert found is not None
    assert found.datatype.value == XSD + "float"
    number = np.float32(found.value)
    if np.isinf(number):
        assert abs(Fraction(total)) >= 2**128 - 2**103
        return
    [bits] = struct.unpack("<i", struct.pack("<f", number))
    with np.errstate(over="ignore"):
        around = [np.nextafter(number, np.float32(to)) for to in (-inf, inf)]
    distance = abs(total - Fraction(float(number)))
    for other in around:
        if np.isfinite(other):
            away = abs(total - Fraction(float(other)))
            assert distance < away or (distance == away and bits % 2 == 0)
    mean = average_of([*values, one])
    assert mean == short(number / np.float32(len(values) + 1) + np.float32(0))


@examples(150)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([ox.Literal(2**63 - 1), ox.Literal(-5), ox.Literal("x"), double(inf)]),
            st.sampled_from([double(-inf), double(nan), ox.NamedNode("urn:a"), ox.Literal(True)]),
            integers, decimals, doubles, floats,
        ),
        max_size=8,
    ),
    st.randoms(),
)  # fmt: skip
def test_no_order_changes_an_aggregate(values, chance):
    shuffled = [*values]
    chance.shuffle(shuffled)
    for function in TERM_AGGREGATES.values():
        assert str(function(values)) == str(function(shuffled))


@examples(100)
@given(
    st.lists(st.one_of(integers, decimals, doubles, floats, st.just(ox.Literal("x"))), max_size=8),
    st.lists(st.one_of(integers, doubles, st.just(double(inf)), st.just(ox.Literal("x")))),
)
def test_sums_are_merged_and_terms_removed(values, others):
    merged = ExactSum()
    for part in (values[::2], others, values[1::2]):
        sums = ExactSum()
        for value in part:
            sums.add(value)
        merged.merge(sums)
    for value in others:
        merged.add(value, -1)
    assert str(merged.sum()) == str(sum_of(values))
    assert str(merged.average()) == str(average_of(values))


FITTING = [
    [ox.Literal(2**63 - 1), ox.Literal(1)],
    [literal("170141183460469231731.687303715884105727", "decimal"), ox.Literal(1)],
]
ALONE = [
    [],
    *FITTING,
    [ox.Literal(1), ox.Literal(2), ox.Literal(2)],
    [ox.Literal(-1), ox.Literal(-1), ox.Literal(-3)],
    [literal("1", "byte"), literal("2", "unsignedInt")],
    [ox.Literal(1), literal("2.0", "decimal"), literal("2.5", "decimal")],
    [ox.Literal(1), double(1.5)],
    [double(0.1), double(0.2)],
    [double(-0.0)],
    [double(-0.0), double(-0.0)],
    [double(inf), ox.Literal(1)],
    [double(inf), double(inf)],
    [double(inf), double(-inf)],
    [double(nan), ox.Literal(1)],
    [double(nan), double(inf)],
    [double(1e308), double(1e308)],
    [short(1.5), ox.Literal(1)],
    [short(1.1), double(2.2)],
    [short(3.4e38), short(3.4e38)],
    [short(1), short(1.5), short(1.5)],
    [ox.Literal(2**63 - 1), literal("1.0", "decimal")],
    [ox.Literal(-(2**63))],
    [literal("170141183460469231731.687303715884105727", "decimal")],
    [literal("0.000000000000000001", "decimal"), ox.Literal(1)],
    [literal("123456789012345678.123456789012345678", "decimal"), ox.Literal(1)],
    [ox.Literal("1")],
    [ox.Literal(1), ox.Literal("x")],
    [ox.Literal(True)],
    [ox.NamedNode("urn:a")],
    [literal("P1D", "dayTimeDuration"), literal("P1D", "dayTimeDuration")],
    [literal("2020-01-01", "date")],
    [ox.Literal("99999999999999999999", datatype=ox.NamedNode(XSD + "integer"))],
    [ox.Literal("abc", datatype=ox.NamedNode(XSD + "double"))],
]


@pytest.mark.parametrize("values", ALONE, ids=lambda values: " ".join(map(str, values)) or "none")
def test_where_the_order_does_not_matter_sums_are_those_of_oxigraph(values):
    for function, name in ((sum_of, "SUM"), (average_of, "AVG")):
        if name == "SUM" or values not in FITTING:
            assert str(function(values)) == str(asked(f"{name}(?v)", *values))
        distinct = TERM_AGGREGATES[f"{name}_DISTINCT"](values + values)
        assert str(distinct) == str(function([*dict.fromkeys(values)]))


def test_an_average_may_fit_where_the_sum_does_not():
    assert str(sum_of(FITTING[0])) == str(sum_of(FITTING[1])) == "None"
    assert average_of(FITTING[0]) == literal(str(2**62), "decimal")
    assert average_of(FITTING[1]) == literal("85070591730234615866.343651857942052863", "decimal")


KINDS = [
    [ox.Literal(3), ox.Literal(-2), literal("2.5", "decimal"), double(-7.5), double(inf)],
    [ox.Literal("b"), ox.Literal("a"), ox.Literal("B")],
    [ox.Literal(True), ox.Literal(False)],
    [ox.NamedNode("urn:b"), ox.NamedNode("urn:a")],
    [literal("2020-01-01", "date"), literal("2019-05-01", "date")],
    [literal("P1D", "dayTimeDuration"), literal("PT25H", "dayTimeDuration")],
]


@pytest.mark.parametrize("values", KINDS, ids=lambda values: str(values[0]))
def test_of_values_of_one_kind_the_least_and_the_largest_are_those_of_oxigraph(values):
    assert least(values) == asked("MIN(?v)", *values)
    assert largest(values) == asked("MAX(?v)", *values)


def test_of_values_of_any_kind_the_least_and_the_largest_are_by_the_order_of_terms():
    ranked: list[Any] = [
        ox.BlankNode("z"), ox.NamedNode("urn:a"), double(nan), double(-inf), ox.Literal(100),
        ox.Literal(False), literal("2020-01-01", "date"), literal("P1D", "duration"),
        ox.Literal("15 kg"), ox.Literal("15 kg", language="en"), literal("12:00:00", "time"),
        ox.Literal("x", datatype=ox.NamedNode("urn:type")),
    ]  # fmt: skip
    for first in range(len(ranked)):
        for last in range(first, len(ranked)):
            part = ranked[first : last + 1]
            assert least(part[::-1]) == least(part) == ranked[first]
            assert largest(part[::-1]) == largest(part) == ranked[last]
    assert least([]) is None


def test_of_equal_values_the_least_and_the_largest_are_by_datatype():
    ones = [literal("1", kind) for kind in ("decimal", "double", "float", "integer")]
    assert (least(ones), largest(ones)) == (ones[0], ones[-1])
    zeros = [double(-0.0), literal("0", "decimal")]
    assert least(zeros) == zeros[1]
    month = [literal("P1M", "yearMonthDuration"), literal("P30DT10H29M6S", "dayTimeDuration")]
    assert least(month) == month[1]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT (MIN(?v) AS ?n) {{ {} }}", [["9"]]),
        ("SELECT (SUM(DISTINCT ?v) AS ?n) {{ VALUES ?v {{ 1 1 2 }} }}", [["3"]]),
        ("SELECT (AVG(DISTINCT ?v) AS ?n) {{ VALUES ?v {{ 1 1 2 }} }}", [["1.5"]]),
        ("SELECT ?g (SUM(?v) AS ?n) {{ VALUES (?g ?v) {{ (1 5) (2 7) (1 1) }} }} GROUP BY ?g"
         " HAVING (SUM(?v) > 6)", [["2", "7"]]),
        ("SELECT ?g {{ VALUES (?g ?v) {{ (1 5) (2 7) (1 1) }} }} GROUP BY ?g"
         " ORDER BY DESC(MAX(?v) - MIN(?v))", [["1"], ["2"]]),
        ("SELECT (SUM(?m) AS ?n) {{ {{ SELECT ?g (MAX(?v) AS ?m) {{"
         " VALUES (?g ?v) {{ (1 5) (2 7) (1 1) }} }} GROUP BY ?g }} }}", [["12"]]),
        ("SELECT (SUM(?v + 1) AS ?n) {{ {} }}", [[None]]),
        ("SELECT (COUNT(?v) AS ?n) (MAX(?v) AS ?m) {{ VALUES ?v {{ 1 UNDEF }} }}", [["1", None]]),
    ],
)  # fmt: skip
def test_aggregates_work_wherever_sparql_allows_them(query, expected):
    text = query.format('VALUES ?v { 100 "15 kg" 9 }')
    config = SparqlConfig(serialise(exactly_aggregated(parse(text))), "SELECT")
    rows = SparqlQuery(config).ask(ox.Store(), now=0)
    assert isinstance(rows, ox.QuerySolutions)
    found = [[None if term is None else term.value for term in row] for row in rows]
    assert found == expected


def test_a_sum_that_is_nan_is_a_value_and_no_error():
    found = sum_of([double(inf), double(-inf)])
    assert found is not None
    assert isnan(float(found.value))
