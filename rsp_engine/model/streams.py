"""Stream elements, and dead letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyoxigraph import Triple

__all__ = ["DeadLetter", "Element"]


class Element(NamedTuple):
    """A set of triples with one timestamp, in integer milliseconds of event time.

    `source`, `position` and `raw` keep its origin and its bytes, for the dead letter file.
    """

    timestamp: int
    triples: tuple[Triple, ...]
    source: str
    position: int
    raw: bytes

    def set_aside(self, reason: str) -> DeadLetter:
        """Return the element as a dead letter."""
        return DeadLetter(self.source, self.position, self.raw, reason)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Input that was set aside: its source and position, its bytes, and the reason.

    The position is the number of its line, from 1, or of its file's first line.
    """

    source: str
    position: int
    raw: bytes
    reason: str
