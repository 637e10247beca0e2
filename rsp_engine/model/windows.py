"""Windows over event time, and the panes between their edges.

Window i of `[RANGE w STEP b]` spans `t0 + i*b` to `t0 + i*b + w`, for i >= 0. With the bounds `(]`
it is open on the left and closed on the right, as in RSP-QL; with `[)` it is the other way round.

    t0        b         2b        3b
    |---------|---------|---------|------
    (      W0        ]
              (      W1        ]
                        (      W2        ]
    |  pane   |  pane  ||  pane  ||

A pane is the stretch between two neighbouring edges: all its elements are in the same windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf
from typing import TYPE_CHECKING, Literal

from rsp_engine.model.answers import Interval

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Bounds", "CountFrame", "Pane", "TimeFrame"]

Bounds = Literal["(]", "[)"]


@dataclass(frozen=True, slots=True, order=True)
class Pane:
    """A pane, identified by the first and the last window that contain it; sorts by time."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """The key of a pane in saved states.

        >>> Pane.named(Pane(3, 5).name)
        Pane(first=3, last=5)
        """
        return f"{self.first} {self.last}"

    @classmethod
    def named(cls, name: str) -> Pane:
        """Return the pane with a name."""
        first, last = map(int, name.split(" "))
        return cls(first, last)


@dataclass(frozen=True, slots=True)
class TimeFrame:
    """`[RANGE range STEP step]`, in milliseconds."""

    range: int
    step: int
    t0: int = 0
    bounds: Bounds = "(]"

    def __post_init__(self) -> None:
        if self.range <= 0 or self.step <= 0:
            raise ValueError("RANGE and STEP must be more than zero")

    @property
    def cut(self) -> Hashable:
        """What the instants at which windows begin or end depend on.

        >>> TimeFrame(9, 3).cut == TimeFrame(6, 3).cut, TimeFrame(9, 3).cut == TimeFrame(7, 3).cut
        (True, False)
        """
        is_multiple = self.range % self.step == 0
        return (self.t0, self.step, self.bounds) if is_multiple else self

    def interval(self, index: int) -> Interval:
        """Return the bounds of window `index`.

        >>> TimeFrame(9, 3, t0=1).interval(1)
        Interval(open=4, close=13)
        """
        start = self.t0 + index * self.step
        return Interval(start, start + self.range)

    def pane(self, timestamp: int) -> Pane | None:
        """Return the pane that contains a timestamp; `None` if no window does.

        >>> TimeFrame(9, 3, t0=1).pane(10), TimeFrame(9, 3, t0=1, bounds="[)").pane(10)
        (Pane(first=0, last=2), Pane(first=1, last=3))
        """
        since = timestamp - self.t0
        if self.bounds == "(]":
            first, last = -((self.range - since) // self.step), -(-since // self.step) - 1
        else:
            first, last = (since - self.range) // self.step + 1, since // self.step
        first = max(first, 0)
        return Pane(first, last) if first <= last else None

    def edges(self, pane: Pane) -> Interval:
        """Return the edges of a pane; `bounds` says which of the two belongs to it.

        >>> TimeFrame(9, 3).edges(Pane(1, 3)), TimeFrame(10, 4).edges(Pane(0, 2))
        (Interval(open=9, close=12), Interval(open=8, close=10))
        """
        low, high = self.interval(pane.last).open, self.interval(pane.last + 1).open
        if pane.first > 0:
            low = max(low, self.interval(pane.first - 1).close)
        return Interval(low, min(high, self.interval(pane.first).close))

    def is_before_t0(self, timestamp: int) -> bool:
        """Return whether a timestamp is before the first window."""
        return timestamp <= self.t0 if self.bounds == "(]" else timestamp < self.t0

    def last_closed(self, watermark: float) -> float:
        """Return the index of the last closed window; -1 or less if there is none.

        `(o, c]` closes when the watermark exceeds c, `[o, c)` when it reaches c.
        """
        since = watermark - self.t0 - self.range
        if isinf(since):
            return since
        if self.bounds == "(]":
            return -(-since // self.step) - 1
        return since // self.step


@dataclass(frozen=True, slots=True)
class CountFrame:
    """`[ELEMENTS size STEP step]`: window i holds `size` items, from item i*step on.

    Elements are counted in timestamp order, ties in term order; ROWS is a synonym of ELEMENTS.
    TRIPLES counts the triples of the elements in that order.
    """

    size: int
    step: int
    unit: Literal["ELEMENTS", "TRIPLES", "ROWS"] = "ELEMENTS"

    def __post_init__(self) -> None:
        if self.size <= 0 or self.step <= 0:
            raise ValueError("the size and the step of a window must be more than zero")
