"""MinTopk or SAP: which of them ranks a query whose score is known on arrival.

MinTopk does a little work for all its candidates at every slide; SAP does most of its work once
for a partition of many slides. So SAP is ahead where a window has many slides, and the more so the
fewer objects come in a slide; where slides are few, or k is large, MinTopk is. The threshold is
what `benchmarks/bench_sap.py` measures: see the table of thresholds in `docs/performance.md`.

How many objects come in a slide is known only when they come: a window over time does not tell, and
not every element that is counted has a solution. It is not needed: with so many slides a window,
SAP is ahead or close behind however many they are.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from rsp_engine.grammar import tree

__all__ = ["RankerChoice", "chosen_ranker", "slides_of", "threshold"]


def threshold(k: int) -> int:
    """Return from how many slides a window on SAP is the choice.

    >>> threshold(5), threshold(100), threshold(1000)
    (100, 500, 5000)
    """
    return max(100, 5 * k)


class RankerChoice(NamedTuple):
    """An operator, and why it was chosen."""

    ranker: Literal["MinTopk", "SAP"]
    why: str


def slides_of(frame: tree.TimeWindow | tree.CountWindow) -> int:
    """Return n / s: how many slides a window has."""
    if isinstance(frame, tree.TimeWindow):
        size, step = frame.range.milliseconds, (frame.step or frame.range).milliseconds
    else:
        size, step = frame.size.value, (frame.step or frame.size).value
    return max(1, -(-size // step))


def chosen_ranker(slides: int, k: int) -> RankerChoice:
    """Choose by n / s and k.

    >>> chosen_ranker(9, 5).ranker, chosen_ranker(3600, 5).ranker
    ('MinTopk', 'SAP')
    """
    known = f"a window has {slides:,} slide{'s' * (slides > 1)} (n / s), and k is {k:,}"
    least = threshold(k)
    if slides >= least:
        return RankerChoice("SAP", f"{known}: from {least:,} slides on, SAP is ahead of MinTopk")
    return RankerChoice("MinTopk", f"{known}: below {least:,} slides, MinTopk is ahead of SAP")
