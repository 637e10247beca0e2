"""Joins over N-Quads: however the triples are read and selected, they answer as the general path.

The general path takes one element at a time, keeps every triple, and leaves the rest to Oxigraph.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rsp_engine.engine import Engine
from rsp_engine.evaluators.column_join import ColumnJoinConfig
from rsp_engine.grammar import check
from rsp_engine.io.sources.files.nquads import NQuads
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.plan.planner import plan
from tests.drivers.cut import texts
from tests.drivers.split_runs import in_splits
from tests.thoroughness import examples

if TYPE_CHECKING:
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.options import OperatorName

EX = "http://example.org/"
STAR = "?s :p ?a ; :q ?b"
QUERIES = (
    f"SELECT ?s ?a ?b | {STAR}",
    f"SELECT ?s ?a ?c | {STAR} OPTIONAL {{ ?s :r ?c }} FILTER (?a > 1)",
    f"SELECT ?s ?c | {STAR} OPTIONAL {{ ?s :r ?c FILTER (?c < 2) }} FILTER (?a != 2 && ?s != :b)",
    "SELECT ?s ?b | ?s :p 1 ; :q ?b",
    "SELECT ?s ?b | ?s :p ?b ; :q 'a b'@en FILTER (isLiteral(?b))",
    "SELECT ?a ?c | :a :p ?a . ?a :q ?c",
    "SELECT ?a ?b ?c | ?a :p ?b . ?b :q ?c",
    "SELECT ?a ?b ?x | ?a :p ?x . ?b :p ?x ; :q ?c FILTER (?c >= 1 || LANG(?c) = 'en')",
    "SELECT ?s | ?s :p ?s ; :q ?b",
    f"SELECT ?b (SUM(?a) AS ?t) (COUNT(*) AS ?n) | {STAR} FILTER (?a > 0) | GROUP BY ?b",
    f"SELECT ?s ?a | {STAR} FILTER (?a < ?b)",
    f"SELECT ?s ?c | {STAR} OPTIONAL {{ ?s :r ?c }} FILTER (!BOUND(?c) || ?c > 1)",
    f"SELECT ?s (?a + 1 AS ?x) | {STAR} FILTER (?a >= 1 && ?b > 0) | ORDER BY ?x ?s LIMIT 3",
    f"CONSTRUCT {{ ?s :x ?b }} | {STAR} FILTER (?a > 1)",
)


def query_of(asked: str, step: int) -> str:
    """Return a query, given by its form, its pattern, and its modifiers."""
    form, pattern, modifiers = (*asked.split(" | "), "")[:3]
    window = f"FROM NAMED WINDOW :w ON :s [RANGE 10ms STEP {step}ms]"
    named = "REGISTER RSTREAM :out AS" if form.startswith("CONSTRUCT") else ""
    where = f"WHERE {{ WINDOW :w {{ {pattern} }} }} {modifiers}"
    return f"PREFIX : <{EX}> {named} {form} {window} {where}"


def test_all_these_queries_are_joined_on_columns():
    for asked in QUERIES:
        text = query_of(asked, 5)
        assert isinstance(plan(check(text), text, "q").physical.operator, ColumnJoinConfig), asked


def typed(text: str, kind: str) -> str:
    return f'"{text}"^^<{XSD}{kind}>'


nodes = st.sampled_from([*(f"<{EX}{name}>" for name in "aabbc"), "_:b"])
equal = st.sampled_from(
    [
        *(typed(text, "integer") for text in ("1", "01", "+1", "2", "3")),
        *(typed(text, "decimal") for text in ("1", "1.0", "2.50", "2.5")),
        *(typed(text, "double") for text in ("1", "1.0", "1e0", "1.0E0")),
        typed("1", "int"),
    ]
)
others = st.sampled_from(
    [
        *('"a b"@en', '"a b"@EN', '"a"', '"a"^^<http://www.w3.org/2001/XMLSchema#string>'),
        *('"say \\"a\\"\\u00e9"', '"été"', typed("2024-01-01", "date"), typed("x", "integer")),
        f'"{"long " * 120}"',
        "malformed",
    ]
)
lines = st.builds(
    "{0}{4}<{5}{1}> {2} <{5}g/{3}>{6}\n".format,
    nodes,
    st.sampled_from("ppppqqqqrx"),
    nodes | equal | others,
    st.integers(0, 20),
    st.sampled_from((" ", " ", " ", "\t")),
    st.just(EX),
    st.sampled_from((" .", " .", " .", ".", " . # by hand")),
)
streams = st.lists(lines, min_size=15, max_size=60).flatmap(
    # Some lines come again, at once or in a later pane.
    lambda found: st.lists(st.sampled_from(found), max_size=10).map(lambda more: found + more)
)


def time_of(line: str) -> int:
    return int(line.rpartition("g/")[2].partition(">")[0])


@pytest.mark.parametrize("asked", QUERIES)
@examples(30)
@given(found=streams, step=st.integers(1, 12), in_order=st.booleans(), size=st.integers(50, 2000))
def test_a_join_answers_as_the_general_path(asked, found, step, in_order, size):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.nq"
        chosen = sorted(found, key=time_of) if in_order else found
        path.write_text("".join(chosen), encoding="utf-8")

        def answers(operator: OperatorName = "auto") -> list[str]:
            letters: list[DeadLetter] = []
            engine = Engine(max_delay=5, t0=-1, operator=operator, dead_letter=letters.append)
            engine.register(query_of(asked, step))
            engine.bind(f"{EX}s", str(path))
            return [*texts(engine), *map(str, letters)]

        with in_splits(are_split=False):
            expected = answers("general")
            assert answers() == expected
        event("rows" if any('"bindings"' in each for each in expected) else "no rows")
        assert answers() == expected
        with in_splits(size=size):
            assert answers() == expected
            with patch.object(NQuads, "read_columns", lambda *_: None):
                assert answers() == expected
        with in_splits(size=size, cuts=range(1000)):
            assert answers() == expected
