"""How much of a source was read, where it has an end that is known: files and folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rsp_engine.monitor.run_monitor import Extent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.io.sources.source import ElementSource
    from rsp_engine.io.sources.splits import Split

__all__ = ["Finite", "extent_of"]


@runtime_checkable
class Finite(Protocol):
    """A source that may know where it ends."""

    def extent(self) -> Extent | None:
        """Return how much was read here; nothing where the end is not known."""


def extent_of(sources: Sequence[ElementSource], read_to: Mapping[int, Split]) -> Extent | None:
    """Return how much of all sources was read, if the ends of all are known.

    Of those that are read elsewhere, the last place that was read is given, by their number.
    """
    extents: list[Extent] = []
    for number, source in enumerate(sources):
        found = source.extent() if isinstance(source, Finite) else None
        if found is None:
            return None
        if number in read_to:
            end = read_to[number].end
            found = found._replace(done=found.whole if end is None else min(end, found.whole))
        extents.append(found)
    if len({each.unit for each in extents}) > 1:
        extents = [Extent(e.done * 1000 // (e.whole or 1), 1000, "thousandths") for e in extents]
    if not extents:
        return None
    done, whole = sum(each.done for each in extents), sum(each.whole for each in extents)
    return Extent(done, whole, extents[0].unit)
