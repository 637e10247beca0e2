"""The merge of sources: all streams as one sequence, in the order of event time."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.io.sources.batch import InBatches
from rsp_engine.model.streams import Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.drivers.splits.segments import Segment
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.io.sources.batch import ElementBatch
    from rsp_engine.model.streams import DeadLetter

    Item = ElementBatch | Segment | Element | DeadLetter

__all__ = ["merge_sources"]


@dataclass(frozen=True, slots=True)
class _Reader:
    """An open source."""

    number: int
    stream: str
    source: ElementSource
    items: Iterator[Element | DeadLetter]


def merge_sources(
    sources: Mapping[str, Sequence[ElementSource]], *, in_batches: bool
) -> Iterator[tuple[str, Item | None, ElementSource | None]]:
    """Yield the name of a stream, the next item of one of its sources, and that source.

    At the end of a stream, item and source are None. With `in_batches`, a single source yields its
    batches as they are, since there is nothing to merge them with.
    """
    opened = [(stream, source) for stream, bound in sources.items() for source in bound]
    if len(opened) > 1:
        yield from _by_time([_Reader(n, *each, iter(each[1])) for n, each in enumerate(opened)])
        return
    for stream, source in opened:
        items: Iterable[Item] = source
        if in_batches and isinstance(source, InBatches):
            items = source.batches()
        yield from ((stream, item, source) for item in items)
        yield stream, None, None


def _by_time(
    readers: Sequence[_Reader],
) -> Iterator[tuple[str, Element | DeadLetter | None, ElementSource | None]]:
    left = Counter(reader.stream for reader in readers)
    heads: list[tuple[int, int, Element]] = []
    to_read = deque(readers)
    while to_read or heads:
        while to_read:
            reader = to_read.popleft()
            element = None
            for item in reader.items:
                if isinstance(item, Element):
                    element = item
                    break
                yield reader.stream, item, reader.source
            if element is not None:
                heapq.heappush(heads, (element.timestamp, reader.number, element))
                continue
            left[reader.stream] -= 1
            if not left[reader.stream]:
                yield reader.stream, None, None
        if heads:
            _, number, element = heapq.heappop(heads)
            yield readers[number].stream, element, readers[number].source
            to_read.append(readers[number])
