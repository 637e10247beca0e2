"""Trial cells: a challenger against the baselines, at one dataset, K and budget.

All policies of a cell answered the same windows of one workload: they saw the same ties, the same
N, the same first snapshot, and all of them had the change signal, or none.

The *rival* is the single baseline that is best on the other datasets (seeds) of the same family,
at the same K and budget: whoever must choose a policy knows no more. Where there is no other
dataset, it is the best in hindsight. The *best in hindsight* is the baseline that is best on this
very dataset. Sums are scaled to 150 windows, as in AcquaTop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never, get_args

import numpy as np

from rsp_engine.experiments.clairvoyant import CLAIRVOYANT
from rsp_engine.experiments.datasets.dataset import EVALUATIONS
from rsp_engine.experiments.policy_run import split_ways
from rsp_engine.experiments.report.measured import MEASURES
from rsp_engine.experiments.trials.bootstrap import PairedDifference, paired_difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.experiments.report.measured import Measured, Point
    from rsp_engine.experiments.suite import PolicyComparison
    from rsp_engine.model.arrays import Floats

__all__ = [
    "TRIAL_MEASURES",
    "Outcome",
    "TrialCell",
    "TrialMeasure",
    "Versus",
    "outcome_of",
    "pooled",
    "trial_cells",
    "with_and_without",
]

TrialMeasure = Literal["ndcg", "precision", "both"]
"""The measures compared; `both` is the sum of nDCG and precision."""
TRIAL_MEASURES: tuple[TrialMeasure, ...] = get_args(TrialMeasure)

Outcome = Literal["won", "tied", "lost"]
"""Tied: the interval of the difference holds 0."""


def outcome_of(difference: PairedDifference) -> Outcome:
    """Return the outcome of a difference.

    >>> outcome_of(PairedDifference(0.2, -0.1, 0.5)), outcome_of(PairedDifference(0.2, 0.1, 0.3))
    ('tied', 'won')
    """
    if difference.low <= 0 <= difference.high:
        return "tied"
    return "won" if difference.low > 0 else "lost"


@dataclass(frozen=True, slots=True, eq=False)
class Versus:
    """A challenger against one baseline: their paired differences by window, and the interval."""

    name: str
    differences: Floats
    difference: PairedDifference


@dataclass(frozen=True, slots=True, eq=False)
class TrialCell:
    """One measure of a challenger at a dataset and a point.

    `value` and `clairvoyant` are sums, scaled to 150 windows; the latter is None where it was not
    run. `dataset` is counted from 1.
    """

    family: str
    dataset: int
    point: Point
    ways: tuple[str, ...]
    challenger: str
    measure: TrialMeasure
    value: float
    rival: Versus
    best: Versus
    clairvoyant: float | None


def trial_cells(grid: Measured, comparison: PolicyComparison) -> Iterator[TrialCell]:
    """Yield the cells of a grid: of each challenger, point, dataset and measure."""
    for ways, runs in _by_ways(grid).items():
        baselines = [runs[name] for name in comparison.baselines if name in runs]
        if not baselines:
            continue
        for challenger in comparison.challengers:
            for point in grid.points if challenger in runs else ():
                for measure in TRIAL_MEASURES:
                    yield from _cells(grid, ways, runs[challenger], baselines, point, measure)


def _by_ways(grid: Measured) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the runs of a grid in groups of equal ways, by the names of their policies."""
    groups: dict[tuple[str, ...], dict[str, str]] = {}
    for text in grid.policies:
        name, ways = split_ways(text)
        if name != CLAIRVOYANT:
            groups.setdefault(tuple(sorted(ways)), {})[name] = text
    return groups


def _cells(  # noqa: PLR0913, PLR0917 - what a cell is made of
    grid: Measured,
    ways: tuple[str, ...],
    challenger: str,
    baselines: Sequence[str],
    point: Point,
    measure: TrialMeasure,
) -> Iterator[TrialCell]:
    ours = by_window(grid, challenger, point, measure)
    theirs = {name: by_window(grid, name, point, measure) for name in baselines}
    means = {name: values.mean(axis=1) for name, values in theirs.items()}
    clairvoyant = None
    if CLAIRVOYANT in grid.policies:
        clairvoyant = by_window(grid, CLAIRVOYANT, point, measure).mean(axis=1)
    for place in range(len(ours)):
        best = max(means, key=lambda name: means[name][place])
        rival = _rival(means, place)
        yield TrialCell(
            _label(grid),
            place + 1,
            point,
            ways,
            split_ways(challenger)[0],
            measure,
            EVALUATIONS * float(ours[place].mean()),
            _versus(rival, ours[place] - theirs[rival][place]),
            _versus(best, ours[place] - theirs[best][place]),
            None if clairvoyant is None else EVALUATIONS * float(clairvoyant[place]),
        )


def _label(grid: Measured) -> str:
    """Return what the table calls the data of a grid."""
    match grid.source:
        case "generated":
            return grid.grid.family
        case "recorded":
            return f"recorded, {grid.grid.family}"
        case "replay" | "own" as source:
            return "own data" if source == "own" else "replay"
        case _ as unreachable:
            assert_never(unreachable)


def by_window(grid: Measured, policy: str, point: Point, measure: TrialMeasure) -> Floats:
    """Return a measure by dataset and window."""
    rows = grid.rows[policy, point]
    if measure == "both":
        total: Floats = rows[MEASURES.index("ndcg")] + rows[MEASURES.index("precision")]
        return total
    values: Floats = rows[MEASURES.index(measure)]
    return values


def _rival(means: Mapping[str, Floats], place: int) -> str:
    """Return the baseline with the best mean over the other datasets than `place`."""
    others = [other for other in range(len(next(iter(means.values())))) if other != place]
    return max(means, key=lambda name: float(means[name][others or [place]].mean()))


def _versus(name: str, differences: Floats) -> Versus:
    return Versus(name, differences, _scaled(paired_difference([differences])))


def pooled(cells: Iterable[TrialCell]) -> PairedDifference:
    """Return the mean difference to the rivals over cells, with its interval.

    Cells of one dataset have the same windows, so their differences are averaged window by window
    before blocks of these are drawn.
    """
    by_dataset: dict[tuple[str, int, int], list[Floats]] = {}
    for cell in cells:
        dataset = cell.family, cell.point.ch, cell.dataset
        by_dataset.setdefault(dataset, []).append(cell.rival.differences)
    rows = [np.mean(several, axis=0) for several in by_dataset.values()]
    return _scaled(paired_difference(rows))


def with_and_without(grid: Measured, way: str, measure: TrialMeasure) -> Iterator[TrialCell]:
    """Yield each policy that ran with a way and without it, against itself without it."""
    for text in grid.policies:
        name, ways = split_ways(text)
        if ways != (way,) or name not in grid.policies:
            continue
        for point in grid.points:
            yield from _cells(grid, ways, text, [name], point, measure)


def _scaled(found: PairedDifference) -> PairedDifference:
    return PairedDifference(*(EVALUATIONS * value for value in found))
