"""Any text gives a tree or a syntax error within a second."""

from __future__ import annotations

import time

from hypothesis import example, given
from hypothesis import strategies as st

from rsp_engine.errors import QuerySyntaxError, render
from rsp_engine.grammar import parse, serialise, validate
from tests.data import PROJECT
from tests.thoroughness import examples

GOOD = [path.read_text(encoding="utf-8") for path in sorted((PROJECT / "queries").glob("*.rspql"))]
TOKENS = """
    SELECT ASK CONSTRUCT DESCRIBE WHERE FROM NAMED WINDOW ON STREAM RANGE STEP ELEMENTS REGISTER
    RSTREAM AS PREFIX BASE ORDER BY DESC LIMIT GROUP HAVING VALUES UNDEF OPTIONAL UNION MINUS FILTER
    BIND SERVICE SILENT GRAPH EXISTS NOT IN COUNT DISTINCT * { } ( ) [ ] . ; , = != < > <= >= && ||
    ! + - / | ^ ^^ ? a true ?x $y :p ex:q _:b <http://e/> <> "s" 's' 's'@en 1 1.5 1e3 +1 -1 9m PT9M
    F STRLEN # \\ \\u0041 \\uD800 @en
""".split()
texts = st.text(max_size=200)
salads = st.lists(st.sampled_from(TOKENS), max_size=60).map(" ".join)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A good query with a few pieces cut out, doubled, or replaced."""
    text = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        piece = draw(st.sampled_from(["", text[start:end] * 2]) | salads | st.text(max_size=5))
        text = text[:start] + piece + text[end:]
    return text


@examples(200)
@example("")
@example("\ufeff")
@example("\x00")
@example("SELECT * {" + "{" * 300 + "}" * 300 + "}")
@example("SELECT * { FILTER(" + "!(" * 300 + "?x" + ")" * 300 + ") }")
@example("SELECT * {} LIMIT " + "9" * 5000)
@example("ASK FROM NAMED WINDOW <w> ON <s> [RANGE " + "9" * 5000 + "m] {}")
@given(texts | salads | mutations())
def test_any_text_is_a_tree_or_a_syntax_error_within_a_second(text):
    begin = time.process_time()
    try:
        query = parse(text)
    except QuerySyntaxError as error:
        for diagnostic in error.diagnostics:
            assert 0 <= diagnostic.span.start <= len(text)
            assert render(diagnostic, text, "query")
    else:
        assert parse(serialise(query)) == query
        validate(text)
    assert time.process_time() - begin < 1
