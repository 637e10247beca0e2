"""Places: where in each stream a query begins to read, and which windows it answers.

The start of a query changes no answer. It only says which windows are answered: those that close
after it. What they hold is read from further back, and a window that is not wholly kept is left
out. So a query that is registered late gives the bytes that it would have given had it run all the
time, from its first answer on.

    log of the stream   |--------------------------------------------------->
                                |        |                  |
    read from here          ----+        |                  |
    a window before it          (--------]  evaluated, for ISTREAM, but not answered
    start                                   ^
    the first answer                    (------------------]

Count windows are counted from where the query begins to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.model.windows import CountFrame, TimeFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.model.answers import Interval

__all__ = ["Begun", "begins", "complete_from", "has_count_windows", "is_kept", "read_from"]

_BEFORE_ALL = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Begun:
    """Which windows a query answers: those that close after an instant, and are wholly kept."""

    after: int | None
    """None is before all."""
    complete: tuple[tuple[TimeFrame, int], ...] = ()
    """The frames of windows, each with the instant after which its stream is wholly kept."""

    def answers(self, window: Interval) -> bool:
        """Return whether the answer of a window is given."""
        if self.after is not None and window.close <= self.after:
            return False
        return all(_first(frame, window.close) > since for frame, since in self.complete)


def _first(frame: TimeFrame, instant: int) -> int:
    """Return the first time that belongs to the last window that is closed at an instant."""
    index = (instant - frame.t0 - frame.range) // frame.step
    return frame.interval(max(index, 0)).open + (frame.bounds == "(]")


def begins(plan: PhysicalPlan, after: int | None, kept: Mapping[str, int]) -> Begun:
    """Return which windows a query answers; `kept` is since when each stream is complete."""
    frames = [(s.frame, kept[s.stream]) for s in plan.scans if s.stream in kept]
    return Begun(after, tuple((f, since) for f, since in frames if isinstance(f, TimeFrame)))


def complete_from(plans: Sequence[PhysicalPlan], kept: Mapping[str, int]) -> dict[str, int]:
    """Return since when each stream is complete: those that are kept, and those of answers.

    The plans are in the order in which they read each other's answers.
    """
    complete = dict(kept)
    for plan in plans:
        since = [
            complete[scan.stream] + scan.frame.range
            for scan in plan.scans
            if scan.stream in complete and isinstance(scan.frame, TimeFrame)
        ]
        if plan.feeds is not None and since:
            complete[plan.feeds] = max(since)
    return complete


def read_from(
    plans: Sequence[PhysicalPlan], after: Mapping[str, int | None]
) -> dict[str, int | None]:
    """Return from which event time on each stream is read; None is its beginning.

    `after` is the start of each query by its name. The plans are in the order in which they read
    each other's answers.
    """
    needed: dict[str, int | None] = {}
    for plan in reversed(plans):
        starts = [after[plan.name]]
        if plan.feeds in needed:
            starts.append(needed[plan.feeds])
        start = _least(starts)
        back = _back(plan)
        for scan in plan.scans:
            own = None if start is None else start - back
            known = [needed[scan.stream]] if scan.stream in needed else []
            needed[scan.stream] = _least([own, *known])
    return needed


def _least(times: Iterable[int | None]) -> int | None:
    least = min(_BEFORE_ALL if time is None else time for time in times)
    return None if least == _BEFORE_ALL else least


def _back(plan: PhysicalPlan) -> int:
    """Return how far before an instant begin the windows of the evaluation before it."""
    frames = [scan.frame for scan in plan.scans if isinstance(scan.frame, TimeFrame)]
    ranges, steps = [f.range for f in frames], [f.step for f in frames]
    return max(ranges, default=0) + 2 * max(steps, default=0)


def is_kept(plan: PhysicalPlan, after: int, complete: Mapping[str, int]) -> bool:
    """Return whether all is kept of the first windows that close after an instant."""
    for scan in plan.scans:
        if scan.stream not in complete:
            continue
        if not isinstance(scan.frame, TimeFrame):
            return False
        index = max((after - scan.frame.t0 - scan.frame.range) // scan.frame.step + 1, 0)
        if _first(scan.frame, scan.frame.interval(index).close) <= complete[scan.stream]:
            return False
    return True


def has_count_windows(plan: PhysicalPlan) -> bool:
    """Return whether a query has windows that count elements."""
    return any(isinstance(scan.frame, CountFrame) for scan in plan.scans)
