"""Plans as graphs: DOT that Graphviz reads, and pictures in which no box covers another.

The grammar is that of https://graphviz.org/doc/info/lang.html, as far as plans need it.
"""

from __future__ import annotations

import shutil
import subprocess
from html import unescape
from itertools import combinations
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest
from lark import Lark, Token, Tree, UnexpectedInput

from rsp_engine.drivers.bindings import connect
from rsp_engine.grammar import check, tree
from rsp_engine.options import RankingOptions
from rsp_engine.plan.explain.dot import explain_dot
from rsp_engine.plan.explain.graph import plan_graph
from rsp_engine.plan.explain.svg import explain_svg
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import QueryPlan, plan
from tests.data import PROJECT

DOT = Lark(
    r"""
    start: "digraph" ID "{" statement* "}"
    ?statement: (attributes | edge | node | subgraph) ";"?
    attributes: KIND list
    node: ID list
    edge: ID "->" ID list?
    subgraph: "subgraph" ID "{" statement* "}"
    list: "[" (pair ("," pair)*)? "]"
    pair: ID "=" (ID | NUMBER | QUOTED | html)
    html: "<" part* ">"
    part: TAG | TEXT
    KIND.3: "graph" | "node" | "edge"
    ID: /[A-Za-z_][A-Za-z_0-9]*/
    NUMBER: /-?(\.[0-9]+|[0-9]+(\.[0-9]*)?)/
    QUOTED: /"(\\.|[^"\\])*"/
    TAG.2: /<\/?(B|BR( ALIGN="LEFT")?\/?)>/
    TEXT: /([^<>&"]|&(amp|lt|gt|quot|#x27|#160);)+/
    %ignore /\s+/
    """,
    parser="lalr",
)
WINDOWED = """PREFIX : <http://example.org/>
REGISTER RSTREAM :q AS SELECT ?a FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
WHERE {{ WINDOW :w {{ ?a :p ?t FILTER ({condition}) }} }}"""
HOSTILE = r'REGEX(?t, "<B>\\d\" & > \\")'


def planned(text: str, **options) -> QueryPlan:
    return plan(check(text), text, "q", QueryOptions(**options))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the static graphs that queries name."""
    monkeypatch.chdir(tmp_path)
    for name in ("places.ttl", "influencers.ttl", "visitors.ttl"):
        Path(name).touch()


def plan_of(name: str) -> QueryPlan:
    """Plan a query of `queries/`, with its services, functions and graphs bound."""
    text = (PROJECT / "queries" / f"{name}.rspql").read_text(encoding="utf-8")
    query = check(text)
    names = [clause.name for clause in tree.find(query, tree.ServicePattern)]
    services = {name.value for name in names if isinstance(name, tree.Iri)}
    return plan(
        query,
        text,
        name,
        QueryOptions(
            endpoints={iri: connect("http://localhost:1/") for iri in services},
            functions={"F": lambda *_: None},
            graphs={"http://example.org/air/places": Path("places.ttl")},
            ranking=RankingOptions(match="element"),
        ),
    )


NAMES = sorted(path.stem for path in (PROJECT / "queries").glob("*.rspql"))


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_a_graph_that_graphviz_reads(name, here):
    made = plan_of(name)
    read = DOT.parse(explain_dot(made))
    graph = plan_graph(made)
    boxes = {box.name for part in graph.parts for box in part.boxes}
    arrows = {(arrow.end, arrow.start) for part in graph.parts for arrow in part.arrows}
    assert {str(node.children[0]) for node in read.find_data("node")} == boxes
    assert {(str(e.children[0]), str(e.children[1])) for e in read.find_data("edge")} == arrows
    if dot := shutil.which("dot"):
        drawn = subprocess.run(  # noqa: S603
            [dot, "-Tsvg"], input=explain_dot(made), text=True, capture_output=True, check=False
        )
        assert (drawn.returncode, drawn.stderr) == (0, "")


def test_the_grammar_of_this_test_refuses_what_is_no_graph():
    good = explain_dot(planned(WINDOWED.format(condition="true")))
    DOT.parse(good)
    for bad in (good[:-3], good.replace("->", "--", 1), good.replace("</B>", "</B", 1)):
        with pytest.raises(UnexpectedInput):
            DOT.parse(bad)


def test_the_text_of_a_query_is_in_the_graph_unchanged():
    made = planned(WINDOWED.format(condition=HOSTILE))
    nodes = DOT.parse(explain_dot(made)).find_data("node")
    [label] = [node for node in nodes if "Filter" in label_text(node)]
    assert HOSTILE.replace(" ", "") in label_text(label).replace(" ", "")


def label_text(node: Tree[Token]) -> str:
    texts = node.scan_values(lambda token: isinstance(token, Token) and token.type == "TEXT")
    return unescape(" ".join(map(str, texts))).replace("\xa0", "")


class Area(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: Area) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


@pytest.mark.parametrize("name", NAMES)
def test_no_box_of_a_picture_covers_another_and_all_are_in_its_frame(name, here):
    made = plan_of(name)
    drawing = ET.fromstring(explain_svg(made))  # noqa: S314 - our own text
    parts = drawing.findall("{*}g")
    assert len(parts) == 2
    for part, expected in zip(parts, plan_graph(made).parts, strict=True):
        frame, *boxes = [area(rect) for rect in part.findall("{*}rect")]
        assert len(boxes) == len(expected.boxes)
        assert not [pair for pair in combinations(boxes, 2) if pair[0].covers(pair[1])]
        for box in boxes:
            assert 0 <= box.left < box.right <= frame.right
            assert 0 <= box.top < box.bottom <= frame.bottom
        texts = [text.text for text in part.findall("{*}text")]
        assert [box.title for box in expected.boxes if box.title not in texts] == []


def area(rect: ET.Element) -> Area:
    left, top = float(rect.get("x", 0)), float(rect.get("y", 0))
    return Area(left, top, left + float(rect.attrib["width"]), top + float(rect.attrib["height"]))
