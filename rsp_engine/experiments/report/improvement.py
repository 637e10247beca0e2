"""Table 6 of AcquaTop in our numbers: how far the proposed policies are ahead of those before.

The paper does not say what its percentages are of. Here they are of the windows: the difference of
two medians, divided by the most that a sum over the windows can be. On a stored run of the authors,
with the nDCG of their program, this gives 11.6 for the budget of 15, where they print 11.68.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.experiments.report.published import COMPARISONS, Improvement

if TYPE_CHECKING:
    from rsp_engine.experiments.report.measured import Measure, Measured, Point

__all__ = ["improvement", "improvements"]


def improvement(grid: Measured, compared: tuple[str, str], measure: Measure, point: Point) -> float:
    """Return by how many percent the first of two policies is ahead at a point."""
    ours, theirs = (grid.median(policy, point, measure).value for policy in compared)
    return 100 * (ours - theirs) / grid.windows


def improvements(grid: Measured, measure: Measure) -> dict[tuple[str, str], Improvement]:
    """Return the largest and the least improvement over all points, for each comparison."""
    found = {}
    for compared in COMPARISONS:
        if {*compared} <= {*grid.policies}:
            values = [improvement(grid, compared, measure, point) for point in grid.points]
            found[compared] = Improvement(max(values), min(values))
    return found
