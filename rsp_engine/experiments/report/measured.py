"""The measures of a result folder: one array per policy and point, by dataset and window."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from rsp_engine.errors import StateError
from rsp_engine.experiments.tasks import RESULT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rsp_engine.experiments.results import Results
    from rsp_engine.experiments.suite import DataSource, Parameter, ParameterGrid
    from rsp_engine.model.arrays import Floats

__all__ = [
    "BOTH",
    "MEASURES",
    "SYMBOLS",
    "Measure",
    "Measured",
    "Median",
    "Point",
    "measured",
    "median_of",
]

Measure = Literal["ndcg", "ndcg_by_place", "precision"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
BOTH: tuple[Measure, Measure] = ("ndcg", "precision")
"""The measures of the figures: relevancy and accuracy."""

SYMBOLS: Mapping[str, str] = {"ch": "CH", "budget": "B", "k": "K", "n": "N", "queries": "Q"}
"""The symbols of the parameters in AcquaTop, Table 4; Q is the size of a set of queries."""

_READ = (*MEASURES, "fetched")


class Point(NamedTuple):
    """The parameters of a run, without its policy."""

    ch: int
    budget: int
    k: int
    n: int
    queries: int = 0


class Median(NamedTuple):
    """The median over datasets, with the minimum and the maximum."""

    value: float
    least: float
    largest: float


def median_of(values: Iterable[float]) -> Median:
    """Return the median, the minimum and the maximum of numbers.

    >>> median_of([3.0, 1.0, 2.0])
    Median(value=2.0, least=1.0, largest=3.0)
    """
    numbers = np.array(list(values))
    return Median(float(np.median(numbers)), float(numbers.min()), float(numbers.max()))


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The measures of a grid.

    `rows` has an array per policy and point, of shape (measures and keys fetched, datasets,
    windows). Of a set of queries, measures are means over the queries, and keys are all that these
    have fetched; `by_query` has the means over the windows, of shape (measures and keys fetched,
    datasets, queries).
    """

    results: Results
    grid: ParameterGrid
    varied: Parameter
    rows: dict[tuple[str, Point], Floats]
    by_query: dict[tuple[str, Point], Floats] = field(default_factory=dict)

    @property
    def source(self) -> DataSource:
        """The source of the data: generated or recorded."""
        source: DataSource = self.results.manifest["data"]["source"]
        return source

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
        """The number of windows of each run, which is the largest possible sum of a measure."""
        return min(int(rows.shape[2]) for rows in self.rows.values())

    def sums(self, policy: str, point: Point, measure: Measure) -> Floats:
        """Return the cumulated measure of each dataset, as AcquaTop defines it in section 6.2."""
        sums: Floats = self.rows[policy, point][MEASURES.index(measure)].sum(axis=1)
        return sums

    def median(self, policy: str, point: Point, measure: Measure) -> Median:
        """Return the median of the cumulated measure over the datasets."""
        return median_of(self.sums(policy, point, measure))

    def fetched(self, policy: str, point: Point) -> float:
        """Return the average number of keys fetched per window."""
        return float(self.rows[policy, point][_READ.index("fetched")].mean())

    def errors(self, policy: str, point: Point, measure: Measure) -> Floats:
        """Return the cumulated error after each window, as the median over the datasets."""
        errors = 1 - self.rows[policy, point][MEASURES.index(measure)]
        median: Floats = np.median(np.cumsum(errors, axis=1), axis=0)
        return median


def measured(results: Results) -> list[Measured]:
    """Read the measures of each grid of a result folder."""
    varied = results.manifest["varied"]
    return [Measured(results, grid, varied, *_rows(results, grid)) for grid in results.grids]


_Arrays = dict[tuple[str, Point], "Floats"]


def _rows(results: Results, grid: ParameterGrid) -> tuple[_Arrays, _Arrays]:
    """Return the measures of each policy and point by window, and those by query."""
    datasets: dict[tuple[str, Point], dict[int, list[list[float]]]] = {}
    places = [RESULT_COLUMNS.index(name) for name in _READ]
    for part in results.parts(grid):
        with part.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            next(rows)
            try:
                for row in rows:
                    ch, number, policy, *parameters = row[: len(Point._fields) + 2]
                    point = Point(int(ch), *map(int, parameters))
                    windows = datasets.setdefault((policy, point), {}).setdefault(int(number), [])
                    windows.append([float(row[place]) for place in places])
            except (ValueError, IndexError) as error:
                raise StateError(f"{part}, line {rows.line_num}: {error}") from None
    by_window, by_query = {}, {}
    for key, of_key in datasets.items():
        values = np.array([windows for _, windows in sorted(of_key.items())])
        # Rows are in the order of windows, and within one in that of queries.
        shape = len(values), -1, key[1].queries or 1, len(_READ)
        values = values.reshape(shape).transpose(3, 0, 1, 2)
        by_window[key] = values.mean(axis=3)
        by_window[key][-1] = values[-1].sum(axis=2)
        if key[1].queries:
            by_query[key] = values.mean(axis=2)
    return by_window, by_query
