"""ORDER BY over terms of all kinds: one order, whatever the order of the input."""

from __future__ import annotations

from itertools import permutations

import pyoxigraph as ox
import pytest

from rsp_engine.grammar import parse
from rsp_engine.grammar.write import serialise
from rsp_engine.operators.sparql.sparql_query import SparqlConfig, SparqlQuery
from rsp_engine.plan.sparql.oxigraph_dialect import totally_ordered

XSD = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"


def ordered(values: tuple[str, ...], condition: str = "?v") -> list[str]:
    """Return the values in the order of a query that reads them in this order."""
    return asked(f"{written(values)} ORDER BY {condition}")


def written(values: tuple[str, ...]) -> str:
    return f"{XSD} SELECT ?v WHERE {{ VALUES ?v {{ {' '.join(values)} }} }}"


def asked(text: str) -> list[str]:
    config = SparqlConfig(serialise(totally_ordered(parse(text))), "SELECT")
    solutions = SparqlQuery(config).ask(ox.Store(), now=0)
    assert isinstance(solutions, ox.QuerySolutions)
    return [str(solution["v"]) for solution in solutions]


CYCLES = {
    "numbers and texts": ("20", "100", '"15 kg"'),
    "numbers of three types": ("0.1", "0.1e0", '"0.1"^^xsd:float'),
    "integers that are one double": ("9007199254740993", "9007199254740992", "9007199254740992e0"),
    "what is no number": ('"NaN"^^xsd:double', "1", '"M"', '"INF"^^xsd:float'),
    "integers beyond 64 bits": ("99999999999999999999", "5", "100"),
    "dates with and without zones": (
        '"2024-01-01T12:00:00"^^xsd:dateTime',
        '"2024-01-01T09:00:00-09:00"^^xsd:dateTime',
        '"2024-01-01T13:00:00Z"^^xsd:dateTime',
    ),
    "dates and what is none": (
        '"2024-01-01T10:00:00+05:00"^^xsd:dateTime',
        '"2024-01-01T09:00:00Z"^^xsd:dateTime',
        '"2024-01-01T09:61:00Z"^^xsd:dateTime',
    ),
}


@pytest.mark.parametrize("condition", ["?v STR(?v) DATATYPE(?v)", "DESC(?v) STR(?v) DATATYPE(?v)"])
@pytest.mark.parametrize("values", CYCLES.values(), ids=CYCLES)
def test_the_order_does_not_depend_on_the_order_of_reading(values, condition):
    assert len({tuple(ordered(found, condition)) for found in permutations(values)}) == 1


def test_thousands_of_terms_with_cycles_in_their_text_order_are_ordered():
    """Oxigraph aborts the process if its sort detects that there is no order."""
    values = [f'"{n} kg"' if n % 3 else str(n) for n in range(3000)]
    assert len(ordered(tuple(values))) == len(values)


IN_ORDER = {
    "numbers by value": ("-1e0", "0.5", "2", "9.5", "10"),
    "integers that are one double": ("-9007199254740993", "9007199254740992", "9007199254740993"),
    "texts of all languages": ('"a"', '"b"@en', '"c"', '"d"@de'),
    "moments": (
        '"2024-01-01T10:00:00+05:00"^^xsd:dateTime',
        '"2024-01-01T09:00:00"^^xsd:dateTime',
        '"2024-01-01T10:00:00Z"^^xsd:dateTime',
    ),
    "kinds": ("UNDEF", "<http://example.org/a>", "100", "true", '"15 kg"'),
}


@pytest.mark.parametrize("values", IN_ORDER.values(), ids=IN_ORDER)
def test_the_order_that_sparql_defines_holds(values):
    rising = asked(written(values))
    assert ordered(values) == ordered(values[::-1]) == rising
    assert ordered(values, "DESC(?v)") == rising[::-1]


def test_the_next_condition_breaks_ties_of_equal_numbers():
    values = ("2", "2.0", "2e0")
    found = ordered(values, "?v STR(DATATYPE(?v))")
    assert found == ordered(values, "STR(DATATYPE(?v))")
    assert ordered(values, "?v DESC(STR(DATATYPE(?v)))") == found[::-1]
