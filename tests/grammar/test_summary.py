"""The summary of any query is one line."""

from __future__ import annotations

from hypothesis import given

from rsp_engine.grammar import parse, serialise, validate
from rsp_engine.grammar.summary import summary
from tests.grammar.strategies import queries
from tests.thoroughness import examples


@examples(60)
@given(queries())
def test_any_query_has_a_summary_of_one_line(query):
    assert "\n" not in summary(query)


def test_a_pattern_in_order_by_is_written_on_the_same_line():
    order = "EXISTS { { SELECT ?s { ?s ?q 1 } } }"
    query = parse(f"SELECT * {{ ?s ?p ?o }} ORDER BY DESC({order}) LIMIT 2")
    assert summary(query) == ("SELECT, top 2 by DESC EXISTS { { SELECT ?s WHERE { ?s ?q 1 . } } }")


@examples(60)
@given(queries())
def test_any_query_can_be_validated(query):
    assert validate(serialise(query)).query == query
