"""The W3C syntax tests of SPARQL 1.1, positive and negative."""

from __future__ import annotations

import pytest

from rsp_engine.errors import QuerySyntaxError
from rsp_engine.grammar import parse, validate
from tests.grammar.w3c import syntax_tests, text_of


def test_every_positive_syntax_test_parses_and_validates():
    cases = syntax_tests("Positive")
    assert len(cases) == 63
    for case in cases:
        parse(text_of(case), case.name)
        assert validate(text_of(case)).errors == (), case.name


def test_every_negative_syntax_test_is_refused_as_a_syntax_error():
    cases = syntax_tests("Negative")
    assert len(cases) == 31
    for case in cases:
        with pytest.raises(QuerySyntaxError):
            parse(text_of(case), case.name)


def test_a_token_is_the_longest_match_whatever_the_parser_expects():
    # `<?a&&?b>` is an IRI, though an operator would be welcome here (W3C syn-bad-26).
    with pytest.raises(QuerySyntaxError):
        parse("SELECT * { ?x ?p ?y FILTER(?x<?a&&?b>?y) }")
    parse("SELECT * { ?x ?p ?y FILTER(?x<?a && ?b>?y) }")
