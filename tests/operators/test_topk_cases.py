"""The worked examples of the papers, as files: the steps, and the expected list after each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.acquatop.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.topk.contract import TopkAnswer, TopkOperatorConfig
from rsp_engine.operators.topk.mintopk import MinTopk
from tests.operators.topk_stories import Arrival, Naive, feed_joined, open_panes, plus

FOLDER = Path(__file__).parents[1] / "cases" / "topk"
CASES = {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}
SAYS = {
    "exact": (True, True),
    "the same set": (False, True),
    "approximated": (False, False),
}


def key_of(name: str) -> int:
    return int(name) if name.isdigit() else ord(name) - ord("A")


def arrival_of(text: str) -> Arrival:
    """Read a time, an object and x_S."""
    position, name, streaming = text.split()
    return key_of(name), int(position), float(streaming)


class Play:
    """An operator that plays a case, beside a naive evaluation."""

    def __init__(self, operator: str, case: dict[str, Any]) -> None:
        self.operator: MinTopk | TopkN = (
            MinTopk(TopkOperatorConfig(case["k"]))
            if operator == "MinTopk"
            else TopkN(TopkNConfig(case["k"], case["n"]), plus)
        )
        self.frame = TimeFrame(case["range"], case["step"], case["t0"], case["bounds"])
        texts = [text for moment in case["moment"] for text in moment.get("arrivals", [])]
        self.names = {key_of(text.split()[1]): text.split()[1] for text in texts}
        self.naive = Naive(plus, dict.fromkeys(self.names, 0.0))
        self.closed = -1

    def arrive(self, arrivals: list[str]) -> None:
        found = list(map(arrival_of, arrivals))
        for pane, inside in open_panes(found, self.frame, self.closed):
            self.naive.arrive(pane, inside)
            if isinstance(self.operator, TopkN):
                feed_joined(self.operator, pane, inside, self.naive.remote)
            else:
                self.operator.arrive(pane, *map(list, zip(*inside, strict=True)))

    def change(self, changes: list[str]) -> None:
        assert isinstance(self.operator, TopkN)
        found = [(key_of(text.split()[0]), float(text.split()[1])) for text in changes]
        self.naive.change(found)
        self.operator.change([key for key, _ in found], [value for _, value in found])

    def close(self, window: int) -> TopkAnswer:
        self.closed = window
        return self.operator.close(window)

    def named(self, keys: list[int]) -> str:
        return " ".join(self.names[key] for key in keys)

    def list(self) -> list[str]:
        return [
            f"{self.names[c.key]} {c.score:g} [{c.start},{c.end}]"
            for c in self.operator.candidates()
        ]

    def pointers(self) -> str:
        found = self.operator.pointers()
        return ", ".join(f"W{window} {self.names[key]}" for window, key in found.items())

    def areas(self, window: int) -> str:
        assert isinstance(self.operator, TopkN)
        found = self.operator.areas(window)
        areas = [[key for key in found if found[key] == area] for area in ("K-list", "N-list")]
        return f"W{window}: {self.named(areas[0])} | {self.named(areas[1])}".rstrip()


@pytest.mark.parametrize(
    ("name", "operator"), [(name, one) for name in CASES for one in CASES[name]["operators"]]
)
def test_a_worked_example_is_reproduced(name, operator):
    case = CASES[name]
    play = Play(operator, case)
    for number, moment in enumerate(case["moment"], 1):
        at = f"moment {number} of {name}"
        play.arrive(moment.get("arrivals", []))
        if "settle" in moment:
            play.operator.settle(moment["settle"])
        if "changes" in moment:
            play.change(moment["changes"])
        if "close" in moment:
            right = play.naive.ranking(moment["close"])[: case["k"]]
            ranking = play.close(moment["close"])
            assert play.named(ranking.keys.tolist()) == moment["answer"], at
            assert play.named([key for key, _ in right]) == moment.get("right", moment["answer"]), (
                at
            )
            says = SAYS[moment.get("says", "exact")]
            assert (ranking.is_exact, ranking.has_exact_set) == says, at
        play.operator._check()
        if "list" in moment:
            assert play.list() == moment["list"], at
        if "pointers" in moment:
            assert play.pointers() == moment["pointers"], at
        if operator == "Topk+N":
            for text in moment.get("areas", []):
                assert play.areas(int(text[1 : text.index(":")])) == text, at


def test_cases_say_nothing_that_nobody_reads():
    known = set("arrivals settle changes close answer right says list pointers areas".split())
    assert len(CASES) >= 19
    for case in CASES.values():
        assert case.keys() == set("operators k n range step t0 bounds moment".split())
        assert set().union(*case["moment"]) <= known
