"""How much of a source was read, where it has an end that is known: files and folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.runtime.sources.cuts import Place
    from rsp_engine.runtime.sources.source import Source

__all__ = ["Extent", "Finite", "extent_of"]


class Extent(NamedTuple):
    """So much was read, of so much: bytes of files, or files of a folder.

    Where both are read, they are thousandths of all sources, each of which counts the same.
    """

    done: int
    whole: int
    unit: Literal["bytes", "files", "thousandths"] = "bytes"


@runtime_checkable
class Finite(Protocol):
    """A source that may know where it ends."""

    def extent(self) -> Extent | None:
        """Return how much was read here; nothing where the end is not known."""


def extent_of(sources: Sequence[Source], read_to: Mapping[int, Place]) -> Extent | None:
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
