"""The cost of evaluating windows here or by executors, from which a micro-batch chooses.

    here        n (L + A)                  the window before is loaded already
    executors   J + (P - 1) L + n (L + A) / c

for n windows of P panes, c cores, L the seconds to load a pane, A those to ask a window, and J
those of a job. L and A are measured, and grow with the rows of a pane. So executors are chosen if

    n (L + A) (1 - 1/c) > J + (P - 1) L

Each of them loads the first window of its run. Where each has a bucket of the keys instead, all
load together, and (P - 1) L is divided by c too. A window of very many rows is not loaded here at
all: the memory of one process bounds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MOST_ROWS", "JobCost", "WindowCost"]

MOST_ROWS = 500_000
"""The most rows of a window that one process loads where several can: some 200 MB."""

_NEW_WEIGHT = 0.5  # of a measurement against those before it
_LEAST = 1e-9  # seconds: nothing costs nothing


def _mixed(known: float, measured: float) -> float:
    return (1 - _NEW_WEIGHT) * known + _NEW_WEIGHT * max(_LEAST, measured)


@dataclass(slots=True)
class JobCost:
    """The seconds that a job of Spark takes beyond its tasks."""

    seconds: float = 0.05
    """Before the first job: that of a small job on two cores."""

    def note(self, seconds: float) -> None:
        """Note a job."""
        self.seconds = _mixed(self.seconds, seconds)


@dataclass(slots=True)
class WindowCost:
    """What the windows of a query cost: in seconds per row, as a window has so many rows."""

    load: float = 2e-6
    """To load a row of a pane: before the first measurement, about that of Oxigraph."""
    ask: float = 1e-6
    """To ask a window, for each of its rows."""

    def note(self, windows: Sequence[tuple[float, int]], panes: int, *, is_first: bool) -> None:
        """Note consecutive windows: the seconds and the rows of each.

        If it `is_first`, the first of them was loaded whole, and not moved from the one before it.
        """
        rates = [seconds / rows for seconds, rows in windows if rows]
        if not rates:
            return
        if not is_first:
            self._scale(sum(rates) / len(rates) / (self.load / panes + self.ask))
        elif len(rates) == 1 or panes == 1:
            self._scale(rates[0] / (self.load + self.ask))
        else:
            whole, moved = rates[0], sum(rates[1:]) / len(rates[1:])
            load = max(0.0, whole - moved) * panes / (panes - 1)
            self.load, self.ask = _mixed(self.load, load), _mixed(self.ask, whole - load)

    def _scale(self, factor: float) -> None:
        self.load, self.ask = (_mixed(each, factor * each) for each in (self.load, self.ask))

    def gains(
        self, rows: Sequence[int], panes: int, cores: int, job: JobCost, *, has_buckets: bool
    ) -> bool:
        """Return whether executors evaluate windows of so many rows better than this process."""
        if not rows or cores < 2:
            return False
        if max(rows) > MOST_ROWS:
            return True
        mean = sum(rows) / len(rows)
        load, ask = self.load * mean / panes, self.ask * mean
        first = (panes - 1) * load / (cores if has_buckets else 1)
        return len(rows) * (load + ask) * (1 - 1 / cores) > job.seconds + first
