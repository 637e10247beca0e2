"""Batches of elements, from sources that parse block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rsp_engine.model.streams import Element

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.streams import DeadLetter

__all__ = ["ElementBatch", "InBatches"]


@dataclass(frozen=True, slots=True)
class ElementBatch:
    """Consecutive elements, stored by column; an `Element` is created only on access.

    >>> batch = ElementBatch("a.nq", [10, 20], [], [0, 0, 0], [1, 2], [b"#", b"#"])
    >>> batch[1].timestamp, len(list(batch))
    (20, 2)
    """

    source: str
    timestamps: Sequence[int]
    triples: Sequence[Triple]
    """The triples of all elements, concatenated."""
    starts: Sequence[int]
    """The start of each element in `triples`, followed by the length of `triples`."""
    positions: Sequence[int]
    raws: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.timestamps)

    def __getitem__(self, index: int) -> Element:
        triples = tuple(self.triples[self.starts[index] : self.starts[index + 1]])
        timestamp, position = self.timestamps[index], self.positions[index]
        return Element(timestamp, triples, self.source, position, self.raws[index])

    def between(self, first: int, behind: int) -> ElementBatch:
        """Return the elements from an index on, up to another."""
        part = slice(first, behind)
        start, end = self.starts[first], self.starts[behind]
        return ElementBatch(
            self.source,
            self.timestamps[part],
            self.triples[start:end],
            [each - start for each in self.starts[first : behind + 1]],
            self.positions[part],
            self.raws[part],
        )

    def __iter__(self) -> Iterator[Element]:
        return map(self.__getitem__, range(len(self)))


@runtime_checkable
class InBatches(Protocol):
    """A source that can also yield its elements in batches, in the same order."""

    def batches(self) -> Iterator[ElementBatch | Element | DeadLetter]:
        """Read the stream from its start; no element is delayed to fill a batch."""
