"""Grids with invented measures, for tests of claims and reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.experiments.report.measured import Measured, Point
from rsp_engine.experiments.results import Results
from rsp_engine.experiments.suite import ParameterGrid

if TYPE_CHECKING:
    from rsp_engine.experiments.suite import Parameter

WINDOWS = 100


def made_grid(
    points: list[Point],
    values: dict[str, list[float]],
    varied: Parameter = "budget",
    *,
    precision: dict[str, list[float]] | None = None,
    fetched: float = 20.0,
    suite: str = "experiment-1",
    counting: str = "slides",
) -> Measured:
    """Return a grid in which the policies have these medians, over 3 datasets, at the points."""
    rows = {}
    for policy, sums in values.items():
        exact = (precision or values)[policy]
        for point, ndcg, right in zip(points, sums, exact, strict=True):
            found = np.empty((4, 3, WINDOWS))
            for dataset, shift in enumerate((-1.0, 0.0, 1.0)):
                found[:2, dataset] = (ndcg + shift) / WINDOWS
                found[2, dataset] = (right + shift) / WINDOWS
            found[3] = fetched
            rows[policy, point] = found
    ch, budget, k, n, queries = (
        tuple(sorted({getattr(p, f) for p in points})) for f in Point._fields
    )
    grid = ParameterGrid("made up", tuple(values), ch, budget, k, n, queries=queries)
    manifest = {
        "suite": suite,
        "title": "Made <up>",
        "section": "6.4",
        "varied": varied,
        "quick": False,
        "data": {"source": "generated", "counting": counting, "datasets": 3, "seed": 0},
        "versions": {"rsp_engine": "0"},
    }
    return Measured(Results(Path(suite), manifest), grid, varied, rows)


def by_budget(*budgets: int, k: int = 5, n: int = 10) -> list[Point]:
    """Return points that differ in the budget alone."""
    return [Point(10, budget, k, n) for budget in budgets]
