"""Segments: stretches of a stream that others have read, matched and reduced.

A segment is a run of neighbouring elements of one source, within which no window closes: the first
of them may raise the watermark past the close of a window, the others do not. What such elements
leave behind is which panes they are in and what they hold, so that they can be taken together:

    elements    1  3  2 | 11 12 10 | 21     windows close after 10 and after 20
    segments    rise 1    rise 11    rise 21

Of each segment every scan has a parcel for each pane: the triples, or the solutions that the
operator needs, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.sparql.pane_matcher import Matched

__all__ = ["PaneContent", "PlacedLetter", "Segment"]


@dataclass(frozen=True, slots=True)
class PlacedLetter:
    """A dead letter between elements, and when the latest of its place before it came, if any."""

    letter: DeadLetter
    after: int | None


@dataclass(frozen=True, slots=True)
class PaneContent:
    """What a segment holds in a pane of a scan: triples, or solutions if the scan asks for them."""

    step: int
    """Which query it is for, by its place among all of them."""
    scan: int
    """Which of its scans."""
    pane: Pane
    content: Sequence[Triple] | Matched


@dataclass(frozen=True, slots=True)
class Segment:
    """Neighbouring elements, taken together."""

    timestamp: int
    """When the first of them came."""
    high: int
    """When the latest of them came."""
    elements: int
    triples: int
    between_windows: int
    """How many of the elements no window takes, because they fall between two."""
    parcels: Sequence[PaneContent]
