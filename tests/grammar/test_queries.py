"""The queries of `queries/`: each is valid, states its question, and answers it.

`tests/cases/queries` has for each query the content of its windows, static graphs and services at
one instant (`NAME.trig`: a graph per window and per service) and the expected answer (`NAME.txt`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyoxigraph import (
    Literal,
    NamedNode,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Store,
)
from rdflib.plugins.sparql import prepareQuery

from rsp_engine.grammar import parse, serialise, to_sparql, validate
from rsp_engine.grammar.tree import (
    AskForm,
    ConstructForm,
    CountWindow,
    Exists,
    GraphPattern,
    NamedCall,
    Node,
    QueryUnit,
    ServicePattern,
    SubSelect,
    Var,
    WindowPattern,
    find,
    rewrite_tree,
)
from rsp_engine.grammar.write import FUNCTIONS
from tests.data import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

CASES = PROJECT / "tests" / "cases" / "queries"
QUERIES = sorted((PROJECT / "queries").glob("*.rspql"))

KINDS = {
    "one window, no SERVICE": ["biggest-trades", "warmest-rooms"],
    "window JOIN SERVICE": ["influencers", "influencers-expression", "least-maintained-machines"],
    "several windows, attributes put together": [
        "cameras",
        "flows",
        "stations",
        "weather-sum",
        "weather-optional",
    ],
    "pairs of one window": ["pairs_auction", "pairs_sensors", "similar-stocks"],
    "an aggregate per key": ["most-mentioned", "busiest-junctions"],
    "any other": [
        "alerts-construct",
        "departures",
        "hot-observations",
        "traffic-ask",
        "trending-tags",
        "unhealthy-air",
        "window-sizes",
    ],
}

each_query = pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)


def query_of(path: Path) -> QueryUnit:
    return parse(path.read_text(encoding="utf-8"), path.name)


@each_query
def test_a_query_is_valid_and_nothing_in_it_is_suspicious(path):
    result = validate(path.read_text(encoding="utf-8"))
    assert result.errors == result.warnings == ()


@each_query
def test_a_query_starts_with_its_question_in_plain_words(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = lines[: next(i for i, line in enumerate(lines) if not line.startswith("# "))]
    assert 1 <= len(comments) <= 3
    assert "?" in " ".join(comments)


@each_query
def test_a_query_is_read_back_from_its_text(path):
    query = query_of(path)
    assert parse(serialise(query)) == query


@each_query
def test_other_engines_take_the_sparql_of_a_query(path):
    prepareQuery(to_sparql(query_of(path)))  # parses the query without calling a service


@each_query
def test_a_query_means_what_its_question_says(path):
    query = query_of(path)
    expected = (CASES / f"{path.stem}.txt").read_text(encoding="utf-8").splitlines()
    answer = ask(query, CASES / f"{path.stem}.trig")
    if query.form.modifiers.order_by:
        assert answer == expected
    else:
        assert Counter(answer) == Counter(expected)


def test_every_kind_of_query_is_there_and_every_query_is_of_a_kind():
    named = [name for names in KINDS.values() for name in names]
    assert sorted(named) == sorted(path.stem for path in QUERIES)


def test_the_queries_show_what_the_language_can_say():
    queries = [query_of(path) for path in QUERIES]
    nodes = [node for query in queries for kind in SHOWN for node in find(query, kind)]
    assert {type(node) for node in nodes} == set(SHOWN)
    assert any(
        isinstance(window.name, Var) for window in nodes if isinstance(window, WindowPattern)
    )
    assert {q.register.r2s for q in queries if q.register} == {"RSTREAM", "ISTREAM", "DSTREAM"}


SHOWN: tuple[type[Node], ...] = (
    AskForm, ConstructForm, CountWindow, Exists, GraphPattern, NamedCall, ServicePattern, SubSelect,
    WindowPattern,
)  # fmt: skip


def ask(query: QueryUnit, content: Path) -> list[str]:
    """Answer a query at one instant: a line per row, or per triple, or `true` or `false`."""
    store = Store()
    store.load(path=content, format=RdfFormat.TRIG)
    local = rewrite_tree(query, service_as_graph)
    assert isinstance(local, QueryUnit)
    match store.query(to_sparql(local), custom_functions={NamedNode(f"{FUNCTIONS}F"): add}):
        case QueryTriples() as triples:
            text = triples.serialize(format=RdfFormat.N_TRIPLES)
        case QuerySolutions() | QueryBoolean() as rows:
            text = rows.serialize(format=QueryResultsFormat.CSV)
    assert text is not None
    return text.decode().splitlines()


def add(left: Literal, right: Literal) -> Literal:
    """Add two whole numbers: the scoring function F of the queries that have one."""
    return Literal(int(left.value) + int(right.value))


def service_as_graph(node: Node) -> Node:
    """Turn SERVICE into GRAPH: Oxigraph would call the service."""
    return GraphPattern(node.name, node.group) if isinstance(node, ServicePattern) else node
