"""The worked examples of the paper, as files: skyband, staircase, tree, and a query."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.priority_search_tree import PrioritySearchTree, SearchNode
from rsp_engine.operators.pairs.pairs import Pairs, as_pairs, best_pairs_first
from rsp_engine.operators.pairs.staircase import update_skyband_and_staircase

FOLDER = Path(__file__).parents[2] / "cases" / "pairs"
CASES = {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}


class Figure:
    """The pairs of a case, best first. The older object of a pair of age x is at position -x."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.k: int = case["k"]
        given = [text.split() for text in case["pairs"]]
        ages = [-int(age) for _, age, _ in given]
        scores = [float(score) for _, _, score in given]
        self.pairs: Pairs = best_pairs_first(as_pairs(scores, ages, range(len(given))))
        self.names = [given[number][0] for number in self.pairs.newer.tolist()]


def cases_with(word: str) -> pytest.MarkDecorator:
    """Parametrise a test with the cases that have a section."""
    shown = {name: case for name, case in CASES.items() if word in case}
    return pytest.mark.parametrize("case", shown.values(), ids=shown)


@cases_with("skyband")
def test_the_skyband_is_that_of_the_paper(case):
    figure = Figure(case)
    kept, _ = update_skyband_and_staircase(figure.pairs, figure.k)
    assert sorted(figure.names[place] for place in kept) == case["skyband"]


@cases_with("dominators")
def test_a_pair_is_left_out_for_the_pairs_that_dominate_it(case):
    figure = Figure(case)
    for name, expected in case["dominators"].items():
        place = figure.names.index(name)
        better = figure.pairs.older[:place] >= figure.pairs.older[place]
        assert sorted(figure.names[other] for other in better.nonzero()[0]) == expected


@cases_with("staircase")
def test_the_staircase_is_that_of_the_paper(case):
    figure = Figure(case)
    _, staircase = update_skyband_and_staircase(figure.pairs, figure.k)
    steps = zip(staircase.older.tolist(), staircase.scores.tolist(), strict=True)
    assert [f"{-older} {score:.0f}" for older, score in steps] == case["staircase"]


@cases_with("tree")
def test_the_tree_is_that_of_the_paper(case):
    figure, expected = Figure(case), case["tree"]
    tree = PrioritySearchTree(figure.pairs)
    tree._check()
    nodes = {figure.names[node.place]: node for node in nodes_of(tree.root)}
    scores = figure.pairs.scores
    assert tree.root is nodes[expected["root"]]
    assert {name: scores[nodes[name].median] for name in expected["medians"]} == expected["medians"]
    assert {name: named(figure, nodes[name].left) for name in expected["left"]} == expected["left"]
    right = {name: named(figure, nodes[name].right) for name in expected["right"]}
    assert right == expected["right"]
    for name, below in expected["below"].items():
        found = (figure.names[node.place] for node in nodes_of(nodes[name]))
        assert sorted(found) == sorted([name, *below])


@cases_with("query")
def test_the_query_visits_the_nodes_of_the_paper(case):
    figure, expected = Figure(case), case["query"]
    walk = PrioritySearchTree(figure.pairs).walk(figure.k, -expected["n"])
    found = {word: [figure.names[place] for place in places] for word, places in asdict(walk)}
    assert found == {word: expected[word] for word in ("visited", "stack", "marked", "answer")}
    assert not set(expected["never"]) & {name for names in found.values() for name in names}


def asdict(walk: Any) -> list[tuple[str, list[int]]]:
    return list(zip(("visited", "stack", "marked", "answer"), walk, strict=True))


def nodes_of(node: SearchNode | None) -> list[SearchNode]:
    return [] if node is None else [node, *nodes_of(node.left), *nodes_of(node.right)]


def named(figure: Figure, node: SearchNode | None) -> str | None:
    return None if node is None else figure.names[node.place]
