"""The choice between MinTopk and SAP for a query whose score is known on arrival.

MinTopk does a little work for each candidate at every slide; SAP does most of its work once for a
partition of many slides. So SAP is faster if a window has many slides, the more so the fewer
objects a slide has; MinTopk is faster if a window has few slides, or k is large. The threshold
comes from measurements by `benchmarks/bench_sap.py`: see `docs/explanation/performance.md`.

The planner does not know the number of objects in a slide: a time window does not determine it, and
a counted element may have no solution. It is not needed: above the threshold, SAP is faster than
MinTopk or close to it for any number of objects.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from rsp_engine.grammar import tree

__all__ = ["RankerChoice", "chosen_ranker", "slides_of", "threshold"]


def threshold(k: int) -> int:
    """Return the number of slides in a window from which SAP is chosen.

    >>> threshold(5), threshold(100), threshold(1000)
    (100, 500, 5000)
    """
    return max(100, 5 * k)


class RankerChoice(NamedTuple):
    """A ranker, and the reason for the choice."""

    ranker: Literal["MinTopk", "SAP"]
    why: str


def slides_of(frame: tree.TimeWindow | tree.CountWindow) -> int:
    """Return n / s, the number of slides in a window, rounded up."""
    if isinstance(frame, tree.TimeWindow):
        size, step = frame.range.milliseconds, (frame.step or frame.range).milliseconds
    else:
        size, step = frame.size.value, (frame.step or frame.size).value
    return max(1, -(-size // step))


def chosen_ranker(slides: int, k: int) -> RankerChoice:
    """Choose a ranker by n / s and k.

    >>> chosen_ranker(9, 5).ranker, chosen_ranker(3600, 5).ranker
    ('MinTopk', 'SAP')
    """
    sizes = f"a window has {slides:,} slide{'s' * (slides > 1)} (n / s), and k is {k:,}"
    least = threshold(k)
    if slides >= least:
        return RankerChoice("SAP", f"{sizes}: from {least:,} slides on, SAP is ahead of MinTopk")
    return RankerChoice("MinTopk", f"{sizes}: below {least:,} slides, MinTopk is ahead of SAP")
