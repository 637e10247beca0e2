"""S2R: from a stream to the content of its windows.

A scan keeps only what its open windows need. It takes elements and the watermark, and closes its
windows in order. (RSP-QL: Dell'Aglio, Della Valle, Calbimonte, Corcho: RSP-QL semantics, IJSWIS
10(4), 2014, where a window operator maps a stream to a graph at an instant.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.answers import Interval
    from rsp_engine.model.state import StateData

__all__ = [
    "BEFORE_T0",
    "BETWEEN_WINDOWS",
    "LATE",
    "PASSED",
    "Contents",
    "Refusal",
    "Scan",
]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a scan rejects an element; `is_fault` unless the query itself excludes it."""

    reason: str
    is_fault: bool = True


LATE = Refusal("late: all its windows are closed")
PASSED = Refusal("late: elements after it have been counted")
BEFORE_T0 = Refusal("before t0: it is before the first window")
BETWEEN_WINDOWS = Refusal("it falls between two windows", is_fault=False)


class Contents(Protocol):
    """A provider of the content of a window."""

    def content(self) -> Iterable[tuple[Hashable, Sequence[Triple]]]:
        """Return the parts of the content of the last closed window, each with its own key.

        The part of a key never changes from one window to the next.
        """


class Scan(Contents, Protocol):
    """The S2R operator of one window clause. It closes its windows in order, by their index."""

    closed: int
    """The index of the last closed window, -1 before the first."""

    has_news: bool
    """Whether a window may have become due since this was last set to false."""

    def take(
        self,
        timestamp: int,
        triples: Sequence[Triple],
        watermark: float,
    ) -> Refusal | None:
        """Take an element, or return why it is rejected."""

    def settle(self, watermark: float) -> None:
        """Advance the watermark: no earlier element will arrive."""

    def next(self, *, skip_empty: bool) -> tuple[int, int] | None:
        """Return the index and the closing instant of the next window, if they are known."""

    def last_content(self) -> float:
        """Return the closing instant of the last window that has content so far."""

    def close(self, index: int) -> None:
        """Close the windows up to this one, and drop what no later window holds."""

    def close_until(self, instant: int) -> None:
        """Close every window whose closing instant is not after `instant`."""

    def interval(self) -> Interval:
        """Return the edges of the last closed window."""

    def is_empty(self) -> bool:
        """Return whether the last closed window has no content."""

    def state(self) -> StateData:
        """Return the state of the scan as plain data."""

    def restore(self, state: StateData) -> None:
        """Restore the scan from a state."""
