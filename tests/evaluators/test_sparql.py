"""Plain SPARQL through a window, case by case: every file of `tests/cases/sparql` is a test.

The cases are of the kinds of the W3C's suites that `test_w3c_evaluation` does not have: paths,
orders, cuts, OPTIONAL, the scope of filters, the values of terms. A case says what it shows;
sections follow, which know the prefixes `:` and `xsd:`.

    --- query                the text of a query
    --- data                 the default graph, which becomes a window: Turtle
    --- graph NAME           a named graph, which becomes a static one
    --- rows [in order]      the rows of a SELECT, as VALUES has them
    --- triples              the graph of a CONSTRUCT: Turtle
    --- answer               what an ASK says
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from rsp_engine.testing.case_file import named, sections_of
from tests.data import PROJECT
from tests.evaluators.windowed import WAYS, Found, Question, Table, answers_of, form, results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CASES = sorted((PROJECT / "tests" / "cases" / "sparql").glob("*.case"))
EX = "http://example.org/"
PREFIXES = f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"

Sections = list[tuple[str, str]]


@pytest.mark.parametrize(
    ("path", "way"),
    [
        pytest.param(path, way, id=f"{path.stem}-{way}")
        for path in CASES
        for way in WAYS
        if way != "instead" or "\n--- graph " in path.read_text(encoding="utf-8")
    ],
)
def test_a_window_answers_what_was_worked_out_by_hand(path, way, tmp_path):
    sections = list(sections_of(path.read_text(encoding="utf-8")))
    question = question_of(path.stem, sections, tmp_path)
    names, expected = expected_of(sections)
    found = answers_of([question], way)[path.stem]
    assert form(question, found, names) == form(question, expected, names)


def question_of(name: str, sections: Sections, folder: Path) -> Question:
    """Return the question of a case, with its graphs as files of a folder."""
    [(_, text)] = named(sections, "query")
    graphs = {}
    for graph, turtle in named(sections, "graph"):
        path = folder / f"{graph.removeprefix(':')}.ttl"
        path.write_text(PREFIXES + turtle, encoding="utf-8")
        graphs[EX + graph.removeprefix(":")] = path
    data = [triple for _, turtle in named(sections, "data") for triple in triples_of(turtle)]
    return Question(name, PREFIXES + text, data, graphs)


def expected_of(sections: Sections) -> tuple[Sequence[str], Found]:
    """Return what a case expects, and the variables whose sequence counts."""
    for head, text in sections:
        if head.startswith("rows"):
            rows = results(ox.Store().query(f"{PREFIXES}SELECT * {{ VALUES {text} }}"))
            assert isinstance(rows, Table)
            return (rows.names if head == "rows in order" else ()), rows
        if head == "triples":
            return (), tuple(triples_of(text))
        if head == "answer":
            return (), {"true": True, "false": False}[text]
    raise ValueError("the case expects nothing")


def triples_of(turtle: str) -> list[ox.Triple]:
    text = (PREFIXES + turtle).encode()
    return [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.TURTLE)]
