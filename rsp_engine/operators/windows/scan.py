"""S2R: from a stream to the content of its windows.

A scan holds what its open windows need and nothing else. It is told the watermark, takes elements,
and closes its windows in order. (RSP-QL: Dell'Aglio, Della Valle, Calbimonte, Corcho: RSP-QL
semantics, IJSWIS 10(4), 2014, where a window operator maps a stream to a graph at an instant.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.answers import Interval
    from rsp_engine.model.state import StateData
    from rsp_engine.model.streams import Lane

__all__ = [
    "BEFORE_T0",
    "BETWEEN_WINDOWS",
    "LATE",
    "NO_LANE",
    "PASSED",
    "Contents",
    "Refusal",
    "Scan",
]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an element was not taken; `is_fault` unless the query itself leaves it out."""

    reason: str
    is_fault: bool = True


LATE = Refusal("late: all its windows are closed")
PASSED = Refusal("late: elements after it have been counted")
BEFORE_T0 = Refusal("before t0: it is before the first window")
BETWEEN_WINDOWS = Refusal("it falls between two windows", is_fault=False)
NO_LANE = inf, -inf
"""No two elements can be taken together."""


class Contents(Protocol):
    """What can be asked for the content of a window."""

    def content(self) -> Iterable[tuple[Hashable, Sequence[Triple]]]:
        """Return the parts of the content of the last closed window, each with its own key.

        A part with a key that was seen before is the same as it was then.
        """


class Scan(Contents, Protocol):
    """A window over a stream. Windows are closed in order, by their index."""

    closed: int
    """The last window that was closed, -1 before the first."""

    has_news: bool
    """Whether a window may be due that was not when this was last set to false."""

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
        lane: Lane | None = None,
    ) -> Refusal | None:
        """Take an element, or say why not; or a lane of them, of which it is the first."""

    def lane(self, watermark: float) -> tuple[float, float]:
        """Return after and up to which instant elements can be taken together, as one.

        They are those of the pane of the element before: all are taken, into the same windows.
        """

    def settle(self, watermark: float) -> None:
        """Learn that no element before the watermark is still to come."""

    def next(self, *, skip_empty: bool) -> tuple[int, int] | None:
        """Return the next window to close and its instant, if they are known."""

    def last_content(self) -> float:
        """Return the instant at which the last window closes that holds an element so far."""

    def close(self, index: int) -> None:
        """Close the windows up to this one, and forget what no later one holds."""

    def close_until(self, instant: int) -> None:
        """Close every window that closes at an instant or before."""

    def interval(self) -> Interval:
        """Return the edges of the last window that was closed."""

    def is_empty(self) -> bool:
        """Tell whether the last closed window holds nothing."""

    def state(self) -> StateData:
        """Return what is held, as plain data, to be restored from."""

    def restore(self, state: StateData) -> None:
        """Go on from a state."""
