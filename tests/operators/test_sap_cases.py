"""The worked examples of SAP, as files."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from rsp_engine.model.windows import Pane
from rsp_engine.operators.sap.rank_test import eta, zeta, zeta_max
from rsp_engine.operators.sap.sap import Sap, SapConfig
from rsp_engine.operators.sap.stack_index import StackIndex

FOLDER = Path(__file__).parents[1] / "cases" / "sap"
CASES = {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}


@pytest.mark.parametrize("case", CASES["constants"]["constants"], ids=lambda case: str(case["k"]))
def test_the_constants_are_those_of_the_theorems(case):
    k = case["k"]
    assert eta(k) == pytest.approx(case["eta"], abs=5e-5)
    assert zeta(k) == pytest.approx(case["zeta"], abs=5e-4)
    assert zeta_max(k) == pytest.approx(case["zeta_max"], abs=5e-3)
    assert (zeta(k) - k) / zeta(k) ** 0.5 == pytest.approx(3)


def test_the_stacks_of_figure_8_are_reproduced():
    case = CASES["fig-8"]
    index, time = StackIndex(case["stacks"]), 100
    for scan in case["scan"]:
        for score in scan["objects"]:
            if score >= case["theta"]:
                index.push((float(score), time, time, time))
            time -= 1
        index.check()
        assert [[int(entry[0]) for entry in s] for s in index.stacks()] == scan["after"]
    popped = [int(index.pop()[0]) for _ in range(len(index))]
    assert popped == sorted(popped, reverse=True)


def test_the_candidates_and_group_dominance_numbers_of_figures_3_and_4_are_reproduced():
    case = CASES["fig-3"]
    sap = Sap(SapConfig(case["k"], case["n"], case["s"], "equal"))
    now = 0
    for fill in case["fill"]:
        for score in [*range(1, 9), *fill["best"]]:
            sap.arrive(Pane(0, now), [now], [now], [float(score)])
            sap.settle(0)
            now += 1
        assert [int(entry[0]) for entry in sap._candidates.entries] == fill["candidates"]
        assert sap._candidates.dominated == fill["dominated"]
        assert [partition.rho for partition in sap._partitions] == fill["rho"]
