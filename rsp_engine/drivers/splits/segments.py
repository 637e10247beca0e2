"""Segments: runs of elements of a split, matched and reduced.

A segment is a run of neighbouring elements of one source within which no window closes: the first
element may raise the watermark past the close of a window, the others do not. So only their panes
and their content matter, and they can be taken together:

    elements    1  3  2 | 11 12 10 | 21     windows close after 10 and after 20
    segments    rise 1    rise 11    rise 21

For each scan and each pane, a segment has one pane content: the triples, or the solutions that the
operator needs, and nothing else. What executors have stored in a file stays there, and the segment
has its manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.drivers.panes.stored_pane import StoredPane
    from rsp_engine.evaluators.step import PutContent
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.model.windows import Pane

__all__ = ["PaneContent", "Segment", "SplitLetter"]

Content = TypeVar("Content", bound="PutContent | StoredPane")


@dataclass(frozen=True, slots=True)
class SplitLetter:
    """A dead letter between the elements of a split."""

    letter: DeadLetter
    after: int | None
    """The latest timestamp before it in its split, if any."""


@dataclass(frozen=True, slots=True)
class PaneContent(Generic[Content]):
    """The content of a segment in one pane of a scan: triples, solutions, or their manifest."""

    step: int
    """The number of the query."""
    scan: int
    """The number of the scan within the query."""
    pane: Pane
    content: Content


@dataclass(frozen=True, slots=True)
class Segment:
    """Neighbouring elements of a split that are taken together."""

    timestamp: int
    """The timestamp of the first element."""
    high: int
    """The latest timestamp."""
    elements: int
    triples: int
    between_windows: int
    """How many elements fall between two windows, so that none takes them."""
    pane_contents: Sequence[PaneContent[PutContent]]
    stored: Sequence[PaneContent[StoredPane]] = ()
    """What is in files, for steps that can be evaluated in any process."""
