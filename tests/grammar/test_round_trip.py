"""Parse, serialise, parse: the same tree."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from hypothesis import given

from rsp_engine.grammar import parse, serialise, tree
from tests.grammar.strategies import queries
from tests.grammar.w3c import syntax_tests, text_of
from tests.thoroughness import examples


@examples(100)
@given(queries())
def test_a_generated_tree_is_read_back_from_its_text(query):
    assert parse(serialise(query)) == query


def test_every_positive_w3c_test_is_read_back_from_its_text():
    for case in syntax_tests("Positive"):
        query = parse(text_of(case), case.name)
        assert parse(serialise(query)) == query, case.name


def test_spans_say_where_a_construct_was_written_and_do_not_count_in_comparison():
    text = "ASK { ?s \\u003chttp://e/p\\u003e 'x' . FILTER(?s = 1 || ?s) }"
    query = parse(text)
    shown = {
        type(node).__name__: text[node.span.start : node.span.end] for node in tree.walk(query)
    }
    assert shown["Iri"] == "\\u003chttp://e/p\\u003e"
    assert shown["Or"] == "?s = 1 || ?s"
    assert shown["Comparison"] == "?s = 1"
    assert parse(serialise(query)) == query


def test_every_construct_is_a_frozen_dataclass_with_slots_and_a_span():
    kinds = [kind for kind in vars(tree).values() if _is_construct(kind)]
    assert len(kinds) > 50
    for kind in kinds:
        assert is_dataclass(kind)
        assert vars(kind)["__dataclass_params__"].frozen, kind
        assert "__slots__" in vars(kind), kind
        assert "span" in {field.name for field in fields(kind)}, kind


def _is_construct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, tree.Node)
