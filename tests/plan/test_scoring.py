"""The translation of expressions to scoring functions, with Oxigraph as the oracle."""

from __future__ import annotations

import re
from decimal import Decimal
from math import isnan

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsp_engine.drivers.user_functions import as_sparql
from rsp_engine.grammar import check, tree
from rsp_engine.operators.scoring.scoring_function import (
    Absolute,
    Add,
    Divide,
    Multiply,
    Negate,
    Number,
    Scoring,
    ScoringCall,
    Subtract,
    Variable,
    evaluate,
)
from rsp_engine.operators.scoring.term_scores import are_numbers, column, number
from rsp_engine.plan.scoring import scoring_of
from tests.thoroughness import examples

A, B = Variable("a"), Variable("b")
FUNCTION = "http://example.org/f"


def double(a: float, b: float) -> float:
    return 2 * a + b


FUNCTIONS = {"F": double, FUNCTION: double}


def read(text: str) -> tree.Expression:
    """Return an expression as the parser reads it."""
    query = check(
        "PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
        f"SELECT ({text} AS ?score) FROM NAMED WINDOW :w ON :s [RANGE 9s] "
        "WHERE { WINDOW :w { ?a :p ?b } }"
    )
    return next(iter(tree.find(query, tree.SelectAs))).expression


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?a", A),
        ("2.5", Number(2.5)),
        ("-1", Number(-1)),
        ("?a + ?b - 1", Subtract(Add(A, B), Number(1))),
        ("?a - (?b - 1)", Subtract(A, Subtract(B, Number(1)))),
        ("?a -1", Subtract(A, Number(1))),
        ("?a * ?b / 100", Divide(Multiply(A, B), 100)),
        ("?a / -2e0", Divide(A, -2, is_double=True)),
        ("?a / (-(2))", Divide(A, -2)),
        ("+?a", Add(A, Number(0))),
        ("-(?a + ?b)", Negate(Add(A, B))),
        ("ABS(?a)", Absolute(A)),
        ("F(?a, ?b * 2)", ScoringCall("F", double, (A, Multiply(B, Number(2))))),
        (":f(?a, 1)", ScoringCall(FUNCTION, double, (A, Number(1)))),
        ("xsd:double(?a + ?b)", Add(A, B)),
    ],
)
def test_arithmetic_becomes_a_scoring_function(text, expected):
    assert scoring_of(read(text), FUNCTIONS) == expected


@pytest.mark.parametrize(
    "text",
    [
        "?a / ?b",
        "?a / 0",
        "?a / 0.0",
        "?a / 0e0",
        "?a / (0.1 + 0.2 - 0.3)",
        "1 + '2'",
        "true",
        "'2020-01-01'^^xsd:date",
        "99999999999999999999",
        "'1.1'^^xsd:float",
        "IF(?a > ?b, ?a, ?b)",
        "COALESCE(?a, 0)",
        "ROUND(?a)",
        "?a > ?b",
        "!?a",
        "?a || ?b",
        "?a IN (1, 2)",
        "STRLEN(?a)",
        "G(?a)",
        ":g(?a)",
        "F(?a, ROUND(?b))",
        "?a + ROUND(?b)",
        "ROUND(?a) * ?b",
        "?a * ROUND(?b)",
        "-ROUND(?a)",
        "ABS(ROUND(?a))",
        "xsd:double(?a)",  # the variable may hold a text
        "xsd:double(F(?a, ?b))",
        "xsd:float(?a + ?b)",  # would make different scores equal
        "xsd:decimal(?a + ?b)",  # has no value where the double is large
        "xsd:integer(?a + ?b)",
        "xsd:boolean(?a + ?b)",
        "SUM(?a)",
    ],
)
def test_expressions_without_float64_semantics_are_left_to_oxigraph(text):
    assert scoring_of(read(text), FUNCTIONS) is None


# Guillemets mark numbers, so that these can be written as doubles as well.
numbers = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.decimals(-(10**6), 10**6, places=3).map(lambda d: format(d, "f")),
    st.floats(-1e9, 1e9).map(lambda x: format(Decimal(x), "E")),
).map("«{}»".format)
divisors = st.sampled_from(["«3»", "«100»", "«-4»", "«0.5»", "«2.5E0»", "«-0.125»", "«1E3»"])


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("{} {} {}".format, inner, st.sampled_from("+-*"), inner),
        st.builds("({} / {})".format, inner, divisors),
        st.builds("(- {})".format, inner),
        st.builds("(+ {})".format, inner),
        st.builds("ABS({})".format, inner),
        st.builds("F({}, {})".format, inner, inner),
        st.builds("xsd:double({} + «1»)".format, inner),
    )


expressions = st.recursive(
    st.one_of(st.sampled_from(["?a", "?b"]), numbers), compound, max_leaves=6
)


def as_written(text: str) -> str:
    return text.replace("«", "(").replace("»", ")")


def in_doubles(text: str) -> str:
    return re.sub("«(.*?)»", lambda found: f"({Decimal(found[1]):E})", text)


terms = st.one_of(
    st.integers(-(10**9), 10**9).map(ox.Literal),
    st.floats(-1e9, 1e9).map(ox.Literal),
    st.decimals(-(10**6), 10**6, places=3).map(
        lambda d: ox.Literal(
            format(d, "f"), datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
        )
    ),
    st.sampled_from([None, ox.Literal("5"), ox.NamedNode("urn:a"), ox.Literal(value=True)]),
)


def asked(expression: str, rows: list[tuple[ox.Literal | None, ...]]) -> list[float | None]:
    """Return the value by Oxigraph for each row."""
    values = " ".join(
        f"({n} {' '.join('UNDEF' if term is None else str(term) for term in row)})"
        for n, row in enumerate(rows)
    )
    solutions = ox.Store().query(
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
        f"SELECT ({expression.replace('F(', '<urn:F>(')} AS ?x) "
        f"{{ VALUES (?n ?a ?b) {{ {values} }} }} ORDER BY ?n",
        custom_functions={ox.NamedNode("urn:F"): as_sparql(double)},
    )
    assert isinstance(solutions, ox.QuerySolutions)
    results = [solution["x"] for solution in solutions]
    return list(map(number, results))


def as_double(term: ox.Literal | None) -> ox.Literal | None:
    score = number(term)
    return term if score is None else ox.Literal(score)


def size(expression: Scoring) -> Scoring:
    """Return a bound on the parts of an expression, which scales the rounding error."""
    match expression:
        case Add(x, y) | Subtract(x, y):
            return Add(Number(1), Add(size(x), size(y)))
        case Multiply(x, y):
            return Multiply(size(x), size(y))
        case Divide(x, divisor):
            return Add(Number(1), Divide(size(x), abs(divisor)))
        case Negate(x) | Absolute(x):
            return size(x)
        case ScoringCall(name, function, arguments):
            return Add(Number(1), ScoringCall(name, function, tuple(map(size, arguments))))
        case _:
            return Add(Number(1), Absolute(expression))


@examples(300)
@given(expressions, st.lists(st.tuples(terms, terms), min_size=1, max_size=4))
def test_a_scoring_function_gives_the_values_of_oxigraph(text, rows):
    found = scoring_of(read(as_written(text)), FUNCTIONS)
    assert found is not None, text
    if "F(" in text:  # it may accept a text
        rows = [row for row in rows if are_numbers(row)]
    columns = {"a": column([a for a, _ in rows]), "b": column([b for _, b in rows])}
    scores, sizes = evaluate(found, columns), evaluate(size(found), columns)
    doubles = [tuple(map(as_double, row)) for row in rows]
    answers = zip(asked(as_written(text), rows), asked(in_doubles(text), doubles), strict=True)
    for score, largest, (exact, rough) in zip(scores, sizes, answers, strict=True):
        # Integers and decimals may overflow, where doubles do not.
        expected = rough if exact is None else exact
        if expected is None or isnan(expected):
            assert isnan(score), text
        else:
            assert abs(score - expected) <= 1e-12 * largest, text
