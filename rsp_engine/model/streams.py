"""Stream elements, and dead letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyoxigraph import Triple

__all__ = ["DeadLetter", "Element"]

_KINDS = ("late", "before t0", "unsupported", "future", "large")


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

    @property
    def kind(self) -> str:
        """The kind that the reason begins with, or `malformed`; it contains no text of the input.

        >>> DeadLetter("a.csv", 2, b"", "late: all its windows are closed").kind
        'late'
        >>> DeadLetter("a.csv", 3, b"", "its time is not a number: '2:30'").kind
        'malformed'
        """
        kind = self.reason.partition(":")[0]
        return kind if kind in _KINDS else "malformed"
