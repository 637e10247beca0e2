"""The table of sets of queries: one budget for all, against equal parts and separate replicas.

A difference is paired: both runs answer the same windows of the same datasets, and the measure of a
window is the mean over the queries of the set. Its interval is that of the mean over datasets by
Student's t, since each dataset has a seed of its own. The worst query is the one with the least
mean over all windows, on average over the datasets.

(Student: The probable error of a mean, Biometrika 1908.)
"""

from __future__ import annotations

from html import escape
from math import inf, sqrt
from typing import TYPE_CHECKING

from rsp_engine.experiments.policy_run import variant
from rsp_engine.experiments.report.figures import MEASURE_LABELS
from rsp_engine.experiments.report.measured import BOTH, MEASURES
from rsp_engine.experiments.report.tables import html_table
from rsp_engine.experiments.trials.bootstrap import PairedDifference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.experiments.report.measured import Measure, Measured, Point
    from rsp_engine.model.arrays import Floats

__all__ = ["by_dataset", "query_sets_rows", "query_sets_table"]

_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""The 97.5 % quantile of Student's t for 1, 2, ... degrees of freedom; 2.086 from 20 on."""


def by_dataset(differences: Floats) -> PairedDifference:
    """Return the mean of differences, one of each dataset, with its 95 % interval.

    >>> import numpy as np
    >>> found = by_dataset(np.array([0.1, 0.2, 0.3]))
    >>> [round(value, 3) for value in found]
    [0.2, -0.048, 0.448]
    """
    mean, count = float(differences.mean()), len(differences)
    if count < 2:
        return PairedDifference(mean, -inf, inf)
    error = float(differences.std(ddof=1)) / sqrt(count)
    half = _T[min(count - 1, len(_T)) - 1] * error
    return PairedDifference(mean, mean - half, mean + half)


_HEAD = ("queries", "policy", "measure", "mean", "worst query", "gain of one budget [95 %]", "keys")


def query_sets_rows(grid: Measured) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table, as plain text: of each point, measure and policy."""
    for point in grid.points:
        for measure in BOTH:
            for policy in grid.policies:
                yield (
                    str(point.queries),
                    policy,
                    MEASURE_LABELS[measure],
                    f"{_means(grid, policy, point, measure).mean():.4f}",
                    f"{_worst(grid, policy, point, measure):.4f}",
                    _gain(grid, policy, point, measure),
                    f"{grid.fetched(policy, point):.1f}",
                )


def query_sets_table(grid: Measured) -> str:
    """Return the table of a grid of sets; empty if it has none."""
    if not grid.by_query:
        return ""
    note = (
        "<p>Means over the queries of a set and all windows. The gain is that of the policy with "
        "one budget for all, divided by marginal value, over that of the row: paired by dataset, "
        "with its 95 % interval by Student's t. <i>+equal</i>: one replica, equal parts of the "
        "budget; <i>+apart</i>: a replica for each query, too. The keys are those that a set "
        "fetches for a window, of all queries together.</p>"
    )
    rows = (tuple(map(escape, row)) for row in query_sets_rows(grid))
    return note + html_table(_HEAD, rows, "numbers")


def _means(grid: Measured, policy: str, point: Point, measure: Measure) -> Floats:
    """Return the mean of each dataset."""
    means: Floats = grid.rows[policy, point][MEASURES.index(measure)].mean(axis=1)
    return means


def _worst(grid: Measured, policy: str, point: Point, measure: Measure) -> float:
    return float(grid.by_query[policy, point][MEASURES.index(measure)].min(axis=1).mean())


def _gain(grid: Measured, policy: str, point: Point, measure: Measure) -> str:
    """Return how far the same policy with one budget is ahead; empty if it did not run."""
    chosen = variant(policy)
    together = [
        name
        for name in grid.policies
        if name.startswith(chosen.policy.name) and variant(name).division is None
    ]
    if chosen.division is None or not together:
        return ""
    ours = _means(grid, together[0], point, measure)
    gain = by_dataset(ours - _means(grid, policy, point, measure))
    return f"{gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
