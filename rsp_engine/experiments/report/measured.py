"""The rows of result folders as numbers: of each policy and point the measures of every window."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from rsp_engine.errors import StateError
from rsp_engine.experiments.tasks import RESULT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.experiments.results import Results
    from rsp_engine.experiments.suite import DataSource, Parameter, ParameterGrid
    from rsp_engine.model.arrays import Floats

__all__ = ["BOTH", "MEASURES", "Measure", "Measured", "Median", "Point", "measured", "median_of"]

Measure = Literal["ndcg", "ndcg_by_place", "precision"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
BOTH: tuple[Measure, Measure] = ("ndcg", "precision")
"""Those of the figures: relevancy and accuracy."""

_READ = (*MEASURES, "fetched")


class Point(NamedTuple):
    """A setting without its policy."""

    ch: int
    budget: int
    k: int
    n: int


class Median(NamedTuple):
    """The median of several datasets, with the least and the largest."""

    value: float
    least: float
    largest: float


def median_of(values: Iterable[float]) -> Median:
    """Return the median of some numbers and how far they spread.

    >>> median_of([3.0, 1.0, 2.0])
    Median(value=2.0, least=1.0, largest=3.0)
    """
    found = np.array(list(values))
    return Median(float(np.median(found)), float(found.min()), float(found.max()))


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A grid that was run.

    `rows` are by policy and point: the measures and the keys fetched, by dataset and window.
    """

    results: Results
    grid: ParameterGrid
    varied: Parameter
    rows: dict[tuple[str, Point], Floats]

    @property
    def source(self) -> DataSource:
        """Where the data come from: generated or recorded."""
        found: DataSource = self.results.manifest["data"]["source"]
        return found

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies, in the order of the grid."""
        return self.grid.policies

    @property
    def points(self) -> list[Point]:
        """The points, in order."""
        return sorted({point for _, point in self.rows})

    @property
    def windows(self) -> int:
        """How many windows each run has: the largest sum of a measure."""
        return min(int(rows.shape[2]) for rows in self.rows.values())

    def sums(self, policy: str, point: Point, measure: Measure) -> Floats:
        """Return the cumulated measure of each dataset, as AcquaTop has it in section 6.2."""
        found: Floats = self.rows[policy, point][MEASURES.index(measure)].sum(axis=1)
        return found

    def median(self, policy: str, point: Point, measure: Measure) -> Median:
        """Return the median over the datasets of the cumulated measure."""
        return median_of(self.sums(policy, point, measure))

    def fetched(self, policy: str, point: Point) -> float:
        """Return how many keys were fetched for a window, on average."""
        return float(self.rows[policy, point][_READ.index("fetched")].mean())

    def errors(self, policy: str, point: Point, measure: Measure) -> Floats:
        """Return the cumulated error after each window: the median over the datasets."""
        wrong = 1 - self.rows[policy, point][MEASURES.index(measure)]
        found: Floats = np.median(np.cumsum(wrong, axis=1), axis=0)
        return found


def measured(results: Results) -> list[Measured]:
    """Return the grids of a result folder."""
    varied = results.manifest["varied"]
    return [Measured(results, grid, varied, _rows(results, grid)) for grid in results.grids]


def _rows(results: Results, grid: ParameterGrid) -> dict[tuple[str, Point], Floats]:
    found: dict[tuple[str, Point], dict[int, list[list[float]]]] = {}
    places = [RESULT_COLUMNS.index(name) for name in _READ]
    for part in results.parts(grid):
        with part.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            next(rows)
            try:
                for row in rows:
                    ch, number, policy, budget, k, n = row[:6]
                    point = Point(int(ch), int(budget), int(k), int(n))
                    of = found.setdefault((policy, point), {}).setdefault(int(number), [])
                    of.append([float(row[place]) for place in places])
            except (ValueError, IndexError) as error:
                raise StateError(f"{part}, line {rows.line_num}: {error}") from None
    return {
        key: np.array([of[number] for number in sorted(of)]).transpose(2, 0, 1)
        for key, of in found.items()
    }
