"""Elements in batches: what a source that reads block by block has at hand at once."""

from __future__ import annotations

from dataclasses import dataclass
from operator import sub
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rsp_engine.model.streams import Element, Lane

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyoxigraph import Triple

    from rsp_engine.model.streams import DeadLetter

__all__ = ["ElementBatch", "InBatches"]


@dataclass(frozen=True, slots=True)
class ElementBatch:
    """Elements that follow each other, side by side; each is made only when it is asked for.

    >>> batch = ElementBatch("a.nq", [10, 20], [], [0, 0, 0], [1, 2], [b"#", b"#"])
    >>> batch[1].timestamp, len(list(batch))
    (20, 2)
    """

    source: str
    timestamps: Sequence[int]
    triples: Sequence[Triple]
    """Those of all elements, one after the other."""
    starts: Sequence[int]
    """Where the triples of each element begin, and at last where they all end."""
    positions: Sequence[int]
    raws: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.timestamps)

    def __getitem__(self, place: int) -> Element:
        triples = tuple(self.triples[self.starts[place] : self.starts[place + 1]])
        timestamp, position = self.timestamps[place], self.positions[place]
        return Element(timestamp, triples, self.source, position, self.raws[place])

    def lane(self, places: range) -> Lane:
        """Return when some elements came, and how many triples each has.

        >>> ElementBatch("a.nq", [10, 20], [], [0, 2, 3], [1, 2], [b"#", b"#"]).lane(range(2))
        Lane(timestamps=[10, 20], sizes=[2, 1])
        """
        starts = self.starts[places.start : places.stop + 1]
        sizes = list(map(sub, starts[1:], starts))
        return Lane(self.timestamps[places.start : places.stop], sizes)

    def __iter__(self) -> Iterator[Element]:
        return map(self.__getitem__, range(len(self)))


@runtime_checkable
class InBatches(Protocol):
    """A source that also gives its elements in batches: the same ones, in the same order."""

    def batches(self) -> Iterator[ElementBatch | Element | DeadLetter]:
        """Read the stream from its start; nothing that has come is held back for a batch."""
