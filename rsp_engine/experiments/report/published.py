"""What AcquaTop publishes: Table 6, the improvement of the proposed policies in percent.

(Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data, section 6.8.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.experiments.report.measured import BOTH

if TYPE_CHECKING:
    from rsp_engine.experiments.report.measured import Measure
    from rsp_engine.experiments.suite import Parameter

__all__ = ["COMPARISONS", "EXPERIMENTS", "TABLE_6", "Improvement"]


class Improvement(NamedTuple):
    """The largest and the least over the settings of an experiment, in percent."""

    most: float
    least: float


EXPERIMENTS: dict[Parameter, int] = {"budget": 1, "ch": 2, "k": 3, "n": 4}
"""Which experiment varies which parameter."""

COMPARISONS = (
    ("AT-TSM", "WSJ-WBM"),
    ("AT-TSM", "WSJ-LRU"),
    ("AT-BSM", "WSJ-WBM"),
    ("AT-BSM", "WSJ-LRU"),
)

_ROWS = """
11.68 -3.58 19.16 -3.76  18.28  2.75 10.22 -2.35  11.68  0.2  18.04 -10.26  11.71 10.05 18.3   9.06
14.22 -1.76  8.27 -2.69  20.87  2.57 11.94 -1.04  11.46  0.07  5.06 -23.72  11.46  3.65  5.29 -1.87
11.7   2.76 19.39  1.44  11.86  0.75 14.99  1.47  11.7  -0.29 18.5    2.8   11.72  4.39 18.5   5.47
 9.1   0.68 11.95  0.55  13.27  0.65 16.78  2.83   5.58 -0.34  5.47  -8.59  10.71  3.65  9.06 -1.87
"""
"""A row for each comparison; for each experiment nDCG and precision, each max and min."""

TABLE_6: dict[tuple[int, tuple[str, str], Measure], Improvement] = {
    (number, compared, measure): Improvement(*map(float, row.split()[at : at + 2]))
    for compared, row in zip(COMPARISONS, _ROWS.strip().splitlines(), strict=True)
    for number in EXPERIMENTS.values()
    for at, measure in zip((4 * number - 4, 4 * number - 2), BOTH, strict=True)
}
"""By experiment, comparison and measure."""
