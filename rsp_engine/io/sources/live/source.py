"""Live sources as the drivers see them: partitions that grow, each read split by split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from rsp_engine.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rsp_engine.io.sources.predicate_sample import PredicateSample
    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.splits import Split, SplitPart
    from rsp_engine.model.streams import DeadLetter, Element

__all__ = ["LivePartition", "LiveSource"]

_POLL_S = 0.2
_SPLIT_BYTES = 1 << 20


class LivePartition(Protocol):
    """A log of messages that grows at its end; positions in it are offsets.

    Partitions of one source are one stream: they are merged by event time, as sources are.
    """

    name: str
    blank_node_scope: BlankNodeScope
    start: int | None
    """The offset from which it is read; None if that is not known yet, or its own first one."""

    @property
    def can_be_cut(self) -> bool:
        """Return True: a partition is always read in splits."""

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of the messages so far; a later call may yield more."""

    def part(self, split: Split) -> SplitPart:
        """Return the messages of a split; wait for the sender if they are not at hand."""

    def is_at_hand(self, split: Split) -> bool:
        """Return whether a split can be read now; wait a moment for it."""

    def report(self, trouble: str) -> None:
        """Log once that the sender is away."""

    def bytes_in(self, split: Split) -> int:
        """Return about how many bytes a split has."""

    def go_on(self, since: Split) -> None:
        """Prepare to continue after a split; raise `SourceError` if that is known to be gone."""

    def release(self, until: int) -> None:
        """Release the messages before an offset: the run no longer needs them."""

    def wait(self, since: Split | None, seconds: float) -> None:
        """Wait until there are messages after a split, or the time is up."""

    @property
    def has_ended(self) -> bool:
        """Whether no more messages will follow; raise the failure if receiving failed."""

    @property
    def is_silent(self) -> bool:
        """Whether the idle timeout has passed without a message."""

    @property
    def is_full(self) -> bool:
        """Whether a sender is blocked until messages are released."""


class LiveSource(ABC):
    """A source of messages without an end; `begin` starts to receive them."""

    blank_node_scope: BlankNodeScope = "element"
    name: str

    @abstractmethod
    def begin(self, folder: Path, *, is_kept: bool) -> None:
        """Start to receive; what must be on disk goes to a folder, which may outlive the run."""

    @abstractmethod
    def end(self) -> None:
        """Stop receiving; the messages that were received can still be read."""

    @abstractmethod
    def close(self) -> None:
        """Stop receiving, and release all resources."""

    @abstractmethod
    def partitions(self) -> Sequence[LivePartition]:
        """Return the partitions that are known so far, at least one; later calls may add some.

        All that `cut` yields until the next call was received before this one.
        """

    @abstractmethod
    def predicates(self) -> PredicateSample:
        """Return the predicates of the first messages of this run."""

    def include(self, number: int, start: int) -> None:
        """Include the partition with a number, which is read from an offset on."""
        raise SourceError(f"{self.name}: it has no partition {number} to read from {start} on")

    def interrupt(self) -> None:
        """Stop waiting for the sender in `LivePartition.part`, since the run stops."""
        return

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read messages as they arrive, until the source ends."""
        since: dict[int, Split] = {}
        while True:
            partitions = self.partitions()
            # Check before reading: messages may arrive until the end.
            is_over = all(partition.has_ended for partition in partitions)
            for number, partition in enumerate(partitions):
                for split in partition.cut(_SPLIT_BYTES, since.get(number)):
                    yield from partition.part(split)
                    since[number] = split
            if is_over:
                return
            partitions[0].wait(since.get(0), _POLL_S)
