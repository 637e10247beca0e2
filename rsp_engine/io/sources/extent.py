"""Sizes of finite sources, and progress: how much of the files and folders of a run was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rsp_engine.monitor.run_monitor import Extent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.io.sources.source import ElementSource
    from rsp_engine.io.sources.splits import Split

__all__ = ["SizedSource", "bytes_of", "extent_of", "is_sized"]


@runtime_checkable
class SizedSource(Protocol):
    """A source that may know its size."""

    def extent(self) -> Extent | None:
        """Return how much was read by this process; `None` if the size is not known."""


@runtime_checkable
class _FolderSource(Protocol):
    """A source of many files, whose extent counts files."""

    def size(self) -> int:
        """Return the bytes of all files."""


def is_sized(source: ElementSource) -> bool:
    """Return whether a source is made of files, so that it can be read again."""
    return isinstance(source, SizedSource) and source.extent() is not None


def bytes_of(sources: Sequence[ElementSource]) -> int:
    """Return the bytes of the files of all sources; those without a known size have none."""
    return sum(map(_bytes, sources))


def _bytes(source: ElementSource) -> int:
    if isinstance(source, _FolderSource):
        return source.size()
    extent = source.extent() if isinstance(source, SizedSource) else None
    return extent.whole if extent is not None and extent.unit == "bytes" else 0


def extent_of(sources: Sequence[ElementSource], read_to: Mapping[int, Split]) -> Extent | None:
    """Return how much of all sources was read; `None` if the size of one is not known.

    `read_to` has the last split that was read of each source that executors read, by the index of
    the source.
    """
    extents: list[Extent] = []
    for number, source in enumerate(sources):
        extent = source.extent() if isinstance(source, SizedSource) else None
        if extent is None:
            return None
        if number in read_to:
            end = read_to[number].end
            extent = extent._replace(done=extent.whole if end is None else min(end, extent.whole))
        extents.append(extent)
    if len({each.unit for each in extents}) > 1:
        extents = [Extent(e.done * 1000 // (e.whole or 1), 1000, "thousandths") for e in extents]
    if not extents:
        return None
    done, whole = sum(each.done for each in extents), sum(each.whole for each in extents)
    return Extent(done, whole, extents[0].unit)
