"""Errors: the tree on top of the file is the tree of the code, and a place is shown rightly."""

from __future__ import annotations

import re

import pytest

from rsp_engine import errors
from rsp_engine.errors import (
    Diagnostic,
    QuerySemanticError,
    QuerySyntaxError,
    RspError,
    Span,
    render,
)
from rsp_engine.grammar import check, parse


def test_the_tree_on_top_of_the_file_is_the_tree_of_the_code():
    drawn: list[tuple[int, str]] = [
        (match.start(1), match[1])
        for line in (errors.__doc__ or "").splitlines()
        if (match := re.match(r"[\s│├└─]*(\w+Error)\b", line))
    ]
    parents: dict[str, str] = {}
    for place, (depth, name) in enumerate(drawn[1:], start=1):
        parents[name] = next(n for d, n in reversed(drawn[:place]) if d < depth)
    real = {
        kind.__name__: kind.__mro__[1].__name__
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, RspError) and kind is not RspError
    }
    assert parents == real


def test_every_public_name_is_listed():
    defined = {
        n for n, v in vars(errors).items() if getattr(v, "__module__", "") == errors.__name__
    }
    assert {name for name in defined if not name.startswith("_")} == set(errors.__all__)


def test_an_error_shows_its_hint():
    assert str(RspError("no", "yes")) == "no\n  hint: yes"
    assert str(RspError("no")) == "no"


def test_a_syntax_error_shows_every_diagnostic():
    with pytest.raises(QuerySyntaxError) as error:
        parse("ASK { a:b b:c c:d }", "q.rspql")
    assert str(error.value).count("q.rspql:1:") == 3
    assert error.value.message == "prefix `a:` is not declared"


def test_a_semantic_error_is_raised_for_a_query_that_can_be_read():
    with pytest.raises(QuerySemanticError, match="DESCRIBE cannot be evaluated over a stream"):
        check("DESCRIBE *")
    assert check("ASK { ?s ?p ?o }") == parse("ASK { ?s ?p ?o }")


@pytest.mark.parametrize(
    ("text", "start", "end", "line", "caret"),
    [
        ("abc", 1, 2, "abc", " ^"),
        ("abc", 1, 3, "abc", " ^^"),
        ("abc", 3, 3, "abc", "   ^"),
        ("\tabc", 1, 2, "    abc", "    ^"),
        ("日本 x", 3, 4, "日本 x", "     ^"),
        ("e\u0301 x", 3, 4, "e\u0301 x", "  ^"),
        ("a\nbcd\ne", 3, 4, "bcd", " ^"),
        ("a\nbcd\ne", 3, 7, "bcd", " ^^"),
        ("a\r\nbcd", 4, 5, "bcd", " ^"),
        ("a\x00b", 2, 3, "a\ufffdb", "  ^"),
        ("x" * 100, 90, 91, "x" * 100, " " * 90 + "^"),
        ("x" * 500, 250, 251, "… " + "x" * 100 + " …", " " * 52 + "^"),
        ("x" * 500, 490, 499, "… " + "x" * 100, " " * 92 + "^" * 9),
        ("x" * 500, 10, 490, "x" * 100 + " …", " " * 10 + "^" * 90),
    ],
)
def test_the_caret_stands_under_the_place(text, start, end, line, caret):
    shown = render(Diagnostic("syntax", "m", Span(start, end)), text, "q").splitlines()
    assert shown[2].partition(" | ")[2] == line
    assert shown[3].partition(" | ")[2] == caret
