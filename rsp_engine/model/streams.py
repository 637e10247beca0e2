"""What a stream is made of: elements, and what could not become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyoxigraph import Triple

__all__ = ["DeadLetter", "Element", "Lane"]


class Element(NamedTuple):
    """A set of triples with one timestamp, in integer milliseconds of event time.

    `source`, `position` and `raw` say where it came from and how it was written, in case it has
    to be set aside.
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
    """Input that was set aside: where it was, what it was, and why.

    The position is the number of its line, from 1, or of its file's first line.
    """

    source: str
    position: int
    raw: bytes
    reason: str


class Lane(NamedTuple):
    """Elements that are taken as one: when each came, and how many triples it has.

    >>> Lane([10, 20], [2, 1]).times()
    [10, 10, 20]
    """

    timestamps: Sequence[int]
    sizes: Sequence[int]

    def times(self) -> Sequence[int]:
        """Return when each triple came."""
        timestamps, sizes = self
        if sizes == [1] * len(sizes):
            return timestamps
        pairs = zip(timestamps, sizes, strict=True)
        return [timestamp for timestamp, size in pairs for _ in range(size)]
