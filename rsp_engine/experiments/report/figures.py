"""Figures as plain data, which `plots` draws: Figures 9 to 15 of AcquaTop in our numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.experiments.datasets.profile import mentions
from rsp_engine.experiments.report.measured import BOTH, SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.experiments.report.measured import Measure, Measured, Median, Point
    from rsp_engine.experiments.suite import Parameter

__all__ = [
    "MEASURE_LABELS",
    "PARAMETER_LABELS",
    "Bars",
    "Curves",
    "Figure",
    "Lines",
    "Panel",
    "changes_figure",
    "errors_figure",
    "mentions_figure",
    "varied_figure",
]

PARAMETER_LABELS: Mapping[Parameter, str] = {
    "ch": "changes per invocation, CH",
    "budget": "refresh budget, B",
    "k": "size of the answer, K",
    "n": "objects in reserve, N",
    "queries": "queries that share the budget, Q",
}
MEASURE_LABELS: Mapping[Measure, str] = {
    "ndcg": "nDCG@k",
    "ndcg_by_place": "nDCG@k by place",
    "precision": "precision@k",
}
_LETTERS = "abcdefgh"


@dataclass(frozen=True, slots=True)
class Labels:
    """The title and the axis labels of a panel."""

    title: str
    x: str
    y: str


class Lines(NamedTuple):
    """A line for each policy, with a median and its spread at each tick.

    `most` is the largest possible value.
    """

    labels: Labels
    ticks: tuple[str, ...]
    lines: dict[str, tuple[Median, ...]]
    most: float


class Curves(NamedTuple):
    """A curve for each policy, with a value at x = 1, 2, ..."""

    labels: Labels
    curves: dict[str, tuple[float, ...]]


class Bars(NamedTuple):
    """A bar for each whole number from `first` on, for each name."""

    labels: Labels
    first: int
    bars: dict[str, tuple[float, ...]]


Panel = Lines | Curves | Bars


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels with a caption; `key` is the stem of its file names."""

    key: str
    caption: str
    panels: tuple[Panel, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the legend explains, in the order of the panels."""
        names: dict[str, None] = {}
        for panel in self.panels:
            match panel:
                case Lines():
                    names |= dict.fromkeys(panel.lines)
                case Curves():
                    names |= dict.fromkeys(panel.curves)
                case Bars():
                    names |= dict.fromkeys(name for name in panel.bars if name)
        return tuple(names)


def varied_figure(grid: Measured, number: str) -> Figure:
    """Return the measures at each value of the parameter that varies: Figures 12 to 15.

    There is a pair of panels, nDCG and precision, for each combination of the other parameters.
    """
    panels = []
    others = sorted({point._replace(**{grid.varied: 0}) for point in grid.points})
    letters = iter(_LETTERS * len(others))
    for other in others:
        points = [p for p in grid.points if p._replace(**{grid.varied: 0}) == other]
        for measure in BOTH:
            title = (
                f"({next(letters)}) {MEASURE_LABELS[measure]}{_distinction(other, others, grid)}"
            )
            panels.append(_lines(grid, points, measure, title))
    fixed = _fixed(grid)
    caption = (
        f"{number}. {grid.results.manifest['title']}. Grid “{grid.grid.name}”: {fixed}. "
        f"{_datasets(grid)}"
    )
    return Figure(f"{grid.results.name}.{grid.grid.slug}", caption, tuple(panels))


def _distinction(other: Point, others: Sequence[Point], grid: Measured) -> str:
    """Return the parameters that distinguish a pair of panels from the other pairs."""
    differ = [
        f"{SYMBOLS[name]} {getattr(other, name)}"
        for name in other._fields
        if name != grid.varied and len({getattr(one, name) for one in others}) > 1
    ]
    return f", {', '.join(differ)}" if differ else ""


def _fixed(grid: Measured) -> str:
    """Return the values of the parameters that the x axis does not show."""
    values = {name: sorted({getattr(p, name) for p in grid.points}) for name in SYMBOLS}
    return ", ".join(
        f"{SYMBOLS[name]} {' and '.join(map(str, several))}"
        for name, several in values.items()
        if (name != grid.varied or len(several) == 1) and several != [0]
    )


def _datasets(grid: Measured) -> str:
    count = grid.results.manifest["data"]["datasets"]
    of = f"{grid.source} dataset{'s' if count > 1 else ''}"
    return f"Sums over {grid.windows} windows; medians, least and largest of {count} {of}."


def _lines(grid: Measured, points: Sequence[Point], measure: Measure, title: str) -> Lines:
    ticks = tuple(str(getattr(point, grid.varied)) for point in points)
    lines = {
        policy: tuple(grid.median(policy, point, measure) for point in points)
        for policy in grid.policies
    }
    labels = Labels(title, PARAMETER_LABELS[grid.varied], f"cumulated {MEASURE_LABELS[measure]}")
    return Lines(labels, ticks, lines, grid.windows)


def errors_figure(grid: Measured, number: str) -> Figure:
    """Return the cumulated errors, window by window, of a grid with one point: Figure 11."""
    [point] = grid.points
    panels = []
    for letter, measure in zip(_LETTERS, BOTH, strict=False):
        curves = {p: tuple(grid.errors(p, point, measure).tolist()) for p in grid.policies}
        labels = Labels(f"({letter}) {MEASURE_LABELS[measure]}", "window", "cumulated error")
        panels.append(Curves(labels, curves))
    caption = (
        f"{number}. {grid.results.manifest['title']}: cumulated errors, window by window. Grid "
        f"“{grid.grid.name}”: {_fixed(grid)}. Medians of "
        f"{grid.results.manifest['data']['datasets']} {grid.source} datasets; lower is better."
    )
    return Figure(f"{grid.results.name}.{grid.grid.slug}", caption, tuple(panels))


def mentions_figure(dataset: Dataset, source: str) -> Figure:
    """Return the distribution of mentions over users and windows: Figure 9."""
    of_user = np.sort(np.bincount(dataset.mention_users, minlength=len(dataset.names)))[::-1]
    counts = mentions(dataset)
    first = Bars(
        Labels("(a) mentions of each user", "users, the most mentioned first", "mentions"),
        1,
        {"": tuple(map(float, of_user.tolist()))},
    )
    second = Bars(
        Labels("(b) mentions in each window", "window", "mentions, as the paper counts"),
        1,
        {"": tuple(map(float, counts.pairs.tolist()))},
    )
    return Figure(
        f"figure-9.{source}", f"Figure 9. Mentions of the {source} stream.", (first, second)
    )


def changes_figure(datasets: Mapping[int, Dataset], source: str) -> Figure:
    """Return the distribution of changes per user, in a dataset of each CH: Figure 10."""
    return Figure(
        f"figure-10.{source}",
        f"Figure 10. How many users change how often, in {source} datasets.",
        tuple(_changes(datasets)),
    )


def _changes(datasets: Mapping[int, Dataset]) -> Iterator[Panel]:
    for letter, (ch, dataset) in zip(_LETTERS, datasets.items(), strict=False):
        of_user = np.bincount(dataset.changes.users, minlength=len(dataset.names)).tolist()
        users_by_count = Counter(of_user)
        first, last = min(of_user), max(of_user)
        users = tuple(float(users_by_count[count]) for count in range(first, last + 1))
        labels = Labels(f"({letter}) DS-CH-{ch}", "changes of dfc", "users")
        yield Bars(labels, first, {"": users})
